"""Reading: from the files of a model to a checked network, its graph and its weights."""

from __future__ import annotations
