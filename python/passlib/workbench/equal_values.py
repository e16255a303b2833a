"""The values that two ONNX files both compute, whichever tool made one file from the other.

Tools rename, fold, fuse, sort and share. Values are therefore paired by what they compute: by
structure, by the elements of constants, and by numbers on given inputs.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import copy_of, graphs_within, refill, used_by
from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.model import load
from passlib.workbench.inner import rename_within
from passlib.workbench.numbers import Tolerance, difference
from passlib.workbench.parts import outputs_of
from passlib.workbench.surviving import survived

Arrays = dict[str, "np.ndarray[Any, Any]"]

Key = Any
"""Stands for what a value computes; equal keys compute the same."""

_INFORMATIVE: Final = 4
"""Numbers of fewer elements, or elements that are all equal, may agree by chance."""

_MOST_ROUNDS: Final = 30

_DRAWING: Final = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike")
)  # fmt: skip


class Side:
    """One of two files: its nodes in order, without Constant nodes and calls of functions.

    Attributes
    ----------
    model : onnx.ModelProto
    inputs, outputs : list of str
        Without the weights that old files list among the inputs.
    nodes : list of onnx.NodeProto
        Of the main graph.
    producers : dict of str to (int, int)
        Number of the node in `nodes`, and of its output, for each value.
    constants : dict of str to onnx.TensorProto
    used : list of list of str
        The values that each node reads, see `used_by`.
    readers : dict of str to list of onnx.NodeProto
        The nodes that read each value.
    """

    def __init__(self, model: Any, *, isolate: bool = False) -> None:
        """Read a file; ``isolate``: run it in forked processes."""
        self._isolate = isolate
        if model.functions:
            model = require("onnx.inliner", extra="onnx").inline_local_functions(model)
        _make_constants_weights(model)
        self.model = model
        graph = model.graph
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.inputs = [value.name for value in graph.input if value.name not in self.constants]
        self.outputs = [value.name for value in graph.output]
        self.nodes = list(graph.node)
        self.producers = {
            name: (number, place)
            for number, node in enumerate(self.nodes)
            for place, name in enumerate(node.output)
            if name
        }
        self.used = [list(used_by(node)) for node in self.nodes]
        self.readers: dict[str, list[Any]] = defaultdict(list)
        for node, used in zip(self.nodes, self.used, strict=True):
            for name in dict.fromkeys(used):
                self.readers[name].append(node)
        self._digests: dict[str, Key] = {}

    def cast(self, name: str, array: Any) -> np.ndarray[Any, Any]:
        """Return an array with the type of an input."""
        helper = require("onnx.helper", extra="onnx")
        value = next(each for each in self.model.graph.input if each.name == name)
        made = np.asarray(array)
        code = value.type.tensor_type.elem_type
        return made.astype(helper.tensor_dtype_to_np_dtype(code), copy=False) if code else made

    def constant_key(self, name: str) -> Key:
        """Return the key of a constant: its type, sizes and elements."""
        if name not in self._digests:
            tensor = self.constants[name]
            array = require("onnx.numpy_helper", extra="onnx").to_array(tensor)
            self._digests[name] = ("constant", tensor.data_type, array.shape, _hash(array))
        return self._digests[name]

    def keys(self, known: Mapping[str, Key]) -> dict[str, Key]:
        """Return the key of each computed value: of what computes it from known ones.

        ``known``: keys of the known values.
        """
        made: dict[str, Key] = {}

        def of(name: str) -> Key:
            if name in known:
                return known[name]
            if name in self.constants:
                return self.constant_key(name)
            return made.get(name, ("unknown", name))

        for node in self.nodes:
            own = _node_key(node, of)
            for place, name in enumerate(node.output):
                if name:
                    made[name] = _digest(own, place)
        return made

    def computed(self, inputs: Arrays, wanted: Sequence[str], given: Arrays) -> Arrays:
        """Compute values, as far as they can be computed.

        ``wanted``: in the order of the nodes. ``given``: takes the place of values wherever nodes
        read them; their own numbers are still computed. Each half of the wanted values is computed
        alone if something fails.
        """
        model = self._with_given(given)
        arrays = {**inputs, **{f"{name}{_GIVEN}": array for name, array in given.items()}}
        found: Arrays = {}
        pending = [list(wanted)]
        failed: set[str] = set()
        while pending:
            part = [name for name in pending.pop() if name not in failed]
            if not part:
                continue
            try:
                values = self._run(model, part, arrays)
            except PasslibError:
                if len(part) > 1:
                    middle = len(part) // 2
                    pending += [part[middle:], part[:middle]]
                else:
                    failed |= self._behind(part[0], given)
                continue
            found.update(
                {n: v for n, v in zip(part, values, strict=True) if isinstance(v, np.ndarray)}
            )
        return found

    def _run(self, model: Any, part: Sequence[str], arrays: Arrays) -> list[Any]:
        if not self._isolate:
            return _outputs(model, part, arrays)
        return survived(lambda: _outputs(model, part, arrays))

    def _behind(self, name: str, given: Collection[str]) -> set[str]:
        """Return the values of the node of a value, and those behind them until given ones."""
        pending = [each for each in self.nodes[self.producers[name][0]].output if each]
        found = set(pending)
        while pending:
            value = pending.pop()
            for node in () if value in given else self.readers.get(value, ()):
                pending += {each for each in node.output if each} - found
                found.update(filter(None, node.output))
        return found

    def _with_given(self, given: Arrays) -> Any:
        """Return a model that reads some values from inputs named with `_GIVEN`."""
        helper = require("onnx.helper", extra="onnx")
        made = copy_of(self.model)
        graph = made.graph
        renamed = {name: f"{name}{_GIVEN}" for name in given}
        for node in graph.node:
            rename_used(node, renamed)
        for name, array in given.items():
            code = helper.np_dtype_to_tensor_dtype(array.dtype)
            sizes = [None] * array.ndim
            graph.input.append(helper.make_tensor_value_info(renamed[name], code, sizes))
        return made


_GIVEN: Final = "//given"


def _outputs(model: Any, names: Sequence[str], arrays: Arrays) -> list[Any]:
    """Compute values of a model, without the nodes that these do not need, which may fail."""
    made = copy_of(model)
    refill(made.graph.node, without_dead(made.graph.node, names))
    del made.graph.output[:]
    for name in names:
        made.graph.output.add(name=name)
    drop_unused_weights(made.graph)
    loaded = load(made.SerializeToString())
    fed = {name: arrays[name] for name in loaded.inputs if name in arrays}
    return [
        np.asarray(value) if isinstance(value, np.ndarray) or hasattr(value, "asnumpy") else value
        for value in outputs_of(loaded, fed)
    ]


def without_dead(nodes: Sequence[Any], wanted: Iterable[str]) -> list[Any]:
    """Return the nodes on which some values depend, in their order."""
    producers = {name: node for node in nodes for name in node.output if name}
    kept: set[int] = set()
    pending = list(wanted)
    while pending:
        node = producers.get(pending.pop())
        if node is not None and id(node) not in kept:
            kept.add(id(node))
            pending += used_by(node)
    return [node for node in nodes if id(node) in kept]


def drop_unused_weights(graph: Any) -> None:
    """Remove the weights of a graph that nothing reads."""
    used = {name for node in graph.node for name in used_by(node)}
    used |= {value.name for value in graph.output}
    refill(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in used])


def _make_constants_weights(model: Any) -> None:
    """Replace the Constant nodes of the main graph by initializers, and drop initializer inputs."""
    helper = require("onnx.helper", extra="onnx")
    numpy_helper = require("onnx.numpy_helper", extra="onnx")
    graph = model.graph
    kept = []
    for node in graph.node:
        tensor = None
        if node.op_type == "Constant" and not schema.plain(node.domain) and node.attribute:
            attribute = node.attribute[0]
            value = helper.get_attribute_value(attribute)
            if attribute.name == "value":
                tensor = copy_of(value)
            elif attribute.name.startswith("value_") and "string" not in attribute.name:
                kind = np.float32 if "float" in attribute.name else np.int64
                tensor = numpy_helper.from_array(np.array(value, kind))
        if tensor is None:
            kept.append(node)
        else:
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
    refill(graph.node, kept)
    constants = {tensor.name for tensor in graph.initializer}
    refill(graph.input, [value for value in graph.input if value.name not in constants])
    model.ir_version = max(model.ir_version, 4)


def rename_used(node: Any, names: Mapping[str, str], prefix: str = "") -> None:
    """Rename values that a node reads, also in its nested graphs.

    ``prefix``: of the names of values of nested graphs.
    """
    for i, name in enumerate(node.input):
        node.input[i] = names.get(name, name)
    graphs = list(graphs_within(*_nested(node)))
    inner = {value.name for graph in graphs for value in (*graph.input, *graph.initializer)}
    inner |= {name for graph in graphs for each in graph.node for name in each.output if name}
    rename_within({**names, **{name: f"{prefix}{name}" for name in inner}}, *_nested(node))


def _nested(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _node_key(node: Any, of: Callable[[str], Key]) -> Key:
    """Return the key of a node: operator, attributes and the keys of its inputs."""
    domain = schema.plain(node.domain)
    texts = []
    for attribute in sorted(node.attribute, key=lambda each: str(each.name)):
        graphs = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        if graphs:
            texts.append((attribute.name, tuple(_graph_key(graph, of) for graph in graphs)))
        else:
            plain = copy_of(attribute)
            plain.ClearField("doc_string")
            texts.append((attribute.name, plain.SerializeToString(deterministic=True)))
    inputs = tuple(of(name) if name else None for name in node.input)
    # Random numbers of two nodes are not the same.
    own = node.name if node.op_type in _DRAWING else None
    return domain, node.op_type, tuple(texts), inputs, own


def _graph_key(graph: Any, outer: Callable[[str], Key]) -> Key:
    made: dict[str, Key] = {value.name: ("formal", i) for i, value in enumerate(graph.input)}
    made |= {t.name: ("inner", t.SerializeToString()) for t in graph.initializer}

    def of(name: str) -> Key:
        return made[name] if name in made else outer(name)

    for node in graph.node:
        own = _node_key(node, of)
        made |= {name: _digest(own, place) for place, name in enumerate(node.output)}
    return tuple(of(value.name) for value in graph.output)


def _digest(key: Key, place: int) -> str:
    """Return a short text for a key, whose size would grow with the depth of the graph."""
    return hashlib.sha256(repr((key, place)).encode()).hexdigest()


def pair_values(
    before: Side, after: Side, inputs: Sequence[Arrays], tolerance: Tolerance
) -> Pairing:
    """Pair the values of two files.

    Parameters
    ----------
    inputs : sequence of dict of str to array
        On which numbers are compared, by the names of both files' inputs.
    """
    return _Search(before, after, inputs, tolerance).found()


@dataclass(frozen=True)
class Pairing:
    """Pairs of values of two files.

    Attributes
    ----------
    new : dict of str to str
        For values before, those after that compute the same.
    old : dict of str to str
        For values after, one of those before. A value before stands for two only if these are
        computed alike from such values.
    wrong : set of str
        Values after that differ from those before although all values that they are computed from
        are given the same numbers.
    types : dict of str to (dtype, dtype)
        Types before and after, where they differ.
    """

    new: dict[str, str]
    old: dict[str, str]
    wrong: set[str]
    types: dict[str, tuple[np.dtype[Any], np.dtype[Any]]]


class _Search:
    """Pairs values in rounds: each makes numbers agree behind what the last one paired."""

    def __init__(
        self, before: Side, after: Side, inputs: Sequence[Arrays], tolerance: Tolerance
    ) -> None:
        self._before, self._after = before, after
        self._inputs = inputs
        self._tolerance = tolerance
        self._starts = _paired_names(before.inputs, after.inputs)
        self._known = [
            {**each, **before.computed(each, list(before.producers), {})} for each in inputs
        ]
        self._fed = [
            {new: after.cast(new, each[old]) for new, old in self._starts.items() if old in each}
            for each in inputs
        ]
        self._plain = [
            {**each, **after.computed(each, list(after.producers), {})} for each in self._fed
        ]
        # Paired whatever they compute.
        self._ends = _paired_names(before.outputs, after.outputs)
        self._old: dict[str, str] = {}
        self._taken: set[str] = set()
        # Unpaired values after, with paired ones that are computed alike.
        self._copies: dict[str, str] = {}
        # Pairs by place that were wrong.
        self._refused: set[tuple[str, str]] = set()
        self._order = {name: i for i, name in enumerate(before.producers)}

    def found(self) -> Pairing:
        """Return the pairs."""
        found, doubtful = self._searched()
        # Numbers behind a wrong value may agree by chance with another value before. Then a fault
        # is split into two wrong rewrites.
        coincidences: set[tuple[str, str]] = set()
        while doubtful and len(found.wrong) > 1:
            new = doubtful.pop()
            pair = (new, found.old[new])
            self._refused = {*coincidences, pair}
            other, others = self._searched()
            is_fewer = len(other.wrong) < len(found.wrong)
            if is_fewer and self._size_of_wrong(other) <= self._size_of_wrong(found):
                found, doubtful = other, others
                coincidences.add(pair)
        return found

    def _size_of_wrong(self, pairing: Pairing) -> int:
        """Return how many nodes the wrong rewrites have."""
        return sum(
            len(region(self._after, new, pairing.old))
            + len(region(self._before, pairing.old[new], pairing.new))
            for new in pairing.wrong
        )

    def _searched(self) -> tuple[Pairing, list[str]]:
        """Return the pairs, and those of wrong values behind inserted nodes."""
        self._old = dict(self._starts)
        self._taken = set(self._old.values())
        for new, old in self._ends.items():
            if new not in self._old and old not in self._taken and old in self._before.producers:
                self._pair(new, old)
        self._pair_by_structure()
        self._pair_by_numbers(self._plain)
        inserted: dict[str, str] = {}
        for _ in range(_MOST_ROUNDS):
            count = len(self._old)
            self._pair_by_structure()
            values = self._computed()
            self._pair_by_numbers(values)
            if len(self._old) > count or self._confirm(self._in_place()):
                continue
            self._pair_by_numbers(values, with_other_names=True)
            if len(self._old) == count and not self._confirm_inserted(inserted):
                break
        values = self._computed()
        while (inverted := self._inverted(values)) is not None:
            self._taken.discard(self._old.pop(inverted))
            values = self._computed()
        wrong = {
            new
            for new, old in self._old.items()
            if new in self._after.producers and not self._agrees(new, old, values)
        }
        news = {old: new for new, old in self._old.items()}
        # A copy that found no pair of its own stands for what it is a copy of.
        copies = {copy: self._old[new] for copy, new in self._copies.items() if new in self._old}
        olds = {**copies, **self._old}
        pairing = Pairing({**self._repeated(), **news}, olds, wrong, self._types(olds))
        return pairing, [
            new for new, old in inserted.items() if new in wrong and news.get(old) == new
        ]

    def _inverted(self, values: Sequence[Arrays]) -> str | None:
        """Return a value after that must not have its pair, since the order before is opposite.

        Its rewrite would read what is computed from its own result: one of both pairs is a
        coincidence, such as a square that undoes a square root.
        """
        for new, old in self._old.items():
            for number in region(self._after, new, self._old) if old in self._order else ():
                for name in self._after.used[number]:
                    read = self._old.get(name, "")
                    if self._order.get(read, -1) <= self._order[old] or name in self._ends:
                        continue
                    if self._before.producers[old][0] in region(self._before, read, ()):
                        is_wrong = not self._agrees(new, old, values)
                        return new if is_wrong and new not in self._ends else name
        return None

    def _types(self, pairs: Mapping[str, str]) -> dict[str, tuple[np.dtype[Any], np.dtype[Any]]]:
        if not self._inputs:
            return {}
        known, plain = self._known[0], self._plain[0]
        return {
            new: (known[old].dtype, plain[new].dtype)
            for new, old in pairs.items()
            if old in known and new in plain and known[old].dtype != plain[new].dtype
        }

    def _pair(self, new: str, old: str) -> None:
        self._old[new] = old
        self._taken.add(old)

    def _free(self) -> list[str]:
        """Return the unpaired values after, in order."""
        return [name for name in self._after.producers if name not in self._old]

    def _computed(self) -> list[Arrays]:
        """Compute the values after from the numbers before of all pairs."""
        found = []
        wanted = list(self._after.producers)
        for fed, known, plain in zip(self._fed, self._known, self._plain, strict=True):
            given = {}
            for new, old in self._old.items():
                array, own = known.get(old), plain.get(new)
                if array is not None and own is not None:
                    given[new] = array.astype(own.dtype)
            given |= {copy: given[new] for copy, new in self._copies.items() if new in given}
            found.append(self._after.computed(fed, wanted, given))
        return found

    def _pair_by_structure(self) -> None:
        ends = {new: ("pair", old) for new, old in self._old.items()}
        starts = {old: ("pair", old) for old in self._old.values()}
        places: dict[Key, list[str]] = defaultdict(list)
        for name, key in self._before.keys(starts).items():
            if name not in self._taken:
                places[key].append(name)
        made = self._after.keys(ends)
        for name, key in made.items():
            if name not in self._old and places.get(key):
                self._pair(name, places[key].pop(0))
        paired = {key: name for name, key in made.items() if name in self._old}
        self._copies = {
            name: paired[key]
            for name, key in made.items()
            if name not in self._old and key in paired
        }

    def _pair_by_numbers(self, values: Sequence[Arrays], *, with_other_names: bool = False) -> None:
        """Pair values of equal numbers.

        ``with_other_names``: also where a value before has the same name, operator and sizes, but
        other numbers. Then the numbers of another one may be a coincidence.
        """
        if not values:
            return
        groups: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for name in self._before.producers:
            array = self._known[0].get(name)
            if name not in self._taken and array is not None and _is_informative(array):
                groups[array.shape].append(name)
        probes: dict[tuple[int, ...], np.ndarray[Any, Any]] = {
            shape: np.stack([_probe(self._known[0][name]) for name in names])
            for shape, names in groups.items()
        }
        named: dict[tuple[int, ...], list[np.ndarray[Any, Any]]] = defaultdict(list)
        near: list[tuple[str, list[str]]] = []
        for new in self._free():
            array = values[0].get(new)
            if array is None or array.shape not in probes or not _is_informative(array):
                continue
            if not with_other_names and self._has_namesake(new):
                if self._tells(new, new, values):
                    self._pair(new, new)
                else:
                    named[array.shape].append(array)
                continue
            # A value that only repeats such a one must not take the pair of that one.
            if any(np.array_equal(array, each) for each in named[array.shape]):
                continue
            own, others = _probe(array), probes[array.shape]
            with np.errstate(invalid="ignore", over="ignore"):
                far = np.abs(others - own) > _NEAR * (1 + np.abs(own))
            names = groups[array.shape]
            near.append((new, [names[i] for i in np.flatnonzero(~far.any(axis=1))]))
        # Results of one operator come first: a sum with zeros has the numbers of its other input.
        for is_alike in (True, False):
            for new, names in near:
                fitting = [
                    old
                    for old in names
                    if old not in self._taken
                    and new not in self._old
                    and (self._operator(new) == self._operator_before(old)) is is_alike
                    and self._tells(new, old, values)
                ]
                if fitting:
                    self._pair(new, min(fitting, key=lambda old: self._strangeness(new, old)))

    def _repeated(self) -> dict[str, str]:
        """Return the values before that repeat the numbers of an earlier pair, with its new name.

        Such as results of Cast and Identity that the other file does not have.
        """
        news = {old: new for new, old in self._old.items()}
        earlier: dict[Key, str] = {}
        found = {}
        for name in (*self._before.inputs, *self._before.producers):
            arrays = [known.get(name) for known in self._known]
            if any(array is None or not _is_informative(array) for array in arrays):
                continue
            key = tuple((a.shape, str(a.dtype), _hash(a)) for a in arrays if a is not None)
            if name in news:
                earlier.setdefault(key, news[name])
            elif key in earlier:
                found[name] = earlier[key]
        return found

    def _has_namesake(self, new: str) -> bool:
        """Whether an unpaired value before has the name, the operator and the sizes of this one."""
        return (
            new not in self._taken
            and self._is_possible(new, new)
            and self._operator(new) == self._operator_before(new)
        )

    def _strangeness(self, new: str, old: str) -> tuple[bool, int]:
        """Order the values that have the numbers of another one: the likeliest comes first."""
        return new != old, self._order[old]

    def _operator(self, new: str) -> str:
        return str(self._after.nodes[self._after.producers[new][0]].op_type)

    def _operator_before(self, old: str) -> str:
        return str(self._before.nodes[self._before.producers[old][0]].op_type)

    def _agrees(self, new: str, old: str, values: Sequence[Arrays]) -> bool:
        if not values:
            return False
        for known, found in zip(self._known, values, strict=True):
            one, two = known.get(old), found.get(new)
            if one is None or two is None or not close(one, two, self._tolerance):
                return False
        return True

    def _tells(self, new: str, old: str, values: Sequence[Arrays]) -> bool:
        """Whether numbers tell that two values are the same: they agree, and not by chance."""
        if not self._agrees(new, old, values):
            return False
        return any(_is_told_apart(known[old], self._tolerance) for known in self._known) or all(
            _agrees_in_itself(known[old], found[new], self._tolerance)
            for known, found in zip(self._known, values, strict=True)
        )

    def _confirm(self, proposed: Mapping[str, str]) -> bool:
        """Pair values whose numbers differ, where that explains what others compute.

        Such a pair is right if what reads the value after computes the numbers of before from the
        number before. Result: whether there is a new pair.
        """
        if not proposed:
            return False
        former = {old: new for new, old in self._old.items()}
        for new, old in proposed.items():
            self._old.pop(former.get(old, ""), None)
            self._pair(new, old)
        values = self._computed()
        self._pair_by_structure()
        self._pair_by_numbers(values)
        found = is_refused = is_open = False
        for new, old in proposed.items():
            readers = self._after.readers.get(new, ())
            behind = [name for node in readers for name in node.output if name]
            explained = [new, *behind]
            if new in self._ends or any(
                name in self._old and self._tells(name, self._old[name], values)
                for name in explained
            ):
                found = True
                continue
            # Another wrong pair may be why nothing can be computed from this one.
            if behind and not any(name in each for name in behind for each in values):
                is_open = True
            else:
                is_refused = True
                self._refused.add((new, old))
            del self._old[new]
            self._taken.discard(old)
            if old in former:
                self._pair(former[old], old)
        return found or (is_open and is_refused)

    def _confirm_inserted(self, inserted: dict[str, str]) -> bool:
        """Pair values behind inserted nodes, of which the last may be the right one.

        ``inserted``: gets the proposed pairs. Result: whether there is a new pair.
        """
        for _ in range(_MOST_INSERTED):
            proposed = self._behind_inserted()
            inserted.update(proposed)
            if not proposed or self._confirm(proposed):
                return bool(proposed)
        return False

    def _in_place(self) -> dict[str, str]:
        """Return values after with those before that have their name, or equal neighbours."""
        proposed: dict[str, str] = {}

        def propose(new: str, old: str) -> bool:
            is_free = old not in self._taken and old not in proposed.values()
            if is_free and new not in proposed and self._is_possible(new, old):
                proposed[new] = old
                return True
            return False

        # What equal nodes read at the same position.
        pending = list(self._old.items())
        while pending:
            new, old = pending.pop()
            one, two = self._producer(self._before, old), self._producer(self._after, new)
            if one is not None and two is not None and _are_alike(one, two):
                pairs = self._positions(one, two)
                pending += [(right, left) for left, right in pairs if propose(right, left)]
        # What equal nodes compute from an equal value at the same position.
        for new, old in list(self._old.items()):
            for node in self._after.readers.get(new, ()):
                others = [
                    other
                    for other in self._before.readers.get(old, ())
                    if _are_alike(other, node)
                    and (old, new) in self._positions(other, node)
                    and other.output[0] not in self._taken
                ]
                if len(others) == 1:
                    propose(node.output[0], others[0].output[0])
        for new in self._free():
            if self._operators(self._after, new) == self._operators(self._before, new):
                propose(new, new)
        return proposed

    def _positions(self, one: Any, two: Any) -> list[tuple[str, str]]:
        """Return the inputs at the same position of two alike nodes.

        Those of sums and products may be swapped.
        """
        inputs = list(two.input)
        if one.op_type in _COMMUTATIVE and len(inputs) == 2:
            same, swapped = (
                sum(
                    self._old.get(new) == old
                    or (new in self._after.constants and old in self._before.constants)
                    for old, new in zip(one.input, order, strict=True)
                )
                for order in (inputs, inputs[::-1])
            )
            if swapped > same:
                inputs.reverse()
        return list(zip(one.input, inputs, strict=True))

    def _behind_inserted(self) -> dict[str, str]:
        """Return values after few nodes behind the value before whose readers they have.

        The operators of the readers tell, or, where none does, that nothing else reads that value:
        its readers may be fused.
        """
        alike: dict[str, str] = {}
        alone: dict[str, str] = {}
        for new in self._free():
            inside = region(self._after, new, self._old)
            if len(inside) > _MOST_INSERTED:
                continue
            nodes = [self._after.nodes[number] for number in inside]
            readers = self._operators(self._after, new)
            for name in dict.fromkeys(
                each for number in inside for each in self._after.used[number]
            ):
                old = self._old.get(name, "")
                if not self._is_possible(new, old):
                    continue
                if readers == self._operators(self._before, old):
                    is_moved = readers != self._operators(self._after, name)
                    if is_moved and old not in alike.values():
                        alike[new] = old
                elif old not in alone.values() and all(
                    any(reader is node for node in nodes) for reader in self._after.readers[name]
                ):
                    alone[new] = old
        return alike or alone

    def _is_possible(self, new: str, old: str) -> bool:
        """Whether two computed values may be a pair.

        They have the same sizes or operator: an operator that reads a wrong value may make others.
        """
        return (
            new in self._after.producers
            and old in self._before.producers
            and new not in self._old
            and (new, old) not in self._refused
            and (self._fits(new, old) or self._are_alike(new, old))
        )

    def _are_alike(self, new: str, old: str) -> bool:
        """Whether two values are results of one operator with as many inputs."""
        one, two = self._producer(self._before, old), self._producer(self._after, new)
        return one is not None and two is not None and _are_alike(one, two)

    def _producer(self, side: Side, name: str) -> Any:
        """Return the node whose first value this is; None if there is none."""
        number, place = side.producers.get(name, (-1, -1))
        return None if place else side.nodes[number]

    def _operators(self, side: Side, name: str) -> list[str]:
        """Return the operators that read a value, sorted."""
        return sorted(node.op_type for node in side.readers.get(name, ()))

    def _fits(self, new: str, old: str) -> bool:
        """Whether two values have the same sizes."""
        return all(
            new in plain and old in known and plain[new].shape == known[old].shape
            for known, plain in zip(self._known, self._plain, strict=True)
        )


_MOST_INSERTED: Final = 3
_COMMUTATIVE: Final = frozenset(("Add", "And", "Max", "Min", "Mul", "Or", "Sum"))


def _are_alike(one: Any, two: Any) -> bool:
    return bool(one.op_type == two.op_type) and len(one.input) == len(two.input)


def _paired_names(before: Sequence[str], after: Sequence[str]) -> dict[str, str]:
    """Return the name before of each name after: the same one, or the one at this position."""
    common = set(before) & set(after)
    olds = [name for name in before if name not in common]
    news = [name for name in after if name not in common]
    others = zip(news, olds, strict=True) if len(olds) == len(news) else ()
    return {**{name: name for name in after if name in common}, **dict(others)}


def _hash(array: np.ndarray[Any, Any]) -> str:
    content = array.tobytes() if array.dtype != object else repr(array.tolist()).encode()
    return hashlib.sha256(content).hexdigest()


_PROBED: Final = 16
_NEAR: Final = 0.1


def _probe(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return some of the elements, which tell most arrays apart."""
    step = max(array.size // _PROBED, 1)
    some = np.asarray(array).reshape(-1)[::step][:_PROBED]
    return np.zeros(_PROBED) if some.dtype == object else some.astype(np.float64)


def _is_informative(array: np.ndarray[Any, Any]) -> bool:
    flat = np.asarray(array).reshape(-1)
    return flat.size >= _INFORMATIVE and bool((flat != flat[0]).any())


def close(one: np.ndarray[Any, Any], two: np.ndarray[Any, Any], tolerance: Tolerance) -> bool:
    """Whether two arrays agree, in the shorter one of their types."""
    if one.shape != two.shape or one.dtype.kind != two.dtype.kind:
        return False
    one, two = _in_one_type(one, two)
    if one.dtype.kind != "f":
        return difference("", one, two, tolerance).equal
    rtol, atol = tolerance.of(one.dtype)
    with np.errstate(all="ignore"):
        sizes = np.abs(one)
        # Cheaper than the scale of each element's neighbours. Rewrites are tested by their results.
        some = sizes.reshape(-1)[:: max(one.size // _SAMPLED, 1)]
        scale = np.fmax(1.0, np.median(some)) if some.size else 1.0
        within = np.abs(two - one) <= atol * scale + rtol * sizes
        return bool((within | (one == two) | ((one != one) & (two != two))).all())


def _in_one_type(
    one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return two arrays in the shorter one of their types."""
    kind = min(one.dtype, two.dtype, key=lambda dtype: dtype.itemsize)
    return one.astype(kind, copy=False), two.astype(kind, copy=False)


_SAMPLED: Final = 1024


def _is_told_apart(array: np.ndarray[Any, Any], tolerance: Tolerance) -> bool:
    """Whether the tolerance tells an array from one of equal elements.

    All small numbers agree if the tolerance is large, such as that of quantization.
    """
    if array.dtype.kind != "f":
        return True
    return not close(np.full_like(array, _middle(array)), array, tolerance)


def _agrees_in_itself(
    one: np.ndarray[Any, Any], two: np.ndarray[Any, Any], tolerance: Tolerance
) -> bool:
    """Whether arrays agree when the tolerance is scaled by how much the elements differ."""
    one, two = _in_one_type(one, two)
    rtol, atol = tolerance.of(one.dtype)
    with np.errstate(all="ignore"):
        spread = np.abs(one - _middle(one))
        within = np.abs(two - one) <= atol * np.mean(spread) + rtol * spread
        return bool((within | (one == two)).all())


def _middle(array: np.ndarray[Any, Any]) -> Any:
    """Return the median of some elements."""
    return np.median(array.reshape(-1)[:: max(array.size // _SAMPLED, 1)])


def region(side: Side, name: str, ends: Collection[str]) -> list[int]:
    """Return the nodes that compute a value from some others, in order.

    ``ends``: the values to stop at; the value itself may be one.
    """
    found: set[int] = set()
    pending = [name]
    while pending:
        value = pending.pop()
        if value not in side.producers or (value in ends and value != name):
            continue
        number = side.producers[value][0]
        if number not in found:
            found.add(number)
            pending += side.used[number]
    return sorted(found)
