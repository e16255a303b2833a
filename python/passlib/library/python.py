"""Passes in Python: the graph that they change, and their calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.arrays.ndarray import NDArray
from passlib.dialects import Dialect
from passlib.errors import PassError, PassResultError, listed
from passlib.files.copying import MOST_IN_MEMORY, in_temporary_file
from passlib.graph.plain import PlainGraph
from passlib.library.call import Arrays, Backend, Call, Outcome, Param
from passlib.library.compiled import NumpyArrays, as_lent_array

_SMALL: Final = 1 << 16
"""Arrays of fewer bytes are copied."""


def _is_in_file(array: Any) -> bool:
    """Whether an array shows a part of a mapped file, which nobody changes."""
    return (
        isinstance(array, np.ndarray)
        and array.nbytes >= _SMALL
        and not array.flags.writeable
        and array.flags.c_contiguous
        and _core.is_in_file(array)
    )


class Parameters(MutableMapping[str, "np.ndarray[Any, Any]"]):
    """Arrays by name of their variable. They are read-only; assign an array to change one.

    Nothing is copied, and the caller's dictionary changes when the pass has succeeded only.
    ``kind``: for messages. ``given``: the caller's dictionary. The pass does not see names outside
    ``names``. ``names``: the variables of the graph, in its order.
    """

    def __init__(
        self, kind: str, given: MutableMapping[str, Any] | None, names: Sequence[str]
    ) -> None:
        self._kind = kind
        self._given = given
        self._names = {name: None for name in names if given is not None and name in given}
        self._new: dict[str, np.ndarray[Any, Any]] = {}
        self._in_memory: dict[str, np.ndarray[Any, Any]] = {}
        self._bytes_in_memory = 0
        self._deleted: set[str] = set()
        self._listed: list[tuple[str, np.ndarray[Any, Any], int]] | None = None

    @property
    def accepts_new(self) -> bool:
        """Whether there is a dictionary to put new parameters into."""
        return self._given is not None

    @property
    def params(self) -> list[Param]:
        """Name and array of each, for the inference of shapes; the code of the type is not set."""
        return [(name, self[name], -1) for name in self]

    @property
    def has_new(self) -> bool:
        """Whether the pass set any."""
        return bool(self._new)

    @property
    def is_as_given(self) -> bool:
        """Whether the pass neither set nor deleted any."""
        return not self._new and not self._deleted

    def has_arrays_of(self, other: Parameters) -> bool:
        """Whether both show the same arrays, not equal ones, in one order."""
        own, others = self._given or {}, other._given or {}
        return list(self._names) == list(other._names) and all(
            own[name] is others[name] for name in self._names
        )

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name in self._new:
            return self._new[name]
        if self._given is None or name not in self._names:
            raise KeyError(name)
        array: np.ndarray[Any, Any] = np.asarray(self._lent(name, self._given[name])).view()
        array.flags.writeable = False
        return array

    def __setitem__(self, name: str, array: Any) -> None:
        if self._given is None:
            raise PassResultError(
                f"{self._kind}[{name!r}] cannot be set, because optimize_for was given no "
                f"{self._kind}: pass {self._kind}={{}}"
            )
        if not isinstance(name, str):
            raise TypeError(f"{self._kind} are set by the names of variables, not by {name!r}")
        is_in_file = _is_in_file(array)
        made = np.asarray(array) if is_in_file else np.array(array, order="C")
        if made.dtype.name not in dtypes.WITHOUT_CODE:
            dtypes.code(made.dtype)  # an error where models have no arrays of this type
        made.flags.writeable = False
        self._listed = None
        self._new[name] = made
        self._names[name] = None
        self._deleted.discard(name)
        if made.nbytes >= _SMALL and not is_in_file:
            self._in_memory[name] = made
            self._bytes_in_memory += made.nbytes
            if self._bytes_in_memory > MOST_IN_MEMORY:
                self._move_to_file()

    def _move_to_file(self) -> None:
        """Let new arrays lie in a file until they are saved, if there is room."""
        moved = {n: array for n, array in self._in_memory.items() if self._new.get(n) is array}
        self._in_memory, self._bytes_in_memory = {}, 0
        with suppress(OSError):
            arrays = in_temporary_file(moved.values())
            self._new.update(zip(moved, arrays, strict=True))

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._listed = None
        self._new.pop(name, None)
        self._deleted.add(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{self._kind}: {listed(list(self))}>"

    def lent(self) -> list[tuple[str, np.ndarray[Any, Any], int]]:
        """Return name, array and code of the type of each array, for the core, which reads them.

        Arrays of types that libraries do not support are left out. The elements of the others are
        in native byte order and row-major order.
        """
        if self._listed is not None:
            return self._listed
        lent: list[tuple[str, np.ndarray[Any, Any], int]] = []
        given = self._given or {}
        for name in self._names:
            array = self._lent(name, self._new[name] if name in self._new else given[name])
            code = dtypes.code_or_none(array.dtype)
            if code is None:
                continue
            if not (array.flags.c_contiguous and array.dtype.isnative):
                array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
            lent.append((name, array, code))
        self._listed = lent
        return lent

    def _lent(self, name: str, array: Any) -> np.ndarray[Any, Any]:
        if isinstance(array, np.ndarray):
            return array
        return as_lent_array(f"{self._kind}[{name!r}]", array)

    def require_variables(self, names: Iterable[str], editor: str) -> None:
        """Check that every array belongs to a variable of the graph.

        Raises `PassResultError` if the pass set one that does not.
        """
        stray = sorted(self._new.keys() - set(names))
        if stray:
            raise PassResultError(
                f"{editor} set {self._kind} of variables that the graph does not have: "
                f"{listed(stray)}; add them with graph.add_parameter"
            )

    def commit(self, gone: Sequence[str], new: Arrays, is_parameter: Callable[[str], bool]) -> None:
        """Bring the caller's dictionary up to date; see `Holder.commit`."""
        del new  # which passes in Python do not allocate
        if self._given is None:
            return
        for name, array in self._new.items():
            # Models hold read-only arrays; other callers get some that can be written to.
            is_model = type(self._given) is NumpyArrays
            self._given[name] = array if is_model else np.array(array).view(NDArray)
        for name in {*self._deleted, *filter(is_parameter, gone)}:
            self._given.pop(name, None)


class Graph(_core.EditableRoot):
    """A graph in the core's own form, with the verbs of the header.

    ``nodes`` lists the nodes as stored, ``sorted()`` each after its inputs, ``find(name)`` returns
    one or None. ``outputs`` is a tuple of values, which can be set. ``add_node(op, inputs, attrs,
    name=, num_outputs=)``, ``add_variable(name, attrs)``, ``connect(value, node, input)``,
    ``set_inputs(node, values)``, ``replace(value, by)`` and ``remove(*nodes)`` change the graph.
    ``absorb(node, number, given)`` moves the nodes of a nested graph of a node to the node's own
    graph, where the variables of the nested graph in ``given`` become other values, and returns
    the nested graph's outputs; the node, which is left without that graph, has to be removed.

    A node has ``op``, ``name``, ``attrs``, ``inputs``, ``outputs``, ``output(index)``, ``users``,
    ``is_used``, ``subgraphs``, ``control_deps``, ``num_outputs`` and ``is_variable``. A value,
    which is one output of a node, has ``node``, ``index``, ``uses``, ``only_use``, ``is_output``,
    ``shape`` and ``dtype``.

    Attributes
    ----------
    dialect : str
        The family of models that the graph belongs to.
    args, aux : Parameters
        Weights and auxiliary states by name, as read-only arrays. Assign an array to change one.
    attributes : dict of str to str
        The graph's own attributes, as JSON by key.
    own_attributes : dict of str to str
        What the dialect keeps with the graph. A pass reads them only.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def name_by_place(graph: pl.Graph) -> None:
    ...     for place, node in enumerate(graph.sorted()):
    ...         node.attrs["__place__"] = str(place)
    >>> y = pl.sym.relu(pl.sym.var("x"), name="y").optimize_for("name_by_place")
    >>> y.attr("__place__")
    '1'
    """

    def __init__(self, source: _core.Graph, editor: str, dialect: Dialect, call: Call) -> None:
        # Only a graph with inferred types is a copy that can be used up.
        known = call.types_known
        super().__init__(source, editor, types_known=known, consume=known, types=call.types)
        assert isinstance(call.args, Parameters)
        assert isinstance(call.aux, Parameters)
        self.dialect = dialect.name
        self.args, self.aux = call.args, call.aux
        self.attributes = dict(call.attributes)
        self._family = dialect
        self.own_attributes = dict(call.own_attributes)
        self.edit: _core.Edit | None = None

    def __repr__(self) -> str:
        return f"<graph of a model of {self.dialect}>"

    def plain(self, values: Sequence[_core.EditableValue] | None = None) -> PlainGraph:
        """Return a copy of the graph as it is now, which can be run and inferred.

        Parameters
        ----------
        values : sequence of EditableValue, optional
            The outputs of the copy, by default those of the graph. The copy has no nodes that
            these do not need.

        Returns
        -------
        PlainGraph
            Nodes keep their names.
        """
        attributes = {**self.attributes, **self.own_attributes}
        if values is not None:
            attributes = self._family.selected(attributes)
        heads = self.outputs if values is None else values
        return PlainGraph.of_native(self.part(heads), attributes, self._family)

    def is_as_given(self, call: Call) -> bool:
        """Whether the attributes are those of the call, and the parameters as lent to it."""
        return self.attributes == call.attributes and all(
            part.is_as_given for part in self.parameters
        )

    def renew(self, call: Call, editor: str) -> bool:
        """Serve another call, if it is about the same weights and attributes."""
        assert isinstance(call.args, Parameters)
        assert isinstance(call.aux, Parameters)
        if not (
            self.args.has_arrays_of(call.args)
            and self.aux.has_arrays_of(call.aux)
            and self.attributes == call.attributes
            and self.own_attributes == call.own_attributes
        ):
            return False
        self.args, self.aux = call.args, call.aux
        self.editor = editor
        return True

    def lent(self) -> list[tuple[str, np.ndarray[Any, Any], int]]:
        """Return the parameters for the core; see `Parameters.lent`."""
        return [each for part in self.parameters for each in part.lent()]

    def close(self) -> None:
        """Refuse everything from now on."""
        self.edit = None  # which refers to the graph
        super().close()

    def finish(self, *, ordered: bool) -> tuple[_core.Graph, list[str]]:
        """Return the graph with the names of removed variables, and close."""
        self.edit = None
        return super().finish(ordered=ordered)

    @property
    def parameters(self) -> tuple[Parameters, Parameters]:
        """`args` and `aux`."""
        return self.args, self.aux

    def add_parameter(self, name: str, array: Any, *, aux: bool = False) -> _core.EditableNode:
        """Add a variable with its array.

        Parameters
        ----------
        name : str
            Must be free.
        array : array
            Its value, which is copied.
        aux : bool
            Whether it is an auxiliary state rather than a weight.

        Raises
        ------
        GraphError
            There is a node of this name.
        PassResultError
            ``optimize_for`` was given no dictionary for it.
        """
        parameters = self.aux if aux else self.args
        node = self.add_variable(name)
        try:
            parameters[name] = array
        except BaseException:
            self.remove(node)
            raise
        return node

    def is_parameter(self, node: _core.EditableNode) -> bool:
        """Whether a node is a variable with an array in `args` or `aux`."""
        return node.is_variable and (node.name in self.args or node.name in self.aux)


class SparedCopy:
    """The copy of a graph that the last pass left unchanged, with the facts inferred of it.

    The next pass uses it again, if it runs on the same graph with the same weights.
    """

    def __init__(self) -> None:
        self._kept: tuple[_core.Graph, Graph] | None = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the pass that runs inside use it, but no pass that this one calls."""
        token = _spared.set(self)
        try:
            yield
        finally:
            _spared.reset(token)

    def take(self, source: _core.Graph, call: Call, described: str) -> Graph | None:
        """Return the copy for another call; None if there is none for it."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        found, graph = kept
        if found is source and graph.renew(call, described):
            return graph
        graph.close()
        return None

    def keep(self, source: _core.Graph, graph: Graph) -> None:
        """Keep an unchanged copy."""
        self._kept = source, graph

    def close(self) -> None:
        """Refuse everything from now on."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept[1].close()


_spared: ContextVar[SparedCopy | None] = ContextVar("spared", default=None)


@dataclass(frozen=True)
class PythonPass(Backend):
    """A function that ``optimize_for`` runs by name.

    Attributes
    ----------
    body : callable
        Gets a `Graph`, which it changes, and the options as keywords. Returns None.
    place : str
        Module and qualified name of the function.
    drops_handles : bool
        Whether the function keeps no handles after it returned, so that the graph may be used
        again.
    """

    body: Callable[..., object]
    place: str
    drops_handles: bool = False

    @property
    def described(self) -> str:
        """Name and place, for messages."""
        return f"pass {self.declaration.name!r} (Python function {self.place})"

    def reads_types(self, graph: _core.Graph) -> bool:
        """Whether types are inferred when they are read: they always are."""
        return True

    def lend(
        self, kind: str, given: MutableMapping[str, Any] | None, names: Sequence[str]
    ) -> Parameters:
        """Show the arrays read-only."""
        return Parameters(kind, given, names)

    def run(self, call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
        """Run the function.

        Raises `PassError` if the function raised; its exception is the cause. `PassResultError` if
        it left a graph that is not sound, or returned something.
        """
        # Inference adds attributes to a copy, which must not reach the next pass.
        is_plain = call.types is None and not call.types_known
        spared = _spared.get() if self.drops_handles and is_plain else None
        editable = None if spared is None else spared.take(graph, call, self.described)
        if editable is None:
            editable = Graph(graph, self.described, dialect, call)
        changes = editable.changes
        token = _spared.set(None)
        try:
            self._change(editable, call)
            if spared is not None and editable.changes == changes and editable.is_as_given(call):
                spared.keep(graph, editable)
                return Outcome(graph, editable.attributes, ({}, {}), [])
            self._check_attributes(call.attributes, editable.attributes)
        except BaseException:
            editable.close()
            raise
        finally:
            _spared.reset(token)
        result, gone = editable.finish(ordered=dialect.ordered)
        if any(part.has_new for part in editable.parameters):
            names = result.variables({})[0]
            for part in editable.parameters:
                part.require_variables(names, self.described)
            both = sorted(editable.args.keys() & editable.aux.keys())
            if both:
                raise PassResultError(f"{self.described} left {listed(both)} in both args and aux")
        return Outcome(result, editable.attributes, ({}, {}), gone)

    def _change(self, graph: Graph, call: Call) -> None:
        """Run the function."""
        try:
            returned = self.body(graph, **call.options)
        except PassResultError:
            raise
        except Exception as error:
            message = f"{self.described} failed: {type(error).__name__}: {error}"
            raise PassError(message) from error
        if returned is not None:
            raise PassResultError(
                f"{self.described} returned {type(returned).__name__}; a pass changes the "
                "graph in place and returns None"
            )

    def _check_attributes(self, before: Mapping[str, str], after: Mapping[Any, Any]) -> None:
        """Check that attributes of the graph which the function set are JSON."""
        for key, text in after.items():
            if before.get(key) == text:
                continue
            try:
                if not isinstance(key, str):
                    raise TypeError
                json.loads(text)
            except (TypeError, ValueError):
                raise PassResultError(
                    f"{self.described} set the attribute {key!r} of the graph to {text!r}, which "
                    "is no JSON text: write it with json.dumps"
                ) from None
