"""Moves Transposes through operators until they meet; a part of cancelTransposes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from passlib._core import EditableNode, EditableValue, has_kernel
from passlib.graph.plain import ORIGIN, RULES
from passlib.passes.standard.facts.nodes import (
    Model,
    given,
    integer,
    integers,
    is_old_broadcast,
    operator,
)

Order = tuple[int, ...]

_UNARY = frozenset(
    ("Abs", "Cast", "Ceil", "Clip", "DequantizeLinear", "Elu", "Erf", "Exp", "Floor", "Gelu",
     "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "QuantizeLinear", "Reciprocal",
     "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus", "Sqrt", "Tanh")
)  # fmt: skip
"""Operators on each element of their first input."""

_BINARY = frozenset(("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Sum"))

_JOINING = _BINARY | {"Concat"}
"""Operators all of whose inputs have the axes of the result."""

THROUGH = _UNARY | _JOINING
"""Operators that Transposes may go through."""

_SUMS = frozenset(("ReduceMean", "ReduceSum"))
"""Operators that may end a region, because no axis is left that would be in another place."""


def sink_transposes(model: Model, reorder_sums: bool) -> None:
    """Move Transposes behind their users if this reduces their number.

    Parameters
    ----------
    reorder_sums : bool
        Also move them into reductions, which then add in another order.
    """
    nodes = _Sorted(model)
    for order in list(nodes.turning):
        region = _Region(model, order, reorder_sums, nodes)
        changed = False
        for part in list(region.parts()):
            # The Transposes in front of a part are gone if they met those of the part before it.
            fits = all(node not in model.gone and region.fits(node) for node in part)
            if fits and region.gain(part) > 0:
                region.move(part)
                changed = True
        if changed:
            nodes = _Sorted(model)


def _order(node: EditableNode) -> Order | None:
    if node.is_variable or operator(node) != "Transpose" or node.control_deps:
        return None
    stated = integers(node, "perm")
    return None if stated is None or stated == sorted(stated) else tuple(stated)


class _Sorted:
    """The Transposes of each order, and the places of operators that they may go through."""

    def __init__(self, model: Model) -> None:
        self.places: dict[EditableNode, int] = {}
        self.turning: dict[Order, list[EditableNode]] = {}
        for node in model.graph.sorted("Transpose"):
            order = _order(node)
            if order is not None:
                self.turning.setdefault(order, []).append(node)
        if self.turning:
            nodes = model.graph.sorted(*THROUGH, "Pad")
            self.places = {node: place for place, node in enumerate(nodes)}


class _Region:
    """Operators whose inputs have all been transposed to one order, directly or by others."""

    def __init__(self, model: Model, order: Order, reorder_sums: bool, nodes: _Sorted) -> None:
        self._model = model
        self._order = order
        self._reorder_sums = reorder_sums
        self._places = nodes.places
        self._inside: dict[EditableNode, None] = {}
        self._made: dict[EditableValue, EditableValue] = {}
        self._replaced: list[EditableNode] = []
        self._turning = frozenset(nodes.turning.get(order, ()))
        # An operator is looked at after its inputs, and only if one of them is turned.
        found = {user for node in self._turning for user in node.users if user in self._places}
        pending = [(nodes.places[user], user) for user in found]
        heapify(pending)
        while pending:
            _, node = heappop(pending)
            if self.fits(node):
                self._inside[node] = None
                new = {user for user in node.users if user in self._places} - found
                found |= new
                for user in new:
                    heappush(pending, (nodes.places[user], user))

    def _is_turned(self, value: EditableValue) -> bool:
        return value.node in self._inside or value.node in self._turning

    def _data(self, node: EditableNode) -> Sequence[EditableValue]:
        """Return the inputs that have the axes of the result."""
        return node.inputs if operator(node) in _JOINING else node.inputs[:1]

    def fits(self, node: EditableNode) -> bool:
        """Whether an operator works on what is turned, and may work on what is not."""
        name = operator(node)
        if node.control_deps or node.num_outputs != 1 or node.subgraphs or not node.inputs:
            return False
        data = node.inputs if name in _JOINING else node.inputs[:1]
        if not any(self._is_turned(value) for value in data):
            return False
        rank = len(self._order)
        if name == "Cast" and not self._turns(node.attrs.get("to", "")):
            return False
        if name in ("QuantizeLinear", "DequantizeLinear"):
            scales = [self._model.array(value) for value in node.inputs[1:]]
            known = all(array is not None and array.size == 1 for array in scales)
            return known and self._turns(node.attrs.get("output_dtype", "0"))
        if name == "Pad":
            pads = self._model.array(given(node, 1))
            return pads is not None and given(node, 3) is None and pads.size == 2 * rank
        if name == "Concat":
            return all(self._is_turned(value) for value in data)
        if name not in _BINARY:
            return name in _UNARY
        if is_old_broadcast(node):
            return False
        constants = [self._model.array(v) for v in data if not self._is_turned(v)]
        return all(array is not None and array.ndim <= rank for array in constants)

    def _turns(self, code: str) -> bool:
        """Whether ONNX Runtime transposes an element type; 0 stands for that of an array."""
        opset = self._model.opset
        return code == "0" or (
            code.isdecimal()
            and has_kernel("Transpose", int(code), opset)
            and has_kernel("Identity", int(code), opset)
        )

    def parts(self) -> Iterator[list[EditableNode]]:
        """Iterate over the operators that are connected, each after its inputs."""
        left = set(self._inside)
        looked: set[EditableNode] = set()
        for start in self._inside:
            found: set[EditableNode] = set()
            pending = [start] if start in left else []
            while pending:
                node = pending.pop()
                if node not in left:
                    continue
                left.remove(node)
                found.add(node)
                for source in {value.node for value in self._data(node)} - looked:
                    if source in self._inside:
                        pending.append(source)
                    elif _order(source) == self._order:
                        # Once, as many may take what one Transpose returns.
                        looked.add(source)
                        pending += source.users
                pending += node.users
            if found:
                yield sorted(found, key=self._places.__getitem__)

    def gain(self, part: list[EditableNode]) -> int:
        """Return how many operators fewer there are if Transposes go behind a part."""
        inside, total = set(part), 0
        entrances = {v.node for node in part for v in self._data(node) if v.node not in inside}
        for node in entrances:
            if _order(node) == self._order and not node.outputs[0].is_output:
                total += all(user in inside for user in node.users)
        for node in part:
            value = node.outputs[0]
            rest = value.is_output
            for user in node.users:
                if user in inside:
                    continue
                behind = self._behind(user)
                if behind is not None:
                    total += behind == sorted(behind) and not user.outputs[0].is_output
                elif self._ends(user) is None:
                    rest = True
            total -= rest
        return total

    def _behind(self, user: EditableNode) -> list[int] | None:
        """Return the order of a Transpose and the one before it together."""
        order = _order(user)
        if order is None or len(order) != len(self._order):
            return None
        return [self._order[axis] for axis in order]

    def _ends(self, user: EditableNode) -> list[int] | None:
        """Return the axes of a reduction before the Transpose; None if it is none, or turns."""
        if operator(user) not in _SUMS or not self._reorder_sums or user.control_deps:
            return None
        axes, rank = integers(user, "axes"), len(self._order)
        if axes is None and given(user, 1) is not None:
            array = self._model.array(user.inputs[1])
            axes = None if array is None else [int(axis) for axis in array.reshape(-1)]
        if not axes or integer(user, "keepdims", 1) or not all(-rank <= a < rank for a in axes):
            return None
        gone = {axis % rank for axis in axes}
        kept = [self._order[axis] for axis in range(rank) if axis not in gone]
        return [self._order[axis] for axis in sorted(gone)] if kept == sorted(kept) else None

    def move(self, part: list[EditableNode]) -> None:
        """Let the operators of a part work on what the Transposes before them take."""
        for node in part:
            self._made[node.outputs[0]] = self._again(node)
        inside, known = set(part), 0
        for node in part:
            value = node.outputs[0]
            made = self._made[value]
            for user in [user for user in node.users if user not in inside]:
                self._let_take(user, made)
            inside.update(self._replaced[known:])
            known = len(self._replaced)
            if value.is_output or any(user not in inside for user in node.users):
                attributes = {"perm": list(self._order)}
                turned = self._model.add(f"{node.name}_turned", "Transpose", [made], attributes)
                users = [(user, place) for user, place in value.uses if user not in inside]
                for user, place in users:
                    self._model.graph.connect(turned.outputs[0], user, place)
                if value.is_output:
                    self._model.graph.replace(value, turned.outputs[0])
        sources = [value.node for node in part for value in node.inputs]
        self._model.remove_unused([*self._replaced, *reversed(part), *sources])
        self._replaced.clear()

    def _replace(self, user: EditableNode, by: EditableValue) -> None:
        """Replace a node, which is removed later: removing it now would take the part with it."""
        self._model.graph.replace(user.outputs[0], by)
        self._replaced.append(user)

    def _let_take(self, user: EditableNode, made: EditableValue) -> None:
        """Replace a Transpose or a reduction behind the region."""
        behind, axes = self._behind(user), self._ends(user)
        result = user.outputs[0]
        if behind is not None and behind != sorted(behind):
            turned = self._model.add(user.name, "Transpose", [made], {"perm": behind})
            self._replace(user, turned.outputs[0])
        elif behind is not None:
            if result.is_output:
                made = self._model.add(user.name, "Identity", [made]).outputs[0]
            self._replace(user, made)
        elif axes is not None:
            attributes = {key: text for key, text in user.attrs.items() if key == "keepdims"}
            inputs = [made]
            if given(user, 1) is None:
                attributes["axes"] = str(axes)
            else:
                array = np.array(axes, np.int64)
                inputs.append(self._model.add_constant(f"{user.name}_axes", array))
            again = self._model.add(user.name, user.op, inputs, attributes)
            self._replace(user, again.outputs[0])

    def _again(self, node: EditableNode) -> EditableValue:
        """Return the result of an operator on inputs that are not transposed."""
        data = len(self._data(node))
        inputs = [
            self._source(value) if place < data else value
            for place, value in enumerate(node.inputs)
        ]
        attributes = {key: text for key, text in node.attrs.items() if not key.startswith("__")}
        if operator(node) == "Concat":
            axis = integer(node, "axis", 1)
            attributes["axis"] = str(self._order[axis])
        elif operator(node) == "Pad":
            pads = self._model.array(node.inputs[1])
            assert pads is not None
            rows = pads.reshape(2, -1)[:, np.argsort(self._order)]
            inputs[1] = self._model.add_constant(f"{node.name}_pads", rows.reshape(-1))
        made = self._model.add(node.name, node.op, inputs, attributes)
        made.attrs[ORIGIN] = node.attrs.get(ORIGIN, json.dumps([node.name]))
        if RULES in node.attrs:
            made.attrs[RULES] = node.attrs[RULES]
        return made.outputs[0]

    def _source(self, value: EditableValue) -> EditableValue:
        """Return a value before it was transposed."""
        if value in self._made:
            return self._made[value]
        if _order(value.node) == self._order:
            return value.node.inputs[0]
        array = self._model.array(value)
        assert array is not None
        if array.size == 1:
            return value
        full = array.reshape((1,) * (len(self._order) - array.ndim) + array.shape)
        turned = np.ascontiguousarray(full.transpose(np.argsort(self._order)))
        return self._model.add_constant(f"{value.node.name}_turned", turned)
