"""Blocks, in MXNet's module of this name: ``from passlib.gluon import nn``."""

from __future__ import annotations

from passlib.mxnet import nn
from passlib.mxnet.nn import Parameter, ParameterDict, SymbolBlock
from passlib.mxnet.training import Trainer

__all__ = ["Parameter", "ParameterDict", "SymbolBlock", "Trainer", "nn"]
