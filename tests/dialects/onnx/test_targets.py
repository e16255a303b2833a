"""Which nodes runtimes refuse: tables, operator sets, and the real ONNX Runtime."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import parser

import kernel_table
import passlib as pl
import written_tables
from commands import passlib_command
from passlib.dialects.onnx.targets import Target, refusals

TABLE = Target.load("onnxruntime-cpu")


def model_of(text: str, opset: int = 21, more: str = "") -> Any:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{more}]> {text}')


REFUSED = {
    "a type": (
        "onnxruntime-cpu", model_of("g (bool[4] x) => (bool[4] y) { y = Relu(x) }"),
        "y (Relu): X is bool, not double, float, int32 or int8"),
    "an unknown operator": (
        "onnxruntime-cpu",
        model_of("g (float[4] x) => (float[4] y) { y = mine.Foo(x) }", more=', "mine" : 1'),
        "y (mine::Foo): onnxruntime-cpu does not have it"),
    "half precision is computed in single precision": (
        "onnxruntime-cpu", model_of("g (float16[4] x) => (float16[4] y) { y = Acos(x) }"), ""),
    "a body": ("onnxruntime-cpu", model_of("g (float[4] x) => (float[4] y) { y = Mish(x) }"), ""),
    "a body that is refused": (
        "onnxruntime-cpu",
        model_of("g (float[4] x) => (float[4] y) { y = Bernoulli<seed = 1.0>(x) }", 22),
        ("y (Bernoulli): onnxruntime-cpu does not have it, nor RandomUniformLike of its body: "
         "onnxruntime-cpu has it as in version 1, not 22")),
    "a branch": (
        "onnxruntime-cpu",
        model_of("""g (float[4] x, bool c) => (float[4] y) { y = If(c)<
            then_branch = t () => (float[4] a) { a = Relu(x) },
            else_branch = e () => (float[4] b) { s = Cast<to = 9>(x) r = Relu(s)
            b = Cast<to = 1>(r) }> }"""),
        "r (Relu): X is bool, not double, float, int32 or int8"),
    "another operator set": (
        "opset=16",
        model_of("g (float[4, 8] x, float[8] s) => (float[4, 8] y) "
                 "{ y = LayerNormalization(x, s) }"),
        "y (LayerNormalization): not in operator set 16: LayerNormalization is new in 17"),
    "an attribute": (
        "opset=17",
        model_of("g (float[4, 8] x) => (float[4, 4] y, float[4, 4] z) "
                 "{ y, z = Split<axis = 1, num_outputs = 2>(x) }"),
        "y (Split): attribute num_outputs is not in operator set 17"),
    "an input": (
        "opset=12",
        model_of("g (float[4, 8] x, int64[1] a) => (float[1, 4, 8] y) { y = Unsqueeze(x, a) }"),
        "y (Unsqueeze): 2 inputs, of which operator set 12 has 1"),
    "a type of the set": (
        "opset=12", model_of("g (bfloat16[4] x) => (bfloat16[4] y) { y = Relu(x) }", 14),
        "y (Relu): X is bfloat16, not float16, float or double"),
    "an operator that CUDA lacks": (
        "onnxruntime-cuda", model_of("g (float[4] x) => (float[4] y) { y = Acos(x) }"),
        "y (Acos): onnxruntime-cuda does not have it"),
    "a type that CUDA lacks": (
        "onnxruntime-cuda", model_of("g (int32[4] x) => (int32[4] y) { y = Relu(x) }"),
        "y (Relu): X is int32, not bfloat16, double, float or float16"),
    "a meaning that CUDA lacks": (
        "onnxruntime-cuda", model_of("g (float[4] x) => (float[4] y) { y = Elu(x) }", 22),
        "y (Elu): onnxruntime-cuda has it as in version 6, not 22"),
    "an operator of ONNX Runtime on CUDA": (
        "onnxruntime-cuda",
        model_of("g (double[4] x, double[4] b) => (double[4] y) "
                 "{ y = com.microsoft.BiasSplitGelu(x, b) }", more=', "com.microsoft" : 1'),
        "y (com.microsoft::BiasSplitGelu): X is double, not float or float16"),
    "a body on CUDA": (
        "onnxruntime-cuda", model_of("g (float[4] x) => (float[4] y) { y = Mish(x) }"), ""),
    "a body on CUDA that the CPU does not use": (
        "onnxruntime-cuda", model_of("g (float[4] x) => (float[4] y) { y = Celu(x) }"),
        "y (Celu): onnxruntime-cuda does not have it"),
    "all accepted by CUDA": (
        "onnxruntime-cuda",
        model_of("g (bfloat16[2, 4] x, bfloat16[4, 4] w) => (bfloat16[2, 4] y) "
                 "{ z = MatMul(x, w) r = Relu(z) s = Shape(x) y = Reshape(r, s) }"), ""),
    "an operator that TensorRT lacks": (
        "tensorrt",
        model_of("g (float[4] x, bool[4] c) => (float[N] y) { y = Compress(x, c) }"),
        "y (Compress): tensorrt does not have it"),
    "a type that TensorRT lacks": (
        "tensorrt", model_of("g (int8[4] x) => (int8[4] y) { y = Abs(x) }"),
        "y (Abs): X is int8, not bfloat16, float, float16, int32 or int64"),
    "a rank": (
        "tensorrt",
        model_of("g (float[1, 2, 8] x) => (float[1, 2, 4] y) "
                 "{ y = AveragePool<kernel_shape = [2], strides = [2]>(x) }"),
        "y (AveragePool): X has rank 3, not 4 or 5"),
    "an output": (
        "tensorrt",
        model_of("g (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y, int64[1, 2, 2, 2] i) "
                 "{ y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }"),
        "y (MaxPool): Indices must not be given"),
    "values of attributes": (
        "tensorrt",
        model_of("g (float[1, 1, 4, 4] x) => (float[1, 1, 8, 8] y) <float[4] s = {1, 1, 2, 2}> "
                 '{ y = Resize<mode = "cubic", antialias = 1>(x, , s) }'),
        "y (Resize): mode is cubic, not nearest or linear; antialias is 1, not 0"),
    "an element of an attribute": (
        "tensorrt",
        model_of("g (float[1, 2, 8, 8] x) => (float[1, 2, 6, 6] y) "
                 "{ y = MaxPool<kernel_shape = [2, 2], dilations = [1, 2]>(x) }"),
        "y (MaxPool): dilations is 2, not 1"),
    "an attribute that must not be given": (
        "tensorrt", model_of('g () => (string y) { y = Constant<value_string = "a">() }'),
        ("y (Constant): output is string, not bfloat16, bool, float, float16, float4e2m1, "
         "float8e4m3fn, int32, int4 or int64; attribute value_string must not be given")),
    "an input that is no constant": (
        "tensorrt",
        model_of("g (float[4, 4] x, int64[1] a) => (float y) "
                 "{ b = Neg(a) y = ReduceSum<keepdims = 0>(x, b) }"),
        "y (ReduceSum): axes must be a constant"),
    "all accepted by TensorRT": (
        "tensorrt",
        model_of("g (double[4, 4] x, bool[4, 4] c) => (double[4] y, double[4, 4] w) "
                 "<int64[1] a = {1}> { m = Constant<value_ints = [-1]>() b = Mul(a, m) "
                 "y = ReduceSum<keepdims = 0>(x, b) w = Where(c, x, x) }"), ""),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_nodes(case: str) -> None:
    target, model, wanted = REFUSED[case]
    if target == TABLE.name:
        needs_the_version_of_the_table()
    assert [str(each) for each in pl.lint(model, target)] == [wanted] * bool(wanted)


def test_notes(tmp_path: Path) -> None:
    graph = """g (float[4, 4] x) => (float[2, 4] v, int64[2, 4] i, float[2, 4] w, int64[2, 4] j)
        <int64[1] k = {2}> { v, i = TopK<axis = 0>(x, k) w, j = TopK<axis = 0>(x, k) }"""
    path = tmp_path / "model.onnx"
    onnx.save(model_of(graph), path)
    done = passlib_command("lint", str(path), "--target", "tensorrt")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "note: TopK (2 nodes): K is below 3840",
        f"tensorrt refuses nothing of {path}",
    ]


def needs_the_version_of_the_table() -> None:
    version = TABLE.version.rpartition(" ")[2]
    if onnxruntime.__version__ != version:
        pytest.skip(f"the table is of ONNX Runtime {version}")


def test_a_function() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "f" : 1]> g (bool[4] x) => (bool[4] y)
        { y = f.mine(x) } <domain: "f", opset_import: ["" : 21]> mine (a) => (b)
        { c = Cast<to = 1>(a) d = NoSuch(c) b = Cast<to = 9>(d) }"""
    )
    (found,) = refusals(model, TABLE)
    assert str(found) == "d (NoSuch) in function mine: onnxruntime-cpu does not have it"


def test_onnx_runtime_refuses_the_same_models() -> None:
    needs_the_version_of_the_table()
    # Not in this process: ONNX makes other models of its tests the second time.
    script = Path(__file__).parents[2] / "support" / "kernel_agreement.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_table_is_what_the_package_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_the_version_of_the_table()
    known = json.loads(kernel_table.TABLE.read_text())
    monkeypatch.setattr(kernel_table, "TABLE", tmp_path / "table.json")
    kernel_table.main()
    assert {**json.loads((tmp_path / "table.json").read_text()), "date": known["date"]} == known


def test_a_table_from_a_list_of_kernels() -> None:
    own, operators = written_tables.cuda(
        """## Operators implemented by CPUExecutionProvider
|**Operator Domain:** *ai.onnx*||||
|Acos|*in* input:**T**|7+|**T** = tensor(float)|
## Operators implemented by CUDAExecutionProvider
| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|Clip|*in* input:**T**<br> *out* output:**T**|12+|**T** = tensor(int8), tensor(float)|
|||11|**T** = tensor(float)|
|||[6, 10]|**T** = tensor(float)|
|**Operator Domain:** *com.microsoft*||||
|FastGelu|*in* X:**T**|1+|**T** = tensor(float)<br/> **U** = seq(tensor(bool))|
|**Operator Domain:** *com.ms.internal.nhwc*||||
|Conv|*in* X:**T**|1+|**T** = tensor(float)|
## Operators implemented by DmlExecutionProvider
|**Operator Domain:** *ai.onnx*||||
|Acos|*in* input:**T**|7+|**T** = tensor(float)|
"""
    )
    assert "Mish" in own["functions"]
    assert "Celu" not in own["functions"]
    assert operators == {
        "Clip": {
            "kernels": [
                {"since": 6, "until": 10, "types": {"T": ["float"]}},
                {"since": 11, "until": 11, "types": {"T": ["float"]}},
                {"since": 12, "types": {"T": ["float", "int8"]}},
            ]
        },
        "com.microsoft::FastGelu": {
            "inputs": [["X", "T"], ["bias", "T"]],
            "outputs": [["Y", "T"]],
            "kernels": [{"since": 1, "types": {"T": ["float"], "U": ["seq(bool)"]}}],
        },
    }


def table_file(folder: Path, content: object) -> str:
    path = folder / "npu.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_a_table_of_a_user(tmp_path: Path) -> None:
    kernels = [{"types": {"X": ["float"]}, "ranks": {"X": [4]}}]
    target = table_file(tmp_path, {"name": "npu", "operators": {"Relu": {"kernels": kernels},
                                                                "Neg": {}}})  # fmt: skip
    graph = """g (float[1, 2, 3, 4] x, float[N] z) => (float[1, 2, 3, 4] y, float[N] a, float[N] n,
        float[N] e) { y = Relu(x) a = Relu(z) n = Neg(a) e = Exp(n) }"""
    assert [str(each) for each in pl.lint(model_of(graph), target)] == [
        "a (Relu): X has rank 1, not 4",
        "e (Exp): npu does not have it",
    ]


@pytest.mark.parametrize(
    "content",
    [[], {}, {"operators": 1}, {"operators": {"Relu": {"kernels": [{"cast": 1}]}}}],
    ids=["a list", "nothing", "a number", "an unknown key"],
)
def test_a_wrong_table(content: object, tmp_path: Path) -> None:
    with pytest.raises(pl.FormatError, match=r"npu\.json: not a table of a target"):
        pl.lint(model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }"),
                table_file(tmp_path, content))  # fmt: skip


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("tensorflow", "no target 'tensorflow': the targets are onnxruntime-cpu, onnxruntime-cuda"),
        ("cuda", "tensorrt, opset=N, and a file"),
        ("opset=99", "no target 'opset=99': package onnx knows opset=1 to"),
    ],
)
def test_no_such_target(target: str, message: str) -> None:
    with pytest.raises(pl.UnsupportedError, match=message):
        pl.lint(model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }"), target)


def test_a_model_of_another_dialect() -> None:
    with pytest.raises(pl.UnsupportedError, match="this one is of mxnet: convert it first"):
        pl.lint(pl.Model(pl.sym.relu(pl.sym.var("x"))), "opset=13")


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model_of("g (float[4] x) => (float[4] y) { y = Mish(x) }"), path)
    done = passlib_command("lint", str(path), "--target", "opset=17")
    assert done.returncode == 3
    assert done.stdout.splitlines() == [
        "y (Mish): not in operator set 17: Mish is new in 18",
        f"opset=17 refuses 1 node of {path}",
    ]
    fine = passlib_command("lint", str(path), "--target", "opset=18")
    assert fine.stdout == f"opset=18 refuses nothing of {path}\n"
    listed = passlib_command("lint", str(path), "--target", "opset=17", "--json")
    assert json.loads(listed.stdout) == [
        {
            "node": "y",
            "operator": "Mish",
            "place": "",
            "reason": "not in operator set 17: Mish is new in 18",
        }
    ]
