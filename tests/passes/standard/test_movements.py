"""foldConstants without ONNX Runtime: operators that only move or convert elements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, results

FLOATS = np.array([[1.5, -0.0, 3.0], [np.inf, -2.0, np.nan]], np.float32)
WHOLE = np.array([[0, 1, -2], [127, -128, 300]], np.int64)
LARGE = np.array([2**24 + 1, 2**53 + 1, -(2**63)], np.int64)

OPERATORS: dict[str, tuple[str, list[np.ndarray[Any, Any]], dict[str, Any]]] = {
    "identity": ("Identity", [FLOATS], {}),
    **{
        f"{array.dtype} {title} to {kind}": ("Cast", [array], {"to": code})
        for title, array in {
            "special": FLOATS,
            "doubles": np.array([1e300, 0.1, -0.0, np.nan]),
            "halves": np.array([0.5, 65504, -1], np.float16),
            "whole": WHOLE,
            "large": LARGE,
            "bytes": np.array([0, 255, 7], np.uint8),
            "truths": np.array([True, False]),
            "small reals": np.array([3.0, -4.0, -0.0], np.float32),
            "between": np.array([0.5, -1.5, 2.5], np.float32),
        }.items()
        for kind, code in {
            "bool": 9, "float16": 10, "float32": 1, "float64": 11, "int8": 3, "int32": 6,
            "int64": 7, "uint8": 2, "uint64": 13,
        }.items()
    },
    "reshape": ("Reshape", [WHOLE, np.array([3, -1])], {}),
    "reshape with a copied size": ("Reshape", [WHOLE, np.array([0, 3])], {}),
    "reshape to a scalar": ("Reshape", [WHOLE[:1, :1], np.array([], np.int64)], {}),
    "reshape of nothing": ("Reshape", [WHOLE[:0], np.array([3, 0])], {"allowzero": 1}),
    "unsqueeze": ("Unsqueeze", [FLOATS, np.array([0, 2])], {}),
    "unsqueeze from behind": ("Unsqueeze", [FLOATS, np.array([-1])], {}),
    "squeeze": ("Squeeze", [FLOATS[None, :, :, None], np.array([3, 0])], {}),
    "squeeze of all": ("Squeeze", [FLOATS[None]], {}),
    "transpose": ("Transpose", [WHOLE], {"perm": [1, 0]}),
    "transpose without an order": ("Transpose", [WHOLE], {}),
    "concat": ("Concat", [WHOLE, WHOLE[:1]], {"axis": 0}),
    "concat from behind": ("Concat", [WHOLE, WHOLE], {"axis": -1}),
}  # fmt: skip


UNCERTAIN = {
    *(f"float32 special to {kind}" for kind in ("int8", "int32", "int64", "uint8", "uint64")),
    *(f"float64 doubles to {kind}" for kind in ("int8", "int32", "int64", "uint8", "uint64")),
    *(f"float16 halves to {kind}" for kind in ("int8", "uint8", "uint64")),
    *(f"float32 {title} to {kind}" for title in ("small reals", "between")
      for kind in ("uint8", "uint64")),
}  # fmt: skip
"""Conversions to integers of numbers that are out of range."""


def model_of(
    op: str,
    inputs: list[np.ndarray[Any, Any]],
    attributes: dict[str, Any],
    sizes: list[str] | None = None,
) -> bytes:
    """Return a model whose second result is that of one operator on constants."""
    weights = {f"w{number}": np.ascontiguousarray(array) for number, array in enumerate(inputs)}
    nodes = [
        helper.make_node(op, [*weights], ["moved"], **attributes),
        helper.make_node("Identity", ["moved"], ["z"]),
        helper.make_node("Neg", ["x"], ["y"]),
    ]
    code = attributes.get("to", helper.np_dtype_to_tensor_dtype(inputs[0].dtype))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", 1, [2])],
        [value("y", 1, [2]), value("z", code, sizes)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


@pytest.mark.parametrize("name", OPERATORS)
def test_results_are_those_of_the_operator(name: str, tmp_path: Path) -> None:
    stated = [f"n{size}" for size in OPERATORS[name][1][0].shape] if name in UNCERTAIN else None
    data = model_of(*OPERATORS[name], stated)
    made = after(data, "foldConstants", tmp_path)
    stays = {"Cast": 1} if name in UNCERTAIN else {}
    assert operators(made) == {"Neg": 1, "Identity": 1, **stays}
    feeds = {"x": np.ones(2, np.float32)}
    assert same_bits(results(made, feeds), results(data, feeds))


FAILING = {
    "reshape that does not fit": ("Reshape", [WHOLE, np.array([4])], {}),
    "reshape with two open sizes": ("Reshape", [WHOLE, np.array([-1, -1])], {}),
    "squeeze of a larger size": ("Squeeze", [FLOATS, np.array([0])], {}),
    "concat of other shapes": ("Concat", [WHOLE, WHOLE[:, :1]], {"axis": 0}),
    "unsqueeze beyond the axes": ("Unsqueeze", [FLOATS, np.array([9])], {}),
}


@pytest.mark.parametrize("name", FAILING)
def test_what_fails_stays(name: str, tmp_path: Path) -> None:
    made = after(model_of(*FAILING[name], ["rows", "columns"]), "foldConstants", tmp_path)
    assert operators(made)[FAILING[name][0]] == 1


def test_doubling_has_a_bound(tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["w"], ["v0"])]
    nodes += [
        helper.make_node("Concat", [f"v{step}"] * 2, [f"v{step + 1}"], axis=0) for step in range(34)
    ]
    graph = helper.make_graph(
        nodes, "g", [], [helper.make_tensor_value_info("v34", 1, [None])],
        [numpy_helper.from_array(np.ones(1, np.float32), "w")],
    )  # fmt: skip
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = after(data.SerializeToString(), "foldConstants", tmp_path)
    assert operators(made)["Concat"] > 10
    assert len(made) < 2_000_000


def test_onnx_runtime_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of("Cast", [WHOLE], {"to": onnx.TensorProto.FLOAT}))
    code = (
        "import sys, passlib\nprint(len(passlib.simplify(sys.argv[1]).symbol.get_internals()))\n"
        "print('onnxruntime' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.endswith("False\n")
