"""Validation: everything wrong or suspicious in the files of a model."""

from __future__ import annotations
