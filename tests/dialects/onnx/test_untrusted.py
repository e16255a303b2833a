"""Files that crash onnx's own code, or make it allocate, become errors that name the node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser
from onnx import load as load_onnx

import onnx_models
import passlib
from passlib.dialects.onnx import validation as isolated
from passlib.errors import PasslibError

BODY = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["r"])],
    "body",
    [],
    [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
)


def node_model(node: Any, version: int, outputs: int, *sizes: int, functions: Any = ()) -> Any:
    shapes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)]
    heads = [
        helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(outputs)
    ]
    imports = [helper.make_opsetid("", version), helper.make_opsetid("own", 1)]
    graph = helper.make_graph([node], "g", shapes, heads)
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


def split(count: int) -> Any:
    node = helper.make_node("Split", ["x"], [f"y{i}" for i in range(4)], axis=0, num_outputs=count)
    return node_model(node, 18, 4, 8, 2)


def single(op: str, version: int, inputs: list[str], **attributes: Any) -> Any:
    return node_model(helper.make_node(op, inputs, ["y0"], **attributes), version, 1, 2, 2)


def functions(*bodies: tuple[str, list[str]]) -> Any:
    made = []
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    for name, calls in bodies:
        nodes = [
            helper.make_node(
                op, ["a"], [f"c{i}" if i else "b"], domain="" if op == "Relu" else "own"
            )
            for i, op in enumerate(calls)
        ]
        made.append(helper.make_function("own", name, ["a"], ["b"], nodes, imports))
    node = helper.make_node(bodies[0][0], ["x"], ["y0"], domain="own")
    return node_model(node, 18, 1, 2, 2, functions=made)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "fewer outputs than stated": (lambda: split(2), "num_outputs is 2"),
    "4e9 outputs": (lambda: split(4_000_000_000), "num_outputs is 4000000000"),
    "too many inputs": (lambda: single("Relu", 18, ["x", "x"]), "2 inputs"),
    "no inputs": (lambda: single("Relu", 18, []), "0 inputs"),
    "a required input is omitted": (lambda: single("RegexFullMatch", 20, [""]), "omitted"),
    "one of any number of inputs is omitted": (
        lambda: single("Max", 13, ["x", "x", ""]),
        "input 2 is omitted",
    ),
    "an axis beyond any rank": (
        lambda: single("LayerNormalization", 17, ["x", "x"], axis=1 << 31),
        "2147483648",
    ),
    "an attribute of another type": (lambda: single("Softmax", 18, ["x"], axis=0.5), "'axis'"),
    "a required attribute is missing": (lambda: single("Cast", 18, ["x"]), "'to' is missing"),
    "negative batch dimensions": (
        lambda: single("GatherND", 18, ["x", "x"], batch_dims=-8),
        "batch_dims is -8",
    ),
    "more scans than inputs": (
        lambda: single("Scan", 18, ["x"], num_scan_inputs=1 << 40, body=BODY),
        "num_scan_inputs",
    ),
    "a mode that there is not": (
        lambda: single("BatchNormalization", 15, ["x"] * 5, training_mode=3),
        "training_mode is 3",
    ),
    "a kernel larger than any image": (
        lambda: single("AveragePool", 11, ["x"], kernel_shape=[1 << 62, 2], auto_pad="SAME_UPPER"),
        "kernel_shape is [4611686018427387904, 2]",
    ),
    "an axis of no tensor": (
        lambda: single("Softmax", 18, ["x"], axis=1 << 40),
        "attribute 'axis' is 1099511627776",
    ),
    "axes of no tensor": (
        lambda: single("ReduceSum", 11, ["x"], axes=[0, 1 << 40]),
        "attribute 'axes' is 1099511627776",
    ),
    "two inputs instead of one": (
        lambda: single("Relu", 18, ["x", "x"]),
        "it has 2 inputs, but the operator has 1",
    ),
    "more inputs than there may be": (
        lambda: single("Clip", 18, ["x"] * 4),
        "it has 4 inputs, but the operator has 1 to 3",
    ),
    "more samples than memory": (
        lambda: single("RoiAlign", 16, ["x", "x", "x"], sampling_ratio=1 << 62),
        "sampling_ratio is 4611686018427387904",
    ),
    "more skipped than there is": (
        lambda: single(
            "TfIdfVectorizer",
            9,
            ["x"],
            mode="TF",
            min_gram_length=2,
            max_gram_length=2,
            max_skip_count=1 << 62,
            ngram_counts=[0, 0],
            ngram_indexes=[0],
            pool_int64s=[2, 3],
        ),
        "max_skip_count is 4611686018427387904",
    ),
    "a function that calls itself": (
        lambda: functions(("f", ["g"]), ("g", ["f"])),
        "function 'g' of domain 'own' calls itself",
    ),
    "functions that grow": (
        lambda: functions(*((f"f{i}", [f"f{i + 1}"] * 9) for i in range(12)), ("f12", ["Relu"])),
        "expanded",
    ),
}


def test_a_few_skipped_items_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    for count in (0, 1, 5):
        given = {"mode": "TF", "min_gram_length": 2, "max_gram_length": 2, "max_skip_count": count}
        grams = {"ngram_counts": [0, 0], "ngram_indexes": [0], "pool_int64s": [2, 3]}
        model = single("TfIdfVectorizer", 9, ["x"], **given, **grams)
        path.write_bytes(model.SerializeToString())
        assert not any("max_skip_count" in each.message for each in passlib.validate(path))


@pytest.mark.parametrize("what", CASES)
def test_unsound_nodes_are_refused_before_native_code_sees_them(what: str, tmp_path: Path) -> None:
    make, message = CASES[what]
    path = tmp_path / "a.onnx"
    path.write_bytes(make().SerializeToString())
    assert any(p.severity == "error" for p in passlib.validate(path))
    x = np.ones((8, 2) if "outputs" in what else (2, 2), np.float32)

    def load() -> passlib.model.Model:
        return passlib.load(path)

    calls: dict[str, Callable[[], object]] = {
        "run": lambda: load().run({"x": x}),
        "to_onnx": lambda: load().to_onnx(tmp_path / "b.onnx", shapes={"x": x.shape}),
        "infer_shape": lambda: load().symbol.infer_shape(x=x.shape),
        "convert": lambda: passlib.convert(path, tmp_path / "c.onnx", shapes={"x": x.shape}),
    }
    for name, call in calls.items():
        with pytest.raises(PasslibError) as caught:
            call()
        if name != "infer_shape" or what not in ("functions that grow",):
            assert message in str(caught.value), (name, str(caught.value))
    assert [item.name for item in tmp_path.iterdir()] == ["a.onnx"]


@pytest.mark.parametrize("version", [13, 17])
def test_an_omitted_last_input_is_left_out(version: int, tmp_path: Path) -> None:
    """ONNX Runtime 1.32 ends the process on a LayerNormalization that has one."""
    node = helper.make_node("LayerNormalization", ["x", "s", ""], ["y"])
    sizes = {"x": [2, 3], "s": [3], "y": [2, 3]}
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items()]
    graph = helper.make_graph([node], "g", kinds[:2], kinds[2:])
    imports = [helper.make_opsetid("", version)]
    model = passlib.load(helper.make_model(graph, opset_imports=imports, ir_version=8))
    x = np.array([[1, 2, 3], [6, 4, 2]], np.float32)
    expected = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    (found,) = model.run({"x": x, "s": np.ones(3, np.float32)}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    again = load_onnx(model.save(tmp_path / "a.onnx")[0]).graph.node[0]
    assert list(again.input) == ["x", "s", ""]


LOOP = helper.make_graph(
    [
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Neg", ["s"], ["t"]),
        helper.make_node("Split", ["s"], ["", "half"]),
    ],
    "body",
    [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("s", TensorProto.FLOAT, [2]),
    ],
    [
        helper.make_tensor_value_info("d", TensorProto.BOOL, []),
        helper.make_tensor_value_info("t", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("half", TensorProto.FLOAT, [1]),
    ],
)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "attributes", "expected"),
    [
        ("Split", ["x"], ["", "y"], {}, [2]),
        ("Split", ["x"], ["omitted_0", ""], {}, [1]),
        ("Loop", ["n", "", "x"], ["", "y"], {"body": LOOP}, [[2], [-2], [2]]),
    ],
)
def test_omitted_outputs_get_names_before_native_code_sees_them(
    op: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any], expected: Any
) -> None:
    """ONNX Runtime 1.32 ends the process on Split and Loop that omit one."""
    node = helper.make_node(op, inputs, outputs, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info(
        next(name for name in outputs if name), TensorProto.FLOAT, ["N"] + ["M"] * (op == "Loop")
    )
    n = helper.make_tensor("n", TensorProto.INT64, [], [3])
    graph = helper.make_graph([node], "g", [x], [y], [n])
    imports = [helper.make_opsetid("", 13)]
    model = passlib.load(helper.make_model(graph, opset_imports=imports, ir_version=7))
    (found,) = model.run({"x": np.array([1, 2], np.float32)}).values()
    np.testing.assert_array_equal(found, expected)


SIZES = {
    "zeros of the file's size": "s = Constant<value = int64[2] {300000, 300000}>() "
    "y = ConstantOfShape(s)",
    "sizes that are computed": "a = Constant<value = int64[2] {300, 300}>() s = Mul(a, k) "
    "y = ConstantOfShape(s)",
    "repetitions": "s = Constant<value = int64[2] {300000, 300000}>() y = Tile(x, s)",
    "a range": "a = Constant<value = int64 {0}>() b = Constant<value = int64 {90000000000}>() "
    "c = Constant<value = int64 {1}>() r = Range(a, b, c) y = Cast<to = 1>(r)",
    "random numbers": "y = RandomNormal<shape = [300000, 300000]>()",
    "padding": "p = Constant<value = int64[4] {0, 0, 300000, 300000}>() y = Pad(x, p)",
    "expansion": "s = Constant<value = int64[2] {300000, 300000}>() i = Constant<value_float = "
    "1.0>() y = Expand(i, s)",
    "one-hot vectors": "d = Constant<value = int64 {90000000000}>() v = Constant<value_floats = "
    "[0.0, 1.0]>() i = Cast<to = 7>(x) z = OneHot(i, d, v) y = Cast<to = 1>(z)",
    "resizing": "r = Constant<value = float[2] {300000.0, 300000.0}>() y = Resize(x, , r)",
}


@pytest.mark.parametrize("what", SIZES)
def test_values_larger_than_the_memory_are_refused(what: str, tmp_path: Path) -> None:
    text = (
        f"{onnx_models.HEAD} (float[2, 2] x) => (float[M, N] y) <int64[2] k = {{1000, 1000}}> "
        f"{{ {SIZES[what]} }}"
    )
    model = passlib.load(parser.parse_model(text))
    x = np.ones((2, 2), np.float32)
    with pytest.raises(PasslibError, match="bytes; the limit is"):
        model.run({"x": x})
    with pytest.raises(PasslibError, match="bytes; the limit is"):
        model.to_onnx(tmp_path / "b.onnx")


def test_the_limit_of_values_is_an_option() -> None:
    text = onnx_models.HEAD + "(float[2, 2] x) => (float[64, 2, 2] y) <int64[3] s = {64, 2, 2}> "
    model = passlib.load(parser.parse_model(text + "{ y = Expand(x, s) }"))
    x = np.ones((2, 2), np.float32)
    with passlib.limits(tensor_bytes=1023), pytest.raises(PasslibError, match="1,024 bytes"):
        model.run({"x": x})
    with passlib.limits(tensor_bytes=1024):
        assert model.run({"x": x})["y"].shape == (64, 2, 2)


CRASHES = {
    "a crash": ("import os; os.abort()", "crashed (SIGABRT)"),
    "too much memory": ("bytearray(1 << 40)", "more memory than passlib allows"),
    "too much time": ("while True: pass", " s"),
    "no end": ("import time; time.sleep(60)", "took more than"),
}


@pytest.mark.parametrize("what", CRASHES)
def test_the_checker_may_fail_in_any_way(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, message = CRASHES[what]
    fake = tmp_path / "lib" / "onnx"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("class NodeProto: pass\n")
    (fake / "checker.py").write_text(
        "class C:\n class CheckerContext: pass\n"
        f"def check_model(*args, **options):\n exec({code!r})\n"
    )
    monkeypatch.syspath_prepend(fake.parent)
    monkeypatch.setattr(isolated, "_SECONDS", 1)
    path = tmp_path / "a.onnx"
    path.write_bytes(single("Relu", 18, ["x"]).SerializeToString())
    found = isolated.check(path, [], {"": 18}, 10)
    assert message in found.model


def test_without_an_interpreter_validation_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    path = tmp_path / "a.onnx"
    path.write_bytes(single("Relu", 18, ["x"]).SerializeToString())
    (problem,) = passlib.validate(path)
    assert problem.severity == "error"
    assert "no process" in problem.message


def at_location(location: str) -> Callable[[Any], None]:
    def damage(model: Any) -> None:
        tensor = model.graph.initializer[0]
        tensor.CopyFrom(TensorProto(name="w", data_type=1, dims=[4], data_location=1))
        tensor.external_data.add(key="location", value=location)

    return damage


def stated(code: int, field: str) -> Callable[[Any], None]:
    def damage(model: Any) -> None:
        getattr(model.graph, field)[0].type.tensor_type.elem_type = code

    return damage


NAMES: dict[str, tuple[Callable[[Any], object], str]] = {
    "a long location": (at_location("a" * 5000), "'w'"),
    "a deep location": (at_location("a/" * 3000), "'w'"),
    "a location with NUL": (at_location("a\0b"), "'w'"),
    "tensor type 256": (lambda m: setattr(m.graph.initializer[0], "data_type", 256), "type 256"),
    "tensor type 0": (lambda m: setattr(m.graph.initializer[0], "data_type", 0), "type 0"),
    "input type 0": (stated(0, "input"), "."),
    "input type 256": (stated(256, "input"), "256"),
    "output type 256": (stated(256, "output"), "."),
    "a name with NUL": (lambda m: m.graph.input.add(name="q\0"), "input.1"),
}


@pytest.mark.parametrize("what", NAMES)
def test_hostile_names_and_types_give_errors_of_this_project(what: str, tmp_path: Path) -> None:
    damage, message = NAMES[what]
    model = parser.parse_model(onnx_models.CHAIN)
    damage(model)
    path = tmp_path / "a.onnx"
    path.write_bytes(model.SerializeToString())
    assert passlib.validate(path)
    with pytest.raises(PasslibError, match=message):
        passlib.load(path).run({"x": np.ones((2, 4), np.float32)})


@pytest.mark.parametrize("name", ["a\0b.onnx", "a\ud800.onnx"])
def test_paths_that_no_file_has(name: str, tmp_path: Path) -> None:
    sound = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    model = passlib.load(sound)
    path = f"{tmp_path}/{name}"
    calls: list[Callable[[], object]] = [
        lambda: passlib.load(path),
        lambda: passlib.validate(path),
        lambda: model.save(path),
        lambda: model.to_onnx(path, shapes={"x": (2, 4)}),
        lambda: passlib.convert(sound, path, shapes={"x": (2, 4)}),
    ]
    for call in calls:
        with pytest.raises(PasslibError):
            call()
