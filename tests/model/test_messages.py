"""Mistakes of users: each message has the thing, the place and the way out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from dense_layer import X, layer, weights
from passlib.errors import FormatError, GraphError, PasslibError, UnsupportedError
from passlib.model import Model, load, load_checkpoint, load_params

SHAPE = r"must be a tuple of whole numbers, such as \(1, 3, 224, 224\)"
MAPPING = r"must be a dictionary by name, such as \{'data': "
EPOCH = r"the epoch is 'best', but must be an integer >= 0.*params='\.\.\.'"

PASS = "removeDeadNodes"

CALLS: dict[str, tuple[Callable[[Model, Path], Any], type[Exception], str]] = {
    "run_array": (lambda m, _: m.run(X), TypeError, f"inputs.*ndarray.*{MAPPING}array"),
    "run_list": (lambda m, _: m.run([1, 2]), TypeError, f"inputs.*list.*{MAPPING}array"),
    "run_none": (
        lambda m, _: m.run({"data": None}),
        TypeError,
        "'data' is of type NoneType",
    ),
    "run_text": (lambda m, _: m.run({"data": "abc"}), TypeError, "'data' is of type str.*array"),
    "run_ragged": (
        lambda m, _: m.run({"data": [[1, 2], [3]]}),
        TypeError,
        "'data' is of type list.*all of one length",
    ),
    "call_dict": (lambda m, _: m({"data": X}), TypeError, "'data' is of type dict.*array"),
    "run_name": (
        lambda m, _: m.run({"data": X, "dota": X}),
        GraphError,
        "^the model has no input 'dota'; its inputs are data$",
    ),
    "onnx_tuple": (
        lambda m, f: m.to_onnx(f / "x.onnx", shapes=(1, 3, 224, 224)),
        TypeError,
        rf"shapes is of type tuple.*{MAPPING}\(1, 3",
    ),
    "onnx_text": (
        lambda m, f: m.to_onnx(f / "x.onnx", types="float32"),
        TypeError,
        f"types is of type str.*{MAPPING}'float32'",
    ),
    "onnx_size": (
        lambda m, f: m.to_onnx(f / "x.onnx", shapes={"data": 3}),
        TypeError,
        f"'data' is 3.*{SHAPE}",
    ),
    "convert_tuple": (
        lambda m, f: passlib.convert(f / "m", f / "x.onnx", shapes=(1, 2)),
        TypeError,
        f"shapes is of type tuple.*{MAPPING}",
    ),
    "convert_nothing": (
        lambda m, f: passlib.convert(f / "m", f / "x.onnx"),
        GraphError,
        r"shapes=\{'data': .*convert\(\.\.\., shapes=",
    ),
    "shapes_text": (
        lambda m, _: m.optimize_for(PASS, shapes={"data": "abc"}),
        TypeError,
        f"^shapes: the shape of 'data' is 'abc'.*{SHAPE}",
    ),
    "shapes_unknown": (
        lambda m, _: m.optimize_for(PASS, shapes={"dta": (1, 2)}),
        GraphError,
        "^shapes: the graph has no variable 'dta'; its inputs are data$",
    ),
    "types_unknown": (
        lambda m, _: m.optimize_for(PASS, types={"dta": "float32"}),
        GraphError,
        "^types: the graph has no variable 'dta'; its inputs are data$",
    ),
    "bytes_cut": (
        lambda m, f: load((f / "m.onnx").read_bytes()[:-3]),
        FormatError,
        "^the given bytes: .*the file is truncated or damaged$",
    ),
    "causes_twice": (
        lambda m, f: load(f / "m.onnx").run({"data": np.ones((1, 2))}),
        GraphError,
        r"^input 'data' has element type float64, .*; convert it with \.astype\('float32'\)$",
    ),
    "missing_twice": (
        lambda m, f: load(f / "m.onnx").run({}),
        GraphError,
        r"^input 'data' \(float32 \(1, 2\)\) is missing$",
    ),
    "shape_text": (
        lambda m, _: m.optimize_for(PASS, shape_dict={"data": "abc"}),
        TypeError,
        f"shape_dict: the shape of 'data' is 'abc'.*{SHAPE}",
    ),
    "shape_real": (
        lambda m, _: m.optimize_for(PASS, shape_dict={"data": (1.5, 2)}),
        TypeError,
        f"shape of 'data'.*{SHAPE}",
    ),
    "shape_tuple": (
        lambda m, _: m.optimize_for(PASS, shape_dict=(1, 2)),
        TypeError,
        f"shape_dict is of type tuple.*{MAPPING}",
    ),
    "shape_name": (
        lambda m, _: m.optimize_for(PASS, shapes={"dota": (1, 2)}),
        GraphError,
        "no variable 'dota'; its inputs are data",
    ),
    "shapes_of_a_list": (
        lambda m, _: m.optimize_for([PASS], shapes={"dota": (1, 2)}),
        GraphError,
        "^shapes: the graph has no variable 'dota'",
    ),
    "types_of_a_list": (
        lambda m, _: m.symbol.optimize_for(f"{PASS},{PASS}", types={"data": "flot32"}),
        TypeError,
        "^types: the element type of 'data' is 'flot32'",
    ),
    "shapes_of_simplify": (
        lambda m, _: m.optimize_for("simplify", shapes={"data": (1, 2)}),
        UnsupportedError,
        "simplify and clean infer .* would ignore 'shapes'; fixed=",
    ),
    "types_of_clean": (
        lambda m, _: m.optimize_for("clean", type_dict={"data": "float32"}),
        UnsupportedError,
        "would ignore 'type_dict'",
    ),
    "shape_twice": (
        lambda m, _: m.optimize_for(PASS, shapes={"data": (1, 2)}, shape_dict={"data": (1, 2)}),
        TypeError,
        "shapes and shape_dict are two names of one argument",
    ),
    "type_name": (
        lambda m, _: m.optimize_for(PASS, type_dict={"dota": "float32"}),
        GraphError,
        "type_dict: the graph has no variable 'dota'",
    ),
    "type_text": (
        lambda m, _: m.optimize_for(PASS, type_dict={"data": "flot32"}),
        TypeError,
        "type_dict: the element type of 'data' is 'flot32'.*float32, float64",
    ),
    "infer_shape": (lambda m, _: m.symbol.infer_shape(data="abc"), TypeError, f"'data'.*{SHAPE}"),
    "infer_type": (lambda m, _: m.symbol.infer_type(data="flot"), TypeError, "'data' is 'flot'"),
    "bind_shape": (lambda m, _: m.symbol.simple_bind(data="ab"), TypeError, f"'data'.*{SHAPE}"),
    "bind_type": (
        lambda m, _: m.symbol.simple_bind(data=(1, 2), type_dict={"data": "flot"}),
        TypeError,
        "'data' is 'flot'",
    ),
    "load_epoch": (lambda m, f: load(f / "m", epoch="best"), TypeError, EPOCH),
    "save_epoch": (lambda m, f: m.save(f / "m", epoch="best"), TypeError, EPOCH),
    "checkpoint": (lambda m, f: load_checkpoint(f / "m", "best"), TypeError, EPOCH),
    "params": (lambda m, f: load_params(f / "m", "best"), TypeError, EPOCH),
    "epoch_below_0": (lambda m, f: load(f / "m", epoch=-1), ValueError, "the epoch is -1"),
    "no_weights": (
        lambda m, f: load(f / "bare").run({"data": X}),
        GraphError,
        r"no weights, and fc_weight, fc_bias need them: there was no .params file next to.*params=",
    ),
    "symbol_of_onnx": (
        lambda m, f: passlib.sym.load(f / "m.onnx"),
        FormatError,
        r"m\.onnx: this is a model of ONNX.*passlib\.load\('",
    ),
    "truncated": (lambda m, f: load(f / "half.onnx"), FormatError, r"half\.onnx: .*truncated"),
    "empty": (lambda m, f: load(f / "empty.onnx"), FormatError, r"empty\.onnx: .* an empty file"),
    "unknown_weights": (
        lambda m, f: Model(layer(), {**weights(), "u": X, "v": X}),
        GraphError,
        "2 of 4 weights belong to no variable of the graph: u, v; .* another model",
    ),
    "weights_elsewhere": (
        lambda m, f: load(f / "bare", params=f / "other-0000.params"),
        GraphError,
        r"2 of 2 weights belong to no variable of the graph: f2_bias, f2_weight; .*fc_weight",
    ),
    "weights_swapped": (
        lambda m, f: load(f / "swapped"),
        GraphError,
        "2 of 2 weights belong to no variable",
    ),
    "weight_shape": (
        lambda m, f: Model(layer(), {**weights(), "fc_bias": np.ones(7, np.float32)}),
        GraphError,
        r"the weights do not fit the graph: node 'fc'.*'fc_bias'\) has shape \(7\)",
    ),
}


@pytest.fixture
def folder(small: Model, tmp_path: Path) -> Path:
    pytest.importorskip("onnx", reason="needs the extra run")
    passlib.library.load_standard()
    small.save(tmp_path / "m")
    small.symbol.save(tmp_path / "bare-symbol.json")
    other = passlib.sym.FullyConnected(passlib.sym.var("x"), num_hidden=3, name="f2")
    args = {name.replace("fc", "f2"): array for name, array in weights().items()}
    for path in Model(other, args).save(tmp_path / "other"):
        Path(path.replace("other", "swapped")).write_bytes(Path(path).read_bytes())
    small.symbol.save(tmp_path / "swapped-symbol.json")
    small.to_onnx(tmp_path / "m.onnx", {"data": (1, 2)})
    content = (tmp_path / "m.onnx").read_bytes()
    (tmp_path / "half.onnx").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty.onnx").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize("name", CALLS)
def test_message(name: str, small: Model, folder: Path) -> None:
    call, error, message = CALLS[name]
    before = sorted(folder.iterdir())
    with pytest.raises(error, match=message):
        call(small, folder)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("missing", [("onnxruntime",), ("onnx", "onnxruntime")])
def test_running_without_its_packages_names_the_extra(
    missing: tuple[str, ...], small: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in missing:
            monkeypatch.setitem(sys.modules, name, None)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(PasslibError, match=r"'onnxruntime'.*pip install 'graph-passlib\[run\]'"):
        small(X)
