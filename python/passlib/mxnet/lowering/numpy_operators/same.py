"""NumPy operators that compute what another operator of MXNet computes."""

from __future__ import annotations

_UNARY = (
    "arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 fix floor "
    "log log10 log1p log2 negative radians reciprocal rint sign sin sinh sqrt square tan tanh trunc"
)

SAME: dict[str, str] = {
    **{f"_npi_{name}": name for name in _UNARY.split()},
    "_np_copy": "_copy",
    "_npi_absolute": "abs",
    "_npi_stack": "stack",
    "_npx_sigmoid": "sigmoid",
}
"""The other operator, by the name in NumPy mode."""

IN_NUMPY_MODE: dict[str, str] = {
    "_full": "_npi_full",
    "_linalg_det": "_npi_det",
    "_linalg_slogdet": "_npi_slogdet",
    "_ones": "_npi_ones",
    "_random_randint": "_npi_random_randint",
    "_zeros": "_npi_zeros",
}
"""What an operator of both modes is in a graph saved in NumPy mode, where MXNet writes one name.

There 0 is a size, and an array may have no axes.
"""
