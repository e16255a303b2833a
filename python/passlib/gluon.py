"""Blocks, in MXNet's module of this name: ``from passlib.gluon import nn``."""

from __future__ import annotations

from passlib import nn
from passlib.nn import Parameter, ParameterDict, SymbolBlock
from passlib.training import Trainer

__all__ = ["Parameter", "ParameterDict", "SymbolBlock", "Trainer", "nn"]
