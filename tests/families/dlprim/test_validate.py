"""Errors and warnings about networks of DLPrimitives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import passlib
from dlprim_files import NEGATIVE, NETWORKS, SHARED, dialect, load, network, operator, write
from passlib.errors import FormatError, GraphError, UnsupportedError

Layer = dict[str, Any]


def report(folder: Path, description: Any) -> list[str]:
    return [str(problem) for problem in dialect.validate(write(folder, description))]


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_no_errors_in_genuine_networks(path: Path) -> None:
    problems = dialect.validate(path)
    assert not [str(problem) for problem in problems if problem.severity == "error"]


def test_the_negative_example() -> None:
    path = SHARED / "repo" / NEGATIVE
    if not path.is_file():
        pytest.skip("the shared test data are absent")
    errors = [str(p) for p in dialect.validate(path) if p.severity == "error"]
    assert len(errors) == 1
    assert errors[0].startswith(
        "error: operators[4].type: unknown operator 'BatchNorm2D' of 'bn2a'"
    )


IP = operator("f", "InnerProduct", outputs=2)
ABS = operator("a", "Abs")
LABEL = {"name": "label", "shape": [2], "dtype": "int"}
MATRIX = {"name": "x", "shape": [2, 3]}


def single(name: str, kind: str, shape: tuple[int, ...] = (2, 3, 4, 4), **options: Any) -> Any:
    return network(operator(name, kind, **options), shape=shape)


def without(layer: Layer, *fields: str) -> Layer:
    return {key: value for key, value in layer.items() if key not in fields}


ERRORS: list[tuple[Any, type[Exception], str]] = [
    ([], FormatError, "the file: is not a JSON object"),
    ({"inputs": [], "operators": []}, FormatError, "outputs: is required, and must be a list"),
    (network(ABS, inputs=[1]), FormatError, "inputs[0]: must be an object"),
    (network(ABS, inputs=[{"name": "data"}]), FormatError, "inputs[0].shape: is required"),
    (network(ABS, inputs=[{"shape": [1.5]}]), FormatError, "inputs[0].shape: is required"),
    (network(ABS, inputs=[{"shape": [2, 0]}]), GraphError, "inputs[0].shape: is [2, 0]"),
    (network(ABS, inputs=[{"shape": []}]), GraphError, "inputs[0].shape: is []"),
    (network(ABS, inputs=[{"shape": [1] * 9}]), GraphError, "inputs[0].shape: is [1, 1"),
    (
        network(ABS, inputs=[{"shape": [2], "dtype": "double"}]),
        FormatError,
        "dtype: is 'double', but must",
    ),
    (network(ABS, inputs=[{"shape": [2]}] * 2), GraphError, "tensor 'data' is already defined"),
    (
        {"inputs": [], "operators": [1], "outputs": []},
        FormatError,
        "operators[0]: must be an object",
    ),
    (network(without(ABS, "name")), FormatError, "operators[0].name: is required"),
    (network(ABS | {"type": 3}), FormatError, "operators[0].type: is required"),
    (network(ABS | {"type": "Gelu"}), UnsupportedError, "unknown operator 'Gelu' of 'a'"),
    (
        network(ABS, ABS | {"outputs": ["b"]}),
        GraphError,
        "operator 'a' is already defined, at oper",
    ),
    (network(operator("a", "Abs", "b"), ABS), GraphError, "tensor 'b' is not defined before"),
    (
        network(ABS, operator("b", "Abs", "data", "a")),
        GraphError,
        "'b' (Abs) does not work on it in place",
    ),
    (
        network(IP | {"outputs": ["data"]}),
        GraphError,
        "cannot write float32 (2, 2) in place of 'data'",
    ),
    (network(ABS | {"outputs": ["x", "y"]}, outputs=[]), GraphError, "has 1 output, but 2 names"),
    (network(ABS | {"inputs": "data"}), GraphError, "'a' (Abs) takes 1 input, has 0"),
    (network(ABS | {"params": ["w"]}), GraphError, "has 0 parameters, but 1 names"),
    (network(IP | {"params": ["a", "b", "c"]}), GraphError, "has 2 parameters, but 3 names"),
    (network(IP | {"params": ["w", "w"]}), GraphError, "but is float32 (2, 48) elsewhere"),
    (network(ABS, outputs=[3]), FormatError, "outputs[0]: must be an object or the name"),
    (network(ABS, outputs=[{"loss_weight": 1}]), FormatError, "outputs[0].name: is required"),
    (network(ABS, outputs=["b"]), GraphError, "outputs[0]: tensor 'b' is not defined"),
    (
        network(ABS, outputs=[{"name": "a", "loss_weight": "1"}]),
        FormatError,
        "outputs[0].loss_weight: must be a number",
    ),
    (
        network(ABS, outputs=[{"name": "a", "loss_weight": 1e39}]),
        FormatError,
        "outputs[0].loss_weight: must be a number",
    ),
    (single("c", "Convolution2D", kernel=1), FormatError, "channels_out: is required"),
    (single("c", "Convolution2D", channels_out="3", kernel=1), FormatError, "an integer"),
    (single("c", "Convolution2D", channels_out=1, kernel=[1]), FormatError, "a list of two"),
    (single("c", "Convolution2D", channels_out=1, kernel=1, pad=None), FormatError, "option 'pad'"),
    (single("c", "Convolution2D", channels_out=4, kernel=1, groups=3), GraphError, "4 channels"),
    (single("c", "Convolution2D", channels_out=1, kernel=6), GraphError, "larger than the padded"),
    (single("p", "Pooling2D", kernel=2, mode="l2"), FormatError, "must be one of max, avg"),
    (single("p", "Pooling2D", kernel=2, mode=1), FormatError, "'mode' is 1, but must be a string"),
    (single("p", "Pooling2D", kernel=9), GraphError, "larger than the padded input"),
    (single("a", "Activation", activation="gelu"), FormatError, "must be one of identity"),
    (single("r", "Reduction", dims=[1], start_axis=1), FormatError, "exclude each other"),
    (single("r", "Reduction", dims=[]), FormatError, "a list of at least one axis"),
    (single("r", "Reduction", dims=[4]), GraphError, "has no axis 4 in 4 dimensions"),
    (single("r", "Reshape"), GraphError, "needs dims"),
    (single("r", "Reshape", dims=[5, -1]), GraphError, "of 96 elements, to (5, -1)"),
    (single("r", "Reshape", dims=[1, 1, 1, 1, 0]), GraphError, "dim 0 at 4"),
    (single("s", "Squeeze", dims=[0]), GraphError, "which is not 1"),
    (single("s", "Squeeze", dims=[0], all=True), GraphError, "both all and dims"),
    (single("s", "Slice", begin=3), GraphError, "cannot take 3 to -1 of 3 elements"),
    (single("s", "Slice", dim=-1), GraphError, "has no dim -1"),
    (single("c", "Concat", dim=4), GraphError, "has no dim 4"),
    (single("s", "Softmax"), GraphError, "needs an input of 2 or 3 dimensions"),
    (single("b", "BatchNorm", features=4), GraphError, "has features 4, but receives 3"),
    (single("f", "InnerProduct", outputs=2, inputs=3), GraphError, "receives 48 features"),
    (single("i", "Interpolation", method="nearest"), GraphError, "either out_h and out_w or"),
    (single("i", "Interpolation", out_h=2, out_w=2), FormatError, "method: is required"),
    (
        single("i", "Interpolation", method="nearest", out_h=2, out_w=2, align_corners=True),
        GraphError,
        "which only bilinear supports",
    ),
    (network(operator("p", "Parameter", shape=[2])), GraphError, "takes 0 inputs, has 1"),
    (
        network(
            operator("l", "NLLLoss", ["x", "label"]), inputs=[MATRIX, LABEL | {"shape": [2, 1]}]
        ),
        GraphError,
        "needs labels of shape (2)",
    ),
    (
        network(operator("e", "Elementwise", ["x", "data"]), inputs=[MATRIX, {"shape": [4, 3]}]),
        GraphError,
        "cannot broadcast float32 (2, 3) and float32 (4, 3)",
    ),
]


@pytest.mark.parametrize(("description", "error", "message"), ERRORS, ids=lambda value: None)
def test_errors(tmp_path: Path, description: Any, error: type[Exception], message: str) -> None:
    lines = report(tmp_path, description)
    assert [line for line in lines if line.startswith("error: ") and message in line], lines
    with pytest.raises(error, match=r"net\.json: ") as caught:
        passlib.load(tmp_path / "net.json", "dlprim")
    assert message in str(caught.value)


RELU_IN_PLACE = operator("r", "Activation", "a", "a", activation="relu")

WARNINGS: list[tuple[Any, str]] = [
    (network(ABS) | {"note": 1}, "note: unknown field"),
    (network(ABS | {"note": 1}), "operators[0].note: unknown field"),
    (network(ABS, inputs=[{"shape": [2], "size": 1}]), "inputs[0].size: unknown field"),
    (network(ABS, inputs=[{"shape": [2], "name": None}]), "inputs[0].name: must be a string"),
    (network(ABS, outputs=[{"name": "a", "x": 1}]), "outputs[0].x: unknown field"),
    (single("a", "Activation", activatoin="relu"), "options.activatoin: Activation has no such"),
    (single("f", "InnerProduct", outputs=2, bias=0), "options.bias: has the wrong type"),
    (
        single("t", "Threshold", threshold=-1e39),
        "options.threshold: has the wrong type: ignored, the default is 0.0",
    ),
    (network(ABS | {"options": 3}), "operators[0].options: is not an object"),
    (network(IP | {"params": [None, "b"]}), "operators[0].params: must be a list of strings"),
    (network(IP | {"frozen": "yes"}), "operators[0].frozen: must be true or false"),
    (network(ABS | {"frozen": True}), "operators[0].frozen: 'a' (Abs) has no parameters"),
    (network(ABS, operator("b", "Abs"), outputs=["a"]), "tensor 'b' is never read"),
    (network(ABS, inputs=[{"shape": [2]}, MATRIX]), "input 'x' is never read"),
    (
        network(ABS, RELU_IN_PLACE, outputs=["data"]),
        "the result that 'r' writes to 'a' is never read",
    ),
    (
        network(ABS, operator("b", "Abs", "a"), RELU_IN_PLACE, outputs=["b"]),
        "operators[2].outputs[0]: the result that 'r' writes to 'a' is never read",
    ),
    (
        network(
            operator("n", "BatchNorm", params=["m", "v", "g", "h"]),
            operator("c", "Convolution2D", "n", channels_out=3, kernel=1, params=["auto", "g"]),
        ),
        "parameter 'g' is shared with 'n', a BatchNorm",
    ),
    (network(operator("loss", "Abs")), "outputs[0]: 'loss' is a loss by its name"),
    (
        network(operator("loss", "Abs"), outputs=["data", "data", "loss"]),
        "outputs[2]: 'loss' is a loss by its name",
    ),
    (
        network(
            operator("s", "Softmax", "x"),
            operator("loss", "SoftmaxWithLoss", ["s", "label"]),
            inputs=[MATRIX, LABEL],
        ),
        "expects scores, but receives a Softmax",
    ),
    (
        network(
            operator("s", "Softmax", "x"),
            operator("loss", "NLLLoss", ["s", "label"]),
            inputs=[MATRIX, LABEL],
        ),
        "expects logarithms, but receives a Softmax",
    ),
    (
        network(
            operator("s", "Softmax", "x"),
            operator("r", "Reshape", "s", dims=[2, 3]),
            operator("loss", "NLLLoss", ["r", "label"]),
            inputs=[MATRIX, LABEL],
        ),
        "operators[2].inputs[0]: 'loss' (NLLLoss) expects logarithms, but receives a Softmax",
    ),
    (
        network(
            operator("loss", "NLLLoss", ["x", "label"]),
            inputs=[MATRIX, LABEL | {"dtype": "int64"}],
        ),
        "'loss' (NLLLoss) expects a label of float or int32, but receives int64",
    ),
    (
        network(operator("a", "Abs", "label"), inputs=[LABEL]),
        "computes on float, but receives int32",
    ),
    (single("n", "BatchNorm", shape=(1, 3)), "one value for each feature"),
    (
        network(
            operator("f", "InnerProduct", "x", outputs=3),
            operator("t", "Threshold", "f"),
            operator("loss", "MSELoss", ["t", "x"]),
            inputs=[MATRIX],
        ),
        "'t' (Threshold) blocks the gradient",
    ),
    (
        network(operator("p", "Parameter", [], shape=[2], is_trainable=False), inputs=[]),
        "'p' (Parameter) fails in the original program",
    ),
    (
        network(operator("c", "Convolution2D", "data", "data", channels_out=3, kernel=1)),
        "overwrites its input while reading it",
    ),
    (
        network(operator("r", "Reshape", "data", "data", dims=[0, -1, 4, 4])),
        "has no effect in place",
    ),
]


@pytest.mark.parametrize(("description", "message"), WARNINGS, ids=lambda value: None)
def test_warnings(tmp_path: Path, description: Any, message: str) -> None:
    lines = report(tmp_path, description)
    assert len(lines) == 1, lines
    assert lines[0].startswith("warning: ")
    assert message in lines[0]
    with pytest.warns(UserWarning, match="net.json") as caught:
        passlib.load(tmp_path / "net.json", "dlprim", strict=True)
    assert message in str(caught[0].message)


def with_threshold(*layers: Layer) -> Any:
    """Put a Threshold between the last operator and a loss."""
    tail = [operator("t", "Threshold", layers[-1]["name"]), operator("loss", "MSELoss", ["t", "x"])]
    return network(*layers, *tail, inputs=[MATRIX])


NOTHING_TO_SAY = [
    network(
        operator("s", "Softmax", "x", log=True),
        operator("loss", "NLLLoss", ["s", "label"], reduce="sum"),
        inputs=[MATRIX, LABEL],
    ),
    with_threshold(operator("n", "BatchNorm", "x", affine=False)),
    with_threshold(operator("n", "BatchNorm", "x", frozen=True)),
    # The result written in place is read under another name of the memory.
    network(
        ABS,
        operator("f", "Flatten", "a"),
        RELU_IN_PLACE,
        operator("b", "Abs", "f"),
    ),
    network(ABS, operator("f", "Flatten", "a"), RELU_IN_PLACE, outputs=["f"]),
]


@pytest.mark.parametrize("description", NOTHING_TO_SAY, ids=lambda value: None)
def test_nothing_to_say(tmp_path: Path, description: Any) -> None:
    assert report(tmp_path, description) == []


def test_parameters_that_are_not_trained(tmp_path: Path) -> None:
    layer = operator("p", "Parameter", [], shape=[2, 3], is_trainable=False)
    (line,) = report(tmp_path, with_threshold(layer))
    assert "is_trainable" in line


def test_operators_out_of_order(tmp_path: Path) -> None:
    """Only the operator that reads too early is wrong, not the one that writes later."""
    (line,) = report(tmp_path, network(operator("b", "Abs", "a"), ABS, outputs=["a", "b"]))
    assert line == "error: operators[0].inputs[0]: tensor 'a' is not defined before this operator"


def test_warnings_come_in_order(tmp_path: Path) -> None:
    layers = [ABS | {"frozen": True}, operator("loss", "Abs", "a") | {"note": 1}]
    lines = report(tmp_path, network(*layers, inputs=[{"shape": [2], "x": 1}, MATRIX]) | {"y": 1})
    assert [line.split(": ")[1] for line in lines] == [
        "y",
        "inputs[0].x",
        "inputs[1]",
        "operators[0].frozen",
        "operators[1].note",
        "outputs[0]",
    ]


def test_a_file_is_named_once(tmp_path: Path) -> None:
    (problem,) = dialect.validate(write(tmp_path, "{/* no */}"))
    assert problem.place == str(tmp_path / "net.json")
    assert "net.json" not in problem.message
    assert "line 1, column 2" in problem.message


def test_every_error_is_reported(tmp_path: Path) -> None:
    layers = [
        ABS | {"type": "Gelu"},
        operator("b", "Abs", "a"),
        operator("c", "Abs", "nowhere"),
        operator("d", "Pooling2D", "c"),
    ]
    lines = report(tmp_path, network(*layers, outputs=["b", "none"]))
    assert [line.split(":")[1].strip() for line in lines] == [
        "operators[0].type",
        "operators[2].inputs[0]",
        "operators[3].options.kernel",
        "outputs[1]",
    ]
    with pytest.raises(UnsupportedError, match=r"\(and 3 more: see passlib.model.validate\)"):
        load(tmp_path, network(*layers, outputs=["b", "none"]))


def test_weights_are_validated(tmp_path: Path) -> None:
    path = write(tmp_path, network(IP))
    header = json.dumps({"tensors": {}}).encode()
    (tmp_path / "net.dlp").write_bytes(b"DLPW" + len(header).to_bytes(4, "big") + header)
    (problem,) = dialect.validate(path)
    assert problem.severity == "error"
    assert problem.place.endswith("net.dlp")
    assert problem.message.startswith("2 of the network's 2 parameters are missing (f.0, f.1)")
