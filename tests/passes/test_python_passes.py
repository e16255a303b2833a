"""Passes that are Python functions: what they see, what they change, and how they fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import passlib
from onnx_models import save as save_onnx
from passlib import Graph, graph_pass
from passlib.errors import (
    GraphError,
    PassError,
    PassResultError,
)

SYM = passlib.sym


def chain(count: int = 3) -> passlib.Symbol:
    """Return relu0(... (x * w)), of ``count`` relu."""
    symbol = SYM.broadcast_mul(SYM.var("x"), SYM.var("w"), name="m")
    for i in range(count):
        symbol = SYM.relu(symbol, name=f"relu{i}")
    return symbol


def operators(symbol: passlib.Symbol) -> list[str]:
    return [node.op for node in symbol.nodes() if not node.is_variable]


def run(body: Callable[[Graph], None], symbol: Any = None, **options: Any) -> Any:
    """Register a function under a name of its own, and run it."""
    body.__name__ = f"{body.__qualname__.replace('.<locals>', '')}"
    graph_pass(replace=True)(body)
    return (chain() if symbol is None else symbol).optimize_for(body.__name__, **options)


@graph_pass
def drop_relu(graph: Graph, *, keep: Sequence[str] = ()) -> None:
    """Takes relu out.

    Parameters
    ----------
    keep : sequence of str
        Names of nodes that stay.
    """
    for node in graph.sorted():
        if node.op in ("relu", "Relu") and node.name not in keep:
            graph.replace(node.outputs[0], node.inputs[0])
            graph.remove(node)


class TestVerbs:
    def test_nodes_are_replaced_and_removed(self) -> None:
        symbol = chain().optimize_for("drop_relu", keep=["relu1"])
        assert [node.name for node in symbol.nodes()] == ["x", "w", "m", "relu1"]

    def test_the_symbol_itself_stays(self) -> None:
        symbol = chain()
        text = symbol.tojson()
        symbol.optimize_for("drop_relu")
        assert symbol.tojson() == text

    def test_what_a_node_shows(self) -> None:
        seen: dict[str, Any] = {}

        def look(graph: Graph) -> None:
            seen["listed"] = [node.name for node in graph.nodes]
            seen["length"] = len(graph)
            seen["dialect"] = graph.dialect
            node = graph.find("relu0")
            assert node is not None
            seen["node"] = (node.op, node.is_variable, node.num_outputs, len(node.outputs))
            seen["inputs"] = [(value.node.name, value.index) for value in node.inputs]
            seen["users"] = [user.name for user in node.users]
            seen["uses"] = [(user.name, place) for user, place in node.output(0).uses]
            seen["heads"] = [value.node.name for value in graph.outputs]
            seen["is_output"] = (node.output().is_output, graph.outputs[0].is_output)
            seen["absent"] = graph.find("nothing")
            seen["equal"] = node == graph.find("relu0") and node.outputs[0] == node.output(0)
            seen["hashed"] = len({node, graph.find("relu0"), graph.find("relu1")})

        run(look)
        assert seen == {
            "listed": ["x", "w", "m", "relu0", "relu1", "relu2"],
            "length": 6,
            "dialect": "mxnet",
            "node": ("relu", False, 1, 1),
            "inputs": [("m", 0)],
            "users": ["relu1"],
            "uses": [("relu1", 0)],
            "heads": ["relu2"],
            "is_output": (False, True),
            "absent": None,
            "equal": True,
            "hashed": 2,
        }

    def test_nodes_of_some_operators(self) -> None:
        nodes = [
            helper.make_node("Relu", ["x"], ["a"], "first"),
            helper.make_node("Relu", ["a"], ["b"], "other", domain="own"),
            helper.make_node("Neg", ["b"], ["c"], "third"),
        ]
        value = helper.make_tensor_value_info
        ends = [value("x", 1, [2])], [value("c", 1, [2])]
        sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        model = helper.make_model(helper.make_graph(nodes, "g", *ends), opset_imports=sets)
        found: list[list[str]] = []

        def body(graph: Graph) -> None:
            kinds = (("Relu",), ("own.Relu",), ("Neg", "Relu"), ("u",), ("",), ("Relu.Relu",))
            found.extend([node.name for node in graph.sorted(*each)] for each in kinds)

        run(body, passlib.load(model).symbol)
        assert found == [["first"], ["other"], ["first", "third"], [], [], []]

    def test_nodes_are_added_after_others(self) -> None:
        def insert(graph: Graph) -> None:
            node = graph.find("relu1")
            assert node is not None
            new = graph.add_node("LeakyReLU", [node.outputs[0]], {"slope": "0.5"}, name="relu1")
            graph.replace(node.outputs[0], new.outputs[0])

        symbol = run(insert)
        assert operators(symbol) == ["broadcast_mul", "relu", "relu", "LeakyReLU", "relu"]
        new = symbol.get_internals()["relu1_1_output"]
        assert new.attr("slope") == "0.5"

    def test_inputs_are_set_and_connected(self) -> None:
        def swap(graph: Graph) -> None:
            node = graph.find("m")
            assert node is not None
            graph.set_inputs(node, reversed(node.inputs))
            graph.connect(node.inputs[1], node, 0)
            graph.connect(graph.add_variable("z").outputs[0], node, 1)

        assert run(swap).list_arguments() == ["x", "z"]

    def test_outputs_are_set(self) -> None:
        def cut(graph: Graph) -> None:
            node = graph.find("relu0")
            assert node is not None
            graph.outputs = (node.outputs[0], node.inputs[0])

        assert run(cut).list_outputs() == ["relu0_output", "m_output"]

    def test_outputs_are_replaced_at_each_place(self) -> None:
        def replace(graph: Graph) -> None:
            last, m = graph.find("relu2"), graph.find("m")
            assert last is not None
            assert m is not None
            graph.outputs = (last.outputs[0], m.outputs[0], last.outputs[0])
            assert graph.replace(last.outputs[0], m.outputs[0]) == 2
            assert not last.outputs[0].is_output
            assert graph.replace(last.outputs[0], m.inputs[0]) == 0
            graph.remove(last)
            graph.replace(m.outputs[0], m.inputs[0])
            assert list(graph.outputs) == [m.inputs[0]] * 3

        assert run(replace).list_outputs() == ["x", "x", "x"]

    def test_many_outputs_are_replaced_in_linear_time(self) -> None:
        def replace(graph: Graph) -> None:
            for value in graph.outputs:
                graph.replace(value, value.node.inputs[0])

        x = SYM.var("x")
        symbol = SYM.Group([SYM.relu(x) for _ in range(20000)])
        assert run(replace, symbol).list_outputs() == ["x"] * 20000

    def test_attributes_are_a_mapping(self) -> None:
        def label(graph: Graph) -> None:
            attrs = graph.nodes[3].attrs
            attrs["b"] = "1"
            attrs.update({"a": "2", "c": "3"})
            assert attrs.pop("c") == "3"
            assert dict(attrs) == {"a": "2", "b": "1"} == attrs
            assert attrs.get("c") is None
            assert list(attrs) == ["a", "b"]
            del attrs["a"]
            with pytest.raises(KeyError):
                attrs["a"]

        assert run(label).get_internals()["relu0_output"].list_attr() == {"b": "1"}

    def test_graph_attributes(self) -> None:
        def note(graph: Graph) -> None:
            graph.attributes["note"] = json.dumps(["seen", graph.dialect])

        assert json.loads(run(note).attributes["note"]) == ["seen", "mxnet"]

    def test_nested_graphs(self, tmp_path: Path) -> None:
        text = """<ir_version: 8, opset_import: ["" : 17]>
            g (bool c, float[2] x) => (float[2] y) {
              y = If (c) <then_branch = t () => (float[2] a) { r = Relu(x) a = Neg(r) },
                          else_branch = e () => (float[2] b) { b = Exp(x) }>
            }"""
        model = passlib.load(save_onnx(text, tmp_path / "nested.onnx"))

        @graph_pass(dialects=["onnx"], replace=True)
        def inside(graph: Graph) -> None:
            for node in graph.sorted():
                for nested in node.subgraphs:
                    for inner in nested.sorted():
                        if inner.op == "Relu":
                            nested.replace(inner.outputs[0], inner.inputs[0])
                            nested.remove(inner)

        feeds = {"c": np.array(True), "x": np.array([-1, 2], "float32")}
        result = model.optimize_for("inside").run(feeds)["y"]
        np.testing.assert_array_equal(result, [1, -2])

    def test_many_single_removals_are_linear(self) -> None:
        count = 20000
        symbol = chain(count)
        assert len(symbol.optimize_for("drop_relu").nodes()) == 3


class TestParameters:
    def model(self) -> passlib.Model:
        return passlib.Model(chain(), {"w": np.ones((2, 3), "float32")})

    def test_weights_are_read_changed_added_and_removed(self) -> None:
        def scale(graph: Graph) -> None:
            node, variable = graph.find("m"), graph.find("w")
            assert node is not None
            assert variable is not None
            assert graph.is_parameter(variable)
            assert not graph.is_parameter(node.inputs[0].node)
            scaled = graph.args["w"] * 3
            bias = graph.add_parameter("bias", scaled)
            graph.connect(bias.outputs[0], node, 1)
            graph.remove(variable)
            del graph.args["w"]
            assert list(graph.args) == ["bias"]

        before = self.model()
        model = run(scale, before)
        assert {name: float(array[0, 0]) for name, array in model.args.items()} == {"bias": 3.0}
        assert float(before.args["w"][0, 0]) == 1

    def test_arrays_are_read_only_and_assigned(self) -> None:
        def write(graph: Graph) -> None:
            with pytest.raises(ValueError, match="read-only"):
                graph.args["w"][0, 0] = 5
            graph.args["w"] = np.full((2, 3), 5, "float32")
            assert graph.args["w"][0, 0] == 5

        weights = {"w": np.ones((2, 3), "float32")}
        kept = weights["w"]
        run(write, chain(), args=weights)
        assert float(weights["w"][0, 0]) == 5
        assert kept[0, 0] == 1

    def test_nothing_changes_when_the_pass_fails(self) -> None:
        def fail(graph: Graph) -> None:
            graph.args["w"] = np.zeros((2, 3), "float32")
            graph.outputs = (graph.nodes[0].outputs[0],)
            raise RuntimeError

        weights = {"w": np.ones((2, 3), "float32")}
        with pytest.raises(PassError):
            run(fail, chain(), args=weights)
        assert list(weights) == ["w"]
        assert weights["w"][0, 0] == 1

    def test_arrays_belong_to_variables(self) -> None:
        def stray(graph: Graph) -> None:
            graph.args["v"] = np.zeros(1, "float32")

        with pytest.raises(PassResultError, match=r"set args of variables .*: v; add them with"):
            run(stray, self.model())

    def test_without_dictionaries_there_is_nothing_to_set(self) -> None:
        def add(graph: Graph) -> None:
            graph.add_parameter("v", np.zeros(1, "float32"))

        with pytest.raises(PassError, match="was given no args"):
            run(add)

    def test_shapes_and_types_where_declared(self) -> None:
        seen: list[Any] = []

        @graph_pass(shapes=True, replace=True)
        def shapes(graph: Graph) -> None:
            seen.extend((value.shape, value.dtype) for value in graph.nodes[2].inputs)
            new = graph.add_node("relu", [graph.outputs[0]])
            seen.append((new.outputs[0].shape, new.outputs[0].dtype))

        self.model().optimize_for("shapes", shapes={"x": (None, 3)})
        known = np.dtype("float32")
        assert seen == [((None, 3), known), ((2, 3), known), (None, None)]

    def test_shapes_must_be_declared(self) -> None:
        def undeclared(graph: Graph) -> None:
            graph.outputs[0].shape  # noqa: B018

        with pytest.raises(PassError, match=r"declare it with graph_pass\(shapes=True\)"):
            run(undeclared, self.model())


class TestMistakes:
    def test_an_exception_is_the_cause(self) -> None:
        def broken(graph: Graph) -> None:
            graph.nodes[99].op = "x"

        with pytest.raises(PassError, match=r"pass '.*broken' \(Python function .*IndexError") as e:
            run(broken)
        assert isinstance(e.value.__cause__, IndexError)
        assert e.value.__cause__.__traceback__ is not None

    def test_the_result_is_checked(self) -> None:
        def circle(graph: Graph) -> None:
            relu = graph.find("relu0")
            assert relu is not None
            graph.connect(graph.outputs[0], relu, 0)

        with pytest.raises(PassResultError, match=r"left a graph that is not sound.*relu"):
            run(circle)

    def test_nothing_is_returned(self) -> None:
        def returns(graph: Graph) -> None:
            return graph  # type: ignore[return-value]

        with pytest.raises(PassResultError, match="returned Graph; a pass changes the graph"):
            run(returns)

    def test_a_graph_kept_beyond_the_call(self) -> None:
        kept: list[Any] = []

        def keep(graph: Graph) -> None:
            kept.extend((graph, graph.nodes[2], graph.outputs[0], graph.nodes[2].attrs))

        run(keep)
        for use in (
            lambda: kept[0].nodes,
            lambda: kept[0].add_node("relu"),
            lambda: kept[1].name,
            lambda: kept[2].node,
            lambda: kept[3]["a"],
        ):
            with pytest.raises(GraphError, match=r"pass '.*keep' .* used after it had returned"):
                use()

    @pytest.mark.parametrize(
        ("edit", "message"),
        [
            (lambda g: g.remove(g.find("relu0")), "'relu1' uses it as input 0; replace that"),
            (lambda g: g.remove(g.find("relu2")), "computes an output of the graph"),
            (lambda g: g.find("relu0").output(1), "node 'relu0' .relu. has 1 outputs"),
            (lambda g: g.connect(g.outputs[0], g.find("relu0"), 5), "there is no input 5"),
            (lambda g: g.add_variable("x"), "there is a node named 'x' already"),
            (lambda g: setattr(g.find("x"), "name", "w"), "is the name of another node"),
            (lambda g: g.add_node("relu", [g.find("x")]), "a value is needed, such as"),
            (lambda g: g.add_node(""), "a node needs an operator"),
            (lambda g: setattr(g, "outputs", ()), "a graph needs an output"),
        ],
    )
    def test_wrong_edits_say_why(self, edit: Callable[[Any], object], message: str) -> None:
        def wrong(graph: Graph) -> None:
            edit(graph)

        with pytest.raises(PassError, match=message):
            run(wrong)

    def test_removed_nodes_are_gone(self) -> None:
        def removed(graph: Graph) -> None:
            node = graph.find("relu0")
            assert node is not None
            graph.replace(node.outputs[0], node.inputs[0])
            graph.remove(node)
            assert "relu0" not in [other.name for other in graph.nodes]
            with pytest.raises(GraphError, match=r"node 'relu0' .relu. was removed"):
                node.op  # noqa: B018

        run(removed)

    def test_values_of_other_graphs(self) -> None:
        kept: list[Any] = []

        def outer(graph: Graph) -> None:
            def inner(other: Graph) -> None:
                other.add_node("relu", [graph.outputs[0]])

            kept.append(inner)
            with pytest.raises(PassError, match="belongs to another graph"):
                run(inner)

        run(outer)
        assert kept


def test_attributes_are_a_mapping_with_presets() -> None:
    seen: list[Any] = []

    @passlib.graph_pass(name="readAttributes")
    def body(graph: passlib.Graph) -> None:
        attributes = next(node for node in graph.nodes if not node.is_variable).attrs
        seen.extend(
            [attributes.get("none"), attributes.get("none", "7"), attributes.pop("none", 1)]
        )
        attributes["new"] = "2"
        seen.extend([attributes.get("new"), attributes.pop("new"), "new" in attributes])
        with pytest.raises(KeyError):
            attributes.pop("none")

    passlib.sym.relu(passlib.sym.var("x")).optimize_for("readAttributes")
    assert seen == [None, "7", 1, "2", "2", False]
