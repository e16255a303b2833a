"""MXNet's second name of `passlib.viz`."""

from __future__ import annotations

import sys

from passlib import viz

sys.modules[__name__] = viz
