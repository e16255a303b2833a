"""Calls of functions of ONNX models, and the nodes that replace them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from passlib.dialects.onnx.nested import copy_of, graphs_within, refill
from passlib.errors import FormatError, UnsupportedError
from passlib.graph.names import NameSource


class Key(NamedTuple):
    """The function that a call names."""

    domain: str
    name: str
    overload: str

    @property
    def title(self) -> str:
        """The name with domain and overload, for messages."""
        return f"{self.domain}.{self.name}" + (f":{self.overload}" if self.overload else "")


def values_of(body: Any) -> Iterator[str]:
    """Iterate over the names of all values of a graph or a function, nested graphs included."""
    for graph in graphs_within(body):
        if hasattr(graph, "initializer"):
            yield from (tensor.name for tensor in graph.initializer)
            yield from (sparse.values.name for sparse in graph.sparse_initializer)
            yield from (value.name for value in (*graph.input, *graph.output))
        else:
            yield from (*graph.input, *graph.output)
        for node in graph.node:
            yield from (*node.input, *node.output)


class Call:
    """A call that is replaced by the nodes of the function."""

    def __init__(
        self, node: Any, key: Key, function: Any, names: NameSource, titles: NameSource
    ) -> None:
        self._node = node
        self._key = key
        self._function = function
        self._titles = titles
        self._attributes = {each.name: each for each in function.attribute_proto}
        self._attributes.update({each.name: each for each in node.attribute})
        self._prefix = node.name or node.op_type
        given = list(node.input)
        if len(given) > len(function.input):
            raise FormatError(
                f"call {self._prefix!r} of function {key.title} has {len(given)} inputs, and the "
                f"function has {len(function.input)}"
            )
        given += [""] * (len(function.input) - len(given))
        self._names = dict(zip(function.input, given, strict=True))
        self._copies: list[tuple[str, str]] = []
        pairs = [each for each in zip(function.output, node.output, strict=False) if each[1]]
        results = dict(pairs)
        made = {name for each in function.node for name in each.output}
        for name, result in results.items():
            if name in made:
                self._names[name] = result
            else:
                self._copies.append((self._names.get(name, ""), result))
        # An output that the function has twice.
        self._copies += [
            (self._names.get(name, ""), result) for name, result in pairs if results[name] != result
        ]
        for value in dict.fromkeys(values_of(function)):
            if value and value not in self._names:
                self._names[value] = names.fresh(f"{self._prefix}_{value}")

    def nodes(self) -> list[Any]:
        """Return the nodes of the body, with the values and attributes of the call."""
        made = [copy_of(each) for each in self._function.node]
        # The nodes of a body may be in a message, so that one walk reaches the nested graphs.
        body = type(self._function)()
        body.node.extend(made)
        for graph in graphs_within(body):
            if hasattr(graph, "initializer"):
                for value in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
                    value.name = self._names.get(value.name, value.name)
                for sparse in graph.sparse_initializer:
                    sparse.values.name = self._names[sparse.values.name]
                for value in graph.output:
                    if not value.name:
                        raise UnsupportedError(
                            f"call {self._prefix!r} of function {self._key.title} leaves out an "
                            "input that is the result of a nested graph; pass it"
                        )
            for node in graph.node:
                if node.name:
                    node.name = self._titles.fresh(f"{self._prefix}_{node.name}")
                for names in (node.input, node.output):
                    for place, name in enumerate(names):
                        names[place] = self._names.get(name, name)
                self._refer(node)
        nodes = list(body.node)
        for source, result in self._copies:
            if not source:
                raise UnsupportedError(
                    f"call {self._prefix!r} of function {self._key.title} leaves out an input that "
                    "is an output of the function; pass it"
                )
            copied = type(self._node)(op_type="Identity", input=[source], output=[result])
            copied.name = self._titles.fresh(f"{self._prefix}_copy")
            nodes.append(copied)
        return nodes

    def _refer(self, node: Any) -> None:
        """Set the attributes that refer to those of the call."""
        if not any(each.ref_attr_name for each in node.attribute):
            return
        kept = []
        for each in node.attribute:
            if not each.ref_attr_name:
                kept.append(each)
                continue
            found = self._attributes.get(each.ref_attr_name)
            if found is not None:  # otherwise the operator's own default holds
                copied = copy_of(found)
                copied.name = each.name
                kept.append(copied)
        refill(node.attribute, kept)
