"""Compiled passes that state another shape or type of an input: honoured, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

import passlib as pl
from nnvm_files import TVM_EXECUTOR, text_of
from places import DATA
from plugin_build import Builder, library


@pytest.fixture(scope="module", autouse=True)
def _passes() -> Iterator[None]:
    builder = Builder({"nnvm": library("nnvm.cc")}, ".so")
    pl.library.load(builder("nnvm"), verbose=False)
    yield
    builder.close()


def _onnx(folder: Path) -> pl.Model:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y)'
    return pl.load(onnx.parser.parse_model(head + "{ r = Relu(x) y = Neg(r) }"))


def _mxnet(folder: Path) -> pl.Model:
    return pl.Model(pl.sym.relu(pl.sym.var("x", shape=(2, 3), dtype="float32")))


def _executor(folder: Path) -> pl.Model:
    (folder / "e.json").write_bytes(text_of(TVM_EXECUTOR))
    return pl.load(folder / "e.json", dialect="nnvm")


def _dlprim(folder: Path) -> pl.Model:
    text = {
        "inputs": [{"name": "x", "shape": [2, 3]}],
        "outputs": ["y"],
        "operators": [{"name": "a", "type": "Activation", "inputs": ["x"], "outputs": ["y"],
                       "options": {"activation": "relu"}}],
    }  # fmt: skip
    (folder / "d.json").write_text(json.dumps(text))
    return pl.load(folder / "d.json")


def _ark(folder: Path) -> pl.Model:
    return pl.load(DATA / "ark" / "gen_py-quickstart_add_fp16.full.json")


def _type_of_file(path: str) -> tuple[Any, ...]:
    """Return the shape and type that a file states for its first input."""
    if path.endswith(".onnx"):
        kind = onnx.load(path).graph.input[0].type.tensor_type
        return tuple(d.dim_value for d in kind.shape.dim), str(kind.elem_type)
    saved = json.loads(Path(path).read_text())
    if "operators" in saved:
        return tuple(saved["inputs"][0]["shape"]), saved["inputs"][0].get("dtype", "float")
    if "dltype" in saved["attrs"]:
        return tuple(saved["attrs"]["shape"][1][0]), saved["attrs"]["dltype"][1][0]
    attributes = saved["nodes"][0]["attrs"]
    return attributes["__shape__"], attributes["__dtype__"]


Maker = Callable[[Path], pl.Model]

HONOURED: list[tuple[Maker, str, str, tuple[Any, ...]]] = [
    (_onnx, "x", "__shape__=(5, 3)", ((5, 3), "1")),
    (_onnx, "x", "__shape__=(5, 3, 2);__dtype__=1", ((5, 3, 2), "11")),
    (_mxnet, "x", "__shape__=(5, 3)", ("(5, 3)", "0")),
    (_mxnet, "x", "__dtype__=1", ("(2, 3)", "1")),
    (_executor, "A", "__shape__=(2, 3);__dtype__=0", ((2, 3), "float32")),
    (_executor, "A", "note=1", ((2, 3), "float32")),
    (_dlprim, "x", "__shape__=(5, 3)", ((5, 3), "float")),
    (_dlprim, "x", "__dtype__=2", ((2, 3), "half")),
]


@pytest.mark.parametrize(("make", "node", "attributes", "expected"), HONOURED)
def test_honoured(
    make: Maker, node: str, attributes: str, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    changed = make(tmp_path).optimize_for("setNode", node=node, attrs=attributes)
    suffix = {"onnx": "m.onnx", "mxnet": "m"}.get(changed.dialect, "m.json")
    assert _type_of_file(str(changed.save(tmp_path / suffix)[0])) == expected


REFUSED: list[tuple[Maker, str, str, str]] = [
    (_onnx, "x", "__shape__=wide", "'x': __shape__ 'wide'"),
    (_onnx, "x", "__dtype__=wide", "'x': __dtype__ 'wide'"),
    (_onnx, "x", "__dtype__=99", "'x': ONNX has no element type of number 99"),
    (_dlprim, "x", "__shape__=(0, 3)", r"'x': '\(0, 3\)' is not a valid shape"),
    (_dlprim, "x", "__dtype__=1", "'x': DLPrimitives has no type float64"),
    (_executor, "A", "__shape__=(5, 3)", r"'A': a pass states __shape__ '\(5, 3\)', but the graph"),
    (
        _executor,
        "B",
        "__dtype__=1",
        "'B': a pass states __dtype__ '1', but the graph lists float32",
    ),
    (_executor, "A", "__shape__=wide", "'A': a pass states __shape__ 'wide'"),
    (_ark, "tensor", "__shape__=(5, 3)", r"'tensor' .*__shape__ '\(5, 3\)', but the tensor"),
    (_ark, "tensor", "__dtype__=0", "'tensor' .*__dtype__ '0', but the tensor is FP16"),
    (_ark, "tensor", "__dtype__=1", "'tensor' .*ARK has no element type float64"),
]


@pytest.mark.parametrize(("make", "node", "attributes", "message"), REFUSED)
def test_refused_by_name(
    make: Maker, node: str, attributes: str, message: str, tmp_path: Path
) -> None:
    changed = make(tmp_path).optimize_for("setNode", node=node, attrs=attributes)
    target = tmp_path / ("m.onnx" if changed.dialect == "onnx" else "m.json")
    with pytest.raises((pl.UnsupportedError, pl.GraphError), match=message):
        changed.save(target)
    assert not target.exists()
