"""Blocks: graphs that are called like functions, with Gluon's names."""

from __future__ import annotations

from passlib.mxnet.nn.block import SymbolBlock
from passlib.mxnet.nn.parameter import Parameter, ParameterDict

__all__ = ["Parameter", "ParameterDict", "SymbolBlock"]
