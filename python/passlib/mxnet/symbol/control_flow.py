"""Loops and branches of symbols: ``sym.contrib.foreach``, ``while_loop`` and ``cond``.

The functions of the caller build the nested graphs. Nodes made inside carry the attribute
``__subgraph_name__``; what a nested graph takes from outside becomes an input of the loop.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from passlib.errors import GraphError
from passlib.graph import scope
from passlib.graph.node import VARIABLE, Entry, Node, postorder
from passlib.mxnet.symbol.composition import create, operator
from passlib.mxnet.symbol.creation import group, var
from passlib.mxnet.symbol.symbol import Symbol

_SCOPE = "__subgraph_name__"
_numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)


class _Nested(NamedTuple):
    """A nested graph, and for each of its variables the outer symbol that it stands for."""

    graph: Symbol
    names: list[str]
    outer: list[Symbol]


def foreach(
    body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach"
) -> tuple[Any, Any]:
    """Apply a function to each row of the data, with states handed from row to row.

    Parameters
    ----------
    body : callable
        Takes a row and the states, returns outputs and new states.
    data : Symbol or nested list of Symbol
        Iterated along the first axis.

    Returns
    -------
    outputs, states
        The outputs of all rows, stacked, and the states after the last row.

    Raises
    ------
    GraphError
        The function leaves data or a state unused, or returns other states than it takes.
    """
    rows, row_form = _flat(data, "data")
    states, state_form = _flat(init_states, "init_states")
    with _inside(name) as label:
        row_names, state_names = _names(rows), _names(states)
        given = (_made(row_names, row_form), _made(state_names, state_form))
        outputs, ends = body(*given)
        flat_outputs, output_form = _flat(outputs, "the outputs of the function")
        flat_ends, end_form = _flat(ends, "the states of the function")
        if end_form != state_form:
            raise GraphError(
                f"{name}: the function must return states in the form that it takes them"
            )
        nested = _nested(flat_outputs, flat_ends, label)
    places = [_places(nested, names, name) for names in (row_names, state_names)]
    known = {place for part in places for place in part}
    rest = [place for place in range(len(nested.names)) if place not in known]
    result = _node(
        "_foreach",
        [*rows, *states, *(nested.outer[place] for place in rest)],
        [nested.graph],
        num_outputs=len(flat_outputs) + len(flat_ends),
        num_out_data=len(flat_outputs),
        in_state_locs=places[1],
        in_data_locs=places[0],
        remain_locs=rest,
    )
    count = len(flat_outputs)
    return _formed(result[:count], output_form), _formed(result[count:], state_form)


def while_loop(
    cond: Callable[..., Symbol],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """Repeat a function while a condition holds.

    Parameters
    ----------
    cond : callable
        Takes the loop variables, returns one symbol.
    func : callable
        Takes the loop variables, returns outputs of the round (or None) and new variables.
    loop_vars : list of Symbol
        The initial variables.
    max_iterations : int
        The outputs are padded to so many rows.

    Returns
    -------
    outputs, loop_vars
        The outputs of all rounds, stacked, and the last variables.

    Raises
    ------
    GraphError
        The function leaves a variable unused, or returns another number of them.
    ValueError
        ``max_iterations`` is missing, or there are no variables.
    """
    if max_iterations is None:
        raise ValueError("max_iterations should be specified")
    initial, form = _flat(loop_vars, "loop_vars")
    if not initial:
        raise ValueError("loop_vars should contain at least one element")
    names = _names(initial)

    def arguments() -> list[Any]:
        made = _made(names, form)
        return made if isinstance(made, list) else [made]

    with _inside(f"{name}_cond") as label:
        test = _nested([cond(*arguments())], [], label)
    with _inside(f"{name}_func") as label:
        outputs, ends = func(*arguments())
        flat_outputs, output_form = _flat([] if outputs is None else outputs, "the outputs")
        flat_ends, _ = _flat([] if ends is None else ends, "the new loop_vars")
        if len(flat_ends) != len(initial):
            raise GraphError(
                f"{name}: the function returns {len(flat_ends)} of {len(initial)} loop_vars"
            )
        work = _nested([*flat_outputs, *flat_ends], [], label)
    stands_for = dict(zip(names, initial, strict=True))
    inputs, taken = _united([test, work], stands_for)
    result = _node(
        "_while_loop",
        inputs,
        [test.graph, work.graph],
        max_iterations=int(max_iterations),
        cond_input_locs=taken[0],
        func_input_locs=taken[1],
        func_var_locs=_places(work, names, name),
        num_out_data=len(flat_outputs),
        num_outputs=len(flat_outputs) + len(flat_ends),
    )
    count = len(flat_outputs)
    return _formed(result[:count], output_form), _formed(result[count:], form)


def cond(
    pred: Symbol, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond"
) -> Any:
    """Choose between two functions.

    Parameters
    ----------
    pred : Symbol
        One number; the first function is chosen unless it is 0.
    then_func, else_func : callable
        Without arguments; both return as many symbols.

    Returns
    -------
    Symbol or nested list of Symbol
        In the form that ``then_func`` returns.

    Raises
    ------
    GraphError
        The functions return different numbers of symbols.
    """
    graphs, forms = [], []
    parts: Sequence[tuple[str, Callable[[], Any]]] = (
        ("pred", lambda: pred),
        ("then", then_func),
        ("else", else_func),
    )
    for part, function in parts:
        with _inside(f"{name}_{part}") as label:
            flat, form = _flat(function(), f"the result of the function {part!r}")
            graphs.append(_nested(flat, [], label))
            forms.append(form)
    if len(graphs[1].graph) != len(graphs[2].graph):
        raise GraphError(f"{name}: the functions return different numbers of symbols")
    inputs, taken = _united(graphs, {})
    result = _node(
        "_cond",
        inputs,
        [nested.graph for nested in graphs],
        cond_input_locs=taken[0],
        then_input_locs=taken[1],
        else_input_locs=taken[2],
        num_outputs=len(graphs[1].graph),
    )
    return _formed(result, forms[1])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cond": cond,
    "foreach": foreach,
    "while_loop": while_loop,
}
"""The functions by their names in ``sym.contrib``."""


class _inside:  # noqa: N801 (a context manager)
    """Marks all nodes made in the ``with`` block as those of one nested graph."""

    def __init__(self, name: str) -> None:
        outer = scope.current().get(None).get(_SCOPE)
        stem = f"{outer}${name}" if outer else name
        self.label = f"{stem}{next(_numbers[stem])}"
        self._scope = scope.AttrScope(**{_SCOPE: self.label})

    def __enter__(self) -> str:
        self._scope.__enter__()
        return self.label

    def __exit__(self, *error: Any) -> None:
        self._scope.__exit__(*error)


def _nested(outputs: list[Symbol], states: list[Symbol], label: str) -> _Nested:
    """Cut the nodes of one label out of the graph of some outputs."""
    members = [*outputs, *states]
    given = set(group(members).list_inputs())
    computed = {symbol.name for symbol in outputs}
    copy = operator("identity", "", Symbol)
    results = []
    for position, symbol in enumerate(members):
        shared = symbol.name in given or _label(symbol.entries[0].node) != label
        repeated = position >= len(outputs) and symbol.name in computed
        results.append(copy(symbol) if shared or repeated else symbol)
    made: dict[Node, Node] = {}
    taken: dict[Entry, Node] = {}
    entries = [symbol.entries[0] for symbol in results]

    def inner(entry: Entry) -> Entry:
        if entry.node in made:
            return entry._replace(node=made[entry.node])
        key = Entry(entry.node, entry.index)
        if key not in taken:
            name, attributes = entry.node.name, entry.node.attrs
            if not entry.node.is_variable:
                name, attributes = results[0].with_entries((key,)).list_outputs()[0], {}
            taken[key] = Node(VARIABLE, name, attributes, num_outputs=1)
        return Entry(taken[key], 0, entry.version)

    for node in postorder(entry.node for entry in entries):
        if not node.is_variable and _label(node) == label:
            made[node] = Node(
                node.op,
                node.name,
                node.attrs,
                [inner(entry) for entry in node.inputs],
                node.num_outputs,
                subgraphs=node.subgraphs,
            )
    graph = results[0].with_entries([inner(entry) for entry in entries])
    outer = {node: results[0].with_entries((entry,)) for entry, node in taken.items()}
    variables = [node for node in graph.nodes() if node.is_variable]
    return _Nested(graph, [node.name for node in variables], [outer[node] for node in variables])


def _label(node: Node) -> str | None:
    return node.attrs.get(_SCOPE)


def _places(nested: _Nested, names: Sequence[str], loop: str) -> list[int]:
    """Return which variables of the graph have these names."""
    for name in names:
        if name not in nested.names:
            raise GraphError(f"{loop}: the function does not use {name.rpartition('-')[0]!r}")
    return [nested.names.index(name) for name in names]


def _united(
    graphs: Sequence[_Nested], stands_for: dict[str, Symbol]
) -> tuple[list[Symbol], list[list[int]]]:
    """Return the outer inputs of several graphs, and which of them each graph takes."""
    inputs: dict[Entry, Symbol] = {}
    taken = []
    for nested in graphs:
        places = []
        for name, symbol in zip(nested.names, nested.outer, strict=True):
            source = stands_for.get(name, symbol)
            key = source.entries[0]
            inputs.setdefault(key, source)
            places.append(list(inputs).index(key))
        taken.append(places)
    return list(inputs.values()), taken


def _node(
    op: str, inputs: Sequence[Symbol], graphs: Sequence[Symbol], **attributes: Any
) -> list[Symbol]:
    attributes = {**scope.current().get(None), **attributes}
    return list(Symbol(create(op, inputs, attributes, subgraphs=graphs)))


def _names(symbols: Sequence[Symbol]) -> list[str]:
    return [f"{symbol.name}-{symbol.entries[0].index}" for symbol in symbols]


def _flat(value: Any, what: str) -> tuple[list[Symbol], Any]:
    """Return the symbols in nested lists, and the form of the lists."""
    if isinstance(value, Symbol):
        return (list(value), len(value)) if len(value) > 1 else ([value], 0)
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{what} must be a symbol or nested lists of symbols, not {value!r}")
    parts = [_flat(item, what) for item in value]
    return [symbol for symbols, _ in parts for symbol in symbols], [form for _, form in parts]


def _formed(symbols: Sequence[Symbol], form: Any) -> Any:
    """Return symbols in the form that `_flat` found."""
    source = iter(symbols)

    def build(part: Any) -> Any:
        if isinstance(part, int):
            return next(source) if part == 0 else [next(source) for _ in range(part)]
        return [build(item) for item in part]

    return build(form)


def _made(names: Sequence[str], form: Any) -> Any:
    return _formed([var(name) for name in names], form)
