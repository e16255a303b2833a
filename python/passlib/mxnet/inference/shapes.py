"""Shapes of outputs that lowering cannot infer: inputs are partly unknown, or attributes refused.

MXNet counts the length of an unknown input of a concatenation as 0, and takes an array of unknown
rank for a scalar. These rules leave such sizes open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from passlib.graph.attributes import Attributes
from passlib.lowering.types import Shape

_UNCHANGED = (
    "BatchNorm BatchNorm_v1 GroupNorm Softmax SoftmaxOutput _contrib_BatchNormWithReLU "
    "_contrib_SyncBatchNorm _image_normalize _linalg_inverse _linalg_potrf _linalg_potri _np_roll "
    "_npi_cholesky _npi_full_like _npi_lcm_scalar ones_like zeros_like"
)
"""Operators whose first output has the shape of the first input."""

Known = Sequence["Shape | None"]
Rule = Callable[[Attributes, Known], Known]


def output_shapes(at: Attributes, shapes: Known) -> Known:
    """Return the shapes of the first outputs as far as they are known; none without a rule."""
    rule = _RULES.get(at.node.op)
    return () if rule is None else rule(at, shapes)


def _at_least(count: int, at: Attributes, shapes: Known) -> Known:
    return [None if shape is None else _raised(shape, count) for shape in shapes]


def _raised(shape: Shape, count: int) -> Shape:
    """Add axes of size 1 in front; the third one behind."""
    if count < 3 or len(shape) >= 3:
        return (1,) * (count - len(shape)) + shape
    return (*_raised(shape, 2), 1)


def _stacked(count: int, axis: int, at: Attributes, shapes: Known) -> Known:
    """Join arrays that are raised to ``count`` axes; vectors have one axis to join along."""
    known = [_raised(shape, count) for shape in shapes if shape is not None]
    if not known or any(len(shape) != len(known[0]) for shape in known):
        return ()
    axis = min(axis, len(known[0]) - 1)
    return [_joined(known, axis)]


def _columns(at: Attributes, shapes: Known) -> Known:
    known = [
        (*(shape or (1,)), 1) if len(shape) < 2 else shape for shape in shapes if shape is not None
    ]
    if not known or any(len(shape) != len(known[0]) for shape in known):
        return ()
    return [_joined(known, 1)]


def _joined(known: Sequence[Shape], axis: int) -> Shape:
    """Return the sizes on which arrays agree; the joined axis is open, since one is unknown."""
    columns = zip(*known, strict=True)
    return tuple(
        None if place == axis else next((size for size in sizes if size is not None), None)
        for place, sizes in enumerate(columns)
    )


def _reduced(last: int | None, at: Attributes, shapes: Known) -> Known:
    """Drop the axes, all of them or the ``last`` ones if none is given."""
    data = shapes[0]
    if data is None:
        return ()
    rank = len(data)
    axes = set(range(rank)) if last is None else set(range(rank)[-last:])
    if at.attr("axis", "None") != "None":
        axes = {axis + rank if axis < 0 else axis for axis in at.ints("axis")}
    if axes == {0} and rank == 0:
        axes = set()
    if any(not 0 <= axis < rank for axis in axes):
        return ()
    if at.bool("keepdims", False):
        return [tuple(1 if axis in axes else size for axis, size in enumerate(data))]
    return [tuple(size for axis, size in enumerate(data) if axis not in axes)]


def _norm(at: Attributes, shapes: Known) -> Known:
    """Reduce two axes of a matrix norm, and one or all of a vector's."""
    return _reduced(None if at.int("flag", -1) == -2 else 2, at, shapes)


def _norm_of_some(at: Attributes, shapes: Known) -> Known:
    """Reduce all axes if none are listed; one axis always stays."""
    data = shapes[0]
    if data is None:
        return ()
    if at.attr("axis", "None") != "None" and at.ints("axis"):
        return [shape or (1,) for shape in _reduced(None, at, shapes) if shape is not None]
    return [(1,) * len(data) if at.bool("keepdims", False) else (1,)]


def _same(at: Attributes, shapes: Known) -> Known:
    return shapes[:1]


_RULES: dict[str, Rule] = {
    "_np_atleast_1d": partial(_at_least, 1),
    "_np_atleast_2d": partial(_at_least, 2),
    "_np_atleast_3d": partial(_at_least, 3),
    "_npi_column_stack": _columns,
    "_npi_dstack": partial(_stacked, 3, 2),
    "_npi_hstack": partial(_stacked, 1, 1),
    "_npi_vstack": partial(_stacked, 2, 0),
    **dict.fromkeys(_UNCHANGED.split(), _same),
    "_npi_norm": _norm,
    "norm": _norm_of_some,
    **{f"_np_{name}": partial(_reduced, None) for name in ("max", "min", "prod", "sum")},
    "_npi_mean": partial(_reduced, None),
}
