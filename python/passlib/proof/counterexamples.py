"""Models on which a rule changes the numbers: found by trying, shown by ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.errors import PasslibError, short_repr
from passlib.files.optional import require
from passlib.model import load
from passlib.passes.rules import Rule
from passlib.proof.models import Drawn

_CLOSE: Final = {"float16": 2e-2, "bfloat16": 1e-1, "float64": 1e-9}
_UNFIT: Final = ("Concat", "GRU", "RNN", "LSTM")
"""ONNX Runtime's operators that do not bear empty values."""


@short_repr
@dataclass(frozen=True)
class Counterexample:
    """A model that a rule changes wrongly.

    Attributes
    ----------
    text : str
        What differs.
    before, after : bytes
        The model, and what the rule makes of it, as ONNX files; the second is empty if it fails.
    inputs : dict of str to numpy.ndarray
    """

    text: str
    before: bytes
    after: bytes
    inputs: dict[str, Any]

    def save(self, folder: Path, name: str) -> Path:
        """Write the models and the inputs; return the path of the first model."""
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{name}.before.onnx"
        place.write_bytes(self.before)
        if self.after:
            (folder / f"{name}.after.onnx").write_bytes(self.after)
        plain = {key: value for key, value in self.inputs.items() if value.dtype != object}
        np.savez(folder / f"{name}.inputs.npz", **plain)
        return place


def search(rule: Rule, count: int) -> tuple[Counterexample | None, int]:
    """Try a rule on models drawn from its examples.

    Returns
    -------
    tuple of (Counterexample or None, int)
        The first that is found, and how many models the rule changed rightly.
    """
    agree = 0
    for number in range(count if rule.examples else 0):
        found = _tried(rule, number)
        if isinstance(found, Counterexample):
            return found, agree
        agree += found
    return None, agree


def _tried(rule: Rule, number: int) -> Counterexample | int:
    """Return a counterexample, or whether the rule changes the model."""
    try:
        drawn = Drawn(rule, number)
        data = drawn.finished().SerializeToString()
        before = _session(data)
        original = load(data)
    except Exception:  # a model that onnx or ONNX Runtime refuses
        return 0
    try:
        made = rule.rules(original, only=[rule.name], target=rule.target)
        changed = _bytes_of(made)
    except (PasslibError, RuntimeError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        if not isinstance(cause, (PasslibError, RuntimeError)):
            raise  # a fault of the engine, not of the rule
        feeds = drawn.feeds(special=False, empty=False)
        if _run(before, feeds) is None:
            return 0
        return Counterexample(str(error).splitlines()[0], data, b"", feeds)
    if changed == _bytes_of(original):
        return 0
    try:
        after = _session(changed)
    except Exception as error:
        text = f"ONNX Runtime refuses the replacement: {str(error).splitlines()[0]}"
        return Counterexample(text[:300], data, changed, drawn.feeds(special=False, empty=False))
    for special in (False, True):
        feeds = drawn.feeds(special=special, empty=rule.exact)
        if any(not array.size for array in feeds.values()) and any(
            op in rule.text for op in _UNFIT
        ):
            continue
        text = _difference(rule, before, after, feeds, special)
        if text:
            return Counterexample(text, data, changed, feeds)
    return 1


def _difference(rule: Rule, before: Any, after: Any, feeds: dict[str, Any], special: bool) -> str:
    expected, found = _run(before, feeds), _run(after, feeds)
    if expected is None and found is None:
        return ""
    if found is None:
        return "the replacement fails, and the pattern does not"
    if expected is None:
        if rule.drops_check or not rule.exact:
            return ""
        return "the pattern fails, and the replacement does not"
    if special and not rule.exact:
        return ""
    return next(differences(expected, found, exact=rule.exact), "")


def differences(expected: Sequence[Any], found: Sequence[Any], *, exact: bool) -> Iterator[str]:
    """Yield which results differ: in a bit, or by more than rounding."""
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if same_bits(one, other):
            continue
        left, right = np.asarray(one), np.asarray(other)
        what = f"output {number} is {right.tolist()}, not {left.tolist()}"[:400]
        if left.shape != right.shape or left.dtype != right.dtype or left.dtype == object:
            yield what
            continue
        close = _CLOSE.get(str(left.dtype), 1e-4)
        numbers = left.dtype.kind == "f" or str(left.dtype) == "bfloat16"
        if not exact and numbers:
            left, right = left.astype(float), right.astype(float)
            # Large results that cancel each other lose digits.
            size = np.abs(left[np.isfinite(left)]).max(initial=1)
            if np.allclose(left, right, rtol=close, atol=close * size, equal_nan=True):
                continue
        yield what


def same_bits(one: Any, other: Any) -> bool:
    """Whether results are equal bit for bit, but for the bits of NaN."""
    if isinstance(one, list):
        return (
            isinstance(other, list) and len(one) == len(other) and all(map(same_bits, one, other))
        )
    if one is None or other is None:
        return one is other
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(
        np.array_equal(a, b, equal_nan=True)
        and np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))
    )


def _session(data: bytes) -> Any:
    runtime = require("onnxruntime", extra="onnx")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _run(session: Any, feeds: dict[str, Any]) -> list[Any] | None:
    names = {each.name for each in session.get_inputs()}
    try:
        given = {name: array for name, array in feeds.items() if name in names}
        made: list[Any] = session.run(None, given)
    except Exception:  # of ONNX Runtime
        return None
    return made


def _bytes_of(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.onnx"
        model.save(path, durable=False)
        return path.read_bytes()
