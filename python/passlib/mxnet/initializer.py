"""Initial values of parameters, in MXNet's module of this name."""

from __future__ import annotations

from passlib.mxnet.nn.initializer import (
    Bilinear,
    Constant,
    FusedRNN,
    InitDesc,
    Initializer,
    Load,
    LSTMBias,
    Mixed,
    MSRAPrelu,
    Normal,
    One,
    Orthogonal,
    Uniform,
    Xavier,
    Zero,
    alias,
    create,
    register,
)

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
