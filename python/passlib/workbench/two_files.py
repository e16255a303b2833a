"""Splits the difference between two ONNX files of any tool into rewrites, applied one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import copy_of, refill, used_by
from passlib.errors import FormatError, GraphError, PasslibError, UnsupportedError, listed
from passlib.files.optional import require
from passlib.graph.ordering import depth_first_order, stuck_items
from passlib.model import Model, load
from passlib.workbench.equal_values import (
    Arrays,
    Key,
    Side,
    drop_unused_weights,
    pair_values,
    region,
    rename_used,
    without_dead,
)
from passlib.workbench.inner import (
    as_nested,
    captured_by,
    inner_model,
    nested_graphs_of,
    parameters_of,
    rename_all,
    typed,
    with_graphs,
    without_graphs,
)
from passlib.workbench.numbers import Tolerance
from passlib.workbench.rewrites import Rewrite, drawn_node

Shapes = Mapping[str, "tuple[int, ...]"]
Place = tuple[int, str]
"""The number of a node before, and the attribute with the nested graph."""


class TwoFiles:
    """The rewrites that lead from one file to another, whoever made them.

    A rewrite is what computes a value of both files from other such values. It can be applied alone
    since these values are the same in both files.

    Attributes
    ----------
    rewrites : tuple of Rewrite
    suspects : list of Rewrite
        Those that compute other numbers from the same numbers.

    Parameters
    ----------
    before, after : onnx.ModelProto
        Of the same operator sets.
    inputs : sequence of dict of str to array
        On which the values of both files are compared.
    isolate : bool
        Run the files in forked processes.
    """

    @classmethod
    def of(
        cls,
        before: Model,
        after: Model,
        inputs: Sequence[Arrays],
        tolerance: Tolerance,
        *,
        isolate: bool = False,
    ) -> TwoFiles:
        """Return the rewrites between two models of any dialects.

        Raises
        ------
        UnsupportedError
            A model cannot be written as one ONNX file of the operator sets of the other.
        """
        shapes = {name: array.shape for each in inputs[:1] for name, array in each.items()}
        messages = at_the_same_sets(before, after, shapes)
        return cls(*messages, inputs, tolerance, isolate=isolate)

    def __init__(
        self,
        before: Any,
        after: Any,
        inputs: Sequence[Arrays],
        tolerance: Tolerance,
        *,
        isolate: bool = False,
    ) -> None:
        self._before, self._after = (Side(each, isolate=isolate) for each in (before, after))
        self._isolate = isolate
        self._tolerance = tolerance
        self._nested: dict[Place, TwoFiles] = {}
        self._pairs: dict[int, int] = {}
        pairing = pair_values(self._before, self._after, inputs, tolerance)
        self._new, self._old, self._types = pairing.new, pairing.old, pairing.types
        self._inputs: Arrays = dict(inputs[0]) if inputs else {}
        # Values of one node are rewritten together.
        groups: dict[tuple[bool, int | str], list[str]] = {}
        for old in self._changed():
            new = self._new[old]
            is_repeated = self._old[new] != old
            made_by = self._after.producers.get(new)
            key = old if is_repeated or made_by is None else made_by[0]
            groups.setdefault((is_repeated, key), []).append(old)
        self.rewrites = tuple(map(self._rewrite, groups.values()))
        self.suspects = [
            rewrite
            for group, rewrite in zip(groups.values(), self.rewrites, strict=True)
            if any(
                self._new[old] in pairing.wrong and self._old[self._new[old]] == old
                for old in group
            )
        ]

    def _changed(self) -> list[str]:
        """Return the paired values before that are computed otherwise after, in order."""
        left = self._before.keys({old: self._key(old) for old in self._new})
        right = self._after.keys({new: self._key(old) for new, old in self._old.items()})
        return [
            old
            for old in self._before.producers
            if old in self._new
            and (self._old[self._new[old]] != old or left[old] != right.get(self._new[old]))
        ]

    def _key(self, old: str) -> Key:
        """Return the same key for values before that have the same numbers."""
        return "pair", self._old[self._new[old]]

    def _rewrite(self, group: Sequence[str]) -> Rewrite:
        removed: dict[int, None] = {}
        added: dict[int, None] = {}
        for old in group:
            new = self._new[old]
            removed.update(dict.fromkeys(region(self._before, old, self._new)))
            if self._old[new] == old:
                added.update(dict.fromkeys(region(self._after, new, self._old)))
        gone = [self._before.nodes[number] for number in removed]
        made = [self._after.nodes[number] for number in added]
        items = frozenset(("value", old, 0) for old in group)
        lines = tuple(map(_line, gone)), tuple(map(_line, made))
        if len(gone) == len(made) == 1 and gone[0].op_type == made[0].op_type:
            title = _title(gone[0])
            changes = [f"{title}: {text}" for text in self._changes(gone[0], made[0])]
            return Rewrite(items, (), (), tuple(changes) or (title,), lines)
        return Rewrite(items, tuple(map(_title, gone)), tuple(map(_title, made)), (), lines)

    def _changes(self, gone: Any, made: Any) -> list[str]:
        """Describe the differences between two nodes of one operator."""
        helper = require("onnx.helper", extra="onnx")
        old, new = ({each.name: each for each in node.attribute} for node in (gone, made))
        found = []
        for name in dict.fromkeys((*old, *new)):
            texts = [
                helper.printable_attribute(each[name]).partition(" = ")[2]
                if name in each
                else "absent"
                for each in (old, new)
            ]
            if texts[0] != texts[1]:
                found.append(f"attribute {name}: {' -> '.join(map(_short, texts))}")
        if len(gone.input) != len(made.input):
            return [*found, f"inputs {', '.join(gone.input)} -> {', '.join(made.input)}"]
        for place, (one, two) in enumerate(zip(gone.input, made.input, strict=True)):
            if one in self._before.constants and two in self._after.constants:
                if self._before.constant_key(one) != self._after.constant_key(two):
                    found.append(f"weight {one}" if one == two else f"weight {one} -> {two}")
            elif self._new.get(one, "") != two:
                found.append(f"input {place}: {one or 'none'} -> {two or 'none'}")
        return found

    def with_only(self, rewrites: Iterable[Rewrite]) -> Model:
        """Return the first file with some of the rewrites.

        Raises
        ------
        GraphError
            These rewrites alone create a cycle, or another invalid graph.
        """
        try:
            return load(self._message(rewrites).SerializeToString())
        except FormatError as error:
            raise GraphError(f"these rewrites alone make no valid file: {error}") from error

    def _message(self, rewrites: Iterable[Rewrite]) -> Any:
        """Return the first file with some of the rewrites as a message."""
        made = copy_of(self._before.model)
        graph = made.graph
        items = {item for rewrite in rewrites for item in rewrite.items}
        graphs = self._graphs([what for kind, what, _ in items if kind == "nested"])
        nodes = [
            with_graphs(node, graphs[number]) if number in graphs else node
            for number, node in enumerate(graph.node)
        ]
        wanted = {what for kind, what, _ in items if kind == "value"}
        chosen = [old for old in self._before.producers if old in wanted]
        replaced = {old: f"{old}//before" for old in chosen}
        del graph.value_info[:]
        for node in nodes:
            for i, name in enumerate(node.output):
                node.output[i] = replaced.get(name, name)
        copied = {self._before.constant_key(name): name for name in self._before.constants}
        for number, old in enumerate(chosen):
            nodes += self._copied(old, f"after{number}//", graph, copied, graphs)
        nodes = without_dead(nodes, {value.name for value in graph.output})
        _sort(nodes, graph)
        drop_unused_weights(graph)
        return made

    def _graphs(self, chosen: Iterable[tuple[Place, Rewrite]]) -> dict[int, dict[str, Any]]:
        """Return the nested graphs with some of their rewrites, by the number of the node.

        Also the unchanged ones of other nodes whose rewrites are split.
        """
        by_place: dict[Place, list[Rewrite]] = {}
        for place, rewrite in chosen:
            by_place.setdefault(place, []).append(rewrite)
        found: dict[int, dict[str, Any]] = {}
        for number in self._pairs:
            found[number] = nested_graphs_of(self._before.nodes[number])
            for name, graph in found[number].items():
                rewrites = by_place.get((number, name))
                if rewrites:
                    made = self._nested[number, name]._message(rewrites)
                    prefix = f"{number}.{name}//"
                    found[number][name] = as_nested(made, graph, self._before.constants, prefix)
        return found

    def split(self, rewrite: Rewrite) -> list[Rewrite]:
        """Replace the rewrite of an If, Loop or Scan by those of its nested graphs.

        Result: these, and one of what else the rewrite changes; [] if it cannot be split.
        """
        nested = _nested(rewrite)
        if nested is None:
            wanted = {old for _, old, _ in rewrite.items}
            parts = self._split([old for old in self._before.producers if old in wanted])
        else:
            place, inner = nested
            parts = [self._in_place(place, each) for each in self._nested[place].split(inner)]
        if parts:
            kept = [each for each in self.rewrites if each != rewrite]
            self.rewrites = (*kept, *parts)
        return parts

    def join(self, parts: Sequence[Rewrite], rewrite: Rewrite) -> None:
        """Undo `split`, which replaced a rewrite by parts."""
        nested = _nested(rewrite)
        if nested is None:
            places = [place for place, _ in filter(None, map(_nested, parts))]
            del self._pairs[places[0][0]]
        else:
            place, inner = nested
            self._nested[place].join([made for _, made in filter(None, map(_nested, parts))], inner)
        kept = [each for each in self.rewrites if each not in parts]
        self.rewrites = (*kept, rewrite)

    def _nesting(self, olds: Sequence[str]) -> tuple[int, int] | None:
        """Return the only If, Loop or Scan behind some values in each file, if they are alike."""
        new = self._new[olds[0]]
        gone = {n for old in olds for n in region(self._before, old, self._new)}
        made = region(self._after, new, self._old) if self._old[new] == olds[0] else []
        pairs = [[n for n in numbers if nested_graphs_of(side.nodes[n])]
                 for numbers, side in ((gone, self._before), (made, self._after))]  # fmt: skip
        if [len(each) for each in pairs] != [1, 1]:
            return None
        ((number,), (after,)) = pairs
        one, two = self._before.nodes[number], self._after.nodes[after]
        same = nested_graphs_of(one).keys() == nested_graphs_of(two).keys()
        return (number, after) if same and one.op_type == two.op_type else None

    def inside(self, values: Sequence[str]) -> Iterator[TwoFiles]:
        """Yield the pairs of nested graphs of an If, Loop or Scan that computes some values."""
        pair = self._nesting(values)
        if pair is None:
            return
        graphs, others = (
            nested_graphs_of(side.nodes[number])
            for side, number in zip((self._before, self._after), pair, strict=True)
        )
        for name, graph in graphs.items():
            with suppress(PasslibError):
                yield self._nested_files(*pair, graph, others[name])

    def _split(self, olds: Sequence[str]) -> list[Rewrite]:
        """Return the rewrites of nested graphs, and the rest of a rewrite."""
        pair = self._nesting(olds)
        if pair is None:
            return []
        number, after = pair
        one, two = self._before.nodes[number], self._after.nodes[after]
        graphs, others = nested_graphs_of(one), nested_graphs_of(two)
        found: list[Rewrite] = []
        for name, graph in graphs.items():
            try:
                nested = self._nested_files(number, after, graph, others[name])
            except PasslibError:
                return []
            self._nested[number, name] = nested
            found += [self._in_place((number, name), each) for each in nested.rewrites]
        if not found:
            return []
        self._pairs[number] = after
        rest = self._rewrite(olds)
        plain = [without_graphs(each) for each in (one, two)]
        is_alone = len(rest.lines[0]) == len(rest.lines[1]) == 1
        if is_alone and not self._changes(*plain):
            return found
        return [*found, rest]

    def _in_place(self, place: Place, rewrite: Rewrite) -> Rewrite:
        """Return a rewrite of a nested graph as one of this graph."""
        number, name = place
        where = f"{name} of {_title(self._before.nodes[number])}"
        return replace(
            rewrite,
            items=frozenset([("nested", (place, rewrite), 0)]),
            place=f"{rewrite.place}, {where}" if rewrite.place else where,
        )

    def _nested_files(self, number: int, after: int, one: Any, two: Any) -> TwoFiles:
        """Return the rewrites between two nested graphs."""
        known, own = self._numbers
        node = self._before.nodes[number]
        fed = parameters_of(node, one, [known.get(name) for name in node.input])
        two = copy_of(two)
        if len(one.input) != len(two.input) or len(one.output) != len(two.output):
            raise GraphError("nested graphs with other numbers of parameters or outputs")
        self._with_own_nodes(two)
        names = {new: self._old[new] for new in captured_by(two) if new in self._old}
        node = self._after.nodes[after]
        theirs = parameters_of(node, two, [own.get(name) for name in node.input])
        names |= dict(zip(theirs, fed, strict=True))
        arrays = {**known, **fed}
        others = dict(arrays)
        for new, old in names.items():
            array = theirs.get(new, own.get(new))
            if array is not None and old in others:
                others[old] = others[old].astype(array.dtype)
        # Parameters and captured values get the names before, from which others must differ.
        taken = {*names.values(), *captured_by(one), *fed}
        if [value.name for value in one.output] != [value.name for value in two.output]:
            taken |= {value.name for value in one.output}  # they are paired by position
        rename_all(two, names, taken - self._equal_constants(), self._after.constants)
        # Both have all inputs, so that these are paired by their names.
        left = inner_model(self._before.model, one, arrays)
        right = inner_model(self._after.model, two, others)
        inputs = {value.name: arrays[value.name] for each in (left, right)
                  for value in each.graph.input}  # fmt: skip
        for each, kinds in ((left, arrays), (right, others)):
            present = {value.name for value in each.graph.input}
            each.graph.input.extend(
                typed(name, kinds[name]) for name in inputs if name not in present
            )
        return TwoFiles(left, right, [inputs], self._tolerance, isolate=self._isolate)

    def _equal_constants(self) -> set[str]:
        """Return the names that both files give to a constant of the same elements."""
        return {
            name
            for name in self._before.constants.keys() & self._after.constants.keys()
            if self._before.constant_key(name) == self._after.constant_key(name)
        }

    def _with_own_nodes(self, graph: Any) -> None:
        """Put what a nested graph after captures, but no value before computes, into the graph."""
        numbers = {
            number
            for name in captured_by(graph)
            if name not in self._old
            for number in region(self._after, name, self._old)
        }
        nodes = [self._after.nodes[number] for number in sorted(numbers)]
        refill(graph.node, [*nodes, *graph.node])

    def values(self) -> list[str]:
        """Return the values before that both files compute, in order."""
        return [
            old
            for old in self._before.producers
            if old in self._new and self._old[self._new[old]] == old
        ]

    @cached_property
    def _numbers(self) -> tuple[Arrays, Arrays]:
        """All values of each file on the first inputs."""
        old = self._before.computed(self._inputs, list(self._before.producers), {})
        fed = {
            new: self._after.cast(new, self._inputs[name])
            for new, name in self._old.items()
            if name in self._inputs
        }
        new = self._after.computed(fed, list(self._after.producers), {})
        return {**self._inputs, **old}, {**fed, **new}

    def parts(self, values: Sequence[str]) -> tuple[Model, Model, Arrays]:
        """Return the parts of both files that compute some values, and their inputs.

        Both read and make the values under their names before, with the types that these have
        there. What they do not compute themselves are inputs, with the numbers of the first file.

        Raises
        ------
        GraphError
            Some value that the parts read has no numbers.
        """
        wanted = set(values)
        olds: set[int] = set()
        news: set[int] = set()
        for old in values:
            olds.update(region(self._before, old, self._new))
            news.update(region(self._after, self._new[old], self._old))
        inner = {name for number in olds for name in self._before.nodes[number].output}
        read = {self._first(name) for number in olds for name in self._before.used[number]}
        fed_names = {name for name in read - {""} if name in wanted or name not in inner}
        inner = fed_names & wanted
        fed_names |= {
            self._old[name]
            for number in news
            for name in self._after.used[number]
            if name in self._old
        }
        fed_names -= {*wanted, *self._before.constants}
        known = self._numbers[0]
        missing = [name for name in fed_names if name not in known]
        if missing:
            raise GraphError(f"no number is known of {listed(missing)}")
        fed = {name: known[name] for name in sorted(fed_names)}
        ends = [old for old in values if old not in inner] or list(values)
        one = self._part(self._before, olds, fed, {name: name for name in ends})
        two = self._part(self._after, news, fed, {self._new[name]: name for name in ends})
        return one, two, fed

    def _first(self, old: str) -> str:
        """Return the earlier value of the same numbers, if a value before repeats one."""
        return self._old[self._new[old]] if old in self._new else old

    def _part(
        self, side: Side, numbers: Collection[int], fed: Arrays, ends: Mapping[str, str]
    ) -> Model:
        """Return the model of some nodes; ``ends``: the names of the outputs, by value."""
        helper = require("onnx.helper", extra="onnx")
        is_after = side is self._after
        known, own = self._numbers
        made = copy_of(side.model)
        graph = made.graph
        for field in ("node", "input", "output", "value_info", "sparse_initializer"):
            graph.ClearField(field)
        nodes = [copy_of(side.nodes[number]) for number in sorted(numbers)]
        inside = {name for node in nodes for name in node.output if name}
        names = {name: f"{name}//unused" for name in inside & fed.keys()}
        if not is_after:
            used = {name for number in numbers for name in side.used[number]} - inside
            names |= {name: self._first(name) for name in used if name not in side.constants}
        else:
            names = {name: f"after//{name}" for name in inside}
            used = {name for number in numbers for name in side.used[number]} - inside
            for name in used & self._old.keys():
                names[name] = self._old[name]
                if name in self._types:
                    names[name] = f"after//{name}"
                    code = helper.np_dtype_to_tensor_dtype(self._types[name][1])
                    cast = helper.make_node("Cast", [self._old[name]], [names[name]], to=code)
                    graph.node.append(cast)
            for tensor in graph.initializer:
                if tensor.name in fed or tensor.name in ends.values():
                    names[tensor.name] = f"after//{tensor.name}"
                    tensor.name = names[tensor.name]
        for node in nodes:
            rename_used(node, names)
            for i, name in enumerate(node.output):
                node.output[i] = names.get(name, name)
            graph.node.append(node)
        for name, old in ends.items():
            if is_after:
                kind = self._types.get(name)
                extra: dict[str, Any] = (
                    {"to": helper.np_dtype_to_tensor_dtype(kind[0])} if kind else {}
                )
                operator = "Cast" if kind else "Identity"
                graph.node.append(
                    helper.make_node(operator, [names.get(name, name)], [old], **extra)
                )
            array = own.get(name) if is_after else known.get(name)
            dtype = known[old].dtype if old in known else np.dtype(np.float32)
            sizes = [None] * array.ndim if array is not None else None
            code = helper.np_dtype_to_tensor_dtype(dtype)
            graph.output.append(helper.make_tensor_value_info(old, code, sizes))
        for name, array in fed.items():
            code = helper.np_dtype_to_tensor_dtype(array.dtype)
            graph.input.append(helper.make_tensor_value_info(name, code, array.shape))
        drop_unused_weights(graph)
        try:
            return load(made.SerializeToString())
        except FormatError as error:
            raise GraphError(f"this part makes no valid file: {error}") from error

    def _copied(
        self,
        old: str,
        prefix: str,
        graph: Any,
        copied: dict[Key, str],
        graphs: Mapping[int, Mapping[str, Any]],
    ) -> list[Any]:
        """Return copies of the nodes that compute a value, with the values of the first file.

        Constants are added to the graph unless ``copied`` has their key already, with a name.
        ``graphs``: the nested graphs of nodes whose rewrites are split.
        """
        helper = require("onnx.helper", extra="onnx")
        new = self._new[old]
        if self._old[new] != old:
            return [helper.make_node("Identity", [self._old[new]], [old])]
        numbers = region(self._after, new, self._old)
        inside = {name for number in numbers for name in self._after.nodes[number].output if name}
        used = {name for number in numbers for name in self._after.used[number]} | {new}
        names = {name: f"{prefix}{name}" for name in inside}
        for name in used & self._after.constants.keys():
            key = self._after.constant_key(name)
            if key not in copied:
                copied[key] = f"after//{name}"
                tensor = copy_of(self._after.constants[name])
                tensor.name = copied[key]
                graph.initializer.append(tensor)
            names[name] = copied[key]
        made = []
        for name in used - names.keys() - {""}:
            names[name] = self._old[name]
            if name in self._types:
                names[name] = f"{prefix}{name}"
                code = helper.np_dtype_to_tensor_dtype(self._types[name][1])
                made.append(helper.make_node("Cast", [self._old[name]], [names[name]], to=code))
        whole = {after: graphs[number] for number, after in self._pairs.items()}
        for number in numbers:
            node = copy_of(self._after.nodes[number])
            node.name = f"{prefix}{node.name}" if node.name else ""
            if number in whole:
                node = without_graphs(node)
                rename_used(node, names)
                for name, body in whole[number].items():
                    inner = node.attribute.add(name=name, type=5)
                    inner.g.CopyFrom(body)
            else:
                rename_used(node, names, prefix)
            for i, name in enumerate(node.output):
                node.output[i] = names.get(name, "")
            made.append(node)
        if new in self._types:
            code = helper.np_dtype_to_tensor_dtype(self._types[new][0])
            made.append(helper.make_node("Cast", [names[new]], [old], to=code))
        else:
            made.append(helper.make_node("Identity", [names[new]], [old]))
        return made


_LONGEST: Final = 60


def _nested(rewrite: Rewrite) -> tuple[Place, Rewrite] | None:
    """Return the place of a rewrite of a nested graph, and what it is there."""
    return next((what for kind, what, _ in rewrite.items if kind == "nested"), None)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _title(node: Any) -> str:
    name = node.name or next(filter(None, node.output), "")
    return f"{name} ({node.op_type})"


def _line(node: Any) -> str:
    return drawn_node(", ".join(node.output), node.op_type, list(dict.fromkeys(used_by(node))))


def _sort(nodes: Sequence[Any], graph: Any) -> None:
    """Make these the nodes of a graph, each behind its inputs."""
    number = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    needs = [[number[name] for name in used_by(node) if name in number] for node in nodes]
    stuck = stuck_items(needs)
    if stuck:
        names = [_title(nodes[item]) for item in stuck]
        raise GraphError(f"a cycle through {listed(names)}")
    refill(graph.node, [nodes[item] for item in depth_first_order(needs)])


def at_the_same_sets(before: Model, after: Model, shapes: Shapes) -> tuple[Any, Any]:
    """Return the messages of two models, the older one at the operator set of the other."""
    one, two = message_of(before, shapes), message_of(after, shapes)
    first, second = _sets(one), _sets(two)
    if first.get("", 0) < second.get("", 0):
        one = message_of(before, shapes, second[""])
    elif second.get("", 0) < first.get("", 0):
        two = message_of(after, shapes, first[""])
    first, second = _sets(one), _sets(two)
    other = [name for name in first.keys() & second.keys() if first[name] != second[name]]
    if other:
        raise UnsupportedError(
            f"the files import different versions of {listed(sorted(map(repr, other)))}"
        )
    for message, more in ((one, second), (two, first)):
        for domain, version in more.items():
            if domain not in _sets(message):
                message.opset_import.add(domain=domain, version=version)
    one.ir_version = two.ir_version = max(one.ir_version, two.ir_version)
    return one, two


def _sets(message: Any) -> dict[str, int]:
    return {schema.plain(each.domain): each.version for each in message.opset_import}


def message_of(model: Model, shapes: Shapes, opset: int | None = None) -> Any:
    """Return a model as a message.

    ``shapes``: of the inputs, for models of other dialects. ``opset``: a newer version of ONNX's
    operator set.
    """
    with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
        path = Path(folder) / "model.onnx"
        newer: dict[str, Any] = {} if opset is None else {"opset": opset}
        if model.dialect == "onnx":
            model.save(path, durable=False, **newer)
        else:
            known = {name: shape for name, shape in shapes.items() if name in model.inputs}
            model.to_onnx(path, known, **newer)
        return require("onnx", extra="onnx").load(str(path))
