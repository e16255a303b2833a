"""MXNet's two readings of shapes in inference, files and running; the values are MXNet 1.9.1's."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
from passlib import sym, util
from passlib.errors import GraphError, UnsupportedError

UNKNOWN = (None, None, None)
x, y = sym.var("x"), sym.var("y")
dense = sym.FullyConnected(x, num_hidden=4, name="fc")


def declared(shape: Any) -> Any:
    return sym.var("z", shape=shape) + y


INFERRED: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (dense, {"x": (0, 3)}, UNKNOWN, ([(0, 3), (4, 3), (4,)], [(0, 4)], [])),
    (dense, {"x": (-1, 3)}, UNKNOWN, UNKNOWN),
    (x + y, {"x": (0, 3), "y": (2, 0)}, ([(2, 3), (2, 3)], [(2, 3)], []), GraphError),
    (x + y, {"x": (-1, 3), "y": (2, -1)}, *[([(2, 3), (2, 3)], [(2, 3)], [])] * 2),
    (x + y, {"x": (0, 3)}, UNKNOWN, ([(0, 3), (0, 3)], [(0, 3)], [])),
    (x + y, {"x": ()}, UNKNOWN, ([(), ()], [()], [])),
    (sym.zeros((0, 3)) + y, {"y": (2, 3)}, ([(2, 3)], [(2, 3)], []), GraphError),
    (sym.zeros((-1, 3)) + y, {"y": (2, 3)}, *[([(2, 3)], [(2, 3)], [])] * 2),
    (sym.zeros((0, 3)) + y, {}, UNKNOWN, ([(0, 3)], [(0, 3)], [])),
    (declared((0, 3)), {}, UNKNOWN, ([(0, 3), (0, 3)], [(0, 3)], [])),
    (declared((0, 3)), {"y": (2, 3)}, ([(2, 3), (2, 3)], [(2, 3)], []), GraphError),
    (declared((-1, 3)), {"y": (2, 3)}, *[([(2, 3), (2, 3)], [(2, 3)], [])] * 2),
    (declared(()), {"y": (2, 3)}, ([(2, 3), (2, 3)], [(2, 3)], []), GraphError),
    (sym.concat(x, y, dim=0), {"x": (0, 3), "y": (2, 3)}, UNKNOWN,
     ([(0, 3), (2, 3)], [(2, 3)], [])),
    (sym.broadcast_to(x, shape=(2, 0)), {"x": (1, 3)}, *[([(1, 3)], [(2, 3)], [])] * 2),
    (sym.repeat(x, repeats=2, axis=1), {"x": (0, 3)}, UNKNOWN, ([(0, 3)], [(0, 6)], [])),
    (sym.sum(x), {"x": (2, 3)}, *[([(2, 3)], [(1,)], [])] * 2),
]  # fmt: skip
"""A symbol, shapes, and what MXNet infers by default and under ``np_shape``."""


@pytest.mark.parametrize("numpy", [False, True], ids=["default", "numpy"])
@pytest.mark.parametrize("case", INFERRED, ids=range(len(INFERRED)))
def test_infer_shape(case: tuple[Any, dict[str, Any], Any, Any], numpy: bool) -> None:
    symbol, shapes, *expected = case
    wanted = expected[numpy]
    with util.np_shape(numpy), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if wanted is GraphError:
            with pytest.raises(GraphError, match="require"):
                symbol.infer_shape(**shapes)
        else:
            assert symbol.infer_shape(**shapes) == wanted


def test_unknown_sizes_are_spelt_by_the_mode() -> None:
    assert dense.infer_shape_partial(x=(-1, 3)) == ([(0, 3), (4, 3), (4,)], [(0, 4)], [])
    with util.np_shape():
        assert dense.infer_shape_partial(x=(-1, 3)) == ([(-1, 3), (4, 3), (4,)], [(-1, 4)], [])
        assert (x + y).infer_shape_partial() == ([None, None], [None], [])


@pytest.mark.parametrize(
    ("between", "last"),
    [
        ("_npi_flip", "_npi_bitwise_and"),  # integers
        ("_npi_logical_not", "_npi_less"),  # truth values
        ("_npi_logical_not", "_npi_bitwise_or"),
        ("argsort", "_npi_equal"),  # int64 of any type
    ],
)
def test_shapes_are_inferred_whatever_the_types_are(between: str, last: str) -> None:
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {
            "op": between,
            "name": "between",
            "attrs": {"_npi_flip": {"axis": "0"}, "argsort": {"dtype": "int64"}}.get(between, {}),
            "inputs": [[0, 0, 0]],
        },
        {"op": last, "name": "last", "inputs": [[1, 0, 0], [0, 0, 0]]},
        {"op": "null", "name": "z", "inputs": []},
        {"op": "_npi_add", "name": "sum", "inputs": [[2, 0, 0], [3, 0, 0]]},
    ]
    text = {"nodes": nodes, "arg_nodes": [0, 3], "heads": [[4, 0, 0]]}
    with util.np_shape(True):
        symbol = sym.load_json(json.dumps(text))
        assert symbol.infer_shape(x=(2, 3), z=(4, 1, 3))[1] == [(4, 2, 3)]
        with pytest.raises(GraphError, match="node 'sum'"):
            symbol.infer_shape(x=(2, 3), z=(2, 4))


def saved_in_numpy_mode(symbol: Any) -> str:
    with util.np_shape():
        return str(symbol.tojson())


def test_the_mode_is_written() -> None:
    text = saved_in_numpy_mode(dense)
    version = {"mxnet_version": ["int", 10901]}
    assert json.loads(text)["attrs"] == {"is_np_shape": ["int", 1], **version}
    assert list(json.loads(text)["attrs"]) == ["is_np_shape", "mxnet_version"]
    assert json.loads(dense.tojson())["attrs"] == version
    assert sym.load_json(text).tojson() == text


@pytest.mark.parametrize(
    ("shape", "spelt", "known"),
    [
        ("(4, 0)", "[4,-1]", (4, -1)),
        ("[4,0]", "[4,-1]", (4, -1)),
        ("(0, 0)", "[-1,-1]", (-1, -1)),
        ("()", "None", None),
        ("(4, 3)", "(4, 3)", (4, 3)),
        ("(4, -1)", "(4, -1)", (4, -1)),
    ],
)
@pytest.mark.parametrize("version", [None, 10300, 10901])
def test_unknown_sizes_of_a_file_without_the_mode(
    shape: str, spelt: str, known: Any, version: int | None, tmp_path: Path
) -> None:
    text = json.loads(dense.tojson())
    weight = next(node for node in text["nodes"] if node["name"] == "fc_weight")
    weight["attrs"] = {"__shape__": shape}
    text["attrs"] = {} if version is None else {"mxnet_version": ["int", version]}
    (tmp_path / "m-symbol.json").write_text(json.dumps(text))
    with util.np_shape():
        loaded = sym.load(tmp_path / "m-symbol.json")
        model = pl.load(tmp_path / "m-symbol.json")
        for symbol in (loaded, model.symbol, sym.load_json(loaded.tojson())):
            assert symbol.attr_dict()["fc_weight"]["__shape__"] == spelt
            assert symbol.infer_shape_partial()[0][1] == known
            assert symbol.infer_shape(x=(2, 3))[0] == [(2, 3), (4, 3), (4,)]
    plain = sym.load(tmp_path / "m-symbol.json")
    assert plain.attr_dict()["fc_weight"]["__shape__"] == shape
    # A file that states the mode is read in it.
    text["attrs"]["is_np_shape"] = ["int", 1]
    if "0" in shape:
        with util.np_shape(), pytest.raises(GraphError, match="require"):
            sym.load_json(json.dumps(text)).infer_shape(x=(2, 3))


def test_models_are_saved_in_the_mode(tmp_path: Path) -> None:
    with util.np_shape():
        pl.model.save_checkpoint(tmp_path / "m", 0, dense, {}, {})
        pl.load(tmp_path / "m-symbol.json").save(tmp_path / "again")
    for name in ("m", "again"):
        text = (tmp_path / f"{name}-symbol.json").read_text("utf-8")
        assert "is_np_shape" in json.loads(text)["attrs"], name


def test_a_file_in_numpy_mode_is_read_as_such() -> None:
    loaded = sym.load_json(saved_in_numpy_mode(sym.zeros((0, 3)) + dense))
    assert not util.is_np_shape()
    with pytest.raises(GraphError, match="require"):
        loaded.infer_shape(x=(2, 3))
    filled = sym.load_json(saved_in_numpy_mode(sym.ones((0, 3))))
    assert filled.infer_shape() == ([], [(0, 3)], [])
    assert filled.bind(args={}).forward()[0].shape == (0, 3)
    unset = sym.load_json(sym.ones((0, 3)).tojson())
    with pytest.raises(UnsupportedError, match="leaves a size to be inferred"):
        unset.bind(args={}).forward()


def test_the_switch_changes_what_runs() -> None:
    executor = sym.zeros((0, 3)).bind(args={})
    with pytest.raises(UnsupportedError, match="leaves a size to be inferred"):
        executor.forward()
    with util.np_shape():
        assert executor.forward()[0].shape == (0, 3)
    with pytest.raises(UnsupportedError, match="leaves a size to be inferred"):
        executor.forward()


@pytest.mark.parametrize(
    ("symbol", "shape", "expected"),
    [
        (dense, (0, 3), (0, 4)),
        (sym.Convolution(x, num_filter=4, kernel=(3, 3)), (0, 3, 8, 8), (0, 4, 6, 6)),
        (sym.relu(x), (0, 3), (0, 3)),
        (sym.sum(x), (2, 3), (1,)),
    ],
)
def test_simple_bind_of_no_elements(
    symbol: Any, shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    if 0 in shape:
        with pytest.raises(GraphError, match="shape of 'x'"):
            symbol.simple_bind(x=shape)
    with util.np_shape():
        assert symbol.simple_bind(x=shape).forward()[0].shape == expected


def test_states_of_open_size_in_numpy_mode(tmp_path: Path) -> None:
    """An unrolled cell's first state has the size -1 there, and follows the data's batch."""
    state = sym.FullyConnected(sym.zeros((-1, 4)), num_hidden=4, name="h2h")
    loaded = sym.load_json(saved_in_numpy_mode(dense + state))
    weights = {
        name: np.ones(shape, np.float32)
        for name, shape in zip(
            loaded.list_arguments(), loaded.infer_shape(x=(5, 3))[0], strict=True
        )
        if name != "x"
    }
    for batch in (1, 5):
        data = np.ones((batch, 3), np.float32)
        (found,) = loaded.eval(x=data, **weights)
        np.testing.assert_array_equal(found, np.full((batch, 4), 5, np.float32))
    pl.model.Model(loaded, weights).to_onnx(tmp_path / "m.onnx", shapes={"x": (None, 3)})
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)


@pytest.mark.parametrize(
    ("numpy", "given", "expected"),
    [
        (False, (0, 3), [None, 3]),
        (False, (-1, 3), [None, 3]),
        (False, (None, 3), [None, 3]),
        (True, (0, 3), [0, 3]),
        (True, (-1, 3), [None, 3]),
    ],
)
def test_sizes_of_exported_inputs(
    numpy: bool, given: tuple[int | None, ...], expected: list[int | None], tmp_path: Path
) -> None:
    weights = {"fc_weight": np.ones((4, 3), np.float32), "fc_bias": np.ones(4, np.float32)}
    with util.np_shape(numpy):
        pl.model.Model(dense, weights).to_onnx(tmp_path / "m.onnx", shapes={"x": given})
    sizes = onnx.load(tmp_path / "m.onnx").graph.input[0].type.tensor_type.shape.dim
    found = [size.dim_value if size.HasField("dim_value") else None for size in sizes]
    assert found == expected
