"""nameUniquely: gives every operator a unique name."""

from __future__ import annotations

from passlib._core import EditableGraph, EditableNode
from passlib.dialects.onnx.attributes import ID
from passlib.dialects.onnx.nested import named_by_reader
from passlib.dialects.onnx.reading import document_of
from passlib.graph.names import NameSource
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import graphs_within


@graph_pass(name="nameUniquely", dialects=["onnx", "mxnet", "nnvm"])
def name_uniquely(graph: Graph) -> None:
    """Name unnamed operators, and rename operators with duplicate names.

    Names of variables stay, and in MXNet and NNVM those of nodes with outputs of the model.
    """
    graphs: list[EditableGraph] = [graph]
    for node in graph.nodes:
        graphs += graphs_within(node)
    nodes = [node for each in graphs for node in each.nodes]
    names = NameSource({node.name for node in nodes})
    if graph.dialect == "onnx":
        document = document_of(graph.own_attributes)
        for node in nodes:
            key = node.attrs.get(ID, "")
            if not node.is_variable and named_by_reader(document, key, node.name):
                node.name = names.fresh(f"node_{node.op}")
        return
    heads = {value.node for value in graph.outputs}
    known: set[str] = {node.name for node in nodes if node.is_variable or node in heads}
    for node in nodes:
        if not node.is_variable and node not in heads:
            _rename(node, known, names)


def _rename(node: EditableNode, known: set[str], names: NameSource) -> None:
    if not node.name or node.name in known:
        node.name = names.fresh(node.name or node.op)
    known.add(node.name)
