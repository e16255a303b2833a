"""Weights in files next to an ONNX model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib
from passlib.dialects.onnx.writing import saving as storage
from passlib.errors import FormatError, UnsupportedError

Loader = Callable[[str], passlib.library.Library]
WEIGHTS = np.arange(2048, dtype=np.float32)
BIAS = np.full(2048, 0.5, np.float32)
X = np.linspace(0, 1, 2048, dtype=np.float32)


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


def build(nested: bool = False) -> Any:
    value = helper.make_tensor_value_info
    tensors = [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(BIAS, "b")]
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    if nested:
        body = helper.make_graph(
            [helper.make_node("Add", ["m", "inner"], ["t"])],
            "body",
            [],
            [value("t", TensorProto.FLOAT, [2048])],
            [numpy_helper.from_array(BIAS, "inner")],
        )
        nodes[1] = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
        tensors[1] = numpy_helper.from_array(np.array(True), "c")
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [2048])],
        [value("y", TensorProto.FLOAT, [2048])],
        tensors,
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def place(tensor: Any, location: str, offset: int, length: int | None) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="offset", value=str(offset))
    if length is not None:
        tensor.external_data.add(key="length", value=str(length))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose two weights are in sub/data.bin."""
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    made = build()
    for tensor, offset in zip(made.graph.initializer, (0, 8192), strict=True):
        place(tensor, "sub/data.bin", offset, 8192)
    (folder / "sub" / "data.bin").write_bytes(WEIGHTS.tobytes() + BIAS.tobytes())
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return folder / "m.onnx"


def canonical(path: Path) -> bytes:
    data: bytes = onnx.load(path, load_external_data=False).SerializeToString(deterministic=True)
    return data


def test_weights_are_mapped(model: Path) -> None:
    args = passlib.load(model).args
    np.testing.assert_array_equal(np.asarray(args["w"]), WEIGHTS)
    np.testing.assert_array_equal(np.asarray(args["b"]), BIAS)
    assert not args["w"].flags.writeable


@pytest.mark.usefixtures("handover")
def test_identity_writes_model_and_data_next_to_it(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "new.onnx"
    out.parent.mkdir()
    written = passlib.load(model).optimize_for("identity").save(out)
    assert written == (str(out), str(out.parent / "sub" / "data.bin"))
    assert out.read_bytes() == model.read_bytes()
    data = (model.parent / "sub" / "data.bin").read_bytes()
    assert (out.parent / "sub" / "data.bin").read_bytes() == data
    onnx.checker.check_model(out)


def test_a_model_is_saved_over_itself(model: Path) -> None:
    before, loaded = canonical(model), passlib.load(model)
    assert loaded.save(model) == (str(model),)
    assert canonical(model) == before
    loaded.optimize_for("fillParameter", name="w", value=3).save(model)
    again = passlib.load(model)
    assert set(np.asarray(again.args["w"])) == {3.0}
    np.testing.assert_array_equal(np.asarray(again.args["b"]), BIAS)
    np.testing.assert_array_equal(np.asarray(loaded.args["w"]), WEIGHTS)
    onnx.checker.check_model(model)


def test_a_changed_model_next_to_the_original_has_its_own_data(model: Path) -> None:
    edited = passlib.load(model).optimize_for("fillParameter", name="b", value=3)
    other = model.with_name("other.onnx")
    assert edited.save(other) == (str(other), str(model.with_name("other.onnx.data")))
    assert set(np.asarray(passlib.load(other).args["b"])) == {3.0}
    np.testing.assert_array_equal(np.asarray(passlib.load(other).args["w"]), WEIGHTS)
    np.testing.assert_array_equal(np.asarray(passlib.load(model).args["b"]), BIAS)


def test_a_place_that_is_stated_twice(model: Path, tmp_path: Path) -> None:
    """The last entry of a key holds, in the file that is read and in the one that is written."""
    made = onnx.load(model, load_external_data=False)
    for number, tensor in enumerate(made.graph.initializer):
        tensor.external_data[1].value = "4"
        tensor.external_data.add(key="offset", value=str(8192 - 8192 * number))
    model.write_bytes(made.SerializeToString())
    loaded = passlib.load(model)
    loaded.save(tmp_path / "m.onnx", external_data=True, size_threshold=0)
    again = passlib.load(tmp_path / "m.onnx")
    np.testing.assert_array_equal(np.asarray(again.args["w"]), BIAS)
    np.testing.assert_array_equal(np.asarray(again.args["b"]), WEIGHTS)


def test_data_of_removed_weights_is_not_written(model: Path, tmp_path: Path) -> None:
    edited = passlib.load(model).optimize_for("removeNamed", node="b")
    edited.optimize_for("removeOperator", op="Add", skip_infer=True).save(tmp_path / "b.onnx")
    assert (tmp_path / "sub" / "data.bin").stat().st_size == WEIGHTS.nbytes


def test_it_runs(model: Path) -> None:
    loaded = passlib.load(model)
    np.testing.assert_allclose(loaded.run({"x": X})["y"].asnumpy(), X * WEIGHTS + BIAS)


@pytest.mark.parametrize("edit", ["identity", "fillParameter"])
def test_data_of_nested_graphs_is_written_too(edit: str, tmp_path: Path) -> None:
    made = build(nested=True)
    place(made.graph.initializer[0], "d.bin", 0, 8192)
    for attribute in made.graph.node[1].attribute:
        place(attribute.g.initializer[0], "d.bin", 8192, 8192)
    source = tmp_path / "source" / "m.onnx"
    source.parent.mkdir()
    source.write_bytes(made.SerializeToString())
    source.with_name("d.bin").write_bytes(WEIGHTS.tobytes() + BIAS.tobytes())
    options = {"name": "w", "value": 2} if edit == "fillParameter" else {}
    edited = passlib.load(source).optimize_for(edit, **options)
    edited.save(tmp_path / "b.onnx")
    expected = X * (WEIGHTS if edit == "identity" else 2) + BIAS
    for again in (edited, passlib.load(tmp_path / "b.onnx")):
        np.testing.assert_allclose(again.run({"x": X})["y"].asnumpy(), expected, rtol=1e-6)
    if edit == "identity":
        assert canonical(tmp_path / "b.onnx") == canonical(source)


def test_data_of_nested_graphs_is_not_written_twice(tmp_path: Path) -> None:
    made = build(nested=True)
    for attribute in made.graph.node[1].attribute:
        place(attribute.g.initializer[0], "d.bin", 0, 8192)
    source = tmp_path / "m.onnx"
    source.write_bytes(made.SerializeToString())
    source.with_name("d.bin").write_bytes(BIAS.tobytes())
    other = tmp_path / "other.onnx"
    assert passlib.load(source).optimize_for("identity").save(other) == (str(other),)


@pytest.mark.parametrize("spelling", ["e.bin", "./d.bin"])
@pytest.mark.parametrize("other", [False, True])
def test_changed_data_of_several_locations(spelling: str, other: bool, tmp_path: Path) -> None:
    made = build()
    place(made.graph.initializer[0], "d.bin", 0, 8192)
    place(made.graph.initializer[1], spelling, 8192, 8192)
    source = tmp_path / "m.onnx"
    source.write_bytes(made.SerializeToString())
    for name in ("d.bin", "e.bin"):
        (tmp_path / name).write_bytes(WEIGHTS.tobytes() + BIAS.tobytes())
    for changed in (["w"], ["w", "b"]):
        edited = passlib.load(source)
        for name in changed:
            edited = edited.optimize_for("fillParameter", name=name, value=3)
        out = tmp_path / f"other{len(changed)}.onnx" if other else source
        edited.save(out)
        again = passlib.load(out).args
        assert set(np.asarray(again["w"])) == {3.0}
        assert set(np.asarray(again["b"])) == ({3.0} if "b" in changed else {0.5})


def with_external_attribute(path: Path, **where: Any) -> Path:
    """Write a model with a tensor attribute whose data is in v.bin."""
    value = numpy_helper.from_array(np.array([2], np.float32), "v")
    place(value, **{"location": "v.bin", "offset": 0, "length": 4, **where})
    graph = helper.make_graph(
        [helper.make_node("ConstantOfShape", ["s"], ["y"], value=value)],
        "g",
        [helper.make_tensor_value_info("s", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    path.with_name("v.bin").write_bytes(np.array([2, 3], np.float32).tobytes())
    return path


@pytest.mark.parametrize("length", [4, None])
def test_data_of_attributes(length: int | None, tmp_path: Path) -> None:
    source = with_external_attribute(tmp_path / "m.onnx", length=length)
    assert passlib.validate(source) == []
    y = passlib.load(source).run({"s": np.array([3])})["y"]
    assert y.asnumpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "where", [{"length": 10**18}, {"offset": 10**18}, {"length": 2}, {"location": "/etc/passwd"}]
)
def test_bad_places_of_attributes(where: dict[str, Any], tmp_path: Path) -> None:
    source = with_external_attribute(tmp_path / "m.onnx", **where)
    with pytest.raises(FormatError, match="'v'"):
        passlib.load(source).run({"s": np.array([3])})
    problems = passlib.validate(source)
    assert [p.place for p in problems] == ["graph.node[0].attribute['value']"]


def test_shared_data_stays_shared(tmp_path: Path) -> None:
    made = build()
    for tensor in made.graph.initializer:
        place(tensor, "d.bin", 0, None)
    source = tmp_path / "source" / "m.onnx"
    source.parent.mkdir()
    source.write_bytes(made.SerializeToString())
    source.with_name("d.bin").write_bytes(WEIGHTS.tobytes())
    edited = passlib.load(source).optimize_for("addConstant", size=2048)
    edited.save(tmp_path / "b.onnx")
    assert (tmp_path / "d.bin").stat().st_size == WEIGHTS.nbytes


BAD_PLACES = {
    "absolute": ("/etc/passwd", 0, 8, "leads out"),
    "above": ("../secret.bin", 0, 8192, "leads out"),
    "above from below": ("sub/../../secret.bin", 0, 8192, "leads out"),
    "a link out of the folder": ("link.bin", 0, 8192, "link out"),
    "a linked folder": ("linked/secret.bin", 0, 8192, "link out"),
    "nowhere": ("absent.bin", 0, 8192, "no file"),
    "a folder": ("sub", 0, 8192, "no file"),
    "empty": ("", 0, 8192, "without a location"),
    "too far": ("sub/data.bin", 8200, 8192, "has 16384 bytes"),
    "too long": ("sub/data.bin", 0, 1 << 40, "has 16384 bytes"),
    "too short": ("sub/data.bin", 0, 8, "take 8192"),
    "no number": ("sub/data.bin", -1, 8192, "offset"),
}


@pytest.mark.parametrize("what", BAD_PLACES)
def test_bad_places_are_refused(what: str, model: Path) -> None:
    location, offset, length, message = BAD_PLACES[what]
    folder = model.parent
    secret = folder.parent / "secret.bin"
    secret.write_bytes(bytes(8192))
    (folder / "link.bin").symlink_to(secret)
    (folder / "linked").symlink_to(folder.parent)
    made = onnx.load(model, load_external_data=False)
    del made.graph.initializer[0].external_data[:]
    place(made.graph.initializer[0], location, offset, length)
    model.write_bytes(made.SerializeToString())
    with pytest.raises(FormatError, match=message):
        passlib.load(model)
    problems = passlib.dialects.find("onnx").validate(model)
    assert [p.place for p in problems if p.severity == "error"] == ["graph.initializer[0]"]
    assert message in problems[0].message


def test_a_link_within_the_folder_is_fine(model: Path) -> None:
    data = model.parent / "sub" / "data.bin"
    data.rename(model.parent / "real.bin")
    data.symlink_to(model.parent / "real.bin")
    np.testing.assert_array_equal(np.asarray(passlib.load(model).args["w"]), WEIGHTS)


def test_claimed_sizes_are_not_allocated(tmp_path: Path) -> None:
    made = build()
    made.graph.initializer[0].dims[:] = [1 << 50]
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(FormatError, match="raw data of 8192 bytes"):
        passlib.load(path)
    made.graph.initializer[0].dims[:] = [1 << 62, 1 << 62]
    path.write_bytes(made.SerializeToString())
    with pytest.raises(FormatError, match="too large for any memory"):
        passlib.load(path)


def test_a_model_beyond_the_limit_gets_a_data_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(build().SerializeToString())
    loaded = passlib.load(path)
    monkeypatch.setattr(storage, "INLINE_LIMIT", 10_000)
    out = tmp_path / "out.onnx"
    assert loaded.save(out) == (str(out), f"{out}.data")
    assert out.stat().st_size < 1000
    onnx.checker.check_model(out)
    again = passlib.load(out)
    np.testing.assert_array_equal(np.asarray(again.args["w"]), WEIGHTS)
    np.testing.assert_allclose(again.run({"x": X})["y"].asnumpy(), X * WEIGHTS + BIAS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, " without its larger weights"),
        ({"external_data": True}, "; save it with a smaller size_threshold"),
        ({"external_data": False}, "; save it with external_data=True"),
    ],
)
def test_a_model_that_is_too_large_without_its_weights(
    options: dict[str, bool], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(build().SerializeToString())
    loaded = passlib.load(path)
    monkeypatch.setattr(storage, "INLINE_LIMIT", 100)
    out = tmp_path / "out.onnx"
    with pytest.raises(UnsupportedError, match=f"{out}: .* and the limit is 100{message}$"):
        loaded.save(out, **options)
    assert list(tmp_path.iterdir()) == [path]


def test_offsets_beyond_two_gigabytes(tmp_path: Path) -> None:
    made = build()
    beyond = 3 << 30
    for tensor, offset in zip(made.graph.initializer, (0, beyond), strict=True):
        place(tensor, "d.bin", offset, 8192)
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    with (tmp_path / "d.bin").open("wb") as file:  # a sparse file: it takes two blocks
        file.write(WEIGHTS.tobytes())
        file.seek(beyond)
        file.write(BIAS.tobytes())
    loaded = passlib.load(path)
    np.testing.assert_array_equal(np.asarray(loaded.args["b"]), BIAS)
    np.testing.assert_allclose(loaded.run({"x": X})["y"].asnumpy(), X * WEIGHTS + BIAS)
    edited = loaded.optimize_for("fillParameter", name="b", value=1)
    folder = tmp_path / "out"
    folder.mkdir()
    edited.save(folder / "m.onnx")
    assert (folder / "d.bin").stat().st_size == 16384
    assert {file.name for file in folder.iterdir()} == {"d.bin", "m.onnx"}


def large_model(folder: Path) -> tuple[Path, bytes]:
    """Write a model with a weight of 25 blocks and 100 bytes in a data file, after a page."""
    value = helper.make_tensor_value_info
    data = np.random.default_rng(1).random(25 * 1024 + 25, np.float32).tobytes()
    count = len(data) // 4
    (folder / "w.bin").write_bytes(bytes(4096) + data)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[count])
    place(tensor, "w.bin", 4096, len(data))
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Identity", ["m"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [count])],
        [value("y", TensorProto.FLOAT, [count])],
        [tensor],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx", data


COPIES = {  # most bytes of the first call and of later ones, for limit_copies of failing_calls.c
    "all at once": (1 << 40, 1 << 40),
    "few at a time": (9999, 9999),
    "none": (0, 0),
    "another file system": (-1, -1),
    "some, then an error": (5000, -1),
}
SAVE = """
import ctypes, sys
import passlib
shim = ctypes.CDLL(sys.argv[1])
shim.limit_copies(ctypes.c_long(int(sys.argv[4])), ctypes.c_long(int(sys.argv[5])))
options = {"external_data": True} if sys.argv[6] == "moved" else {}
passlib.load(sys.argv[2]).optimize_for("simplify").save(sys.argv[3], **options)
"""


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("how", ["as before", "moved"])
def test_unchanged_weights_are_copied_from_file_to_file(
    kind: str, how: str, plugin: Callable[[str], Path], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    path, data = large_model(source)
    made = tmp_path / "made.onnx"
    limits = [str(limit) for limit in COPIES[kind]]
    shim = plugin("failing_calls")
    run = subprocess.run(
        [sys.executable, "-c", SAVE, shim, path, made, *limits, how],
        env={
            **os.environ,
            "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {shim}".strip(),
            "PASSLIB_FAIL_BELOW": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    (saved,) = onnx.load(made).graph.initializer
    assert saved.raw_data == data
    calls = [tuple(map(int, line.split()[1:])) for line in run.stderr.splitlines()]
    assert calls
    if kind == "all at once":
        # Whole blocks: only they can be shared.
        ((size, start, end),) = calls
        assert size % 4096 == start % 4096 == end % 4096 == 0
        assert size > len(data) - 4096


def test_a_converted_weight_is_written_from_memory(
    tmp_path: Path,
) -> None:
    path, _ = large_model(tmp_path)
    model = passlib.load(path)
    changed = model.with_weights({"w": model.args["w"] + 1})
    changed.save(tmp_path / "made.onnx", external_data=True)
    (saved,) = onnx.load(tmp_path / "made.onnx").graph.initializer
    assert numpy_helper.to_array(saved).tobytes() == (np.asarray(model.args["w"]) + 1).tobytes()
