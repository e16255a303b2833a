"""Operators of NNVM without a faithful translation, and outdated ones of MXNet, are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib
from nnvm_cases import CONV, Array, Attrs, B, G, I, P, Q, W, X, Y, b5, real, run, w5
from nnvm_files import text_of
from passlib.errors import GraphError, UnsupportedError

pytest.importorskip("onnxruntime")

REFUSED: list[tuple[str, Attrs, list[Array], str]] = [
    ("tvm_op", {"func_name": "f"}, [P], "func_name"),
    ("tvm_op", {"func_name": "__nop"}, [P], "__nop"),
    ("conv2d", {"channels": "6"}, [X, W, B], "kernel_size"),
    ("conv2d", {**CONV, "layout": "NCHW4c"}, [X, W, B], "layout"),
    ("conv2d", {**CONV, "padding": "(1, 2, 3)"}, [X, W, B], "padding"),
    ("conv2d", {**CONV, "out_dtype": "int32"}, [X, W, B], "out_dtype"),
    ("dense", {}, [P, w5, b5], "units"),
    ("matmul", {"transpose_a": "1"}, [X, w5], "transpose_a"),
    ("strided_slice", {"begin": "(0,)", "end": "(1,)", "stride": "(0,)"}, [P], "stride"),
    ("strided_slice", {"begin": "(0, 0)", "end": "(1, 1, 1)"}, [P], "2 axes"),
    ("conv2d", {**CONV, "groups": "0"}, [X, W, B], "groups"),
    ("conv2d", {**CONV, "groups": "4"}, [X, W, B], "groups"),
    ("conv2d", {**CONV, "dilation": "9"}, [X, W, B], "window"),
    ("conv2d_transpose", {**CONV, "padding": "9"}, [X, real(4, 6, 3, 2), B], "padding"),
    ("lrn", {"size": "-1"}, [X], "size"),
    ("lrn", {"size": "3", "alpha": "0"}, [X], "alpha"),
    ("__rshift_scalar__", {"scalar": "-1"}, [I], "32 bits"),
    ("expand_like", {"axis": "0"}, [real(2, 5), Y], "axis"),
    ("upsampling", {"scale": "9999999"}, [X], "scale"),
    ("avg_pool2d", {"pool_size": "(9, 1)"}, [X], "window"),
    ("max_pool2d", {"pool_size": "(2, 2)", "strides": "0"}, [X], "at least 1"),
    ("split", {"indices_or_sections": "3"}, [P], "indices_or_sections"),
    ("pad", {"pad_width": "((1, 2),)"}, [P], "pad_width"),
    ("lrn", {"size": "4"}, [X], "size"),
    ("resize", {"size": "2", "method": "NEAREST_NEIGHBOR"}, [X], "align_corners"),
    ("resize", {"size": "2", "method": "BICUBIC"}, [X], "method"),
    ("expand_dims", {"axis": "0", "num_newaxis": "0"}, [P], "num_newaxis"),
    ("__layout_transform__", {"src_layout": "NCHW", "dst_layout": "NCHW4c"}, [X], "dst_layout"),
    ("broadcast_left_shift", {}, [P, Q], "only integers"),
    ("multibox_prior", {}, [X], "multibox_prior"),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "word"), REFUSED)
def test_refusal_names_node_operator_and_attribute(
    op: str, attrs: Attrs, inputs: list[Array], word: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match=word) as caught:
        run(op, attrs, inputs, tmp_path)
    assert "'op'" in str(caught.value)
    assert f"({op})" in str(caught.value)


@pytest.mark.parametrize(
    ("op", "attrs", "version", "word"),
    [
        ("BatchNorm", {"eps": "0.1"}, None, "states"),
        ("BatchNorm", {"eps": "0.1"}, 800, "states"),
        ("argmax", {"axis": "-1"}, 904, "'-1'.*all axes"),
        ("argmax", {"axis": "-1"}, 905, None),
        ("argmax", {"axis": "1"}, 904, None),
    ],
)
def test_what_mxnet_would_bring_up_to_date_is_refused(
    op: str, attrs: Attrs, version: int | None, word: str | None, tmp_path: Path
) -> None:
    inputs = 3 if op == "BatchNorm" else 1
    graph = {
        "nodes": [
            *({"op": "null", "name": f"x{i}", "inputs": []} for i in range(inputs)),
            {"op": op, "name": "old", "param": attrs, "inputs": [[i, 0] for i in range(inputs)]},
        ],
        "arg_nodes": list(range(inputs)),
        "heads": [[inputs, 0]],
        **({} if version is None else {"attrs": {"mxnet_version": ["int", version]}}),
    }
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(graph))
    model = passlib.model.load(path, dialect="nnvm")
    if word is None:
        np.testing.assert_array_equal(model(P), P.argmax(1))
        return
    with pytest.raises(UnsupportedError, match=rf"'old' \({op}\).*{word}.*dialect='mxnet'"):
        model(P, *[real(4)] * (inputs - 1))


MISFITS: list[tuple[str, Attrs, list[Array], str]] = [
    ("dense", {"units": "5"}, [P, real(5, 3), b5], r"\(5, 3\).*\(5, 4\)"),
    ("conv2d", {**CONV, "kernel_size": "(2, 2)"}, [X, W, B], r"\(6, 4, 3, 2\).*\(6, 4, 2, 2\)"),
    ("conv2d", {**CONV, "groups": "2"}, [X, W, B], "6, 2, 3, 2"),
    ("conv2d", {**CONV, "channels": "3"}, [X, W, real(3)], "3, 4, 3, 2"),
    ("conv2d", CONV, [X, W, real(5)], r"\(5,\)"),
    ("conv2d_transpose", CONV, [X, real(6, 4, 3, 2), B], "4, 6, 3, 2"),
    ("dense", {"units": "4"}, [P, w5, b5], r"\(5, 4\)"),
    ("dense", {"units": "5"}, [P, w5, real(1)], r"\(1,\)"),
    ("prelu", {"axis": "2"}, [X, G], r"\(4,\).*\(7\)"),
    ("lrn", {"size": "3"}, [P], "any, any, any, any"),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "word"), MISFITS)
def test_inputs_that_do_not_fit(
    op: str, attrs: Attrs, inputs: list[Array], word: str, tmp_path: Path
) -> None:
    with pytest.raises(GraphError, match=rf"'op' \({op}\).*{word}"):
        run(op, attrs, inputs, tmp_path)
