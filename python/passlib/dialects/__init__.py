"""Families of models, one folder each, and the table of them."""

from __future__ import annotations

from passlib.dialects.inference import Inferred, declared, infer
from passlib.dialects.protocol import Dialect, ModelData, Problem
from passlib.dialects.table import find, names, recognise

__all__ = [
    "Dialect",
    "Inferred",
    "ModelData",
    "Problem",
    "declared",
    "find",
    "infer",
    "names",
    "recognise",
]
