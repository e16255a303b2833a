"""The DLPrimitives dialect: a network in JSON, its weights in a .dlp or .h5 file next to it."""

from __future__ import annotations
