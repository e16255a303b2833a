"""Writes a reduced model as a Python script of plain onnx.helper calls, for an issue thread."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.nested import copy_of
from passlib.errors import PasslibError, UnsupportedError
from passlib.files.optional import require
from passlib.model import Model, load
from passlib.model.loading import AnyModel, as_model
from passlib.workbench.helper_calls import (
    Calls,
    array_key,
    array_of,
    array_text,
    is_plain_type,
    quoted,
)
from passlib.workbench.neutral import LEVELS, neutral, tensors_of
from passlib.workbench.surviving import survived
from passlib.workbench.two_files import message_of

Fails = Callable[[Sequence[Model], Mapping[str, Any]], bool]

_FEW: Final = 8
"""Arrays of at most this many elements are written out."""


def script(
    models: Mapping[str, AnyModel],
    inputs: Mapping[str, Any],
    fails: Fails,
    how: str = "",
    *,
    isolate: bool = False,
) -> str:
    """Return a Python script that makes small ONNX models and shows their fault.

    It needs onnx and NumPy, and ONNX Runtime to run the models. Names are neutral, and metadata and
    stated types are dropped, as long as the models still fail without them. Arrays are drawn with a
    seed if the models still fail with that, and are written out otherwise.

    Parameters
    ----------
    models : mapping of str to Model
        One or several, by the names of the files that the script writes. The outputs of the first
        one without optimizations are the expected ones.
    inputs : mapping of str to array
        By the names of their inputs; empty if they do not run.
    fails : callable
        Whether models in this order show the fault on inputs; a `PasslibError` means no.
    how : str
        A command that shows the fault on the files, for the text at the beginning.
    isolate : bool
        Test models in forked processes.

    Raises
    ------
    UnsupportedError
        A model is of another dialect than ONNX, or calls of onnx.helper do not make one that fails.

    Examples
    --------
    >>> import onnx
    >>> import passlib as pl
    >>> head = '<ir_version: 8, opset_import: ["" : 17]>'
    >>> text = f"{head} network (float[2] a) => (float[2] b) {{ b = Exp(a) }}"
    >>> model = pl.load(onnx.parser.parse_model(text).SerializeToString())
    >>> made = pl.workbench.script({"model.onnx": model}, {}, lambda models, inputs: True)
    >>> [line.strip() for line in made.splitlines() if "make_node" in line]
    ['[helper.make_node("Exp", ["x0"], ["y0"])],']
    """
    loaded = [as_model(model) for model in models.values()]
    for model in loaded:
        require_onnx(model)
    writing = _Writing(loaded, fails, isolate=isolate)
    return writing.text(list(models), dict(inputs), how)


def require_onnx(model: Model) -> None:
    """Check that a model is an ONNX model, or raise `UnsupportedError`."""
    if model.dialect != "onnx":
        raise UnsupportedError(
            f"a script makes ONNX models, and this is one of {model.dialect}: convert it first, "
            "with passlib convert"
        )


class _Writing:
    """Candidates of a script."""

    def __init__(self, models: Sequence[Model], fails: Fails, *, isolate: bool) -> None:
        self._messages = [message_of(model, {}) for model in models]
        self._fails = fails
        self._isolate = isolate

    def _guarded(self, work: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return survived(work) if self._isolate else work()
        except PasslibError:
            return otherwise

    def _shows(self, messages: Sequence[Any], inputs: Mapping[str, Any]) -> bool:
        def work() -> bool:
            return self._fails([load(each.SerializeToString()) for each in messages], inputs)

        return bool(self._guarded(work, False))

    def text(self, files: Sequence[str], inputs: dict[str, Any], how: str) -> str:
        for level in LEVELS:
            messages, names = neutral(self._messages, level)
            fed = {names.get(name, name): value for name, value in inputs.items()}
            if self._shows(messages, fed):
                break
        else:
            raise UnsupportedError(
                "the fault does not show in a model that calls of onnx.helper make: it needs what "
                "these leave out, such as documentation, training or quantization annotations"
            )
        messages, fed, seeded = self._seeded(messages, fed)
        return _script(files, messages, fed, seeded, self._expected(messages[0], fed), how)

    def _seeded(
        self, messages: list[Any], inputs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], dict[Any, str]]:
        """Return the models and inputs with drawn arrays, and the texts of these."""
        arrays = dict(self._arrays(messages, inputs))
        drawn = {key: _drawn(array, seed) for seed, (key, array) in enumerate(arrays.items())}
        chosen = dict(drawn)
        made = _with_arrays(messages, inputs, chosen)
        if chosen and not self._shows(*made):
            chosen, made = {}, (messages, inputs)
            for key, each in drawn.items():
                more = {**chosen, key: each}
                candidate = _with_arrays(messages, inputs, more)
                if len(drawn) > 1 and self._shows(*candidate):
                    chosen, made = more, candidate
        return *made, {array_key(array): text for array, text in chosen.values()}

    def _arrays(
        self, messages: Sequence[Any], inputs: Mapping[str, Any]
    ) -> Iterator[tuple[Any, np.ndarray[Any, Any]]]:
        """Yield the arrays that may be drawn, with their keys."""
        for message in messages:
            for tensor in tensors_of(message):
                if is_plain_type(tensor.data_type):
                    array = array_of(tensor)
                    if _can_be_drawn(array):
                        yield array_key(array), array
        for value in inputs.values():
            if not isinstance(value, (list, dict, type(None))):
                array = np.asarray(value)
                if _can_be_drawn(array):
                    yield array_key(array), array

    def _expected(self, message: Any, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Compute the outputs without optimizations; None if the model does not run."""

        def work() -> dict[str, Any]:
            runtime = require("onnxruntime", extra="run")
            off = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
            model = load(message.SerializeToString())
            found = model.run(inputs, session_options={"graph_optimization_level": off})
            return {name: _plain(value) for name, value in found.items()}

        found: dict[str, Any] | None = self._guarded(work, None)
        return found


def _plain(value: Any) -> Any:
    """Return a value of the runtime as arrays of NumPy."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float)) else np.asarray(value)


def _can_be_drawn(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array is large, and of numbers that are not all equal."""
    flat = array.reshape(-1)
    return array.dtype.kind in "fiu" and array.size > _FEW and bool((flat != flat[0]).any())


def _drawn(array: np.ndarray[Any, Any], seed: int) -> tuple[np.ndarray[Any, Any], str]:
    """Return an array of the same kind of numbers with the expression that draws it."""
    generator, dtype = np.random.default_rng(seed), array.dtype.name
    begin = f"np.random.default_rng({seed})"
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        made = generator.integers(low, high, array.shape, array.dtype, endpoint=True)
        given = f"{low}, {high}, {array.shape}, np.{dtype}, endpoint=True"
        return made, f"{begin}.integers({given})"
    method = "random" if np.all(array >= 0) else "standard_normal"
    made = getattr(generator, method)(array.shape).astype(array.dtype)
    return made, f"{begin}.{method}({array.shape}).astype(np.{dtype})"


def _with_arrays(
    messages: Sequence[Any],
    inputs: Mapping[str, Any],
    drawn: Mapping[Any, tuple[np.ndarray[Any, Any], str]],
) -> tuple[list[Any], dict[str, Any]]:
    """Return models and inputs with some arrays replaced."""
    numpy_helper = require("onnx.numpy_helper", extra="onnx")
    made = [copy_of(message) for message in messages]
    for message in made:
        for tensor in tensors_of(message):
            if not is_plain_type(tensor.data_type):
                continue
            key = array_key(array_of(tensor))
            if key in drawn:
                new = numpy_helper.from_array(drawn[key][0])
                tensor.raw_data = new.raw_data
    fed = dict(inputs)
    for name, value in inputs.items():
        if not isinstance(value, (list, dict, type(None))):
            array = np.asarray(value)
            fed[name] = drawn[array_key(array)][0] if array_key(array) in drawn else array
    return made, fed


def _script(
    files: Sequence[str],
    messages: Sequence[Any],
    inputs: Mapping[str, Any],
    seeded: dict[Any, str],
    expected: Mapping[str, Any] | None,
    how: str,
) -> str:
    calls = Calls(seeded)
    models = {file: Path(file).stem.replace("-", "_") for file in files}
    for (_, variable), message in zip(models.items(), messages, strict=True):
        calls.model(message, variable)
    given = [f"    {quoted(name)}: {_value_text(value, seeded)}," for name, value in inputs.items()]
    wanted = [
        f"    {quoted(name)}: {_value_text(each)}," for name, each in (expected or {}).items()
    ]
    arrays = [f"{variable} = {text}" for variable, text in calls.arrays.values()]
    body = [
        *arrays,
        *([""] if arrays else []),
        *calls.lines,
        "",
        f"models = {{{', '.join(f'{quoted(file)}: {name}' for file, name in models.items())}}}",
        *_dictionary("inputs", given),
        *(_dictionary("expected", wanted) if expected is not None else []),
    ]
    text = "\n".join(body)
    imports = ["base64", "zlib"] if "zlib." in text else []
    uses = ["import numpy as np"] if "np." in text or expected is not None else []
    modules = ("TensorProto", "helper", "numpy_helper")
    names = [name for name in modules if re.search(rf"\b{name}\.", text)]
    saving = _SAVING if _are_valid(messages) else _SAVING.replace(_CHECK, "")
    parts = [
        f'"""{_header(files, how, runs=expected is not None)}"""',
        "",
        *(f"import {name}" for name in imports),
        *([""] if imports else []),
        *uses,
        "import onnx",
        f"from onnx import {', '.join(names)}",
        "",
        text,
        "",
        saving.rstrip(),
    ]
    if expected is not None:
        parts.append(_RUNNING.rstrip())
    return "\n".join(parts) + "\n"


_CHECK: Final = "    onnx.checker.check_model(model, full_check=True)\n"
_SAVING: Final = f"for path, model in models.items():\n{_CHECK}    onnx.save(model, path)\n"

_RUNNING: Final = """
try:
    import onnxruntime
except ImportError:
    raise SystemExit("the models are written; to run them: pip install onnxruntime")
for path in models:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    fed = {each.name: inputs[each.name] for each in session.get_inputs()}
    for (name, wanted), found in zip(expected.items(), session.run(None, fed)):
        print(f"{path}: {name} is {found!r}, expected {wanted!r}")
        if isinstance(found, np.ndarray) and found.dtype.kind in "fiub":
            if found.shape == wanted.shape:
                with np.errstate(all="ignore"):
                    gaps = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
                largest = np.fmax.reduce(gaps, axis=None, initial=0)
                print(f"{path}: {name} differs by at most {largest}")
"""


def _dictionary(name: str, rows: Sequence[str]) -> list[str]:
    return [f"{name} = {{", *rows, "}"] if rows else [f"{name} = {{}}"]


def _value_text(value: Any, seeded: Mapping[Any, str] = MappingProxyType({})) -> str:
    if isinstance(value, Mapping):
        inner = (f"{quoted(key)}: {_value_text(each)}" for key, each in value.items())
        return f"{{{', '.join(inner)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value_text, value))}]"
    if value is None or isinstance(value, (str, int, float)):
        return quoted(value)
    array = np.asarray(value)
    return seeded.get(array_key(array)) or array_text(array)


def _are_valid(messages: Sequence[Any]) -> bool:
    """Whether the checker of onnx accepts the models."""
    onnx = require("onnx", extra="onnx")
    inference = require("onnx.shape_inference", extra="onnx")
    try:
        for message in messages:
            onnx.checker.check_model(message, full_check=True)
    except (onnx.checker.ValidationError, inference.InferenceError):
        return False
    return True


def _header(files: Sequence[str], how: str, *, runs: bool) -> str:
    # Without ONNX Runtime, no model was run.
    packages = ("onnx", "onnxruntime", "numpy") if runs else ("onnx", "numpy")
    versions = [f"{package} {version(package)}" for package in packages]
    versions.append(f"Python {platform.python_version()}")
    runtime = ", and runs ONNX Runtime on that, if installed" if runs else ""
    lines = [
        f"Makes {' and '.join(files)}{runtime}.",
        "",
        f"Seen with {', '.join(versions)}.",
        "Run: python THIS_FILE" + (f", then: {how}" if how else ""),
    ]
    text = "\n".join(lines)
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') + "\n"
