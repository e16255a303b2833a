"""Converting to ONNX and validating, of any dialect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib
from nnvm_files import DATA, NNVM_CORE, TVM_EXECUTOR, text_of
from passlib.errors import FormatError, GraphError, InputError, UnsupportedError
from passlib.model.convert import convert
from passlib.model.validate import Problem, validate

SHAPES = {"data": (1, 3, 5, 5), "w": (2, 3, 3, 3)}


@pytest.fixture
def core(tmp_path: Path) -> Path:
    path = tmp_path / "core.json"
    path.write_bytes(text_of(NNVM_CORE))
    return path


def test_converted_model_computes_the_same(core: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    target = tmp_path / "core.onnx"
    convert(core, target, shapes=SHAPES)
    generator = np.random.default_rng(1)
    feeds = {n: generator.standard_normal(s).astype(np.float32) for n, s in SHAPES.items()}
    session = runtime.InferenceSession(target, providers=["CPUExecutionProvider"])
    expected = passlib.load(core)(feeds["data"], feeds["w"])
    for ours, theirs in zip(expected, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_mxnet_files_go_both_ways(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    source = DATA / "custom_mlp.json"
    for dialect in ("mxnet", "nnvm", None):
        target = tmp_path / f"{dialect}.onnx"
        shapes = {"data": (3, 5), "fc1_weight": (8, 5), "fc1_bias": (8,), "fc2_weight": (4, 8)}
        convert(source, target, dialect, shapes=shapes)
        assert target.stat().st_size > 0


def test_what_cannot_be_converted_leaves_no_file(core: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    target = tmp_path / "m.onnx"
    with pytest.raises(GraphError, match="data"):
        convert(core, target, weights=False)
    with pytest.raises(
        InputError, match=r"no weights, and w need them: there was no core\*.params next"
    ):
        convert(core, target)
    executor = tmp_path / "executor.json"
    executor.write_bytes(text_of(TVM_EXECUTOR))
    with pytest.raises(UnsupportedError, match="fused_add"):
        convert(executor, target)
    (tmp_path / "none.txt").write_text("none")
    with pytest.raises(FormatError, match="not a model that passlib reads, but a text file"):
        convert(tmp_path / "none.txt", target)
    assert not target.exists()


def test_validate_finds_the_dialect_and_all_problems(core: Path, tmp_path: Path) -> None:
    assert validate(core) == []
    assert validate(core, "nnvm") == []
    graph = {**NNVM_CORE, "heads": [[9, 0, 0], [0, 7, 0, 1]], "arg_nodes": [2]}
    broken = tmp_path / "broken.json"
    broken.write_bytes(text_of(graph))
    problems = validate(broken)
    assert [problem.place for problem in problems] == [
        *("arg_nodes[0]", "arg_nodes", "arg_nodes", "heads[0]", "heads[1]"),
    ]
    assert problems[0] == Problem("error", "arg_nodes[0]", "node 2 is not a variable")
    assert str(problems[0]) == "error: arg_nodes[0]: node 2 is not a variable"


def test_validate_of_what_is_not_there(tmp_path: Path) -> None:
    for dialect in (None, "nnvm", "mxnet"):
        with pytest.raises(FileNotFoundError):
            validate(tmp_path / "absent.json", dialect)


def test_onnx_models_change_their_operator_set(tmp_path: Path) -> None:
    parser = pytest.importorskip("onnx.parser", reason="needs the extra run")
    onnx = pytest.importorskip("onnx", reason="needs the extra run")
    made = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N, 4, H] x, float[2] s) => (float[N, 4, H] y)
        { y = GroupNormalization<num_groups = 2>(x, s, s) }""")
    onnx.save(made, tmp_path / "before.onnx")
    for opset, operators in ((21, "GroupNormalization"), (17, "InstanceNormalization|Div")):
        convert(tmp_path / "before.onnx", tmp_path / "after.onnx", opset=opset)
        after = onnx.load(tmp_path / "after.onnx")
        assert after.opset_import[0].version == opset
        found = {node.op_type for node in after.graph.node}
        assert found & set(operators.split("|"))
        compared = passlib.compare(tmp_path / "before.onnx", tmp_path / "after.onnx")
        assert compared.equal
    convert(tmp_path / "after.onnx", tmp_path / "same.onnx")
    assert onnx.load(tmp_path / "same.onnx").opset_import[0].version == 17
