"""Options of `Model.save` for ONNX: where weights go, and the version of the operator set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import passlib
from passlib.errors import UnsupportedError

RNG = np.random.default_rng(5)
LARGE = RNG.standard_normal((64, 64)).astype(np.float32)
INNER = RNG.standard_normal((4, 64)).astype(np.float32)
X = RNG.standard_normal((4, 64)).astype(np.float32)

TEXT = """
<ir_version: 8, opset_import: ["" : 11, "my" : 1]>
g (float[4, 64] x, bool c) => (float[4, 64] y)
<float[64] small = {0.0}>
{
   [multiply] m = MatMul(x, large)
   [soft] s = Softmax(m)
   a = Add(s, small)
   y = If(c) <
     then_branch = one () => (t) {
        u = Unsqueeze<axes = [0]>(a)
        v = Squeeze<axes = [0]>(u)
        t = Add(v, inner)
     },
     else_branch = two () => (e) { e = Sub(a, inner2) }>
}
"""


def build() -> Any:
    text = TEXT.replace("{0.0}", "{" + ", ".join(["0.5"] * 64) + "}")
    model = parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(LARGE, "large"))
    for number, branch in enumerate(model.graph.node[3].attribute):
        name = f"inner{number + 1}" if number else "inner"
        branch.g.initializer.append(numpy_helper.from_array(INNER, name))
    model.graph.initializer[0].doc_string = "the small one"
    model.graph.quantization_annotation.add().tensor_name = "m"
    del model.opset_import[1:]
    onnx.checker.check_model(model)
    return model


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source" / "m.onnx"
    path.parent.mkdir()
    onnx.save(build(), path)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "new.onnx"


def results(path: Path) -> list[np.ndarray[Any, Any]]:
    session = onnxruntime.InferenceSession(str(path))
    return [session.run(None, {"x": X, "c": np.array(c)})[0] for c in (True, False)]


def external_names(path: Path) -> list[str]:
    """The names of initializers, nested ones too, whose data is in another file."""
    model = onnx.load(path, load_external_data=False)
    graphs = [model.graph]
    graphs += [a.g for node in model.graph.node for a in node.attribute if a.HasField("g")]
    tensors = [tensor for graph in graphs for tensor in graph.initializer]
    return sorted(t.name for t in tensors if t.data_location == TensorProto.EXTERNAL)


@pytest.mark.parametrize(
    ("options", "names", "file"),
    [
        ({}, ["inner", "inner2", "large"], "new.onnx.data"),
        ({"location": "w.bin"}, ["inner", "inner2", "large"], "w.bin"),
        ({"location": "deep/w.bin"}, ["inner", "inner2", "large"], "deep/w.bin"),
        ({"size_threshold": 2048}, ["large"], "new.onnx.data"),
        ({"size_threshold": 0}, ["inner", "inner2", "large", "small"], "new.onnx.data"),
        ({"size_threshold": 1 << 20}, [], None),
    ],
    ids=str,
)
def test_weights_go_to_a_data_file(
    options: dict[str, Any], names: list[str], file: str | None, source: Path, out: Path
) -> None:
    files = passlib.load(source).save(out, external_data=True, **options)
    assert files == (str(out), *([str(out.parent / file)] if file else []))
    assert external_names(out) == names
    onnx.checker.check_model(out, full_check=True)
    for found, expected in zip(results(out), results(source), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.asarray(passlib.load(out).args["large"]), LARGE)


def test_it_is_what_onnx_writes(source: Path, out: Path) -> None:
    passlib.load(source).save(out, external_data=True, size_threshold=512)
    ours = external_names(out)
    model = onnx.load(source)
    onnx.save_model(model, out, save_as_external_data=True, location="theirs", size_threshold=512)
    assert ours == external_names(out)


@pytest.mark.parametrize(
    ("threshold", "left"), [(2048, ["new.onnx"]), (0, ["new.onnx", "new.onnx.data"])]
)
def test_external_weights_come_back_into_the_model(
    threshold: int, left: list[str], source: Path, out: Path
) -> None:
    passlib.load(source).save(out, external_data=True, size_threshold=threshold)
    loaded = passlib.load(out)
    assert loaded.save(out, external_data=False) == (str(out),)
    # The data of nested graphs is not mapped, so the loaded model still reads it from its file.
    assert sorted(path.name for path in out.parent.iterdir()) == left
    feeds = {"x": X, "c": np.array(True)}
    np.testing.assert_array_equal(loaded.run(feeds)["y"].asnumpy(), results(source)[0])
    expected, found = onnx.load(source), onnx.load(out)
    for tensor in expected.graph.initializer:
        other = next(t for t in found.graph.initializer if t.name == tensor.name)
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), numpy_helper.to_array(other))
    assert external_names(out) == []
    for ours, theirs in zip(results(out), results(source), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_types_that_numpy_lacks_and_strings(out: Path, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[8] x) => (float[8] y, string[2] t) {
        w = DequantizeLinear(four, scale)
        y = Add(x, w)
        t = Identity(words)
    }"""
    model = parser.parse_model(text)
    four = helper.make_tensor("four", TensorProto.INT4, [8], [1, -2, 3, -4, 5, -6, 7, 0])
    raw = TensorProto(
        name="four", dims=[8], data_type=TensorProto.INT4, raw_data=bytes(four.int32_data)
    )
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"a", b"b"])
    model.graph.initializer.extend(
        [raw, numpy_helper.from_array(np.array(0.5, np.float32), "scale"), words]
    )
    onnx.save(model, tmp_path / "m.onnx")
    passlib.load(tmp_path / "m.onnx").save(out, external_data=True, size_threshold=0)
    assert external_names(out) == ["four", "scale"]
    again = out.with_name("again.onnx")
    passlib.load(out).save(again, external_data=False)
    assert onnx.load(again).graph.initializer[0].raw_data == raw.raw_data
    for path in (out, again):
        session = onnxruntime.InferenceSession(str(path))
        y, t = session.run(None, {"x": np.zeros(8, np.float32)})
        np.testing.assert_array_equal(y, np.array([1, -2, 3, -4, 5, -6, 7, 0]) / 2)
        assert t.tolist() == ["a", "b"]


def test_weights_that_share_their_data_still_do(out: Path, tmp_path: Path) -> None:
    model = build()
    same = model.graph.initializer.add()
    same.CopyFrom(model.graph.initializer[1])
    same.name = "same"
    model.graph.node[0].input[1] = "same"
    for tensor in (model.graph.initializer[1], same):
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="d")
    (tmp_path / "d").write_bytes(LARGE.tobytes())
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    passlib.load(tmp_path / "m.onnx").save(out, external_data=True, size_threshold=4096)
    assert out.with_name("new.onnx.data").stat().st_size == LARGE.nbytes


def test_a_data_file_is_replaced_with_its_model(source: Path, out: Path) -> None:
    model = passlib.load(source)
    for _ in range(2):
        model.save(out, external_data=True, location="w.bin")
        assert sorted(path.name for path in out.parent.iterdir()) == ["new.onnx", "w.bin"]
    with pytest.raises(FileExistsError, match=r"new\.onnx has its weights there"):
        model.save(out.with_name("other.onnx"), external_data=True, location="w.bin")
    (out.parent / "sub").mkdir()
    (out.parent / "sub" / "w.bin").touch()
    with pytest.raises(FileExistsError, match="choose another location"):
        model.save(out, external_data=True, location="sub/w.bin")
    np.testing.assert_array_equal(results(out), results(source))


def test_a_data_file_stays_beside_large_weights_inside(tmp_path: Path) -> None:
    model = build()
    more = RNG.standard_normal((64, 512)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(more, "more"))
    tensor = model.graph.initializer[1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="d")
    (tmp_path / "d").write_bytes(LARGE.tobytes())
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    passlib.load(path).save(path)
    assert (tmp_path / "d").read_bytes() == LARGE.tobytes()
    np.testing.assert_array_equal(np.asarray(passlib.load(path).args["large"]), LARGE)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"external_data": "w.bin"}, TypeError, "location='...'"),
        ({"location": "w.bin"}, TypeError, "external_data=True"),
        ({"external_data": False, "size_threshold": 3}, TypeError, "external_data=True"),
        ({"external_data": True, "size_threshold": -1}, TypeError, "number of bytes"),
        ({"external_data": True, "location": 3}, TypeError, "name of a file"),
        ({"external_data": True, "location": "../w"}, UnsupportedError, "plain path"),
        ({"external_data": True, "location": "/w"}, UnsupportedError, "plain path"),
        ({"external_data": True, "location": "new.onnx"}, UnsupportedError, "the model itself"),
        ({"external_data": True, "location": "."}, UnsupportedError, "a folder"),
        ({"opset": "17"}, TypeError, "whole number"),
        ({"opset": 0}, UnsupportedError, "it can be 1 to"),
        ({"opset": 9999}, UnsupportedError, "it can be 1 to"),
        ({"epoch": 3}, UnsupportedError, "no option 'epoch'"),
    ],
    ids=str,
)
def test_wrong_options_write_nothing(
    options: dict[str, Any], error: type[Exception], message: str, source: Path, out: Path
) -> None:
    with pytest.raises(error, match=message.replace(".", r"\.")):
        passlib.load(source).save(out, **options)
    assert list(out.parent.iterdir()) == []


def test_a_model_beyond_the_limit_needs_a_data_file(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passlib.dialects.onnx.writing.saving.INLINE_LIMIT", 4000)
    with pytest.raises(UnsupportedError, match="external_data=True"):
        passlib.load(source).save(out, external_data=False)
    with pytest.raises(UnsupportedError, match="a smaller size_threshold"):
        passlib.load(source).save(out, external_data=True, size_threshold=1 << 20)
    passlib.load(source).save(out, external_data=True)


@pytest.mark.parametrize("edit", [False, True])
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
def test_another_operator_set(
    opset: int, edit: bool, source: Path, out: Path, load_plugin: Callable[[str], Any]
) -> None:
    load_plugin("good")
    model = passlib.load(source)
    if edit:
        model = model.with_weights({"small": np.full(64, 0.5, np.float32)})
        model = model.optimize_for("identity")
    model.save(out, opset=opset)
    onnx.checker.check_model(out, full_check=True)
    before, after = onnx.load(source), onnx.load(out)
    assert [(entry.domain, entry.version) for entry in after.opset_import] == [("", opset)]
    assert after.graph.quantization_annotation == before.graph.quantization_annotation
    assert list(after.graph.initializer) == list(before.graph.initializer)
    assert list(after.graph.input) == list(before.graph.input)
    assert [node.op_type for node in after.graph.node].count("MatMul") == 1
    for found, expected in zip(results(out), results(source), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_operator_set_and_the_data_file_together(source: Path, out: Path) -> None:
    passlib.load(source).save(out, external_data=True, opset=13)
    assert external_names(out) == ["inner", "inner2", "large"]
    np.testing.assert_allclose(results(out), results(source), rtol=1e-6)
    assert passlib.validate(out) == []


def test_the_format_is_as_new_as_the_operator_set(tmp_path: Path, out: Path) -> None:
    text = '<ir_version: 4, opset_import: ["" : 9]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    passlib.load(tmp_path / "m.onnx").save(out, opset=21)
    assert onnx.load(out).ir_version == 10


FUNCTION = """<ir_version: 8, opset_import: ["" : 11, "my" : 1]>
g (float[2] x) => (float[2] y) { y = my.twice(x) }
<domain: "my", opset_import: ["" : 11]> twice (a) => (b) { b = Add(a, a) }"""
BITS = """<ir_version: 10, opset_import: ["" : 20]>
g (int32[2] x) => (int32[2] y) { [bits] y = BitwiseNot(x) }"""
OLDER = """<ir_version: 8, opset_import: ["" : 13]>
g (float[2, 1] x, int64[1] axes) => (float[2] y) { [squeezed] y = Squeeze(x, axes) }"""
OTHERS = """<ir_version: 8, opset_import: ["my" : 1]>
g (float[2] x) => (float[2] y) { y = my.twice(x) }"""


@pytest.mark.parametrize(
    ("text", "opset", "message"),
    [
        (FUNCTION, 13, "no functions, such as 'twice'"),
        (BITS, 17, "node 'bits' (BitwiseNot): .* version 20 .* to version 17"),
        (OLDER, 11, "node 'squeezed' (Squeeze): "),
        (OTHERS, 13, "imports no version of ONNX's own operator set; save it without opset"),
    ],
    ids=["function", "new operator", "computed axes", "no set of ONNX's own"],
)
def test_what_cannot_be_converted_is_refused_by_name(
    text: str, opset: int, message: str, tmp_path: Path, out: Path
) -> None:
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match=message.replace("(", r"\(").replace(")", r"\)")):
        passlib.load(tmp_path / "m.onnx").save(out, opset=opset)
    assert not out.exists()


def test_sparse_weights_are_not_converted(tmp_path: Path, out: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 11]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
    model = parser.parse_model(text)
    values = numpy_helper.from_array(np.array([1], np.float32), "few")
    indices = numpy_helper.from_array(np.array([2]), "")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match="no sparse initializers, such as 'few'"):
        passlib.load(tmp_path / "m.onnx").save(out, opset=13)
