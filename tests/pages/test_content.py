"""The content of pages of all dialects, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
from onnx_models import NESTED, save
from page_models import NODES_OF_LAYER, encoder
from passlib import sym
from passlib.errors import printable
from passlib.graph.plain import operators_of
from passlib.workbench import diff
from places import DATA


@pytest.fixture(autouse=True, scope="module")
def standard_passes() -> None:
    pl.library.load_standard()


def content_of(page: str) -> dict[str, Any]:
    """Return the data of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def nodes_of(page: str) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in content_of(page)["graphs"][0]["nodes"]}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.Model, pl.Model]:
    folder = tmp_path_factory.mktemp("models")
    before = encoder(folder / "before.onnx", 8)
    return before, encoder(folder / "after.onnx", 8, edited=True)


class TestDifference:
    def test_status_of_nodes(self, pair: tuple[pl.Model, pl.Model]) -> None:
        nodes = nodes_of(diff(*pair).to_html())
        different = {name: node["status"] for name, node in nodes.items() if node["status"] != "="}
        assert different == {
            "layer.2/dropout": "-",
            "layer.2/o/MatMul": "~",
            "layer.3/extra": "+",
            "layer.3/softmax": "~",
            "layer.5/softmax": "~",
            "layer.6/m.w": "~",
        }
        assert nodes["layer.5/softmax"]["changes"] == [["attribute axis: ", "-1", "1"]]
        assert nodes["layer.6/m.w"]["changes"] == [["weight: 64 of 64 values"]]
        assert nodes["layer.6/m.w"]["weight"]["zeros"] == 1
        assert nodes["layer.6/m.w"]["old_weight"]["zeros"] == 0

    def test_edges_name_nodes_before_their_users(self, pair: tuple[pl.Model, pl.Model]) -> None:
        graph = content_of(diff(*pair).to_html())["graphs"][0]
        places = {node["name"]: place for place, node in enumerate(graph["nodes"])}
        changed = graph["nodes"][places["layer.2/o/MatMul"]]
        assert changed["inputs"][0] == [places["layer.2/context"], 0]
        assert changed["old"][0] == [places["layer.2/dropout"], 0]
        for place, node in enumerate(graph["nodes"]):
            assert all(other < place for other, _ in node.get("inputs", []))

    def test_a_node_that_has_another_name_only(self, tmp_path: Path) -> None:
        model = encoder(tmp_path / "model.onnx", 2)
        found = diff(model, model.rename({"layer.0/scores": "new"}))
        assert [(c.name, c.changes) for c in found.changed] == [
            ("new", ("name layer.0/scores -> new",))
        ]
        assert (found.removed, found.added) == ((), ())

    def test_a_pair_of_graphs_that_makes_a_cycle(self) -> None:
        x = sym.var("x")
        one = sym.relu(sym.tanh(x, name="a"), name="b")
        two = sym.tanh(sym.relu(x, name="b"), name="a")
        nodes = nodes_of(diff(pl.Model(one), pl.Model(two)).to_html())
        assert {name: node["status"] for name, node in nodes.items()} == {
            "x": "=",
            "a": "~",
            "b": "~",
        }


DIALECTS = [
    "mxnet/models/squeezenet1.1",
    "ark/gen_head-attention.full.json",
    "ark/gen_py-llama_rmsnorm_fp16.plan.json",
    "dlprim/activations_inplace.json",
    "nnvm/custom_attention_layernorm.json",
]


class TestModel:
    @pytest.mark.parametrize("name", DIALECTS)
    def test_all_dialects(self, name: str) -> None:
        model = pl.load(DATA / name)
        content = content_of(model.to_html())
        assert ["dialect", model.dialect] in content["facts"]
        assert len(content["graphs"][0]["nodes"]) == len(model.symbol.nodes())

    def test_shapes_weights_and_operators(self, pair: tuple[pl.Model, pl.Model]) -> None:
        page = pair[0].to_html("the title")
        nodes, content = nodes_of(page), content_of(page)
        assert nodes["layer.0/scores"]["types"] == ["float32 (1, 4, 4)"]
        weight = nodes["layer.0/q.w"]["weight"]
        array = np.asarray(pair[0].args["layer.0/q.w"])
        assert (weight["shape"], weight["bytes"]) == ([8, 8], 256)
        assert weight["least"] == pytest.approx(array.min(), rel=1e-5)
        assert weight["mean"] == pytest.approx(array.mean(), rel=1e-4)
        assert sum(weight["histogram"]) == 64
        assert content["title"] == "the title"
        rows = content["tables"][-1]["rows"]
        assert rows[0] == ["total", 8 * NODES_OF_LAYER]

    def test_lineage(self) -> None:
        a = sym.relu(sym.var("x"), name="a")
        node = nodes_of(pl.Model(sym.load_json(_with_origin(a))).to_html())["a"]
        assert node["origin"] == ["conv3", "bn3"]

    def test_nested_graphs(self, tmp_path: Path) -> None:
        model = pl.load(save(NESTED, tmp_path / "nested.onnx"))
        graphs = content_of(model.to_html())["graphs"]
        owners = [node for node in graphs[0]["nodes"] if node.get("graphs")]
        assert owners
        for owner in owners:
            for place in owner["graphs"]:
                assert graphs[place]["name"].startswith(f"the whole graph / {owner['name']}")
                assert graphs[place]["nodes"]

    @pytest.mark.parametrize("name", ["</script><b>", "@STYLE@", "<!--", "\u2028"])
    def test_names_do_not_end_the_script(self, name: str) -> None:
        page = pl.Model(sym.relu(sym.var(name), name="a")).to_html(name)
        assert printable(name) in nodes_of(page)
        assert page.count("</script>") == 2

    def test_nothing_is_loaded(self, pair: tuple[pl.Model, pl.Model]) -> None:
        page = pair[0].to_html()
        assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=", page) == []
        assert "dagre" in page


WEIGHTS = [
    # The array, and facts of it.
    (np.zeros((0, 3), np.float32), {"shape": [0, 3], "bytes": 0}),
    (np.array(2, np.int64), {"shape": [], "values": [2.0]}),
    (np.array([np.nan, np.inf, 1], np.float32), {"nan": 1, "infinite": 1, "least": 1.0}),
    (np.array([np.nan], np.float32), {"nan": 1, "values": ["nan"]}),
    (np.ones((300, 300), np.float16), {"sample": 45000, "zeros": 0.0, "mean": 1.0}),
    (np.array([True, False]), {"type": "bool", "zeros": 0.5}),
]


@pytest.mark.parametrize(("array", "facts"), WEIGHTS)
def test_statistics_of_weights(array: np.ndarray[Any, Any], facts: dict[str, Any]) -> None:
    model = pl.Model(sym.relu(sym.var("w")), {"w": array})
    weight = nodes_of(model.to_html())["w"]["weight"]
    assert {key: weight[key] for key in facts} == facts


class TestNotebooks:
    def test_frames(self, pair: tuple[pl.Model, pl.Model]) -> None:
        before, after = pair
        result = pl.Pipeline(["removeDeadNodes"]).run(before)
        for thing in (before, before.symbol, diff(before, after), result):
            assert "<iframe" in thing._repr_html_()

    def test_large_graphs_are_tables(self) -> None:
        value = sym.var("x")
        for _ in range(3001):
            value = sym.relu(value)
        assert "<iframe" not in value._repr_html_()
        assert "<iframe" not in pl.Model(value)._repr_html_()

    def test_a_pipeline_has_its_steps(self, pair: tuple[pl.Model, pl.Model]) -> None:
        result = pl.Pipeline(["removeDeadNodes", "mergeEqualNodes"]).run(pair[0])
        content = content_of(result.to_html("steps"))
        assert content["compares"]
        table = next(table for table in content["tables"] if table["title"] == "Steps")
        assert [row[0] for row in table["rows"]] == ["removeDeadNodes", "mergeEqualNodes"]


RULE = """
rule oneRelu "Relu of Relu is one."
  onnx 6..
  y = Relu(Relu(x))
  => y = Relu(x)
  exact
  example
    y = Relu(Relu(x: float[2]))
    => y = Relu(x)
"""


class TestPipeline:
    def test_counts_are_those_of_the_command(self, tmp_path: Path) -> None:
        """The operators of nested graphs count, and weights do not."""
        before = pl.load(save(NESTED, tmp_path / "nested.onnx"))
        result = pl.Pipeline("simplify").run(before)
        content = content_of(result.to_html())
        counts = [operators_of(model.symbol.graph).total() for model in (before, result.model)]
        assert counts[0] > len(before.symbol.graph.operators())
        assert content["facts"][0] == ["operators", f"{counts[0]} → {counts[1]}"]
        assert content["tables"][-1]["rows"][0] == ["total", *counts]

    def test_causes(self, tmp_path: Path) -> None:
        """A change names the rule that made it, or the pass."""
        path = tmp_path / "model.onnx"
        nodes = "r1 = Relu (x)  r2 = Relu (r1)  d = Exp (x)  e = Exp (x)  y = Sum (r2, d, e)"
        text = (
            f'<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {{{nodes}}}'
        )
        onnx.save(onnx.parser.parse_model(text), path)
        result = pl.Pipeline([pl.Rules(RULE), "mergeEqualNodes"]).run(pl.load(path))
        causes = {
            (node["op"], node["status"], node["cause"])
            for node in nodes_of(result.to_html()).values()
            if node["status"] != "="
        }
        assert causes == {
            ("Relu", "-", "rule oneRelu"),
            ("Relu", "~", "rule oneRelu"),
            ("Exp", "-", "mergeEqualNodes"),
            ("Sum", "~", "mergeEqualNodes"),
        }


@pytest.mark.parametrize("text", ["{", "3", "[" * 100_000])
def test_lineage_of_a_file_that_is_no_lineage(text: str) -> None:
    symbol = sym.load_json(_with_origin(sym.relu(sym.var("x"), name="a"), text))
    assert "origin" not in nodes_of(pl.Model(symbol).to_html())["a"]


def _with_origin(symbol: Any, origin: str = '["conv3", "bn3"]') -> str:
    text = json.loads(symbol.tojson())
    text["nodes"][-1].setdefault("attrs", {})["__origin__"] = origin
    return json.dumps(text)
