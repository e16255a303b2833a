"""Meanings of fused operators of com.microsoft, as of the operators that they stand for.

They stand apart from the other meanings, so that kept proofs of other rules stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from passlib.proof.meanings import (
    _DOMAINS,
    Meaning,
    _attention,
    _demanded,
    _everywhere,
    _forbidden_unless,
    _heads,
    _matmul,
    _normalization,
    _or,
    _require_real,
    _unify,
    element_of,
    elementwise,
    means,
)
from passlib.proof.paths import Path, Size, UnprovenError
from passlib.proof.tensors import Node, Op, Tensor, quotient_and_rest

DOMAIN: Final = "com.microsoft"


def _means(*names: str) -> Callable[[Meaning], Meaning]:
    """Register the meaning of operators of com.microsoft."""
    _DOMAINS.update(dict.fromkeys(names, (DOMAIN,)))
    return means(*names)


def _as_own(node: Node, op: str, inputs: list[Tensor | None], **attributes: object) -> Node:
    """Return an operation of ONNX's own operator that is a part of one of com.microsoft."""
    return Node(node.path, node.side, op, inputs, attributes)


@_means("FusedMatMul")
def _fused_matmul(node: Node) -> list[Tensor]:
    _require_real(node)
    path, alpha = node.path, node.real("alpha")
    factors: list[Tensor | None] = []
    for place, name in enumerate(("A", "B")):
        if node.number(f"transBatch{name}"):
            raise UnprovenError("FusedMatMul with transposed batches has no meaning here")
        each = node.input(place)
        turns = node.number(f"trans{name}", 0, 2)
        if turns and each.rank < 2:
            node.fails("a transposed factor has two axes at least")
        factors.append(_turned(path, each) if turns else each)
    (made,) = _matmul(_as_own(node, "MatMul", factors))
    if alpha is None:
        return [made]

    def at(index: tuple[Size, ...]) -> Any:
        return Op("Mul", (made.at(index), element_of(alpha, made.type)), made.type)

    return [Tensor(path, node.op, made.type, made.shape, at)]


def _turned(path: Path, x: Tensor) -> Tensor:
    """Return a tensor with its last two axes exchanged."""
    shape = [*x.shape[:-2], x.shape[-1], x.shape[-2]]
    turned = lambda index: x.at((*index[:-2], index[-1], index[-2]))  # noqa: E731
    return Tensor(path, "turned", x.type, shape, turned)


@_means("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _skip_normalization(node: Node) -> list[Tensor]:
    x, skip, scale = (node.input(place) for place in range(3))
    centred = node.op == "SkipLayerNormalization"
    bias, summand = (node.optional(3), node.optional(4)) if centred else (None, node.optional(3))
    if x.rank not in (2, 3) or skip.rank not in (2, x.rank):
        node.fails("its values have rank 2 or 3")
    for each in (scale, bias, summand):
        if each is not None:
            if each.rank != 1:
                node.fails("its vectors have rank 1")
            _demanded(node, each.shape[0], x.shape[-1])
    for place in (-2, -1):
        _demanded(node, skip.shape[place], x.shape[place])
    if skip.rank == 3 and not node.path.same(skip.shape[0], x.shape[0]):
        fits = _or(node.path, skip.shape[0] == 1, skip.shape[0] == x.shape[0])
        _forbidden_unless(node, fits)
    if summand is not None:
        x = elementwise(node, "Add", [x, summand], x.type)
    whole = elementwise(node, "Add", [x, skip], x.type)
    epsilon = node.real("epsilon")
    parts = _as_own(
        node, "LayerNormalization" if centred else "RMSNormalization", [whole, scale, bias],
        axis=-1, epsilon=1e-12 if epsilon is None else epsilon,
    )  # fmt: skip
    (made,) = _normalization(parts)
    unknown = Tensor(node.path, node.op, x.type, [*x.shape[:-1], 1], _unproven)
    return [made, unknown, unknown, whole][: node.results]


def _unproven(_index: tuple[Size, ...]) -> Any:
    raise UnprovenError("inputs or results of operators of com.microsoft have no meaning here")


@_means("MultiHeadAttention")
def _many_heads(node: Node) -> list[Tensor]:
    """Attention of rows of queries: keys and values in rows or heads, a mask to add, and a past."""
    path, (q, k, v) = node.path, (node.input(place) for place in range(3))
    _require_real(node)
    more = [node.optional(place) for place in (3, 4, *range(8, len(node.inputs)))]
    past = [node.optional(place) for place in (6, 7)]
    if q.rank != 3 or k.rank not in (3, 4) or v.rank != k.rank:
        node.fails("its values have rank 3, keys and values also 4")
    if node.side.is_left:
        path.restrict(q.type, _everywhere(frozenset({"float", "float16"})))
    mask = node.optional(5)
    for each in (k, v, mask, *past):
        if each is not None:
            _unify(node, q.type, each.type)
    if past != [None, None] and (None in past or k.rank != 3):
        node.fails("past keys and values come together, with rows of others")
    heads = [_heads(node, each, "num_heads") for each in (q, k, v)]
    for each in heads[1:]:
        _demanded(node, each.shape[1], heads[0].shape[1])
    parts = _as_own(
        node, "Attention", [*heads, mask, *past], scale=node.real("scale"), is_causal=0,
        softcap=0.0, qk_matmul_output_mode=0,
    )  # fmt: skip
    parts.results = 3
    made, keys, values = _attention(parts)
    batch, count, rows, size = made.shape

    def at(index: tuple[Size, ...]) -> Any:
        head, item = quotient_and_rest(path, index[2], size)
        return made.at((index[0], head, index[1], item))

    is_plain = all(each is None for each in more)
    whole = Tensor(
        path, node.op, q.type, [batch, rows, count * size], at if is_plain else _unproven
    )
    return [whole, keys, values][: node.results]
