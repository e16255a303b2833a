"""Compiled graph passes for serialized models.

import passlib as pl
pl.library.load("libpass.so")
sym = pl.sym.load("model-symbol.json")
sym.optimize_for("myPass").save("optimized-symbol.json")
"""

from __future__ import annotations

from passlib.files.installation import checked_version as _checked_version
from passlib.files.module_names import also as _also
from passlib.files.module_names import lazily as _lazily

__version__ = _checked_version()

_REFUSED = (
    "callback executor_manager kv kvstore lr_scheduler mod module np npx numpy numpy_extension "
    "operator optimizer rnn training"
)
"""MXNet's modules that are no public names, so that ``import passlib as mx`` runs scripts."""

_ROOMS = "arrays dialects families files graph lowering runtime workbench"
"""Modules that are no public names, and that ``passlib.<name>`` imports nevertheless."""

__all__, __getattr__, __dir__ = _lazily(
    __name__, __file__, f"{_ROOMS} {_REFUSED}".split(), [f"{__name__}.mxnet"]
)
for _name in _REFUSED.split():
    _also(f"{__name__}.{_name}", f"{__name__}.mxnet.{_name}")
_also(f"{__name__}.dialects.ark", f"{__name__}.families.ark")
