from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import passlib
from ark_cases import ARK
from ark_edits import load, ops_of, save
from ark_files import FILES
from passlib.errors import GraphError, UnsupportedError

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def passes(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("ark_passes"), verbose=False)


def test_derived_arguments_follow(tmp_path: Path) -> None:
    path = FILES / "gen_seed-mlp_softmax.full.json"
    model = passlib.model.load(path).optimize_for(
        "arkInsert",
        after="Matmul",
        op="Matmul",
        arg_TransposeInput="False",
        arg_TransposeOther="False",
    )
    with pytest.raises(GraphError, match="has 1 inputs to read"):
        model.save(tmp_path / "x.json")
    square = json.loads((FILES / "gen_seed-matmul_variants.full.json").read_bytes())
    for node in square["Nodes"]:
        for op in node["Ops"]:
            if op["Type"] == "Matmul":
                op["Args"]["ShapeMNK"] = {"DIMS": [1, 1, 1]}
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(square))
    assert any("its tensors require" in p.message for p in ARK.validate(wrong))
    fixed = passlib.model.load(wrong).optimize_for(
        "arkSet", op="Matmul", key="TransposeInput", value="false"
    )
    with pytest.raises(GraphError, match="inner sizes"):
        fixed.save(tmp_path / "x.json")


def test_matmul_of_the_oldest_files_gets_all_arguments(tmp_path: Path) -> None:
    name = "gen_seed-rmsnorm_swiglu_fp16.full"
    saved = save(load(name).optimize_for("arkInsert", after="Matmul", op="Relu"), tmp_path)
    changed = [op for op in ops_of(saved) if op["Type"] == "Matmul"]
    assert changed
    assert all(len(op["Args"]) == 6 for op in changed)
    added = next(op for op in ops_of(saved) if op["Name"].startswith("added_"))
    assert set(added["ResultTensors"][0]["Pads"]) == {1}


def test_arguments_change_with_their_type(tmp_path: Path) -> None:
    path = FILES / "gen_head-layernorm_scalars.full.json"
    model = passlib.model.load(path)
    saved = save(model.optimize_for("arkSet", op="ScalarMul", key="Factor", value="0.25"), tmp_path)
    factors = [op["Args"] for op in ops_of(saved) if op["Type"] == "ScalarMul"]
    assert factors == [{"Factor": {"FLOAT": 0.25}}] * 2
    changed = sum(a != b for a, b in zip(ops_of(path), ops_of(saved), strict=True))
    assert changed == 1
    bad = model.optimize_for("arkSet", op="ScalarMul", key="Factor", value="many")
    with pytest.raises(UnsupportedError, match=r"ScalarMul.*'Factor'.*'many'.*FLOAT"):
        bad.save(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("name", "op", "key", "text", "value"),
    [
        ("gen_head-layernorm_scalars.full", "ScalarMul", "Factor", "0.1", "0.10000000149011612"),
        ("gen_head-layernorm_scalars.full", "ScalarMul", "Factor", "2", "2.0"),
        ("gen_head-layernorm_scalars.full", "ScalarAdd", "Factor", "1E-6", "9.999999974752427e-07"),
        ("gen_head-attention.full", "ReduceMax", "Axis", "-1", "3"),
        ("gen_seed-mlp_softmax.compressed", "ReduceSum", "Axis", "-1", "2"),
    ],
)
def test_arguments_are_spelled_as_in_the_original(
    name: str, op: str, key: str, text: str, value: str, tmp_path: Path
) -> None:
    """Numbers are 32-bit floats widened to double; axes are counted from the front."""
    saved = save(load(name).optimize_for("arkSet", op=op, key=key, value=text), tmp_path)
    root = json.loads(saved.read_bytes(), parse_float=str, parse_int=str)
    ops = [o for n in root["Nodes"] for o in (n["Ops"] if "Ops" in n else [n["Op"]])]
    found = [next(iter(o["Args"][key].values())) for o in ops if o["Type"] == op]
    assert found
    assert set(found) == {value}


def test_number_beyond_32_bits(tmp_path: Path) -> None:
    model = load("gen_head-layernorm_scalars.full")
    with pytest.raises(UnsupportedError, match=r"'Factor'.*'1e39'.*out of range"):
        model.optimize_for("arkSet", op="ScalarMul", key="Factor", value="1e39").save(
            tmp_path / "x"
        )


@pytest.mark.parametrize("kind", ["ReduceSum", "Matmul"])
def test_arguments_stay_sorted(kind: str, tmp_path: Path) -> None:
    name = "gen_seed-mlp_softmax.full"
    model = load(name).optimize_for("arkSet", op=kind, key="Before", value="3")
    found = [list(op["Args"]) for op in ops_of(save(model, tmp_path)) if op["Type"] == kind]
    assert found
    assert all(names == sorted(names) and "Before" in names for names in found)


def test_arguments_of_every_type_survive_a_change(tmp_path: Path) -> None:
    """Arguments that no schema has keep the types of the file."""
    root = json.loads((FILES / "gen_head-residual_dag.full.json").read_bytes())
    exp = next(n["Op"] for n in root["Nodes"] if n["Op"]["Type"] == "Exp")
    given = {
        "A": {"OFFSET": {"BufferId": 0, "Value": 8192}},
        "B": {"OFFSET": 8192},
        "C": {"TENSOR": exp["ReadTensors"][0]},
        "D": {"UINT64": (1 << 64) - 1},
        "E": {"INT64": -(1 << 63)},
    }
    exp["Args"] = given
    path = tmp_path / "model.json"
    path.write_text(json.dumps(root))
    assert ARK.validate(path) == []
    saved = save(passlib.model.load(path).optimize_for("arkRename", prefix="my_"), tmp_path)
    assert given in [op["Args"] for op in ops_of(saved)]
