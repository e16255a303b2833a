"""Damaged ONNX files raise this project's errors, and memory stays within the file's size."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import parser

import onnx_models
import onnx_nodes
import passlib
from passlib import _core
from passlib.errors import FormatError, GraphError, UnsupportedError

EXPECTED = (FormatError, GraphError, UnsupportedError)
EXAMPLES = int(os.environ.get("PASSLIB_FUZZ_EXAMPLES", "300"))
SEEDS = [
    onnx_models.every_attribute().SerializeToString(),
    *(
        parser.parse_model(text).SerializeToString()
        for text in (onnx_models.NESTED, onnx_models.LOOP, onnx_models.CHAIN)
    ),
    next(iter((Path(onnx.__file__).parent / "backend/test/data/light").glob("*squeeze*.onnx")))
    .read_bytes()[:20000],
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a valid file with some bytes changed, removed, repeated or inserted."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, max(len(data) - 1, 0)))
        stop = min(start + draw(st.integers(1, 12)), len(data))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            data[start:stop] = draw(st.binary(min_size=stop - start, max_size=stop - start))
        elif kind == 1:
            del data[start:stop]
        elif kind == 2:
            data[start:start] = data[start:stop]
        else:
            data[start:start] = draw(st.binary(max_size=12))
    return bytes(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=damaged())
def test_damaged_files(folder: Path, data: bytes) -> None:
    path = folder / "a.onnx"
    path.write_bytes(data)
    passlib.dialects.find("onnx").recognises(path)
    tracemalloc.start()
    try:
        model = passlib.load(path, "onnx")
        model.save(folder / "b.onnx")
    except EXPECTED:
        pass
    else:
        assert (folder / "b.onnx").read_bytes() == data
        model.symbol.graph.copy().check()  # the reader makes sound graphs, without a look at them
        onnx.ModelProto.FromString(data)  # refuses nothing that passlib takes
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 1 << 25


@settings(
    max_examples=max(EXAMPLES // 10, 10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=damaged())
def test_validation_reports_what_load_refuses(folder: Path, data: bytes) -> None:
    path = folder / "c.onnx"
    path.write_bytes(data)
    problems = passlib.dialects.find("onnx").validate(path)
    try:
        passlib.load(path, "onnx")
    except EXPECTED:
        assert any(problem.severity == "error" for problem in problems)


def test_type_inference_survives_any_node() -> None:
    """Nodes of random operators, attributes and types; a child process that dies is a finding."""
    program = Path(onnx_nodes.__file__)
    done = subprocess.run(
        [sys.executable, os.fspath(program), str(EXAMPLES * 20)],
        capture_output=True,
        text=True,
        timeout=60 + EXAMPLES,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-200:], done.stderr[-500:])


@given(data=st.binary(max_size=60))
def test_random_bytes_on_the_wire(data: bytes) -> None:
    _core.is_onnx(data)
    try:
        message, payloads = _core.strip_onnx(data)
    except FormatError:
        return
    assert message == data
    assert payloads == {}


@given(st.lists(st.integers(3900, 4300), max_size=6))
def test_raw_data_is_taken_out_and_put_back(sizes: list[int]) -> None:
    model = onnx.ModelProto(ir_version=8)
    for number, size in enumerate(sizes):
        tensor = model.graph.initializer.add(name=str(number), raw_data=bytes([number]) * size)
        tensor.dims.append(size)
    data = model.SerializeToString()
    message, payloads = _core.strip_onnx(data)
    assert set(payloads) == {number for number, size in enumerate(sizes) if size >= 4096}
    stripped = onnx.ModelProto.FromString(message)
    for number, (start, length) in payloads.items():
        assert not stripped.graph.initializer[number].HasField("raw_data")
        stripped.graph.initializer[number].raw_data = data[start : start + length]
    assert stripped == model


@given(st.lists(st.sampled_from(("", "w.bin", "deep/x.bin")), max_size=6))
def test_locations_of_data(locations: list[str]) -> None:
    model = onnx.ModelProto(ir_version=8)
    for number, location in enumerate(locations):
        constant = model.graph.node.add(op_type="Constant").attribute.add(name="value")
        for tensor in (model.graph.initializer.add(name=str(number)), constant.t):
            if location:
                tensor.data_location = onnx.TensorProto.EXTERNAL
                tensor.external_data.add(key="location", value=location)
            else:
                tensor.raw_data = b"location"
    data = model.SerializeToString()
    assert _core.data_locations(data) == sorted(set(locations) - {""})
    with pytest.raises(FormatError, match="damaged"):
        _core.data_locations(data + b"\x3a\x7f")


def test_validation_names_an_operator_that_is_no_text(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy")
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString().replace(b"Relu", b"\x80elu"))
    (problem,) = passlib.dialects.find("onnx").validate(path)
    assert problem.severity == "error"
    assert problem.place == "graph.node[0]"
