"""Twelve kinds of faults in the output of other tools, for ``bisect`` between two files.

Run as ``tool_faults.py FOLDER [--seeds N]``: every model of the folder, tool and kind of fault. It
prints a line for each answer that is wrong, and counts.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import passlib as pl
from passlib.dialects.onnx.nested import graphs_within
from passlib.workbench import Differs, NothingFailsError, Tolerance, bisect


def by_onnxsim(model: Any) -> Any:
    """Simplify with onnxsim."""
    import onnxsim

    return onnxsim.simplify(model)[0]


def by_onnxslim(model: Any) -> Any:
    """Simplify with onnxslim."""
    import onnxslim

    return onnxslim.slim(model)


def by_onnxoptimizer(model: Any) -> Any:
    """Simplify with onnxoptimizer."""
    import onnxoptimizer

    return onnxoptimizer.optimize(model)


def by_onnxscript(model: Any) -> Any:
    """Simplify with onnxscript's optimizer."""
    from onnxscript import optimizer

    return optimizer.optimize(model)


def by_float16(model: Any) -> Any:
    """Convert to half precision with onnxconverter-common."""
    from onnxconverter_common import float16

    return float16.convert_float_to_float16(model, keep_io_types=True)


def by_version_converter(model: Any) -> Any:
    """Convert to a newer operator set."""
    return onnx.version_converter.convert_version(model, 21)


def _by_runtime(model: Any, level: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = f"{folder}/made.onnx"
        content = model.SerializeToString()
        onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def by_runtime_basic(model: Any) -> Any:
    """Optimize with the basic level of ONNX Runtime."""
    return _by_runtime(model, "ORT_ENABLE_BASIC")


def by_runtime_extended(model: Any) -> Any:
    """Optimize with the extended level of ONNX Runtime, which uses operators of its own."""
    return _by_runtime(model, "ORT_ENABLE_EXTENDED")


def by_transformers_optimizer(model: Any) -> Any:
    """Fuse with ONNX Runtime's optimizer of transformers, which uses operators of its own."""
    import sympy  # noqa: F401 (the optimizer leaves files behind where it is missing)
    from onnxruntime.transformers import optimizer

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        onnx.save(model, path)
        return optimizer.optimize_model(path, opt_level=0).model


def by_quantization(model: Any) -> Any:
    """Quantize weights to 8 bits with ONNX Runtime's dynamic quantization."""
    from onnxruntime.quantization import quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        quantize_dynamic(f"{folder}/model.onnx", f"{folder}/made.onnx")
        return onnx.load(f"{folder}/made.onnx")


TOOLS: dict[str, Callable[[Any], Any]] = {
    "onnxsim": by_onnxsim,
    "onnxslim": by_onnxslim,
    "onnxoptimizer": by_onnxoptimizer,
    "onnxscript": by_onnxscript,
    "float16": by_float16,
    "version converter": by_version_converter,
    "ORT basic": by_runtime_basic,
    "ORT extended": by_runtime_extended,
    "transformers optimizer": by_transformers_optimizer,
    "quantization": by_quantization,
}

LOOSE = {"float16": Tolerance(0.05, 0.05), "quantization": Tolerance(0.2, 0.2)}
"""Tools whose right output differs by more than rounding of the type of the outputs."""


class Change:
    """Changes a graph of a model in place, and names the values that become wrong."""

    def __init__(self, model: Any, graph: Any) -> None:
        self.graph = graph
        self.constants = {
            tensor.name: tensor for each in (model.graph, graph) for tensor in each.initializer
        }
        self.made: list[Any] = []

    def array(self, name: str) -> Any:
        """Return the elements of a constant; None for another value."""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def new_constant(self, array: Any) -> str:
        """Add a constant."""
        name = f"planted_{self.graph.name}_{len(self.graph.initializer)}"
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def attribute(self, node: Any, name: str) -> Any:
        """Return an attribute; None if the node does not have it."""
        return next((each for each in node.attribute if each.name == name), None)


def _weight_changed(change: Change, node: Any, made: Callable[[Any], Any]) -> bool:
    if node.op_type not in ("Conv", "MatMul", "Gemm", "MatMulInteger", "ConvTranspose"):
        return False
    array = change.array(node.input[1]) if len(node.input) > 1 else None
    if array is None or array.size < 4:
        return False
    changed = made(array)
    if changed is None or np.array_equal(changed, array):
        return False
    node.input[1] = change.new_constant(np.ascontiguousarray(changed.astype(array.dtype)))
    return True


def zero_weight(change: Change, node: Any) -> bool:
    """Set a weight to zero."""
    return _weight_changed(change, node, np.zeros_like)


def turned_weight(change: Change, node: Any) -> bool:
    """Transpose a square weight."""
    return _weight_changed(
        change,
        node,
        lambda a: a.swapaxes(0, 1) if a.ndim >= 2 and a.shape[0] == a.shape[1] else None,
    )


def wrong_axis(change: Change, node: Any) -> bool:
    """Change the axis of Softmax."""
    if node.op_type not in ("Softmax", "LogSoftmax"):
        return False
    axis = change.attribute(node, "axis")
    if axis is None:
        node.attribute.append(helper.make_attribute("axis", 0))
    else:
        axis.i = -2 if axis.i in (-1, 2, 3) else 0
    return True


def swapped_inputs(change: Change, node: Any) -> bool:
    """Swap the inputs of a difference or quotient."""
    if node.op_type not in ("Sub", "Div", "Pow"):
        return False
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return True


def dropped_node(change: Change, node: Any) -> bool:
    """Drop an activation."""
    if node.op_type not in ("Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Erf", "Sqrt"):
        return False
    node.op_type = "Identity"
    del node.attribute[:]
    return True


def wrong_operator(change: Change, node: Any) -> bool:
    """Replace an operator by another one of the same inputs."""
    others = {
        "Relu": "Abs", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Add": "Sub", "Mul": "Add",
        "MaxPool": "AveragePool", "ReduceMean": "ReduceMax", "GlobalAveragePool": "GlobalMaxPool",
    }  # fmt: skip
    if node.op_type not in others or node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "MaxPool" and (
        len(node.output) > 1 or change.attribute(node, "dilations") is not None
    ):
        return False
    node.op_type = others[node.op_type]
    kept = [each for each in node.attribute if each.name != "storage_order"]
    del node.attribute[:]
    node.attribute.extend(kept)
    return True


def lost_bias(change: Change, node: Any) -> bool:
    """Drop the bias of a layer."""
    if node.op_type not in ("Conv", "Gemm") or len(node.input) < 3:
        return False
    array = change.array(node.input[2])
    if array is None or not np.any(array):
        return False
    del node.input[2:]
    return True


def wrong_constant(change: Change, node: Any) -> bool:
    """Change the constant of a sum or product by five eighths."""
    if node.op_type not in ("Add", "Mul", "Sub", "Div"):
        return False
    for slot, name in enumerate(node.input):
        array = change.array(name)
        if array is not None and array.dtype.kind == "f" and array.size:
            node.input[slot] = change.new_constant(array + array.dtype.type(0.625))
            return True
    return False


def wrong_edge(change: Change, node: Any) -> bool:
    """Let a sum or product read one of its inputs twice."""
    if node.op_type not in ("Add", "Mul", "Sub") or set(node.input) & change.constants.keys():
        return False
    node.input[1] = node.input[0]
    return True


def narrow_cast(change: Change, node: Any) -> bool:
    """Round a value to 8-bit integers on the way."""
    if node.op_type not in ("Relu", "Add", "Mul", "Conv", "MatMul", "Sigmoid"):
        return False
    old = node.output[0]
    node.output[0] = f"planted_{old}"
    change.made = [
        helper.make_node("Cast", [node.output[0]], [f"planted_low_{old}"], to=TensorProto.INT8),
        helper.make_node("CastLike", [f"planted_low_{old}", node.output[0]], [old]),
    ]
    return True


def wrong_window(change: Change, node: Any) -> bool:
    """Shift the padding of a layer from its end to its begin."""
    pads = change.attribute(node, "pads")
    if node.op_type not in ("Conv", "MaxPool", "AveragePool") or pads is None or not any(pads.ints):
        return False
    half = len(pads.ints) // 2
    made = [pads.ints[i] + pads.ints[i + half] for i in range(half)] + [0] * half
    if list(pads.ints) == made:
        return False
    del pads.ints[:]
    pads.ints.extend(made)
    return True


def wrong_perm(change: Change, node: Any) -> bool:
    """Reverse the elements of an axis behind a node."""
    if node.op_type not in ("Concat", "Transpose", "Reshape", "MatMul", "Add"):
        return False
    old = node.output[0]
    node.output[0] = f"planted_{old}"
    numbers = [change.new_constant(np.array([n], np.int64)) for n in (-1, -(2**62), -1, -1)]
    change.made = [helper.make_node("Slice", [node.output[0], *numbers], [old])]
    return True


FAULTS: dict[str, Callable[[Change, Any], bool]] = {
    each.__name__: each
    for each in (
        zero_weight, turned_weight, wrong_axis, swapped_inputs, dropped_node, wrong_operator,
        lost_bias, wrong_constant, wrong_edge, narrow_cast, wrong_window, wrong_perm,
    )
}  # fmt: skip


_MOVING = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def plant(model: Any, kind: str, seed: int) -> Iterator[tuple[Any, set[str]]]:
    """Iterate over models with one fault of a kind, at nodes of all graphs in random order.

    Result: also the names of the node and of its values, also with other sizes or types.
    """
    places = [
        (which, number)
        for which, graph in enumerate(graphs_within(model.graph))
        for number in range(len(graph.node))
    ]
    for place in np.random.default_rng(seed).permutation(len(places)):
        which, number = places[place]
        made = onnx.ModelProto()
        made.CopyFrom(model)
        graph = list(graphs_within(made.graph))[which]
        change = Change(made, graph)
        node = graph.node[number]
        names = {node.name, *node.output} - {""}
        if not FAULTS[kind](change, node):
            continue
        nodes = list(graph.node)
        nodes[number + 1 : number + 1] = change.made
        copies = [type(each).FromString(each.SerializeToString()) for each in nodes]
        del graph.node[:]
        graph.node.extend(copies)
        names |= {name for each in change.made for name in each.output}
        for each in copies:
            if each.op_type in _MOVING and each.input[0] in names:
                names |= set(each.output)
        yield made, names


def judge(before: pl.Model, after: Any, names: set[str], differs: Differs) -> str:
    """Bisect, and return what is wrong with the answer; an empty text if nothing is."""
    found = bisect(before, pl.load(after.SerializeToString()), differs)
    # A line is ``outputs = operator(inputs)``. Without a bias, for example, a layer computes what
    # another one did, and its reader reads the wrong value.
    named = {
        name
        for each in found.rewrites
        for line in each.lines[1]
        for name in re.split(r" = \w+\(|, |\)", line.strip())
    }
    problems = []
    if named.isdisjoint(names):
        problems.append(f"not named: {sorted(names)}, {found}")
    if len(found.rewrites) > 1:
        problems.append(f"{len(found.rewrites)} rewrites: {found}")
    if found.others:
        problems.append(found.others)
    if found.runs > 2 * math.log2(max(found.number_of_rewrites, 1)) + 10:
        problems.append(f"{found.runs} runs of {found.number_of_rewrites} rewrites")
    return "; ".join(problems)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


_TRIED = 8
"""Places of a fault that are tried until one shows."""


def main() -> int:
    """Print the wrong answers and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tools", default=",".join(TOOLS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for path in sorted(given.folder.rglob("*.onnx")):
        original = onnx.load(path)
        before = pl.load(path)
        judges: dict[Tolerance | None, Differs] = {}
        for tool in given.tools.split(","):
            try:
                after = TOOLS[tool](type(original).FromString(original.SerializeToString()))
                loose = LOOSE.get(tool)
                if loose not in judges:
                    judges[loose] = Differs(before, None, loose, None, 2)
                differs = judges[loose]
                loaded = pl.load(after.SerializeToString())
            except Exception as error:
                say(f"{path.name}, {tool}: not made: {type(error).__name__}: {error}"[:200])
                counts["not made"] += 1
                continue
            if differs.what(loaded) not in ("", "names"):
                say(f"{path.name}, {tool}: differs: {differs.what(loaded)}")
                counts["wrong without a fault"] += 1
                continue
            counts["right outputs"] += 1
            found: Counter[str] = Counter()
            begin = time.perf_counter()
            for kind in FAULTS:
                for seed in range(given.seeds):
                    start = time.perf_counter()
                    outcome = _try(before, after, kind, seed, differs)
                    found[outcome.partition(":")[0]] += 1
                    if outcome not in ("right", "no place"):
                        seconds = time.perf_counter() - start
                        where = f"{path.name}, {tool}, {kind} {seed}"
                        say(f"{where}: {outcome[:1500]} ({seconds:.1f} s)")
            say(f"{path.name}, {tool}: {dict(found)} ({time.perf_counter() - begin:.0f} s)")
            counts += found
    say(str(dict(counts)))
    return int(any(key not in ("right", "no place", "right outputs") for key in counts))


def _try(before: pl.Model, after: Any, kind: str, seed: int, differs: Differs) -> str:
    for number, (made, names) in enumerate(plant(after, kind, seed)):
        if number == _TRIED:
            break
        try:
            if differs.what(pl.load(made.SerializeToString())) != "numbers":
                continue
            problem = judge(before, made, names, differs)
        except NothingFailsError:
            continue
        except Exception as error:
            return f"error: {type(error).__name__}: {error}"
        return f"wrong: {problem}" if problem else "right"
    return "no place"


if __name__ == "__main__":
    sys.exit(main())
