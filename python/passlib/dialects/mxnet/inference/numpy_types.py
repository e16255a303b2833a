"""Element types of NumPy operators' outputs, which follow without any shape.

Lowering finds them, too, but only where it knows how many axes the inputs have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from passlib.graph.attributes import Attributes

__all__ = ["output_types"]

DType = np.dtype
Rule = Callable[[Attributes, "DType | None"], "DType | None"]

_BOOL, _INT64 = np.dtype(np.bool_), np.dtype(np.int64)
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

_FIRST = (
    "_contrib_arange_like _contrib_boolean_mask _linalg_det _linalg_inverse _linalg_slogdet "
    "_np_atleast_1d _np_atleast_2d _np_atleast_3d _np_diag _np_diagflat _np_diagonal _np_dot "
    "_np_max _np_min _np_moveaxis _np_reshape _np_roll _np_squeeze _np_trace _np_transpose "
    "_npi_average _npi_boolean_mask_assign_scalar _npi_boolean_mask_assign_tensor "
    "_npi_broadcast_to _npi_cholesky _npi_column_stack _npi_concatenate _npi_delete _npi_det "
    "_npi_diff _npi_dsplit _npi_dstack _npi_einsum _npi_flip _npi_hsplit _npi_hstack "
    "_npi_insert_scalar _npi_insert_slice _npi_insert_tensor _npi_inv _npi_matmul _npi_norm "
    "_npi_pad _npi_polyval _npi_rot90 _npi_slogdet _npi_stack _npi_tensordot "
    "_npi_tensordot_int_axes _npi_tril _npi_vstack _npx_reshape _slice_assign "
    "_slice_assign_scalar moments sort"
)


def _is_real(dtype: DType) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _fixed(dtype: DType) -> Rule:
    return lambda at, given: dtype


def _first(at: Attributes, given: DType | None) -> DType | None:
    del at
    return given


def _chosen(natural: Callable[[DType], DType]) -> Rule:
    """Return a rule that prefers the attribute ``dtype``."""

    def rule(at: Attributes, given: DType | None) -> DType | None:
        return at.dtype("dtype", None if given is None else natural(given))

    return rule


def _summed(dtype: DType) -> DType:
    return _INT64 if dtype == _BOOL else dtype


def _averaged(dtype: DType) -> DType:
    return dtype if _is_real(dtype) else _SINGLE


def _solved(at: Attributes, given: DType | None) -> DType | None:
    del at
    return given if given is None or _is_real(given) else _DOUBLE


def _ranked(at: Attributes, given: DType | None) -> DType | None:
    del at
    return given if given is None or given == _DOUBLE else _SINGLE


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_FIRST.split(), _first),
    **dict.fromkeys(("_np_all", "_np_any", "_npx_constraint_check"), _fixed(_BOOL)),
    **dict.fromkeys(
        ("_npi_argmax", "_npi_argmin", "_npi_diag_indices_from", "_npx_nonzero"), _fixed(_INT64)
    ),
    **dict.fromkeys(("_np_cumsum", "_np_prod", "_np_sum"), _chosen(_summed)),
    **dict.fromkeys(("_npi_std", "_npi_var"), _chosen(lambda dtype: dtype)),
    **dict.fromkeys(("_npi_solve", "_npi_tensorinv", "_npi_tensorsolve"), _solved),
    "_npi_mean": _chosen(_averaged),
    "_npi_percentile": _ranked,
    "argsort": lambda at, given: at.dtype("dtype", _SINGLE),
}


def output_types(at: Attributes, given: DType | None, count: int) -> Sequence[DType | None]:
    """Return the element types of ``count`` outputs, ``None`` where no rule knows.

    Parameters
    ----------
    at : Attributes
    given : numpy.dtype or None
        Type of the first input.
    count : int

    Raises
    ------
    UnsupportedError
        The attribute ``dtype`` cannot be read.
    """
    if at.node.op == "_npi_unique":
        return [given, *[_INT64] * (count - 1)]
    if at.node.op == "topk":
        kind, places = at.string("ret_typ", "indices"), at.dtype("dtype", _SINGLE)
        return [places if kind == "indices" else given, places if kind == "both" else None][:count]
    rule = _RULES.get(at.node.op)
    return [None if rule is None else rule(at, given)] * count
