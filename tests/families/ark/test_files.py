from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import passlib
from ark_files import FILES, SHARED, genuine
from passlib.dialects import recognise
from passlib.errors import FormatError, GraphError, UnsoundFileError, UnsupportedError


@pytest.fixture(scope="module", autouse=True)
def passes(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("ark_passes"), verbose=False)


def test_all_genuine_files_are_there() -> None:
    assert len(list(FILES.glob("*.json"))) == 46
    if not SHARED.exists():
        pytest.skip("the shared test data is not next to the project")
    assert len(list(SHARED.glob("*/*.json"))) == 86


@pytest.mark.parametrize("path", genuine(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_identity_gives_the_file_back(path: Path, handover: str, tmp_path: Path) -> None:
    assert recognise(path).name == "ark"
    model = passlib.model.load(path)
    optimized = model.optimize_for("arkIdentity")
    target = tmp_path / path.name
    assert optimized.save(target) == (str(target),)
    assert target.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", genuine(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_rewritten_file_is_the_same(path: Path, tmp_path: Path) -> None:
    """An attribute that no file can hold makes the writer process every node."""
    symbol = passlib.model.load(path).symbol
    op = next(node.op for node in symbol.nodes() if not node.is_variable)
    model = passlib.model.load(path).optimize_for("arkSet", op=op, key="__note__", value="1")
    model.save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()


def test_copies_of_the_template() -> None:
    """JSON objects know their place in the text, so copies must be read from it again."""
    path = FILES / "gen_head-attention.full.json"
    template = passlib.dialects.find("ark").load(path).template
    for other in (pickle.loads(pickle.dumps(template)), copy.deepcopy(template)):
        assert other.document == template.document
        assert other.document.root.end == template.document.root.end


@pytest.mark.parametrize(
    ("name", "variant", "plan"),
    [
        ("gen_head-attention.full.json", "v3", False),
        ("gen_seed-mlp_softmax.compressed.json", "v1", False),
        ("gen_head-residual_dag.plan.json", "v3", True),
    ],
)
def test_variant(name: str, variant: str, plan: bool) -> None:
    document = passlib.dialects.find("ark").load(FILES / name).template.document
    assert (document.variant.name, document.plan) == (variant, plan)


@pytest.mark.parametrize(
    ("args", "padding", "unit", "variant"),
    [
        (6, "Pads", "Ops", "v1"),
        (6, "PaddedShape", "Ops", "v1.5"),
        (2, "PaddedShape", "Ops", "v2"),
        (2, "PaddedShape", "Op", "v3"),
    ],
)
def test_variants_by_structure(
    args: int, padding: str, unit: str, variant: str, tmp_path: Path
) -> None:
    root = json.loads((FILES / "gen_seed-matmul_variants.full.json").read_bytes())
    for node in root["Nodes"]:
        for op in node["Ops"]:
            if args == 2:
                op["Args"] = {k: v for k, v in op["Args"].items() if k.startswith("Transpose")}
            for group in ("ReadTensors", "WriteTensors", "ResultTensors"):
                for tensor in op[group]:
                    pads = tensor.pop("Pads")
                    tensor[padding] = pads if padding == "Pads" else tensor["Shape"]
        if unit == "Op":
            node["Op"] = node.pop("Ops")[0]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(root, indent=1))
    data = passlib.dialects.find("ark").load(path)
    assert data.template.document.variant.name == variant
    passlib.model.load(path).optimize_for("arkIdentity").save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()
    assert not [p for p in passlib.dialects.find("ark").validate(path) if p.severity == "error"]


def test_unknown_keys_and_spellings_survive(tmp_path: Path) -> None:
    text = (FILES / "gen_head-residual_dag.full.json").read_text()
    text = text.replace('"Rank": 0,', '"Extra": [1.50, 1e3, {"a": null}],\n  "Rank":   0,', 1)
    text = text.replace('"Type": "Relu"', '"Note": "\\u00e9",  "Type": "Relu"')
    text = text.replace('"RecvTags":[]', '"RecvTags":[],"IsExternal":false')
    path = tmp_path / "model.json"
    path.write_text(text)
    model = passlib.model.load(path)
    model.optimize_for("arkIdentity").save(tmp_path / "same.json")
    assert (tmp_path / "same.json").read_text() == text
    renamed = model.optimize_for("arkRename", prefix="my_")
    renamed.save(tmp_path / "renamed.json")
    made = json.loads((tmp_path / "renamed.json").read_bytes())
    assert made["Extra"] == [1.5, 1000.0, {"a": None}]
    assert '"Extra": [1.50, 1e3, {"a": null}]' in (tmp_path / "renamed.json").read_text()
    assert all(node["Op"]["Note"] == "é" for node in made["Nodes"] if node["Op"]["Type"] == "Relu")


def test_inputs_and_outputs_of_both_forms() -> None:
    full = passlib.model.load(FILES / "gen_py-llama_tiny_1layer_fp32.full.json")
    compressed = passlib.model.load(FILES / "gen_py-llama_tiny_1layer_fp32.compressed.json")
    assert len(full.inputs) == len(compressed.inputs) == 14
    assert full.outputs == compressed.outputs == ["matmul_9"]


def test_dependencies_without_tensors_are_control_dependencies() -> None:
    model = passlib.model.load(FILES / "gen_head-allreduce_r2_of4.compressed.json")
    edges = [(d.name, n.name) for n in model.symbol.nodes() for d in n.control_deps]
    assert edges == [("recv", "send_1"), ("recv_1", "send_2")]


def test_passes_see_tensors_and_arguments() -> None:
    model = passlib.model.load(FILES / "gen_seed-matmul_variants.full.json")
    node = next(n for n in model.symbol.nodes() if n.op == "Matmul")
    assert node.attrs["TransposeOther"] == "False"
    assert node.attrs["ShapeMNK"] == "[5,3,7]"
    assert node.attrs["__reads__"] == "2"
    assert json.loads(node.attrs["__outputs__"])[0]["Shape"] == [5, 3]
    assert model.symbol.attributes["WorldSize"] == "1"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda r: r.pop("Rank"), FormatError, "Rank: the key is missing"),
        (lambda r: r.update(Nodes={}), FormatError, "Nodes: expected an array"),
        (lambda r: r.update(Nodes=[]), UnsoundFileError, "no op returns or uses a tensor"),
        (
            lambda r: r["Nodes"][0].update(Id="0"),
            FormatError,
            r"\[0\].Id: expected an integer",
        ),
        (lambda r: r["Nodes"][1].update(Id=0), UnsoundFileError, "two nodes have the Id 0"),
        (
            lambda r: r["Nodes"][0].update(ProducerNodeIds=[2]),
            UnsoundFileError,
            "in a circle",
        ),
        (
            lambda r: r["Nodes"][0].update(ProducerNodeIds=[77]),
            UnsoundFileError,
            "there is no node 77",
        ),
        (
            lambda r: r["Nodes"][0]["Op"].update(Type="null"),
            FormatError,
            "is not an operator type",
        ),
        (
            lambda r: r["Nodes"][2]["Op"]["ReadTensors"][0].update(Shape=[3, 4]),
            UnsoundFileError,
            "is described differently",
        ),
        (
            lambda r: r["Nodes"][0]["Op"]["ResultTensors"][0].update(Offsets=[9, 9]),
            FormatError,
            "does not lie within Strides",
        ),
        (
            lambda r: r["Nodes"][0]["Op"]["ResultTensors"][0].pop("Buffer"),
            FormatError,
            "'Buffer' is missing",
        ),
        (
            lambda r: r["Nodes"][0]["Op"]["ResultTensors"][0].update(Shape=[1] * 5),
            FormatError,
            "1 to 4 dimensions",
        ),
    ],
)
def test_broken_files(
    change: Callable[[dict], object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    root = json.loads((FILES / "gen_head-residual_dag.full.json").read_bytes())
    change(root)
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(root))
    with pytest.raises(error, match=message):
        passlib.model.load(path, dialect="ark")


def test_weights_are_refused(tmp_path: Path) -> None:
    model = passlib.model.load(FILES / "gen_py-quickstart_add_fp16.full.json")
    types = passlib.dialects.find("ark").input_types(
        passlib.dialects.find("ark").load(FILES / "gen_py-quickstart_add_fp16.full.json")
    )
    weights = {name: passlib.nd.zeros(t.shape, dtype=t.dtype) for name, t in types.items()}
    held = passlib.model.Model(model.symbol, weights, dialect="ark", template=model._template)
    with pytest.raises(UnsupportedError, match="hold no data"):
        held.save(tmp_path / "x.json")
    with pytest.raises(UnsupportedError, match="no option 'epoch'"):
        model.save(tmp_path / "x.json", epoch=1)
    assert not list(tmp_path.iterdir())


def test_unsound_file_errors_are_format_and_graph_errors() -> None:
    assert issubclass(UnsoundFileError, FormatError)
    assert issubclass(UnsoundFileError, GraphError)
