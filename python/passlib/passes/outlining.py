"""outline: makes local functions of the repeated layers of ONNX models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.attributes import is_graph
from passlib.dialects.onnx.calls import call_of, key_of
from passlib.dialects.onnx.nested import copy_of, used_by
from passlib.files.optional import require
from passlib.graph.names import NameSource
from passlib.library.backends import register_pipeline
from passlib.library.declared import Declaration, Option
from passlib.model import Model
from passlib.model.loading import AnyModel, as_model
from passlib.passes.inlining import WholeModel

_SMALL: Final = 512
"""Equal constants of at most so many bytes become a part of the function."""

_MOST_STEPS: Final = 3_000_000
"""Nodes that are compared; the best layers found until then are taken."""

_LONGEST: Final = 4096
"""Layers of more operators are not looked for."""

_OLDEST_FORMAT: Final = 8
"""The oldest IR version with functions."""


def outline(
    model: AnyModel,
    *,
    least: int = 4,
    domain: str = "layers",
) -> Model:
    """Return an ONNX model whose repeated layers are calls of local functions.

    It is the pass ``outline``: layers are equal up to their weights, which become inputs of the
    function. `inline_functions` is the way back.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    least : int
        The smallest number of operators of a layer.
    domain : str
        The domain of the functions, which are called Layer, Layer_1 and so on.

    Raises
    ------
    PasslibError
        The model cannot be loaded.

    Examples
    --------
    >>> import passlib
    >>> passlib.outline("model.onnx").save("layers.onnx")  # doctest: +SKIP
    """
    found = as_model(model)
    return found.optimize_for("outline", least=least, domain=domain)


class _Outlining(WholeModel):
    def change(self, proto: Any, options: Mapping[str, Any]) -> bool:
        return _Outliner(proto, options.get("least", 4), options.get("domain", "layers")).run()


@dataclass(frozen=True)
class _Layers:
    """Places where the same operators follow each other."""

    starts: tuple[int, ...]
    length: int

    @property
    def repeated(self) -> int:
        """Operators that repeat others. Two layers that are taken for one repeat fewer."""
        return (len(self.starts) - 1) * self.length

    @property
    def is_shorter(self) -> bool:
        """Whether the graph has fewer operators with calls."""
        return self.repeated > len(self.starts)


_Form = tuple[tuple[tuple[Any, ...], ...], int]
"""The inputs of each node of a layer, and the number of inputs of the layer."""


class _Outliner:
    def __init__(self, proto: Any, least: int, domain: str) -> None:
        self._proto = proto
        self._least = max(least, 2)
        self._domain = domain
        graph = proto.graph
        self._constants = [n for n in graph.node if self._is_constant(n)]
        self._nodes = [n for n in graph.node if not self._is_constant(n)]
        given = {value.name for value in graph.input}
        self._weights = {t.name: t for t in graph.initializer if t.name not in given}
        self._made = {n.output[0]: n for n in self._constants}
        self._fixed = self._weights.keys() | self._made.keys()
        self._titles = NameSource({node.name for node in graph.node})
        self._steps = 0
        self._kinds: dict[tuple[Any, ...], int] = {}
        self._names = NameSource({key_of(f).name for f in proto.functions})

    def _is_constant(self, node: Any) -> bool:
        return node.op_type == "Constant" and not node.domain and len(node.attribute) == 1

    def run(self) -> bool:
        """Replace layers, most operators first, until there are none; return whether there were."""
        changed = False
        while True:
            self._index()
            layers = self._best()
            if layers is None:
                break
            self._replace(layers)
            changed = True
        if changed:
            self._write()
        return changed

    # ---- the layers ----

    def _index(self) -> None:
        """Find the kinds of nodes, and the producers and readers of values."""
        self._labels = np.array([self._kind(node) for node in self._nodes], np.int64)
        self._producers = {
            name: (place, number)
            for place, node in enumerate(self._nodes)
            for number, name in enumerate(node.output)
            if name
        }
        self._readers: dict[str, list[int]] = defaultdict(list)
        for place, node in enumerate(self._nodes):
            for name in used_by(node):
                self._readers[name].append(place)
        for value in self._proto.graph.output:
            self._readers[value.name].append(len(self._nodes))

    def _kind(self, node: Any) -> int:
        if any(is_graph(each) for each in node.attribute):
            # Values that a nested graph captures are no inputs.
            return -1 - len(self._kinds) - id(node)
        attributes = sorted(each.SerializeToString() for each in node.attribute)
        key = (call_of(node), tuple(attributes), len(node.input), len(node.output))
        return self._kinds.setdefault(key, len(self._kinds))

    def _best(self) -> _Layers | None:
        """Return the layers that repeat most operators; None if no calls are shorter."""
        best: _Layers | None = None
        count = len(self._labels)
        for length in range(self._least, min(count // 2, _LONGEST) + 1):
            if self._steps > _MOST_STEPS:
                break
            # Layers of this length repeat at most so many operators, longer ones fewer.
            if best is not None and count - length <= best.repeated:
                break
            known: set[int] = set()  # places of layers that were compared with all
            for first, end in self._runs(length):
                for start in self._starts(first, end, length):
                    if start + length in known:
                        continue
                    found = self._equal(start, length)
                    known.update(found.starts)
                    if found.is_shorter and (best is None or found.repeated > best.repeated):
                        best = found
        return best

    def _runs(self, length: int) -> Iterator[tuple[int, int]]:
        """Iterate over the spans where each node is of the kind of that a length before it."""
        same = self._labels[:-length] == self._labels[length:]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
        for first, end in edges.reshape(-1, 2):
            if end - first >= length:
                yield int(first), int(end + length)

    def _starts(self, first: int, end: int, length: int) -> list[int]:
        """Return the places where layers in a span may begin, those of the fewest values first."""
        times = (end - first) // length
        places = range(first, end - times * length + 1)
        return sorted(places, key=lambda place: (self._width(place, length), place))[:2]

    def _width(self, start: int, length: int) -> int:
        """Return how many values the second layer gets that no weights are, and passes on."""
        first, end = start + length, start + 2 * length
        inner = {n for node in self._nodes[first:end] for n in node.output}
        outer = {n for node in self._nodes[first:end] for n in node.input}
        passed = [n for n in inner if any(place >= end for place in self._readers.get(n, ()))]
        return len(outer - inner - self._fixed) + len(passed)

    def _equal(self, start: int, length: int) -> _Layers:
        """Return all layers, in the whole graph, that equal the second one of a span."""
        wanted = self._form(start + length, length)
        labels = self._labels[start : start + length]
        windows = np.lib.stride_tricks.sliding_window_view(self._labels, length)
        starts: list[int] = []
        for place in np.flatnonzero((windows == labels).all(axis=1)):
            free = not starts or place >= starts[-1] + length
            if free and self._form(int(place), length) == wanted:
                starts.append(int(place))
        return _Layers(tuple(starts), length)

    def _form(self, start: int, length: int) -> _Form:
        """Return how the nodes of a layer are connected."""
        self._steps += length
        outside: dict[str, int] = {}
        form = []
        for node in self._nodes[start : start + length]:
            inputs: list[Any] = []
            for name in node.input:
                place, number = self._producers.get(name, (-1, 0))
                if not name:
                    inputs.append(None)
                elif start <= place < start + length:
                    inputs.append((place - start, number))
                else:
                    inputs.append(outside.setdefault(name, len(outside)))
            inputs += [bool(name) for name in node.output]
            form.append(tuple(inputs))
        return tuple(form), len(outside)

    # ---- the functions ----

    def _replace(self, layers: _Layers) -> None:
        given = [self._outside(start, layers.length) for start in layers.starts]
        made = [self._passed(start, layers.length) for start in layers.starts]
        outputs = sorted({place for each in made for place in each})
        inner = [number for number in range(len(given[0])) if self._is_inner(given, number)]
        function = self._function(layers, given[0], inner, outputs)
        self._proto.functions.append(function)
        calls = {}
        for start, names in zip(layers.starts, given, strict=True):
            nodes = self._nodes[start : start + layers.length]
            call = type(nodes[0])(
                op_type=function.name,
                domain=self._domain,
                name=self._titles.fresh(function.name),
                input=[name for number, name in enumerate(names) if number not in set(inner)],
                output=[nodes[offset].output[number] for offset, number in outputs],
            )
            calls[start] = call
        left = []
        place = 0
        while place < len(self._nodes):
            if place in calls:
                left.append(calls[place])
                place += layers.length
            else:
                left.append(self._nodes[place])
                place += 1
        self._nodes = left

    def _outside(self, start: int, length: int) -> list[str]:
        """Return the values that a layer gets, in the order of use."""
        nodes = self._nodes[start : start + length]
        own = {name for node in nodes for name in node.output}
        return list(dict.fromkeys(n for node in nodes for n in node.input if n and n not in own))

    def _passed(self, start: int, length: int) -> list[tuple[int, int]]:
        """Return the results of a layer that others read: node and output."""
        end = start + length
        return [
            (offset, number)
            for offset, node in enumerate(self._nodes[start:end])
            for number, name in enumerate(node.output)
            if name and any(not start <= place < end for place in self._readers.get(name, ()))
        ]

    def _is_inner(self, given: Sequence[Sequence[str]], number: int) -> bool:
        """Whether an input is the same small constant in all layers."""
        first = self._constant(given[0][number])
        if first is None:
            return False
        return all(self._constant(names[number]) == first for names in given[1:])

    def _constant(self, name: str) -> Any:
        """Return a small constant as the node of an unnamed value; None if it is none."""
        onnx: Any = require("onnx", extra="onnx")
        made = onnx.NodeProto(op_type="Constant")
        tensor, node = self._weights.get(name), self._made.get(name)
        if tensor is not None and tensor.ByteSize() < 2 * _SMALL:
            attribute = made.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
            attribute.t.CopyFrom(tensor)
            attribute.t.ClearField("name")
        elif node is not None and node.ByteSize() < 2 * _SMALL:
            made.attribute.extend(node.attribute)
            if made.attribute[0].HasField("t"):
                made.attribute[0].t.ClearField("name")
        return made if made.attribute and made.ByteSize() <= _SMALL else None

    def _function(
        self,
        layers: _Layers,
        given: Sequence[str],
        inner: Sequence[int],
        outputs: Sequence[tuple[int, int]],
    ) -> Any:
        onnx: Any = require("onnx", extra="onnx")
        start = layers.starts[0]
        nodes = self._nodes[start : start + layers.length]
        made = onnx.FunctionProto(name=self._names.fresh("Layer"), domain=self._domain)
        made.input.extend(name for number, name in enumerate(given) if number not in set(inner))
        made.output.extend(nodes[offset].output[number] for offset, number in outputs)
        for number in inner:
            constant = made.node.add()
            constant.CopyFrom(self._constant(given[number]))
            constant.output.append(given[number])
        made.node.extend(nodes)
        made.opset_import.extend(self._proto.opset_import)
        if not any(each.domain == self._domain for each in made.opset_import):
            made.opset_import.add(domain=self._domain, version=1)
        return made

    def _write(self) -> None:
        """Set the nodes of the graph, and remove what only the layers had."""
        proto, graph = self._proto, self._proto.graph
        proto.ir_version = max(proto.ir_version, _OLDEST_FORMAT)
        if not any(each.domain == self._domain for each in proto.opset_import):
            proto.opset_import.add(domain=self._domain, version=1)
        used = {name for node in self._nodes for name in used_by(node)}
        used.update(value.name for value in graph.output)
        given = {value.name for value in graph.input}
        nodes = [copy_of(n) for n in (*self._constants, *self._nodes)
                 if not self._is_constant(n) or n.output[0] in used]  # fmt: skip
        weights = [copy_of(t) for t in graph.initializer if t.name in used or t.name in given]
        made = {name for node in nodes for name in node.output}
        stated = [copy_of(v) for v in graph.value_info if v.name in made]
        for field, items in (("node", nodes), ("initializer", weights), ("value_info", stated)):
            graph.ClearField(field)
            getattr(graph, field).extend(items)


register_pipeline(
    _Outlining(
        Declaration(
            "outline",
            "Make local functions of repeated layers.",
            ("onnx",),
            (
                Option("least", "integer", 4, "Smallest number of operators of a layer.", low=2),
                Option("domain", "text", "layers", "Domain of the functions."),
            ),
        ),
        exact=True,
    )
)
