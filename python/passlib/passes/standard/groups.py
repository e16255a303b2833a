"""The standard passes that are groups of rules: their declarations."""

from __future__ import annotations

from functools import cache

import passlib._core as _core
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.rulebook import BOOKS, apply_rules
from passlib.passes.standard.facts.running import fold
from passlib.passes.standard.families import no_ops


@cache
def _book() -> _core.RuleBook:
    """Return all rules that come with passlib as one book, whose patterns are compiled once."""
    texts = [place.read_text("utf-8") for place in sorted(BOOKS.glob("*.rules"))]
    return _core.RuleBook("\n".join(texts), "")


@cache
def _numbers(groups: tuple[str, ...]) -> list[int]:
    return [number for number, rule in enumerate(_book().rules) if rule["group"] in groups]


def _apply(graph: Graph, *groups: str) -> None:
    apply_rules(_book(), graph, _numbers(groups), fold)


@graph_pass(
    name="removeNoOps",
    dialects=["onnx", "mxnet", "nnvm", "dlprim"],
    exact=True,
    joins=Joins(["clean", "simplify"], after="foldShapes"),
)
def remove_no_ops(graph: Graph, *, signed_zeros: bool = True) -> None:
    """Remove operators that return an input unchanged.

    Parameters
    ----------
    signed_zeros : bool
        Keep the addition of 0.0, which turns -0.0 into 0.0. The addition of -0.0 or an integer 0,
        and the subtraction of 0.0, are removed in any case.
    """
    if graph.dialect != "onnx":
        no_ops.remove_no_ops(graph)
    elif signed_zeros:
        _apply(graph, "removeNoOps")
    else:
        _apply(graph, "removeNoOps", "removeZeros")


@graph_pass(
    name="fuseMatMulAdd",
    dialects=["onnx"],
    triggers=["MatMul"],
    joins=Joins(["simplify"], after="mergeFactors"),
)
def fuse_matmul_add(graph: Graph) -> None:
    """Replace MatMul of two matrices and an Add that does not enlarge the product by Gemm."""
    _apply(graph, "fuseMatMulAdd")


@graph_pass(
    name="fuseDequantize",
    dialects=["onnx"],
    exact=True,
    triggers=["Cast"],
    joins=Joins(["clean", "simplify"], after="dropZeroStates"),
)
def fuse_dequantize(graph: Graph) -> None:
    """Replace Cast of 8-bit weights and Mul with a scale, or one per row, by DequantizeLinear."""
    _apply(graph, "fuseDequantize")
