"""fuseMatMulAdd: fuses MatMul and Add into Gemm."""

from __future__ import annotations

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, is_old_broadcast, operator
from passlib.passes.standard.facts.shapes import Shapes

_REAL = ("float16", "float32", "float64")


@graph_pass(
    name="fuseMatMulAdd",
    dialects=["onnx"],
    triggers=["MatMul"],
    joins=Joins(["simplify"], after="mergeFactors"),
)
def fuse_matmul_add(graph: Graph) -> None:
    """Replace MatMul of two matrices and an Add that does not enlarge the product by Gemm."""
    model = Model(graph)
    found = [node for node in graph.sorted() if _has_candidate(node)]
    if not found or model.opset < 7:
        return
    shapes = Shapes(model)
    for product in found:
        # One that was fused may have been what the next one was added to.
        if product in model.gone or not _has_candidate(product):
            continue
        user, place = product.outputs[0].uses[0]
        summand = user.inputs[1 - place]
        if _fits(product, summand, shapes):
            inputs = [*product.inputs, summand]
            model.replace(user, model.add_like(user.outputs[0], "Gemm", inputs))


def _has_candidate(node: EditableNode) -> bool:
    if operator(node) != "MatMul" or node.control_deps or node.outputs[0].is_output:
        return False
    use = node.outputs[0].only_use
    return use is not None and operator(use[0]) == "Add" and _is_plain(use[0])


def _is_plain(add: EditableNode) -> bool:
    return not is_old_broadcast(add) and not add.control_deps and add.inputs[0] != add.inputs[1]


def _fits(product: EditableNode, summand: EditableValue, shapes: Shapes) -> bool:
    result, other = shapes.shape(product.outputs[0]), shapes.shape(summand)
    dtype = shapes.dtype(product.outputs[0])
    if result is None or other is None or dtype is None or dtype.name not in _REAL:
        return False
    if any(shapes.rank(value) != 2 for value in product.inputs) or not 0 < len(other) <= 2:
        return False
    return all(size in (1, have) for size, have in zip(other[::-1], result[::-1], strict=False))
