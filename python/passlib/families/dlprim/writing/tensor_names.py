"""Names for the tensors of a network, shared by several versions where results stay the same.

An operator may write in place of its input if the old content is not read afterwards, under any
name of that memory. Otherwise its output gets a name of its own.
"""

from __future__ import annotations

from passlib.families.dlprim.schema import ALIASES
from passlib.families.dlprim.types import Spec
from passlib.families.dlprim.writing.draft import Draft, Value

_ANYWHERE = frozenset(("Activation",))
"""Operators that may be made to work in place: their gradient needs only their output."""


class Naming:
    """The names of a network's tensors.

    Attributes
    ----------
    names : dict of Value to str
    omitted : set of Value
        Views that do not need an operator.
    """

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.omitted: set[Value] = set()


def name_tensors(draft: Draft, in_place: frozenset[str]) -> Naming:
    """Choose names for all tensors.

    Parameters
    ----------
    draft : Draft
    in_place : frozenset of str
        Places of the operators that work in place in the file.
    """
    naming = _Namer(draft, in_place, frozenset()).run()
    wanted = zip(draft.outputs, draft.names, strict=True)
    misnamed = frozenset(value for value, name in wanted if naming.names[value] != name)
    return _Namer(draft, in_place, misnamed).run() if misnamed else naming


class _Memory:
    """Memory with one or more names, and the values that are its present content."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Value] = []


class _Namer:
    """One attempt at naming; the outputs in ``alone`` do not share their names."""

    def __init__(self, draft: Draft, in_place: frozenset[str], alone: frozenset[Value]) -> None:
        self._draft = draft
        self._in_place = in_place
        self._alone = alone
        self._naming = Naming()
        self._memory: dict[str, _Memory] = {}
        self._shapes: dict[str, Spec] = {}
        self._last_use: dict[Value, int] = {}
        self._wishes = {value: value.wish for value in (*draft.inputs, *draft.operators)}
        self._reserved = set(self._wishes.values())

    def run(self) -> Naming:
        operators = self._draft.operators
        for position, value in enumerate(operators):
            for used in value.inputs:
                self._last_use[used] = position
        for value in self._draft.outputs:
            self._last_use[value] = len(operators)
        self._make_way()
        for value in self._draft.inputs:
            self._place(value, self._free(self._wishes[value]), _Memory())
        for position, value in enumerate(operators):
            self._name(position, value)
        return self._naming

    def _make_way(self) -> None:
        """Reserve the names of outputs by renaming other tensors of these names."""
        owners = {value.wish: value for value in self._draft.outputs}
        entitled = set(self._draft.outputs)
        for owner in self._draft.outputs:
            entitled.update(self._predecessors(owner))
        renamed: dict[str, str] = {}
        for value in self._draft.operators:
            owner_of_name = owners.get(value.wish)
            if owner_of_name is None or value in entitled:
                continue
            if owner_of_name.view and owner_of_name not in self._alone:
                continue
            if value.wish not in renamed:
                renamed[value.wish] = self._fresh(value.wish)
            self._wishes[value] = renamed[value.wish]

    def _predecessors(self, owner: Value) -> list[Value]:
        """List the values that an output successively overwrote in the file."""
        found: list[Value] = []
        if owner in self._alone:
            return found
        value: Value | None = owner
        while value is not None and value.place in self._in_place:
            value = next((used for used in value.inputs if used.wish == owner.wish), None)
            found += [] if value is None else [value]
        return found

    def _name(self, position: int, value: Value) -> None:
        names, wish = self._naming.names, self._wishes[value]
        memory = self._memory.get(wish)
        same = any(names[u] == wish and u.spec == value.spec for u in value.inputs)
        if value.op in ALIASES:
            source = self._memory[names[value.inputs[0]]]
            again = memory is source and self._shapes[wish] == value.spec
            if again and value.view:
                self._naming.omitted.add(value)
            fits = again and (value.view or same)
            self._place(value, wish if fits else self._free(wish), source)
        elif memory is not None and same and self._may_overwrite(position, value, memory):
            memory.values.clear()
            self._place(value, wish, memory)
        else:
            self._place(value, self._free(wish), _Memory())

    def _may_overwrite(self, position: int, value: Value, memory: _Memory) -> bool:
        if value.place not in self._in_place and value.op not in _ANYWHERE:
            return False
        return all(self._last_use.get(old, -1) <= position for old in memory.values)

    def _place(self, value: Value, name: str, memory: _Memory) -> None:
        self._naming.names[value] = name
        self._memory[name] = memory
        self._shapes[name] = value.spec
        memory.values.append(value)

    def _free(self, wish: str) -> str:
        return wish if wish not in self._memory else self._fresh(wish)

    def _fresh(self, wish: str) -> str:
        count = 1
        while f"{wish}_{count}" in self._reserved:
            count += 1
        name = f"{wish}_{count}"
        self._reserved.add(name)
        return name
