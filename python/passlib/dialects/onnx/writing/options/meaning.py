"""Nodes whose meaning ONNX's converter of operator sets would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.messages import copy_of, graphs_within
from passlib.dialects.onnx.soundness import inferred
from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require

COMPARED: Final = 28
"""The newest operator set whose changes were compared with ONNX Runtime."""


class Conversion(NamedTuple):
    """A model that is taken from one version of ONNX's own operator set to another one."""

    model: Any
    present: int
    target: int

    def crosses(self, version: int) -> bool:
        """Whether one of both versions is before an operator set, and the other is not."""
        return (self.present < version) != (self.target < version)

    @property
    def is_upward(self) -> bool:
        """Whether the version rises."""
        return self.present < self.target

    def check(self) -> None:
        """Refuse nodes that would compute something else.

        Raises
        ------
        UnsupportedError
            Names the node.
        """
        for graph in graphs_within(self.model.graph):
            around = _Around(self.model, graph)
            for node in graph.node:
                if schema.plain(node.domain):
                    continue
                reason = self._objection(node, around)
                if reason:
                    name = node.name or next(iter(node.output), "")
                    raise UnsupportedError(
                        f"node {name!r} ({node.op_type}): operator set {self.present} cannot be "
                        f"taken to {self.target}: {reason}; save the model without opset"
                    )

    def _objection(self, node: Any, around: _Around) -> str:
        versions = _versions(node.op_type)
        for version in versions:
            if version > COMPARED and self.crosses(version):
                return f"the operator changed in set {version}, which passlib does not know"
        for operator, version, rule in _RULES:
            # Upsample becomes Resize in set 10.
            same = node.op_type == operator or (node.op_type, operator) == ("Upsample", "Resize")
            if same and self.crosses(version):
                reason = rule(node, around, self.is_upward)
                if reason:
                    return reason
        return ""


def _versions(operator: str) -> list[int]:
    defs: Any = require("onnx.defs", extra="onnx")
    return [version for version in range(COMPARED + 1, int(defs.onnx_opset_version()) + 1)
            if _since(defs, operator, version) == version]  # fmt: skip


def _since(defs: Any, operator: str, version: int) -> int:
    with suppress(defs.SchemaError):
        return int(defs.get_schema(operator, version).since_version)
    return 0


class _Around:
    """A graph around its nodes: who computes values, who uses them, and their ranks."""

    def __init__(self, model: Any, graph: Any) -> None:
        self._model = model
        self._graph = graph

    @cached_property
    def makers(self) -> dict[str, str]:
        """The operators that compute values, by name."""
        return {name: node.op_type for node in self._graph.node for name in node.output}

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """The operators that use values, by name."""
        found: dict[str, list[str]] = {}
        for node in self._graph.node:
            for name in node.input:
                found.setdefault(name, []).append(node.op_type)
        return found

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The ranks of values, as far as inference knows them."""
        model = self._model
        with suppress(GraphError):
            model = inferred(copy_of(model))
        return {
            value.name: len(value.type.tensor_type.shape.dim)
            for graph in graphs_within(model.graph)
            for value in (*graph.input, *graph.value_info, *graph.output)
            if value.type.tensor_type.HasField("shape")
        }


def _attribute(node: Any, name: str, preset: int) -> int:
    return next((int(each.i) for each in node.attribute if each.name == name), preset)


def _is_last(node: Any, around: _Around, preset: int) -> bool:
    axis = _attribute(node, "axis", preset)
    return axis == -1 or axis + 1 == around.ranks.get(node.input[0])


def _hardmax(node: Any, around: _Around, upward: bool) -> str:
    if _is_last(node, around, 1 if upward else -1):
        return ""
    return "before set 13 the axis and those after it are one, and it is not known to be the last"


def _softmax(node: Any, around: _Around, upward: bool) -> str:
    if upward:
        return ""
    if not _is_last(node, around, -1):
        return (
            "before set 13 the axis and those after it are one, and it is not known to be the last"
        )
    users = around.users.get(node.output[0], ())
    if around.makers.get(node.input[0]) == "Flatten" or "Reshape" in users:
        return "ONNX's converter would remove the Flatten before it and a Reshape after it"
    return ""


def _dropout(node: Any, around: _Around, upward: bool) -> str:
    if len(node.output) > 1 and node.output[1]:
        return "its second result, the mask, has another meaning from set 12 on"
    return ""


def _resize(node: Any, around: _Around, upward: bool) -> str:
    return "it takes other elements from set 11 on"


def _broadcast(node: Any, around: _Around, upward: bool) -> str:
    axis = _attribute(node, "axis", 0)
    if not upward or not axis:
        return ""
    ranks = [around.ranks.get(name) for name in node.input]
    if ranks[0] is not None and ranks[1] is not None and axis == ranks[0] - ranks[1]:
        return ""
    return f"ONNX's converter takes a second input that begins at axis {axis} for one at axis 0"


_Rule = Callable[[Any, _Around, bool], str]

_RULES: Final[tuple[tuple[str, int, _Rule], ...]] = (
    *((name, 7, _broadcast) for name in ("Add", "Div", "Mul", "Pow", "Sub")),
    ("Dropout", 12, _dropout),
    ("Hardmax", 13, _hardmax),
    ("LogSoftmax", 13, _softmax),
    ("Resize", 11, _resize),
    ("Softmax", 13, _softmax),
)
"""Operators, the sets in which they changed, and what tells which nodes would change.

All other changes up to `COMPARED` were found to keep the numbers, or are refused by ONNX's
converter or checker: ``make sweep-opsets`` compares them.
"""


def repair(conversion: Conversion, result: Any) -> None:
    """Do in a converted model what ONNX's converter has left out.

    Parameters
    ----------
    conversion : Conversion
        With the model before.
    result : onnx.ModelProto
    """
    if not (conversion.is_upward and conversion.crosses(21)):
        return
    before = {
        node.output[0]: list(node.input)
        for graph in graphs_within(conversion.model.graph)
        for node in graph.node
        if node.op_type == "GroupNormalization" and not schema.plain(node.domain)
    }
    if not before:
        return
    names = {name for graph in graphs_within(result.graph) for node in graph.node
             for name in (*node.input, *node.output, node.name)}  # fmt: skip
    for graph in graphs_within(result.graph):
        nodes: list[Any] = []
        for node in graph.node:
            if before.get(next(iter(node.output), "")) == list(node.input):
                stem = f"{node.output[0]}_by_channel"
                while any(name.startswith(stem) for name in names):
                    stem += "_"
                nodes += _spread(node, stem)
            nodes.append(node)
        if len(nodes) > len(graph.node):
            copies = [copy_of(node) for node in nodes]
            del graph.node[:]
            graph.node.extend(copies)


def _spread(node: Any, stem: str) -> Iterator[Any]:
    """Let a GroupNormalization take a scale and a bias for each channel, not for each group.

    Each number is repeated for the channels of its group, by nodes whose names begin with ``stem``.
    """
    helper: Any = require("onnx.helper", extra="onnx")

    def made(operator: str, what: str, *inputs: str, **attributes: Any) -> Any:
        name = f"{stem}_{what}"
        return helper.make_node(operator, inputs, [name], name=name, **attributes)

    groups = _attribute(node, "num_groups", 1)
    names = {"channels": f"{stem}_channels", "size": f"{stem}_size", "shape": f"{stem}_shape"}
    yield made("Shape", "channels", node.input[0], start=1, end=2)
    yield made("Constant", "groups", value_ints=[groups])
    yield made("Div", "size", names["channels"], f"{stem}_groups")
    yield made("Constant", "one", value_ints=[1])
    yield made("Concat", "shape", f"{stem}_one", names["size"], axis=0)
    yield made("Constant", "flat", value_ints=[-1])
    yield made("Constant", "last", value_ints=[1])
    for place, what in ((1, "scale"), (2, "bias")):
        yield made("Unsqueeze", f"{what}_column", node.input[place], f"{stem}_last")
        yield made("Expand", f"{what}_repeated", f"{stem}_{what}_column", names["shape"])
        yield made("Reshape", what, f"{stem}_{what}_repeated", f"{stem}_flat")
        node.input[place] = f"{stem}_{what}"
