"""MXNet's second name of `passlib.initializer`."""

from __future__ import annotations

import sys

from passlib import initializer

sys.modules[__name__] = initializer
