"""MXNet's ``mxnet.util``: the reading of shapes, environment variables, facts about GPUs."""

from __future__ import annotations

from passlib.arrays.shape_mode import ShapeMode as np_shape  # noqa: N813 (MXNet's name)
from passlib.arrays.shape_mode import is_np_shape, set_np_shape
from passlib.mxnet.util.modes import (
    is_np_array,
    np_array,
    reset_np,
    set_module,
    set_np,
    use_np,
    use_np_array,
    use_np_shape,
)
from passlib.mxnet.util.system import (
    get_gpu_count,
    getenv,
    setenv,
)

__all__ = [
    "get_gpu_count",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "np_array",
    "np_shape",
    "reset_np",
    "set_module",
    "set_np",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_shape",
]
