"""Writes tables of runtimes from their lists of operators, which are Markdown files.

Run as ``written_tables.py onnxruntime-cuda OperatorKernels.md VERSION`` or ``written_tables.py
tensorrt operators.md VERSION``, with the file docs/OperatorKernels.md of ONNX Runtime's or
docs/operators.md of onnx-tensorrt's repository, and a text that says which version it is of.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
from pathlib import Path
from typing import Any

import onnx

from kernel_table import TABLE, parameters, plain, text_of

_SOURCES = {
    "onnxruntime-cuda": "docs/OperatorKernels.md of github.com/microsoft/onnxruntime",
    "tensorrt": "docs/operators.md of github.com/onnx/onnx-tensorrt",
}
_TYPES = {
    "FP32": "float", "FP16": "float16", "BF16": "bfloat16", "FP8": "float8e4m3fn",
    "FP4": "float4e2m1", "INT64": "int64", "INT32": "int32", "INT8": "int8", "INT4": "int4",
    "UINT8": "uint8", "BOOL": "bool",
}  # fmt: skip
_VARIABLES = {  # that a list of types is of, where it is not that of an input and an output
    "Cast": ["T1", "T2"], "CastLike": ["T1", "T2"], "ConstantOfShape": ["T2"],
    "DequantizeLinear": ["T", "T1"], "If": ["V"], "Loop": ["V"], "QuantizeLinear": ["T1"],
    "RandomNormalLike": ["T2"], "RandomUniformLike": ["T2"], "Scan": ["V"],
}  # fmt: skip
_ONES = {"attributes": {"dilations": [1]}}
_POOLING = {**_ONES, "ranks": {"X": [4, 5]}}
_SEED = {"notes": ["the seed is ignored"]}
_AXES = {"constants": ["axes"]}
_BIDIRECTIONAL = ["a bidirectional one has the same activations in both directions"]
_ZERO = ["the zero point is 0"]
# In the form of a table. A note with a name is of versions that have such an input or attribute.
_RESTRICTIONS: dict[str, dict[str, Any]] = {
    "Attention": {
        "ranks": {name: [4] for name in ("Q", "K", "V", "attn_mask")},
        "without": ["past_key", "past_value", "nonpad_kv_seqlen", "present_key", "present_value",
                    "qk_matmul_output"],
        "attributes": {"qk_matmul_output_mode": [0], "softcap": [0.0]},
    },
    "AveragePool": _POOLING,
    "Constant": {"attributes": {"sparse_value": [], "value_string": [], "value_strings": []}},
    "CumSum": {"constants": ["axis"]},
    "DeformConv": {
        "ranks": {"X": [3, 4]},
        "notes": ["the pads at the beginning and end of an axis are equal"],
    },
    "DequantizeLinear": {"notes": _ZERO},
    "Dropout": {
        "constants": ["training_mode"],
        "notes": [("training_mode", "training_mode is false")],
    },
    "EyeLike": {"notes": ["the shape of the input is fixed"]},
    "GRU": {"notes": _BIDIRECTIONAL},
    "GridSample": {"ranks": {"X": [4]}},
    "Hardmax": {"notes": ["the size of the axis is fixed"]},
    "If": {"notes": ["outputs of both branches have the same rank and different names"]},
    "LSTM": {"attributes": {"input_forget": [0], "layout": [0]}, "notes": _BIDIRECTIONAL},
    "LayerNormalization": {"without": ["Mean", "InvStdDev"]},
    "Loop": {
        "notes": ["the length of a scan output is fixed, and shapes are equal in all iterations"]
    },
    "LpPool": _ONES,
    "MaxPool": {**_POOLING, "without": ["Indices"]},
    "OneHot": {"constants": ["depth"]},
    "QuantizeLinear": {"notes": _ZERO},
    "RNN": {"notes": _BIDIRECTIONAL},
    "RandomNormal": _SEED, "RandomNormalLike": _SEED,
    "RandomUniform": _SEED, "RandomUniformLike": _SEED,
    "ReduceL1": _AXES, "ReduceL2": _AXES, "ReduceLogSum": _AXES, "ReduceLogSumExp": _AXES,
    "ReduceMax": _AXES, "ReduceMean": _AXES, "ReduceMin": _AXES, "ReduceProd": _AXES,
    "ReduceSum": _AXES, "ReduceSumSquare": _AXES,
    "Resize": {
        "attributes": {
            "coordinate_transformation_mode": [
                "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn", "asymmetric",
                "align_corners",
            ],
            "mode": ["nearest", "linear"],
            "nearest_mode": ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"],
            "keep_aspect_ratio_policy": ["stretch"],
            "antialias": [0],
        },
        "notes": [("axes", "axes next to scales name all axes in order")],
    },
    "RotaryEmbedding": {"types": {"M": ["int64"]}},
    "STFT": {"constants": ["frame_step", "window"], "notes": ["the signal is of real numbers"]},
    "ScatterND": {"attributes": {"reduction": ["none"]}},
    "Squeeze": _AXES,
    "TensorScatter": {
        "ranks": {"past_cache": [4], "update": [4]}, "attributes": {"axis": [-2]},
    },
    "TopK": {"attributes": {"sorted": [1]}, "notes": ["K is below 3840"]},
    "Unsqueeze": _AXES,
}  # fmt: skip


def cuda(source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of ONNX Runtime's CUDA provider, and its operators."""
    _, found, section = source.partition("## Operators implemented by CUDAExecutionProvider")
    assert found, "no section of the CUDA provider"
    own = parameters()
    operators: dict[str, Any] = {}
    domain = name = ""
    for line in section.split("\n## ")[0].splitlines():
        if header := re.match(r"\|\*\*Operator Domain:\*\* \*(.+)\*", line):
            domain = header[1]
        cells = line.split("|")
        versions = re.fullmatch(r"\[?(\d+)(\+|, (\d+)\])?", cells[3]) if len(cells) == 6 else None
        if versions is None or "internal" in domain:
            continue
        name = cells[1] or name
        key = name if domain == "ai.onnx" else f"{domain}::{name}"
        since, is_open, until = versions.groups()
        end = {"until": int(until or since)} if is_open != "+" else {}
        pairs = re.findall(r"\*\*(\w+)\*\* = (.+?)(?=<br/>|$)", cells[4])
        types = {each: sorted(map(plain, kinds.split(", "))) for each, kinds in pairs}
        entry = operators.setdefault(key, {**own.get(key, {}), "kernels": []})
        entry["kernels"].insert(0, {"since": int(since), **end, "types": types})
    computed = json.loads(TABLE.read_text())["operators"]
    bodies = {
        each.name
        for each in onnx.defs.get_all_schemas()
        if each.has_function or each.has_context_dependent_function
    }
    # The CPU computes these itself, and not by their bodies.
    return {"functions": sorted(bodies - computed.keys()), "free": ["Constant"]}, operators


def variables(own: onnx.defs.OpSchema) -> list[str]:
    """Return the type variables that the types of an operator are of."""
    if own.name in _VARIABLES:
        return [each for each in _VARIABLES[own.name] if each in _constrained(own)]
    inputs = [each.type_str for each in own.inputs]
    outputs = [each.type_str for each in own.outputs]
    both = [each for each in outputs if each in inputs]
    return [each for each in (both or inputs or outputs)[:1] if each in _constrained(own)]


def _constrained(own: onnx.defs.OpSchema) -> set[str]:
    return {each.type_param_str for each in own.type_constraints}


def tensorrt(source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of TensorRT, and its operators."""
    sets = re.search(r"range of opset (\d+) to opset (\d+)", source)
    assert sets is not None, "no range of operator sets"
    lowest, highest = map(int, sets.groups())
    operators = {}
    restricted = set()
    for line in source.splitlines():
        cells = [each.strip() for each in line.strip().strip("|").split("|")]
        if len(cells) < 3 or not cells[1].startswith("Y"):
            continue
        name = cells[0]
        types = [_TYPES[each.strip()] for each in cells[2].split(",") if each.strip()]
        if cells[3:] and cells[3]:
            restricted.add(name)
        operators[name] = {"kernels": _kernels(name, sorted(types), lowest, highest)}
    wrong = restricted ^ _RESTRICTIONS.keys()
    assert not wrong, f"restrictions have changed: {wrong}"
    return {"functions": False, "casts": {"double": "float"}}, operators


def _kernels(name: str, types: list[str], lowest: int, highest: int) -> list[dict[str, Any]]:
    rest = _RESTRICTIONS.get(name, {})
    found: list[dict[str, Any]] = []
    for version in range(lowest, highest + 1):
        if not onnx.defs.has(name, version):
            continue
        own = onnx.defs.get_schema(name, version)
        roles = {each.name for each in (*own.inputs, *own.outputs)}
        known = {"ranks": roles, "attributes": set(own.attributes)}
        facts: dict[str, Any] = {"types": dict.fromkeys(variables(own), types)}
        for key, value in rest.items():
            if isinstance(value, dict) and key != "types":
                facts[key] = {name: each for name, each in value.items() if name in known[key]}
            elif key in ("constants", "without"):
                facts[key] = [each for each in value if each in roles]
            elif key == "notes":
                pairs = [each if isinstance(each, tuple) else ("", each) for each in value]
                facts[key] = [
                    text for needed, text in pairs if needed in {"", *roles, *own.attributes}
                ]
            else:
                facts[key] = {**facts["types"], **value} if key == "types" else value
        facts = {key: value for key, value in facts.items() if value}
        since = own.since_version
        last = found[-1] if found else {}
        if {**facts, "since": last.get("since"), "until": last.get("until")} == last:
            last["until"] = since
        elif not last or last["until"] != since:
            found.append({"since": since, "until": since, **facts})
    return found or [{"types": {}}]


def main(target: str, path: str, version: str) -> None:
    """Write the table."""
    facts, operators = {"onnxruntime-cuda": cuda, "tensorrt": tensorrt}[target](
        Path(path).read_text(encoding="utf-8")
    )
    table = {
        "name": target,
        "version": version,
        "source": _SOURCES[target],
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        **facts,
    }
    TABLE.with_name(f"{target}.json").write_text(text_of(table, operators))


if __name__ == "__main__":
    main(*sys.argv[1:])
