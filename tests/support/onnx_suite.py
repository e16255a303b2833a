"""The models of onnx.backend.test with inputs and expected outputs, and their runs.

``python tests/support/onnx_suite.py`` applies passes to all of them and counts the results.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

BACKEND = Path(onnx.__file__).parent / "backend" / "test"
FOLDERS = ("simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Case:
    """A model, and pairs of inputs and expected outputs."""

    name: str
    data: bytes
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float = 1e-3
    atol: float = 1e-7


def node_cases(operators: Iterable[str] | None = None) -> Iterator[Case]:
    """Iterate over models of one operator: all, or those of some modules, which takes less time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node: Any = importlib.import_module("onnx.backend.test.case.node")
        if operators is None:
            cases = load_model_tests(kind="node")
        else:
            cases = [case for operator in operators for case in _cases_of(node, operator)]
    for case in cases:
        sets = [
            ([*map(_plain, inputs)], [*map(_plain, outputs)]) for inputs, outputs in case.data_sets
        ]
        yield Case(f"node/{case.name}", case.model.SerializeToString(), sets, case.rtol, case.atol)


def _cases_of(node: Any, operator: str) -> list[Any]:
    """Return the models of one module, whatever other tests of this process have imported."""
    name = f"{node.__name__}.{operator}"
    is_new = name not in sys.modules
    with mock.patch.multiple(node, _NodeTestCases=[], _existing_names={}):
        module = importlib.import_module(name)
        if not is_new:
            importlib.reload(module)
        cases, names = node._NodeTestCases, node._existing_names
    if is_new:
        node._NodeTestCases += cases
        node._existing_names.update(names)
    return list(cases)


def file_cases() -> Iterator[Case]:
    """Iterate over the models in the folders of the suite."""
    for folder in FOLDERS:
        for case in load_model_tests(kind=folder):
            path = Path(str(case.model_dir))
            data = (path / "model.onnx").read_bytes()
            model = onnx.ModelProto.FromString(data)
            sets = [
                (
                    _read_all(part, "input", model.graph.input),
                    _read_all(part, "output", model.graph.output),
                )
                for part in sorted(path.glob("test_data_set*"))
            ]
            yield Case(f"{folder}/{case.name}", data, sets, case.rtol, case.atol)


def light_cases() -> Iterator[Case]:
    """Iterate over the networks that compute their weights themselves."""
    for path in sorted((BACKEND / "data" / "light").glob("*.onnx")):
        data = path.read_bytes()
        graph = onnx.ModelProto.FromString(data).graph
        known = {tensor.name for tensor in graph.initializer}
        inputs = []
        for value in graph.input:
            if value.name not in known:
                shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
                size = int(np.prod(shape))
                ramp = (np.arange(size).astype(np.float32) / size).reshape(shape)
                inputs.append(ramp)
        outputs = [
            numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
            for file in sorted(path.parent.glob(f"{path.stem}_output_*.pb"))
        ]
        yield Case(f"light/{path.stem}", data, [(inputs, outputs)], 1e-3, 1e-5)


def all_cases() -> Iterator[Case]:
    """Iterate over all models of the suite."""
    yield from node_cases()
    yield from file_cases()
    yield from light_cases()


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _read_all(folder: Path, what: str, values: Any) -> list[Any]:
    files = sorted(folder.glob(f"{what}_*.pb"), key=lambda file: int(file.stem.split("_")[1]))
    read = []
    for file, value in zip(files, values, strict=False):
        content = file.read_bytes()
        if value.type.HasField("sequence_type"):
            read.append(numpy_helper.to_list(onnx.SequenceProto.FromString(content)))
        elif value.type.HasField("optional_type"):
            read.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(content)))
        else:
            read.append(numpy_helper.to_array(onnx.TensorProto.FromString(content)))
    return read


class RefusedError(Exception):
    """ONNX Runtime does not run a model."""


def session_of(data: bytes) -> Any:
    """Make a session of a model, or raise `RefusedError`."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RefusedError(str(error)) from error


def run(data: bytes, inputs: list[Any]) -> list[Any]:
    """Compute the outputs by ONNX Runtime."""
    session = session_of(data)
    given = session.get_inputs()
    feeds = {value.name: item for value, item in zip(given, inputs, strict=False)}
    try:
        outputs: list[Any] = session.run(None, feeds)
    except Exception as error:
        raise RefusedError(str(error)) from error
    return outputs


def agree(outputs: list[Any], expected: list[Any], rtol: float, atol: float) -> bool:
    """Whether outputs are the expected ones, nested lists and strings included."""
    return len(outputs) == len(expected) and all(
        _close(have, want, rtol, atol) for have, want in zip(outputs, expected, strict=True)
    )


def _close(have: Any, want: Any, rtol: float, atol: float) -> bool:
    if isinstance(want, (list, tuple)):
        return isinstance(have, (list, tuple)) and agree(list(have), list(want), rtol, atol)
    if want is None or have is None:
        return want is have
    left, right = np.asarray(have), np.asarray(want)
    if left.shape != right.shape:
        return False
    if left.dtype.kind in "OUS" or right.dtype.kind in "OUS":
        return bool(np.array_equal(left.astype(str), right.astype(str)))
    if left.dtype != right.dtype and left.dtype.itemsize == right.dtype.itemsize:
        left = left.view(right.dtype)  # ONNX Runtime returns some small floats as integers
    if right.dtype.kind not in "biufc":
        left, right = left.astype(np.float32), right.astype(np.float32)
    return bool(np.allclose(left, right, rtol=rtol, atol=atol, equal_nan=True))


def main() -> None:
    """Apply passes to all models, and print how many are equal, and compute the same."""
    import sys
    import tempfile
    from collections import Counter

    import passlib
    from plugin_build import PLUGINS, Builder

    build = Builder({name: PLUGINS[name] for name in ("good", "onnx_edits")}, ".so")
    for name in ("good", "onnx_edits"):
        passlib.library.load(build(name), verbose=False)
    compiled = passlib.library.load_standard().passes
    given = {"identity", "rebuildOperators", "interpose"}
    known = passlib.library.passes()
    standard = [name for name in known if name in compiled or "onnx" in known[name].dialects]
    standard = [name for name in standard if name not in given]
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in all_cases():
            count["models"] += 1
            path, out = Path(folder) / "a.onnx", Path(folder) / "b.onnx"
            path.write_bytes(case.data)
            model = passlib.load(path)
            model.optimize_for("identity").save(out)
            same = onnx.ModelProto.FromString(case.data).SerializeToString(deterministic=True)
            again = onnx.ModelProto.FromString(out.read_bytes())
            count["equal"] += again.SerializeToString(deterministic=True) == same
            try:
                right = all(
                    agree(run(case.data, inputs), outputs, case.rtol, case.atol)
                    for inputs, outputs in case.data_sets
                )
            except RefusedError as error:
                count["refused by ONNX Runtime"] += 1
                sys.stdout.write(f"refused: {case.name}: {str(error)[:120]!r}\n")
                continue
            if not right:
                count["wrong in ONNX Runtime"] += 1
                sys.stdout.write(f"wrong before any pass: {case.name}\n")
                continue
            count["right in ONNX Runtime"] += 1
            for name in ("identity", "rebuildOperators", "interpose", *standard, "simplify"):
                try:
                    made = model.simplify() if name == "simplify" else model.optimize_for(name)
                    made.save(out)
                    fine = all(
                        agree(run(out.read_bytes(), inputs), outputs, case.rtol, case.atol)
                        for inputs, outputs in case.data_sets
                    )
                except (RefusedError, passlib.errors.PasslibError) as error:
                    fine = False
                    sys.stdout.write(f"{name}: {case.name}: {str(error)[:300]!r}\n")
                count[f"right after {name}"] += fine
                if not fine:
                    sys.stdout.write(f"not right after {name}: {case.name}\n")
    for key, number in count.items():
        sys.stdout.write(f"{number:6} {key}\n")


if __name__ == "__main__":
    main()
