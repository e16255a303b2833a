"""Random nodes of each operator that has several versions, converted from one to another.

As a program, compares what ONNX Runtime computes before and after::

    python tests/support/opset_changes.py [--count N] [--match OPERATOR] [--seed N] [--every-pair]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import operator_nodes_other
import operator_nodes_plain
import operator_nodes_shaped
import passlib
from operator_draws import MAKERS, Draw
from passlib.errors import GraphError, UnsupportedError
from rewriting import results

_MADE = (operator_nodes_other, operator_nodes_plain, operator_nodes_shaped)
"""The modules that fill `MAKERS`."""


@cache
def versions(op: str) -> tuple[int, ...]:
    """Return the operator sets in which an operator of ONNX's own changed."""
    own = [s for s in defs.get_all_schemas_with_history() if s.domain == "" and s.name == op]
    return tuple(sorted(s.since_version for s in own))


@cache
def steps() -> tuple[tuple[str, int, int], ...]:
    """Return operators with two consecutive versions each."""
    names = sorted({s.name for s in defs.get_all_schemas_with_history() if s.domain == ""})
    return tuple((name, a, b) for name in names for a, b in pairwise(versions(name)))


class Trial(NamedTuple):
    """A model of one node, in one operator set and the feeds, and the set to convert it to."""

    model: onnx.ModelProto
    feeds: dict[str, Any]
    opset: int
    target: int


def trial(op: str, opset: int, target: int, rng: np.random.Generator) -> Trial:
    """Draw a node of an operator as it is in an operator set.

    Its inputs are inputs of the model, or weights, or results of others.
    """
    draw = Draw(op, opset, rng)
    node = MAKERS[op](draw)
    fed, weights, nodes, feeds, names = [], [], [], {}, []
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    for number, array in enumerate(inputs):
        if array is None:
            names.append("")
            continue
        name = f"i{number}"
        names.append(name)
        small = number > 0 and rng.random() < 0.75
        if small or rng.random() < 0.1:
            if rng.random() < 0.3:
                tensor = numpy_helper.from_array(array)
                nodes.append(helper.make_node("Constant", [], [name], value=tensor))
            else:
                weights.append(numpy_helper.from_array(array, name))
            if opset < 9 and weights and weights[-1].name == name:
                fed.append(helper.make_tensor_value_info(name, weights[-1].data_type, array.shape))
            continue
        code = helper.np_dtype_to_tensor_dtype(array.dtype)
        dims = [
            f"{name}_{axis}" if rng.random() < 0.15 else n for axis, n in enumerate(array.shape)
        ]
        fed.append(helper.make_tensor_value_info(name, code, dims))
        feeds[name] = array
    outputs = [f"o{number}" for number in range(node.outputs)]
    nodes.append(helper.make_node(op, names, outputs, name="tested", **node.attributes))
    imports = [helper.make_opsetid("", opset)]
    ends = [helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
    graph = helper.make_graph(nodes, "g", fed, ends, weights)
    version = 3 if opset < 9 else helper.find_min_ir_version_for(imports)
    model = helper.make_model(graph, opset_imports=imports, ir_version=version)
    typed = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    del typed.graph.value_info[:]
    return Trial(typed, feeds, opset, target)


_DRAWN = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                    "RandomUniformLike"))  # fmt: skip


def _with_aligned(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that broadcasts from an axis in the way of newer sets: no engine knows it.

    ONNX's reference leaves beta out of a Gemm that does not broadcast.
    """
    node = next((node for node in model.graph.node if node.name == "tested"), None)
    texts = {each.name: each.i for each in node.attribute} if node else {}
    if node is not None and node.op_type == "Gemm" and model.opset_import[0].version < 7:
        made = onnx.ModelProto()
        made.CopyFrom(model)
        gemm = next(each for each in made.graph.node if each.name == "tested")
        kept = [each for each in gemm.attribute if each.name != "broadcast"]
        del gemm.attribute[:]
        gemm.attribute.extend([*kept, helper.make_attribute("broadcast", 1)])
        return made
    if node is None or not texts.get("broadcast") or "axis" not in texts:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.opset_import[0].version = 7
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in made.graph.input}
    ranks |= {each.name: len(each.dims) for each in made.graph.initializer}
    ranks |= {n.output[0]: len(n.attribute[0].t.dims) for n in made.graph.node if not n.input}
    first, second = node.input
    axes = list(range(ranks[second], ranks[first] - texts["axis"]))
    if not axes:
        return model
    new = helper.make_node(node.op_type, [first, "aligned"], node.output, name="tested")
    kept = [each for each in made.graph.node if each.name != "tested"]
    kept += [helper.make_node("Unsqueeze", [second], ["aligned"], axes=axes), new]
    del made.graph.node[:]
    made.graph.node.extend(kept)
    return made


def outcome(tried: Trial) -> str:
    """Return what became of a conversion: "same", "refused", "not run", or what is wrong."""
    op = next(node.op_type for node in tried.model.graph.node if node.name == "tested")
    try:
        onnx.checker.check_model(tried.model, full_check=True)
    except Exception as error:
        return f"invalid: {str(error)[:100]}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "converted.onnx")
        try:
            passlib.load(tried.model).save(path, opset=tried.target)
        except (UnsupportedError, GraphError) as error:
            return (
                "refused"
                if op in str(error) or "node '" in str(error)
                else f"WRONG, unnamed: {str(error)[:160]}"
            )
        made = onnx.load(path)
    if op == "AveragePool" and tried.target < 7:
        return "not run: ONNX's reference counts padding there"
    if op == "LpNormalization" and any(each.dtype == np.float16 for each in tried.feeds.values()):
        return "not run: ONNX's reference takes no absolute values there"
    before = _run(_with_aligned(tried.model), tried.feeds)
    after = _run(_with_aligned(made), tried.feeds)
    if isinstance(before, str) or isinstance(after, str):
        return f"not run: {before if isinstance(before, str) else after}"
    return _compared(before, after, {node.op_type for node in tried.model.graph.node})


def _run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any] | str:
    """Run a model by ONNX Runtime, or by ONNX's reference where that has no kernel."""
    try:
        return results(model.SerializeToString(), feeds)
    except Exception as error:
        text = str(error)
    try:
        found: list[Any] = ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:
        return f"{text[:150]} / {str(error)[:60]}"
    return found


def _compared(before: list[Any], after: list[Any], operators: set[str]) -> str:
    for old, new in zip(map(_bare, before), map(_bare, after), strict=True):
        if not _DRAWN.isdisjoint(operators):
            if (old.shape, old.dtype) != (new.shape, new.dtype):
                return "WRONG: other shape or type"
        elif not _close(old, new):
            return f"WRONG: {_text(old)} before, {_text(new)} after"
    return "same"


def _bare(value: Any) -> Any:
    """Return an optional value without the list that ONNX's reference puts it into."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _close(old: Any, new: Any) -> bool:
    if isinstance(old, list) or isinstance(new, list):
        return type(old) is type(new) and len(old) == len(new) and all(map(_close, old, new))
    if old is None or new is None:
        return old is new
    a, b = np.asarray(old), np.asarray(new)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    rough = 2e-2 if a.dtype == np.float16 else 1e-4
    return bool(np.allclose(a, b, rough, rough, equal_nan=True))


def _text(value: Any) -> str:
    array = np.asarray(value, object if isinstance(value, list) else None)
    return f"{array.dtype}{list(array.shape)} {array.reshape(-1)[:4].tolist()}"


def _described(tried: Trial) -> str:
    node = next(node for node in tried.model.graph.node if node.name == "tested")
    texts = []
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        texts.append(
            f"{attribute.name}={value if not isinstance(value, onnx.GraphProto) else '...'}"
        )
    inputs = [
        ""
        if not name
        else f"{name}:{list(tried.feeds[name].shape)}"
        if name in tried.feeds
        else f"{name}="
        for name in node.input
    ]
    return f"{node.op_type}({', '.join(inputs)}) {' '.join(texts)}"


_MORE = {"Upsample": (11, 13), "Scatter": (16, 18)}
"""Operator sets in which that changed which an operator becomes."""


def pairs(op: str, *, every: bool = False) -> list[tuple[int, int]]:
    """Return versions of an operator to convert: neighbours and ends, or each with each other."""
    known = [*versions(op), *_MORE.get(op, ())]
    found = [(a, b) for a in known for b in known if a != b]
    if not every:
        near = {*pairwise(known), (known[0], known[-1])}
        found = [(a, b) for a, b in found if (a, b) in near or (b, a) in near]
    return [(a, b) for a, b in found if not defs.get_schema(op, a).deprecated]


def main() -> int:
    """Check random nodes of all operators; return whether anything is wrong."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--count", type=int, default=10)
    arguments.add_argument("--match", default="")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--every-pair", action="store_true")
    arguments.add_argument("--all", action="store_true", help="print the outcome of each pair")
    options = arguments.parse_args()
    onnxruntime.set_default_logger_severity(4)
    missing = {name for name, _, _ in steps()} - MAKERS.keys()
    if missing:
        print(f"no nodes are made of {sorted(missing)}")
    total: Counter[str] = Counter()
    for op in sorted(MAKERS):
        if options.match and options.match != op:
            continue
        for a, b in pairs(op, every=options.every_pair):
            found: dict[str, list[str]] = {}
            for number in range(options.count):
                rng = np.random.default_rng([options.seed, number, a, b, *op.encode()])
                try:
                    tried = trial(op, a, b, rng)
                except (onnx.shape_inference.InferenceError, ValueError, TypeError) as error:
                    found.setdefault(f"invalid: {error}"[:100], []).append("")
                    continue
                found.setdefault(outcome(tried), []).append(f"{number}: {_described(tried)}")
            for text, cases in found.items():
                total[text.split(":")[0].split(",")[0]] += len(cases)
                if text.startswith("WRONG") or options.all:
                    print(
                        f"{op} {a} -> {b}: {len(cases)} of {options.count} {text}\n    {cases[0]}",
                        flush=True,
                    )
    print(dict(total))
    return 1 if total["WRONG"] or missing else 0


if __name__ == "__main__":
    sys.exit(main())
