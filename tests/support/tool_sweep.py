"""Faults of other tools: what their results have, and the models that they got have not.

``tool_sweep.py`` runs every tool on the models of onnx.backend.test, ``--models FOLDER`` on the
ONNX files of a folder, ``--random FIRST COUNT`` on random graphs; ``--tools A,B`` chooses tools. It
prints a line for each fault, and counts; ``--save FOLDER`` saves the models.

``tool_sweep.py --tools TOOL --fault TEXT MODEL`` is a test for ``passlib reduce``: the exit status
is 1 if the tool has a fault whose line contains the text, 0 if not, and 125 if the model itself is
broken.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import select
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from onnx_suite import all_cases
from random_graphs import draw
from sanitized import limit_address_space
from tool_faults import TOOLS

PACKAGES = (
    "onnxconverter_common.float16", "onnxoptimizer", "onnxruntime.quantization",
    "onnxruntime.tools.symbolic_shape_infer", "onnxscript.optimizer", "onnxscript.rewriter",
    "onnxsim", "onnxslim", "onnx.inliner", "onnx.version_converter",
)  # fmt: skip

_SECONDS = 60
_MEMORY = 12 << 30

_MAY_REFUSE = ("version converter", "onnx inference", "ORT inference")
"""Tools that do not know all operators and say so."""

_ROUGH = ("float16", "dynamic quantization")
"""Tools that change the numbers."""

_DRAWING = {
    "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip


def by_inference(model: Any) -> Any:
    """Add the types that ONNX's inference finds."""
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


def by_symbolic_inference(model: Any) -> Any:
    """Add the types that ONNX Runtime's symbolic inference finds."""
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    return SymbolicShapeInference.infer_shapes(model, auto_merge=True)


def by_quantization(model: Any) -> Any:
    """Quantize the weights with ONNX Runtime."""
    from onnxruntime.quantization import quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        quantize_dynamic(model, f"{folder}/made.onnx")
        return onnx.load(f"{folder}/made.onnx")


def by_rewriter(model: Any) -> Any:
    """Apply the default rules of onnxscript's rewriter."""
    from onnxscript import rewriter

    return rewriter.rewrite(model)


def by_inliner(model: Any) -> Any:
    """Replace calls of functions by what they compute."""
    from onnx import inliner

    return inliner.inline_local_functions(model, convert_version=True)


ALL: dict[str, Callable[[Any], Any]] = {
    **TOOLS,
    "onnx inference": by_inference,
    "ORT inference": by_symbolic_inference,
    "dynamic quantization": by_quantization,
    "onnxscript rewriter": by_rewriter,
    "onnx inliner": by_inliner,
}


class BrokenError(Exception):
    """The model itself is broken."""


def session_of(model: Any) -> Any:
    """Make a session without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def feeds(session: Any, seed: int) -> dict[str, Any]:
    """Draw inputs: open sizes are 2, and integers are small."""
    random = np.random.default_rng(seed)
    made = {}
    for value in session.get_inputs():
        shape = tuple(size if isinstance(size, int) else 2 for size in value.shape)
        kind = value.type[7:-1]
        kind = {"float": "float32", "double": "float64"}.get(kind, kind)
        if not value.type.startswith("tensor(") or kind not in np.sctypeDict:
            raise BrokenError(f"no {value.type} is drawn")
        numbers = random.integers(0, 2, shape) if "int" in kind or kind == "bool" else None
        if numbers is None:
            numbers = random.standard_normal(shape) * (1 + seed)
        made[value.name] = np.asarray(numbers).astype(kind)
    return made


def results(session: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs by their names."""
    names = [value.name for value in session.get_outputs()]
    used = {value.name for value in session.get_inputs()}
    made = session.run(None, {name: array for name, array in given.items() if name in used})
    return dict(zip(names, made, strict=True))


def close(one: Any, two: Any) -> bool:
    """Whether two outputs are equal but for rounding."""
    if not (isinstance(one, np.ndarray) and isinstance(two, np.ndarray)):
        return repr(one) == repr(two)
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, two))
    finite = one[np.isfinite(one)]
    scale = max(1e-6, float(np.abs(finite.astype(np.float64)).max())) if finite.size else 1.0
    rtol = 1e-3 if one.dtype.itemsize > 2 else 2e-2
    left, right = one.astype(np.float64), two.astype(np.float64)
    return bool(np.allclose(right, left, rtol, rtol * scale, equal_nan=True))


def wrong_types(model: Any) -> str:
    """Return a value whose declared type is not that of its results; empty if there is none."""
    full = onnx.ModelProto.FromString(model.SerializeToString())
    made = {name for node in full.graph.node for name in node.output}
    known = {value.name for value in full.graph.output}
    full.graph.output.extend(value for value in full.graph.value_info if value.name in made - known)
    declared = {
        value.name: value.type.tensor_type
        for value in full.graph.output
        if value.type.HasField("tensor_type")
    }
    # The runtime must not see what is declared, or it refuses the model.
    del full.graph.value_info[:]
    for value in full.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    session = session_of(full)
    for name, array in results(session, feeds(session, 0)).items():
        kind = declared.get(name)
        if kind is None or not isinstance(array, np.ndarray) or array.dtype == object:
            continue
        plain = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        fits = len(sizes) == array.ndim and all(
            size in (None, have) for size, have in zip(sizes, array.shape, strict=True)
        )
        if kind.HasField("shape") and not fits:
            return f"{name} is declared as {sizes} and has {list(array.shape)}"
        if plain.itemsize == array.itemsize and plain.kind in "fiub" and plain != array.dtype:
            return f"{name} is declared as {plain} and has {array.dtype}"
    return ""


def _sizes(values: Any) -> dict[str, Any]:
    return {
        value.name: [
            bool(dim.dim_value) or dim.dim_param for dim in value.type.tensor_type.shape.dim
        ]
        for value in values
    }


def fault(tool: str, model: Any) -> str:
    """Run a tool on a model, and say what is wrong with its result; empty if nothing is.

    Raises
    ------
    BrokenError
        The model itself does not run, is invalid, or computes random numbers.
    """
    try:
        onnx.checker.check_model(model, full_check=True)
        before = session_of(model)
        given = [feeds(before, seed) for seed in range(2)]
        wanted = [results(before, each) for each in given]
        wrong = wrong_types(model)
    except Exception as error:
        raise BrokenError(str(error)) from error
    operators = {node.op_type for node in model.graph.node}
    if wrong or operators & _DRAWING:
        raise BrokenError(wrong or "it draws numbers")
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    try:
        made = ALL[tool](copy)
    except Exception as error:
        return "" if tool in _MAY_REFUSE else f"raises {type(error).__name__}: {error}"
    try:
        onnx.checker.check_model(made, full_check=True)
    except Exception as error:
        return f"invalid: {error}"
    try:
        after = session_of(made)
        found = [results(after, each) for each in given]
    except Exception as error:
        return f"refused: {error}"
    for one, two in zip(wanted, found, strict=True):
        for name, array in one.items():
            if isinstance(array, np.ndarray) and array.dtype != getattr(two[name], "dtype", None):
                return f"type of {name}: {array.dtype} became {getattr(two[name], 'dtype', '')}"
            if tool not in _ROUGH and not close(array, two[name]):
                return f"numbers of {name}"
    try:
        wrong = wrong_types(made)
    except Exception:
        wrong = ""
    return f"declared: {wrong}" if wrong else _interface_change(model, made)


def _interface_change(model: Any, made: Any) -> str:
    for what, one, two in (
        ("input", model.graph.input, made.graph.input),
        ("output", model.graph.output, made.graph.output),
    ):
        constants = {tensor.name for tensor in model.graph.initializer}
        old = [value.name for value in one if value.name not in constants]
        new = [value.name for value in two if value.name not in constants]
        if sorted(old) != sorted(new):
            return f"names of {what}s: {old} became {new}"
        if what == "output" and old != new:
            return f"order of {what}s: {old} became {new}"
        sizes = _sizes(two)
        for name, each in _sizes(one).items():
            lost = [a for a, b in zip(each, sizes.get(name, each), strict=False) if a and not b]
            if lost or (any(each) and not sizes.get(name, each)):
                return f"sizes of {what} {name}: {each} became {sizes[name]}"
    return ""


def apart(tool: str, model: Any) -> str:
    """Return the fault of a tool, found in a process of its own; ``"?"`` for a broken model."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        limit_address_space(_MEMORY)
        try:
            text = fault(tool, model)
        except BrokenError:
            text = "?"
        os.write(writing, f"{text[:2000]}\n".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        if not select.select([said], [], [], _SECONDS)[0]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hangs"
        text = said.read().decode()
    status = os.waitpid(pid, 0)[1]
    if not text.endswith("\n"):
        return f"crash: {signal.Signals(os.WTERMSIG(status)).name if status & 127 else status}"
    return " ".join(text.split())


def models(given: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the names and models that the command line chooses."""
    if given.random:
        first, count = given.random
        for seed in range(first, first + count):
            drawn = draw(seed)
            model = drawn.model()
            for value in model.graph.output:
                for _ in drawn.shape(value.name):
                    value.type.tensor_type.shape.dim.add()
                value.type.tensor_type.shape.SetInParent()
            yield f"seed {seed}", model
    elif given.models:
        for path in sorted(given.models.rglob("*.onnx")):
            yield str(path.relative_to(given.models)), onnx.load(path)
    else:
        for case in all_cases():
            if given.only not in case.name:
                continue
            yield case.name, onnx.ModelProto.FromString(case.data)


def main() -> int:
    """Print the faults and counts, or test one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--tools", default=",".join(ALL))
    parser.add_argument("--fault", default="")
    parser.add_argument("--models", type=Path)
    parser.add_argument("--random", nargs=2, type=int)
    parser.add_argument("--only", default="", help="names of models contain this")
    parser.add_argument("--save", type=Path, help="folder for the models with faults")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tools = given.tools.split(",")
    if given.model:
        found = apart(tools[0], onnx.load(given.model))
        sys.stdout.write(f"{found}\n")
        return 125 if found == "?" else int(bool(found) and given.fault in found)
    for package in PACKAGES:  # once, not in each process
        importlib.import_module(package)
    counts: Counter[str] = Counter()
    for name, model in models(given):
        for tool in tools:
            found = apart(tool, model)
            if found == "?":
                counts["broken"] += 1
                break
            counts[f"{tool}: {found.partition(' ')[0]}"] += 1
            if found:
                sys.stdout.write(f"{name} | {tool} | {found[:600]}\n")
                sys.stdout.flush()
                if given.save:
                    onnx.save(model, given.save / f"{re.sub('[^a-z0-9]+', '_', name)}.onnx")
    sys.stdout.write(f"{dict(counts)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
