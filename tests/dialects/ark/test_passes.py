from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from ark_builder import Builder
from ark_files import FILES, genuine
from ark_layout import DEPTHS, print_file
from passlib.dialects.ark.reading import read
from passlib.dialects.ark.writing import write
from passlib.errors import GraphError, UnsupportedError
from passlib.graph.native import freeze
from passlib.graph.node import Entry, Node
from passlib.symbol import Symbol

ARK = passlib.dialects.find("ark")

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def passes(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("ark_passes"), verbose=False)


def load(name: str) -> passlib.model.Model:
    return passlib.model.load(FILES / f"{name}.json")


def save(model: passlib.model.Model, tmp_path: Path, **options: Any) -> Path:
    path = tmp_path / "out.json"
    model.save(path, **options)
    problems = [p for p in ARK.validate(path) if p.severity == "error"]
    assert problems == []
    return path


def nodes_of(path: Path) -> list[dict[str, Any]]:
    root = json.loads(path.read_bytes())
    listed: list[dict[str, Any]] = root["Nodes"]
    return listed


def ops_of(path: Path) -> list[dict[str, Any]]:
    return [op for n in nodes_of(path) for op in (n["Ops"] if "Ops" in n else [n["Op"]])]


def feeds(path: Path, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for spec in ARK.input_types(ARK.load(path)).values():
        values = rng.uniform(0.5, 1.5, spec.shape)
        arrays.append(values.astype(spec.dtype))
    return arrays


def run(path: Path) -> list[np.ndarray]:
    model = passlib.model.load(path)
    outputs = model(*feeds(path))
    listed = outputs if isinstance(outputs, list) else [outputs]
    return [np.asarray(output, np.float64) for output in listed]


@pytest.mark.parametrize("path", genuine(plans=False), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_renaming_changes_names_alone(path: Path, tmp_path: Path) -> None:
    saved = save(passlib.model.load(path).optimize_for("arkRename", prefix="my_"), tmp_path)
    before, after = ops_of(path), ops_of(saved)
    assert all(op["Name"].startswith("my_") for op in after)
    assert [{**op, "Name": ""} for op in before] == [{**op, "Name": ""} for op in after]
    assert [n["ProducerNodeIds"] for n in nodes_of(path)] == [
        n["ProducerNodeIds"] for n in nodes_of(saved)
    ]


@pytest.mark.parametrize("path", genuine(plans=False), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_backward_lists_are_put_in_order(path: Path, tmp_path: Path) -> None:
    model = passlib.model.load(path).optimize_for("arkReverse")
    model.save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", genuine(plans=False), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_dead_nodes_go_and_side_effects_stay(path: Path, tmp_path: Path) -> None:
    saved = save(passlib.model.load(path).optimize_for("arkDead"), tmp_path)
    before = [op["Type"] for op in ops_of(path) if op["Type"] != "Tensor"]
    assert [op["Type"] for op in ops_of(saved) if op["Type"] != "Tensor"] == before


def test_dead_view_goes(tmp_path: Path) -> None:
    path = FILES / "gen_head-allreduce_r2_of4.full.json"
    saved = save(passlib.model.load(path).optimize_for("arkDead"), tmp_path)
    assert len(ops_of(path)) - len(ops_of(saved)) == 3
    assert [n["Id"] for n in nodes_of(saved)] == list(range(len(ops_of(saved))))


EDITED = [
    "gen_head-attention.full",
    "gen_head-attention.compressed",
    "gen_head-residual_dag.full",
    "gen_head-residual_dag.compressed",
    "gen_seed-mlp_softmax.full",
    "gen_seed-mlp_softmax.compressed",
    "gen_seed-rmsnorm_swiglu_fp16.full",
    "gen_seed-rmsnorm_swiglu_fp16.compressed",
    "gen_py-llama_tiny_1layer_fp32.full",
    "gen_py-llama_tiny_1layer_fp32.compressed",
]


@pytest.mark.parametrize("name", EDITED)
@pytest.mark.parametrize("after", ["Add", "Mul", "Exp", "Matmul"])
def test_inserted_nodes_compute(name: str, after: str, tmp_path: Path) -> None:
    """A factor of 1 behind every operator of one kind changes the file and no value."""
    path = FILES / f"{name}.json"
    count = sum(op["Type"] == after for op in ops_of(path))
    model = passlib.model.load(path).optimize_for(
        "arkInsert", after=after, op="ScalarMul", arg_Factor="1.0"
    )
    saved = save(model, tmp_path)
    added = [op for op in ops_of(saved) if op["Name"].startswith("added_")]
    assert len(added) == count
    assert all(op["Args"] == {"Factor": {"FLOAT": 1.0}} for op in added)
    if "rmsnorm" in name:
        return  # halves overflow with these inputs
    for one, other in zip(run(path), run(saved), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("form", ["full", "compressed"])
def test_removed_operator_leaves_no_trace(form: str, tmp_path: Path) -> None:
    path = FILES / f"gen_head-residual_dag.{form}.json"
    saved = save(passlib.model.load(path).optimize_for("arkRemove", op="Sqrt"), tmp_path)
    gone = len(ops_of(path)) - len(ops_of(saved))
    assert gone == (2 if form == "full" else 1)  # with it the declaration of its memory
    assert "Sqrt" not in {op["Type"] for op in ops_of(saved)}
    nodes = nodes_of(saved)
    assert [node["Id"] for node in nodes] == list(range(len(nodes)))


def test_removed_node_in_a_chain(tmp_path: Path) -> None:
    path = FILES / "gen_py-llama_ffn_fp32.full.json"
    saved = save(passlib.model.load(path).optimize_for("arkRemove", op="Sigmoid"), tmp_path)
    x, w1, w3, w2 = feeds(saved)
    names = passlib.model.load(saved).inputs
    named = dict(zip(names, (x, w1, w3, w2), strict=True))
    by_op = [op for op in ops_of(saved) if op["Type"] == "Mul"]
    assert len(by_op) == 2
    assert np.isfinite(run(saved)[0]).all()
    assert set(named) == set(names)


@pytest.mark.parametrize("form", ["full", "compressed"])
def test_new_variable(form: str, tmp_path: Path) -> None:
    path = FILES / f"gen_head-attention.{form}.json"
    saved = save(passlib.model.load(path).optimize_for("arkBias", shape="(32,)"), tmp_path)
    model, bias = passlib.model.load(saved), np.arange(32, dtype=np.float32)
    given = feeds(path)
    assert len(model.inputs) == len(given) + 1
    np.testing.assert_allclose(np.asarray(model(*given, bias)), run(path)[0] + bias, rtol=1e-6)


@pytest.mark.parametrize("name", EDITED[:2])
def test_unsaved_edits_run_alike(name: str, tmp_path: Path) -> None:
    path = FILES / f"{name}.json"
    model = passlib.model.load(path).optimize_for(
        "arkInsert", after="Matmul", op="ScalarMul", arg_Factor="0.5"
    )
    direct = model(*feeds(path))
    np.testing.assert_allclose(np.asarray(direct), run(save(model, tmp_path))[0], rtol=1e-6)


def test_equal_operators_are_merged(tmp_path: Path) -> None:
    path = FILES / "gen_head-residual_dag.full.json"
    root = json.loads(path.read_bytes())
    model = passlib.model.load(path)
    merged = model.optimize_for("arkMerge")
    saved = save(merged, tmp_path)
    before = [op["Type"] for op in ops_of(path)]
    after = [op["Type"] for op in ops_of(saved)]
    assert root["Rank"] == 0
    assert len(before) >= len(after)
    np.testing.assert_allclose(run(path)[0], run(saved)[0], rtol=1e-6)


def test_merging_on_a_file_with_repetitions(tmp_path: Path) -> None:
    """Two equal operators give one; an operator whose result is written again stays."""
    root = json.loads((FILES / "gen_py-quickstart_add_fp16.full.json").read_bytes())
    declared, add = root["Nodes"][-2]["Op"], root["Nodes"][-1]["Op"]
    twin_declared, twin = json.loads(json.dumps(declared)), json.loads(json.dumps(add))
    for op in (twin_declared, twin):
        for group in ("WriteTensors", "ResultTensors"):
            for tensor in op[group]:
                tensor["Id"] += 1000
                tensor["Buffer"]["Id"] += 1000
    first = root["Nodes"]
    ids = [node["Id"] for node in first]
    first.append({"Id": 4, "ProducerNodeIds": [], "ConsumerNodeIds": [5], "Op": twin_declared})
    first.append({"Id": 5, "ProducerNodeIds": [0, 1, 4], "ConsumerNodeIds": [], "Op": twin})
    for number in (0, 1):
        first[number]["ConsumerNodeIds"].append(5)
    path = tmp_path / "twice.json"
    path.write_text(json.dumps(root))
    assert ids == [0, 1, 2, 3]
    assert [p for p in ARK.validate(path) if p.severity == "error"] == []
    saved = save(passlib.model.load(path).optimize_for("arkMerge"), tmp_path)
    assert [op["Type"] for op in ops_of(saved)].count("Add") == 1
    assert len(ops_of(saved)) == 4
    assert nodes_of(saved)[0]["ConsumerNodeIds"] == [3]


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
    assert any("its tensors say" in p.message for p in ARK.validate(wrong))
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


def variant_of(name: str, variant: str, tmp_path: Path) -> Path:
    """Bring a file of the oldest variant into another one, laid out as ARK does."""
    root = json.loads((FILES / f"{name}.json").read_bytes())
    for node in root["Nodes"]:
        for op in node["Ops"]:
            if variant in ("v2", "v3"):
                op["Args"] = {k: v for k, v in op["Args"].items() if v.keys() != {"DIMS"}}
            for group in ("ReadTensors", "WriteTensors", "ResultTensors"):
                for tensor in op[group] if variant != "v1" else ():
                    del tensor["Pads"]
                    tensor["PaddedShape"] = tensor["Shape"]
                    tensor["Buffer"] = tensor.pop("Buffer")
        if variant == "v3":
            (node["Op"],) = node.pop("Ops")
    depth = DEPTHS[{"v1": "Pads", "v3": "Op"}.get(variant, "Ops")]
    path = tmp_path / f"{variant}.json"
    path.write_text(print_file(json.dumps(root), depth))
    return path


PRINTED = ["gen_seed-mlp_softmax.full", "gen_seed-allreduce_r0_of2.full"]


@pytest.mark.parametrize("variant", ["v1", "v1.5", "v2", "v3"])
@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("after", ["Add", "Copy", "Exp", "Matmul"])
def test_new_nodes_are_printed_as_the_original_prints(
    name: str, variant: str, after: str, tmp_path: Path
) -> None:
    path = variant_of(name, variant, tmp_path)
    depth = DEPTHS[{"v1": "Pads", "v3": "Op"}.get(variant, "Ops")]
    assert print_file(path.read_text(), depth) == path.read_text()
    model = passlib.model.load(path)
    edited = model.optimize_for("arkInsert", after=after, op="ScalarMul", arg_Factor="0.5")
    saved = save(edited, tmp_path)
    assert saved.read_text() == print_file(saved.read_text(), depth)
    added = [n for n in nodes_of(saved) if "ScalarMul" in json.dumps(n)]
    assert len(added) >= sum(op["Type"] == after for op in ops_of(path))
    keys = [list(tensor) for op in ops_of(saved) for tensor in op["ResultTensors"]]
    assert all(one == keys[0] for one in keys)


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("gen_head-attention.full", DEPTHS["Op"]),
        ("gen_head-layernorm_scalars.full", DEPTHS["Op"]),
        ("gen_head-views_concat.full", DEPTHS["Op"]),
        ("gen_seed-mlp_softmax.full", DEPTHS["Pads"]),
        ("gen_head-residual_dag.plan", DEPTHS["Ops"]),
        ("gen_head-attention.compressed", 0),
        ("gen_seed-mlp_softmax.compressed", 0),
    ],
)
@pytest.mark.parametrize(
    ("name_of_pass", "options"),
    [
        ("arkRename", {"prefix": "zz_"}),
        ("arkSet", {"op": "Add", "key": "Extra", "value": "[1,2]"}),
        ("arkDead", {}),
    ],
)
def test_printed_as_the_original_prints(
    name: str, depth: int, name_of_pass: str, options: dict[str, str], tmp_path: Path
) -> None:
    path = FILES / f"{name}.json"
    assert print_file(path.read_text(), depth) == path.read_text().rstrip("\n")
    saved = save(load(name).optimize_for(name_of_pass, **options), tmp_path)
    printed = saved.read_text()
    assert printed.rstrip("\n") == print_file(printed, depth)


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("gen_head-allreduce_r2_of4.full", "SendDone"),
        ("gen_head-sendrecv_rank1.full", "Send"),
        ("gen_head-residual_dag.compressed", "Noop"),
    ],
)
def test_removed_side_effects_are_refused(name: str, op: str, tmp_path: Path) -> None:
    model = load(name).optimize_for("arkRemove", op=op)
    with pytest.raises(GraphError, match=rf"side effects.*\({op}\)"):
        model.save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()
    if op == "Noop":
        saved = save(model, tmp_path, allow_removed=True)
        assert "Noop" not in {one["Type"] for one in ops_of(saved)}


def test_removed_writer_of_a_part_is_refused(tmp_path: Path) -> None:
    """What writes into a part of a buffer cannot be replaced by a value that lies elsewhere."""
    model = load("gen_head-views_concat.full").optimize_for("arkRemove", op="Add")
    with pytest.raises(GraphError, match="shows one buffer"):
        model.save(tmp_path / "x.json")
    feeds_of = feeds(FILES / "gen_head-views_concat.full.json")
    with pytest.raises(GraphError, match="shows one buffer"):
        model(*feeds_of)


@pytest.mark.parametrize("name", ["gen_head-residual_dag.plan", "gen_py-llama_rmsnorm_fp16.plan"])
def test_plans(name: str, tmp_path: Path) -> None:
    path = FILES / f"{name}.json"
    model = passlib.model.load(path)
    with pytest.raises(UnsupportedError, match="places every op on processors"):
        model.optimize_for("arkInsert", after="Mul", op="Relu").save(tmp_path / "x.json")
    saved = save(
        model.optimize_for("arkSet", op="Mul", key="__config__", value='{"NumTasks":1}'), tmp_path
    )
    tasks = json.loads(saved.read_bytes())["TaskInfos"]
    configs = [op["Config"] for t in tasks for op in t["Ops"] if op["Type"] == "Mul"]
    assert configs
    assert all(config == {"NumTasks": 1} for config in configs)


def test_removed_op_of_a_plan(tmp_path: Path) -> None:
    path = FILES / "gen_head-residual_dag.plan.json"
    before = json.loads(path.read_bytes())
    saved = save(passlib.model.load(path).optimize_for("arkRemove", op="Sqrt"), tmp_path)
    after = json.loads(saved.read_bytes())
    gone = {t["Id"] for t in before["TaskInfos"]} - {t["Id"] for t in after["TaskInfos"]}
    assert len(gone) == 1
    placed = {
        task["TaskId"]
        for group in after["ProcessorGroups"]
        for resources in group["ResourceGroups"]
        for task in resources["TaskGroups"]
    }
    assert placed == {t["Id"] for t in after["TaskInfos"]}


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
def test_arguments_are_spelled_as_the_original_spells(
    name: str, op: str, key: str, text: str, value: str, tmp_path: Path
) -> None:
    """Numbers are 32-bit floats widened to double; axes count from the front."""
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


SEEN = [{"Rank": 1, "RecvTags": [[-1, 3]]}, {"Rank": 1}, {"SendTags": [[1, 3]]}]


@pytest.mark.parametrize("buffer", SEEN)
def test_what_other_ranks_see_is_not_dead(buffer: dict[str, Any], tmp_path: Path) -> None:
    builder = Builder(0, 2)
    source = builder.tensor("FP32", (4,), name="x")
    seen = builder.op("Copy", [source], builder.tensor("FP32", (4,), **buffer))
    builder.view(seen, (2,), (4,))
    builder.op("Exp", [source], builder.tensor("FP32", (4,)))
    model = passlib.model.load(builder.write(tmp_path / "model.json"))
    saved = save(model.optimize_for("arkDead"), tmp_path)
    assert "Copy" in [op["Type"] for op in ops_of(saved)]
    with pytest.raises(GraphError, match=r"side effects.*\(Copy\)"):
        model.optimize_for("arkRemove", op="Copy").save(tmp_path / "x.json")


def test_message_from_memory_without_its_tag_is_refused(tmp_path: Path) -> None:
    builder = Builder(0, 2)
    sent = builder.tensor("FP32", (4,), SendTags=[[1, 3]])
    made = builder.op("Exp", [builder.tensor("FP32", (4,))], sent)
    builder.raw("Send", [made], [builder.tensor("FP32", (4,), Rank=1, RecvTags=[[-1, 3]])], 1)
    path = builder.write(tmp_path / "model.json")
    assert ARK.validate(path) == []
    model = passlib.model.load(path).optimize_for("arkInsert", after="Exp", op="Relu")
    with pytest.raises(GraphError, match=r"'send' \(Send\): .*no tag under which it is sent"):
        model.save(tmp_path / "x.json")


def test_arguments_of_every_type_outlast_a_change(tmp_path: Path) -> None:
    """Types that a name does not tell are those of the file."""
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


def test_padding_of_a_new_product() -> None:
    """A product reaches into the padding of its operands, so its own is theirs."""
    graph, template = read((FILES / "gen_head-padded_public.full.json").read_bytes())
    symbol = Symbol.of_graph(graph, {}, "ark")
    product = next(node for node in symbol.nodes() if node.op == "Matmul")
    flags = {"TransposeInput": "True", "TransposeOther": "False"}
    added = Node("Matmul", "added", flags, [Entry(product), product.inputs[0]], 1)
    edited = freeze([Entry(added)], lambda nested: nested, [*symbol.nodes(), added])
    nodes = json.loads(write(template, edited))["Nodes"]
    (written,) = next(n["Op"] for n in nodes if n["Op"]["Name"] == "added")["WriteTensors"]
    assert (written["Shape"], written["PaddedShape"]) == ([2, 6, 20], [2, 8, 24])
    assert written["Strides"] == [2, 8, 24]


def test_lost_padding_of_an_operand_is_refused(tmp_path: Path) -> None:
    builder = Builder()
    padded = {"strides": (4, 8), "padded": (4, 8)}
    first = builder.op(
        "Exp", [builder.tensor("FP32", (3, 5), **padded)], builder.tensor("FP32", (3, 5), **padded)
    )
    second = builder.tensor("FP32", (5, 2), (8, 4), padded=(8, 4))
    flags = {"TransposeInput": False, "TransposeOther": False}
    builder.op(
        "Matmul", [first, second], builder.tensor("FP32", (3, 2), (4, 4), padded=(4, 4)), **flags
    )
    path = builder.write(tmp_path / "model.json")
    assert ARK.validate(path) == []
    model = passlib.model.load(path).optimize_for("arkInsert", after="Exp", op="Relu")
    with pytest.raises(GraphError, match=r"'matmul' \(Matmul\): its PaddedShape is .*do not fit"):
        model.save(tmp_path / "x.json")
