"""Verbs of the graph that the standard passes use: nested graphs are absorbed, parts are copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import passlib
from passlib import Graph, graph_pass
from rewriting import parsed

SYM = passlib.sym


def run(body: Callable[[Graph], None], symbol: passlib.Symbol) -> passlib.Symbol:
    """Register a function under a name of its own, and run it."""
    body.__name__ = f"{body.__qualname__.replace('.<locals>', '')}"
    graph_pass(replace=True)(body)
    return symbol.optimize_for(body.__name__)


def chain() -> passlib.Symbol:
    """Return three relu of a product."""
    symbol = SYM.broadcast_mul(SYM.var("x"), SYM.var("w"), name="m")
    for number in range(3):
        symbol = SYM.relu(symbol, name=f"relu{number}")
    return symbol


NESTED = {
    "Loop": (
        ("a = Loop(m, c, x) <body = l (int64 i, bool o, float[2] s) => (p, q)"
        " { q = Neg(x) p = Identity(o) }>"), [["i", "o", "s", "x"]],
    ),
    "Scan": (
        ("a, b = Scan(x, x) <num_scan_inputs = 1, body = l (float[2] s, float r) => (q, t)"
        " { q = Neg(x) t = Abs(r) }>"), [["s", "r", "x"]],
    ),
    "If": (
        ("a = If(c) <then_branch = d () => (e) { e = Neg(x) },"
        " else_branch = f () => (g) { h = Abs(x) g = Add(h, x) }>"), [["x"], ["x"]],
    ),
}  # fmt: skip
"""A node with nested graphs, and the names of their inputs."""


class TestNestedGraphs:
    def test_a_nested_graph_is_absorbed(self) -> None:
        seen: list[Any] = []

        def absorb(graph: Graph) -> None:
            node = next(node for node in graph.nodes if node.op == "If")
            branch = node.subgraphs[1]
            outer = {
                inner: node.inputs[int(inner.attrs["__outer__"])]
                for inner in branch.nodes
                if "__outer__" in inner.attrs
            }
            results, moved = graph.absorb(node, 1, outer)
            seen.append([inner.op for inner in graph.nodes])
            seen.append([inner.op for inner in moved if not inner.is_variable])
            graph.replace(node.outputs[0], results[0])
            graph.remove(node)

        body = "{ y = If(c) <then_branch = t () => (u) { u = Neg(x) }, else_branch = e () => (v) "
        text = f"g (float[N] x, bool c) => (float[N] y) {body} {{ a = Exp(x) v = Abs(a) }}> }}"
        symbol = run(absorb, passlib.load(parsed(text)).symbol)
        assert [node.op for node in symbol.nodes() if not node.is_variable] == ["Exp", "Abs"]
        assert "Exp" in seen[0]
        assert "If" in seen[0]
        assert seen[1] == ["Exp", "Abs"]

    def test_what_is_refused(self) -> None:
        messages = []

        def absorb(graph: Graph) -> None:
            node = graph.find("relu0")
            assert node is not None
            for number, given in ((0, {}), (0, {node: node.outputs[0]})):
                try:
                    graph.absorb(node, number, given)
                except (IndexError, ValueError) as error:  # noqa: PERF203
                    messages.append(str(error))

        run(absorb, chain())
        assert "0 nested graphs" in messages[0]
        assert "no variable of the nested graph" in messages[1]

    def test_a_part_can_be_taken(self) -> None:
        parts = []

        def look(graph: Graph) -> None:
            node = graph.find("relu0")
            assert node is not None
            parts.append([inner.name for inner in graph.plain(node.outputs).nodes()])
            parts.append([inner.name for inner in graph.plain().nodes()])

        run(look, chain())
        assert parts == [["x", "w", "m", "relu0"], ["x", "w", "m", "relu0", "relu1", "relu2"]]

    @pytest.mark.parametrize("holder", NESTED)
    def test_nested_graphs_of_a_part_keep_their_parameters(self, holder: str) -> None:
        parameters = []

        def look(graph: Graph) -> None:
            node = next(node for node in graph.nodes if node.op == holder)
            (copy,) = (each for each in graph.plain(node.outputs[:1]).nodes() if each.op == holder)
            parameters.extend(
                [each.name for each in nested.nodes() if each.is_variable]
                for nested in copy.subgraphs
            )

        body, expected = NESTED[holder]
        text = f"g (float[2] x, int64 m, bool c) => (float[2] y) {{ {body} y = Neg(x) }}"
        run(look, passlib.load(parsed(text)).symbol)
        assert parameters == expected
