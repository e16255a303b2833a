"""The library of passes on weights, compiled and loaded once."""

from __future__ import annotations

import functools

import passlib
from plugin_build import Builder, library


@functools.cache
def load_weight_passes() -> passlib.library.Library:
    builder = Builder({"weights": library("weights.cc")}, ".so")
    try:
        return passlib.library.load(builder("weights"), verbose=False)
    finally:
        builder.close()
