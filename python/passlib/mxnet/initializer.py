"""Initial values of parameters, in MXNet's module of this name."""

from __future__ import annotations

from passlib.mxnet.nn.initializer import InitDesc, Initializer, alias, create, register
from passlib.mxnet.nn.initializer_classes import (
    Bilinear,
    Constant,
    LSTMBias,
    MSRAPrelu,
    Normal,
    One,
    Orthogonal,
    Uniform,
    Xavier,
    Zero,
)
from passlib.mxnet.nn.initializer_composites import FusedRNN, Load, Mixed

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]
