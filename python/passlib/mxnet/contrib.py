"""MXNet's ``mx.contrib``: operators of this namespace, for arrays and for symbols."""

from __future__ import annotations

from passlib.mxnet.nd import contrib as nd
from passlib.mxnet.nd import contrib as ndarray
from passlib.mxnet.symbol import contrib as sym
from passlib.mxnet.symbol import contrib as symbol

__all__ = ["nd", "ndarray", "sym", "symbol"]
