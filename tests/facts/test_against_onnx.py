"""Native facts against the inference of package onnx: never less, never contradicting."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TypeProto

import onnx_suite
import passlib._core as _core
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.reading import read_bytes

Kind = tuple[int, str, list[Any] | None]
"""Element type, containers from the outermost one, and sizes of which strings are names."""

LESS = {
    # ONNX Runtime computes other sizes along the axis than onnx infers.
    **dict.fromkeys(
        ("test_dft", "test_dft_axis", "test_dft_inverse", "test_dft_irfft",
         "test_dft_irfft_opset19", "test_dft_rfft"),
        "the axis is an input of the model",
    ),
    # Rounds of a loop that change the number of elements in a sequence keep the shape of none.
    **dict.fromkeys(
        ("test_if_opt", "test_loop13_seq", "test_loop16_seq_none",
         "test_sequence_map_add_1_sequence_1_tensor_expanded",
         "test_sequence_map_add_2_sequences_expanded",
         "test_sequence_map_extract_shapes_expanded",
         "test_sequence_map_identity_1_sequence_1_tensor_expanded",
         "test_sequence_map_identity_1_sequence_expanded",
         "test_sequence_map_identity_2_sequences_expanded"),
        "shapes of the elements of sequences",
    ),
    "test_loop11": "sizes of values that a loop collects",
    # They depend on the values of the region.
    **dict.fromkeys(
        ("test_resize_tf_crop_and_resize_axes_2_3", "test_resize_tf_crop_and_resize_axes_3_2"),
        "sizes of a cut-out",
    ),
}  # fmt: skip
"""Models of whose values the facts say less than onnx, and why."""


def kind_of(value: TypeProto) -> Kind:
    containers = ""
    while (field := value.WhichOneof("value")) in ("sequence_type", "optional_type", "map_type"):
        containers += str(field)[0]
        held = getattr(value, str(field))
        value = held.value_type if field == "map_type" else held.elem_type
    if field is None:
        return 0, containers, None
    tensor = getattr(value, field)
    if not tensor.HasField("shape"):
        return tensor.elem_type, containers, None
    dims = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
        for dim in tensor.shape.dim
    ]
    return tensor.elem_type, containers, dims


def kinds_of_onnx(data: bytes) -> dict[str, Kind]:
    """Infer the kinds of all values whose shapes the file does not state."""
    model = onnx.ModelProto.FromString(data)
    for graph in graphs_within(model.graph):
        del graph.value_info[:]
    for value in model.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    return {value.name: kind_of(value.type) for value in (*graph.value_info, *graph.output)}


def kinds_of_facts(data: bytes) -> dict[str, Kind]:
    read = read_bytes(data)
    facts = _core.GraphFacts(read.template.file, read.graph, read.template.imports, {})
    outputs = [node.output for node in onnx.ModelProto.FromString(data).graph.node]
    kinds = {}
    for node, found in zip(read.graph.nodes(), facts.listed(), strict=True):
        number = node.attrs.get("__id__", "")
        if node.op != "null" and number.isdigit():
            for name, fact in zip(outputs[int(number)], found, strict=False):
                kinds[name] = fact[:3]
    return kinds


def verdicts(want: Kind, have: Kind) -> set[str]:
    """Return "contradicts", "less", or both."""
    code, containers, dims = want
    if not code:
        return set()
    if not have[0] or len(have[1]) < len(containers):
        return {"less"}
    if have[:2] != (code, containers):
        return {"contradicts"}
    if dims is None:
        return set()
    if have[2] is None:
        return {"less"}
    if len(have[2]) != len(dims):
        return {"contradicts"}
    sizes = [pair for pair in zip(dims, have[2], strict=True) if isinstance(pair[0], int)]
    return {"contradicts" if isinstance(b, int) else "less" for a, b in sizes if a != b}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["node", "file", "light"])
def test_facts_of_the_suite(kind: str) -> None:
    wrong, less, compared = {}, set(), 0
    for case in getattr(onnx_suite, f"{kind}_cases")():
        have = kinds_of_facts(case.data)
        for name, want in kinds_of_onnx(case.data).items():
            if name not in have:
                continue
            compared += 1
            found = verdicts(want, have[name])
            if "contradicts" in found:
                wrong[case.name, name] = want, have[name]
            if found:
                less.add(case.name.rpartition("/")[2])
    assert not wrong
    assert less <= set(LESS)
    assert compared > {"node": 12000, "file": 100, "light": 1000}[kind]
