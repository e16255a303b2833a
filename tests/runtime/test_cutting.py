from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passlib.graph.node import VARIABLE, Entry, Node, postorder
from passlib.runtime.cutting import Call, Piece, cut
from steps import counted_steps


@dataclass
class Drawn:
    """A graph; operators whose name begins with ``c`` are a library's."""

    heads: list[Node]

    @property
    def entries(self):
        return tuple(Entry(node) for node in self.heads)

    def nodes(self):
        return postorder(self.heads)


def is_call(node):
    return node.op.startswith("c")


def nothing(node):
    return ()


def draw(text, heads):
    """Make nodes of lines such as ``relu a b: c1 x`` (operator, name, inputs)."""
    nodes = {}
    for line in text.split(";"):
        op, name, *inputs = line.split()
        entries = []
        for source in inputs:
            nodes.setdefault(source, Node(VARIABLE, source, num_outputs=1))
            entries.append(Entry(nodes[source]))
        nodes[name] = Node(op, name, inputs=entries, num_outputs=1)
    return Drawn([nodes[name] for name in heads.split()])


def described(steps):
    """Write steps as text: a call as its name, a piece as the sorted names of its operators."""
    names = []
    for step in steps:
        if isinstance(step, Call):
            names.append(step.node.name)
        else:
            names.append(
                "{" + " ".join(sorted(n.name for n in step.nodes() if n.op != "null")) + "}"
            )
    return " ".join(names)


@pytest.mark.parametrize(
    ("text", "heads", "expected"),
    [
        ("b p x; b q p", "q", "{p q}"),
        ("c k x", "k", "k"),
        ("c k x; b p k; b q p", "q", "k {p q}"),
        ("b p x; c k p; b q k", "q", "{p} k {q}"),
        # Of two branches, the one without a library's operator runs with the first piece.
        ("b p x; c k p; b q p; b r q k", "r", "{p q} k {r}"),
        # Independent operators of one level are one piece, however far apart.
        ("b p x; b q y; c k p; c l q; b r k; b s l; b t r s", "t", "{p q} k l {r s t}"),
        # A library's operator on a variable delays nothing.
        ("c k x; b p k; b q y; b r p q", "r", "k {p q r}"),
        # Chains of library operators do not make pieces.
        ("b p x; c k p; c l k; c m l; b q m; b r k; b s q r", "s", "{p} k l m {q r s}"),
        # The input with the most steps before it decides.
        ("b p x; c k p; b q k; c l q; b r l p", "r", "{p} k {q} l {r}"),
        ("b p x; c k p; c l x", "k l p", "l {p} k"),
        ("c k x", "k x", "k"),
    ],
)
def test_pieces(text, heads, expected):
    assert described(cut(draw(text, heads), is_call, nothing, {}).steps) == expected


def test_what_crosses_a_boundary():
    graph = draw("b p x; b q p; c k p; b r q k w", "r q")
    first, call, second = cut(graph, is_call, nothing, {}).steps
    assert [e.node.name for e in first.entries] == ["p", "q"]
    assert first.boundary == {}
    assert first.variables == ("x",)
    assert call.outputs == (0,)
    origins = {name: value[0].name for name, value in second.boundary.items()}
    assert origins == {"q_output0": "q", "k_output0": "k"}
    assert second.variables == ("w",)


def test_names_at_a_boundary_are_free():
    graph = draw("c k x; b p k k_output0", "p")
    _, piece = cut(graph, is_call, nothing, {}).steps
    (name,) = piece.boundary
    assert name != "k_output0"
    assert piece.variables == ("k_output0",)


def test_one_piece_though_a_name_stands_twice():
    nodes = [Node("b", "same", inputs=[Entry(Node(VARIABLE, "x", num_outputs=1))], num_outputs=2)]
    calls = [Node("c", "same", inputs=[Entry(nodes[0], i)], num_outputs=1) for i in (0, 1)]
    last = Node("b", "last", inputs=[Entry(call) for call in calls], num_outputs=1)
    *_, piece = cut(Drawn([last]), is_call, nothing, {}).steps
    assert len(piece.boundary) == 2
    assert [entry.node.name for entry in piece.nodes()[-1].inputs] == list(piece.boundary)


def test_attributes_that_count_instead():
    graph = draw("b p x; c k p", "k")
    p = graph.nodes()[1]
    piece, _ = cut(graph, is_call, nothing, {p: {"shape": "(2,)"}}).steps
    assert dict(piece.nodes()[-1].attrs) == {"shape": "(2,)"}


class TestWriting:
    """Reads that precede a write in the graph must precede it in the steps too."""

    @pytest.mark.parametrize(
        ("text", "heads", "expected"),
        [
            # r reads x before k writes to it, s after that.
            ("b r x; c k y x; b s x", "r k s", "{r} k {s}"),
            ("c k y x; b r x", "k r", "k {r}"),
            ("b r x; c k y x", "r k", "{r} k"),
            ("c j x; c k y x; c l x", "j k l", "j k l"),
            ("b r x; c k y x; c l z x; b s x", "r k l s", "{r} k l {s}"),
        ],
    )
    def test_order(self, text, heads, expected):
        graph = draw(text, heads)
        steps = cut(graph, is_call, lambda n: (1,) if n.name in "kl" else (), {}).steps
        assert described(steps) == expected

    def test_kept_for_what_it_writes(self):
        graph = draw("b p x; c k y", "k")
        (call,) = graph.heads
        writer = Node("b", "w", inputs=[Entry(Node(VARIABLE, "z", num_outputs=1))], num_outputs=1)
        head = Node(call.op, call.name, inputs=call.inputs, num_outputs=1, control_deps=[writer])
        for writes, expected in (((), "k"), ((0,), "{w} k")):
            written = {writer: writes, head: ()}
            steps = cut(Drawn([head]), is_call, written.__getitem__, {}).steps
            assert described(steps) == expected


PICKS = st.lists(st.integers(0, 99), min_size=1, max_size=3)
NODES = st.lists(st.tuples(st.booleans(), st.booleans(), PICKS), min_size=1, max_size=25)


def built(rows, heads):
    """Make a graph of rows: whether it is a call, whether it writes to its first input, inputs."""
    nodes = [Node(VARIABLE, f"x{i}", num_outputs=1) for i in range(3)]
    written = {}
    for i, (call, writes, picks) in enumerate(rows):
        inputs = [Entry(nodes[pick % len(nodes)]) for pick in picks]
        nodes.append(Node("c" if call else "b", f"n{i}", inputs=inputs, num_outputs=1))
        written[nodes[-1]] = (0,) if writes else ()
    return Drawn([nodes[-1 - pick % len(nodes)] for pick in heads]), written


GRAPHS = st.builds(built, NODES, PICKS)


@given(GRAPHS)
def test_steps_are_sound_and_fewest(drawn):
    graph, _ = drawn
    found = cut(graph, is_call, nothing, {})
    operators = [node for node in graph.nodes() if not node.is_variable]
    present = {(n, 0) for n in graph.nodes() if n.is_variable}
    seen = []
    for step, last in zip(found.steps, found.last_uses, strict=True):
        if isinstance(step, Call):
            assert {(e.node, e.index) for e in step.node.inputs} <= present
            present |= {(step.node, index) for index in step.outputs}
            seen.append(step.node.name)
        else:
            assert set(step.boundary.values()) <= present
            present |= set(step.outputs)
            seen += [node.name for node in step.nodes() if not node.is_variable]
        assert set(last) <= present
        present -= set(last)
    assert sorted(seen) == sorted(node.name for node in operators)
    kept = {(entry.node, entry.index) for entry in graph.entries}
    assert kept <= present
    assert {value for value in present if not value[0].is_variable} <= kept
    # The pieces that a path needs on its own, by its changes from call to built-in operator.
    fewest: dict[Node, int] = {}
    for node in operators:
        before = [e.node for e in node.inputs if not e.node.is_variable]
        if is_call(node):
            fewest[node] = max((fewest[n] for n in before), default=0)
        else:
            fewest[node] = max((fewest[n] + is_call(n) for n in before), default=1) or 1
    pieces = sum(isinstance(step, Piece) for step in found.steps)
    assert pieces == max((fewest[n] for n in operators if not is_call(n)), default=0)


@given(GRAPHS)
def test_reads_and_writes_keep_their_order(drawn):
    graph, written = drawn
    found = cut(graph, is_call, written.__getitem__, {})
    place = {}
    for position, step in enumerate(found.steps):
        for order, node in enumerate([step.node] if isinstance(step, Call) else step.nodes()):
            if not node.is_variable:
                place[node.name] = position, order
    users = {}
    for node in graph.nodes():
        for index, entry in enumerate(node.inputs):
            users.setdefault(entry.node, []).append((node.name, index in written[node]))
    for uses in users.values():
        for i, (name, writes) in enumerate(uses):
            for other, also in uses[i + 1 :]:
                if writes or also:
                    assert place[name] <= place[other]


def test_takes_linear_time():
    def steps_of(count):
        node = Node(VARIABLE, "x", num_outputs=1)
        for i in range(count):
            op = "c" if i % 2 else "b"
            node = Node(op, f"n{i}", inputs=[Entry(node), Entry(node)], num_outputs=1)
        graph = Drawn([node])
        found, steps = counted_steps(lambda: cut(graph, is_call, nothing, {}))
        assert len(found.steps) == count
        return steps

    assert steps_of(4_000) < 5 * steps_of(1_000)
