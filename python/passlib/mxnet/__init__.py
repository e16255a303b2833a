"""MXNet's modules and names: ``import passlib.mxnet as mx`` runs MXNet's scripts.

What passlib does not have raises an error that says so, see `passlib.mxnet.training`.
"""

from __future__ import annotations

import sys as _sys

from passlib.files.module_names import lazily as _lazily
from passlib.mxnet.training import modules as _modules

__all__, __getattr__, __dir__ = _lazily(__name__, __file__, modules_of=(__name__, "passlib"))

for _name, _module in _modules.items():
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _module
