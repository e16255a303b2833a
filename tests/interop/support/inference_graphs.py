"""Random graphs, and what is inferred of them from some shapes and types, in MXNet or passlib.

Usage: python inference_graphs.py {mxnet,passlib} FILE [FIRST LAST]

The first run, with MXNet, makes the graphs of the seeds FIRST to LAST and writes them with MXNet's
answers; the second, with passlib, asks the same of the same graphs and prints what differs.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Shape = tuple[int, ...]
TYPES = ("float32", "float16", "float64")


class Maker:
    """Composes one graph, and follows the shapes of its values."""

    def __init__(self, mx: Any, seed: int) -> None:
        self.sym = mx.sym
        self.random = random.Random(seed)
        self.values: list[tuple[Any, Shape]] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def variable(self, shape: Shape) -> Any:
        """Return a variable that may have this shape."""
        del shape
        return self.sym.var(self.name())

    def make(self) -> Any:
        """Return a symbol of about six operators."""
        shape = self.random.choice([(2, 6, 8, 8), (4, 6), (3, 4, 6), (2, 4, 8, 6)])
        self.values.append((self.variable(shape), shape))
        while self.count < self.random.randint(8, 20):
            value, shape = self.random.choice(self.values[-3:])
            step = self.random.choice(STEPS)
            made = step(self, value, shape)
            if made is not None:
                self.values.append(made)
        return self.values[-1][0]


def dense(at: Maker, value: Any, shape: Shape) -> Any:
    flat = at.random.choice([True, False])
    width = at.random.randint(2, 5)
    made = at.sym.FullyConnected(value, num_hidden=width, flatten=flat, name=at.name())
    return made, (shape[0], width) if flat else (*shape[:-1], width)


def window(at: Maker, value: Any, shape: Shape) -> Any:
    if len(shape) != 4 or min(shape[2:]) < 4:
        return None
    kind = at.random.choice(["Convolution", "Deconvolution", "Pooling"])
    if kind == "Pooling":
        made = at.sym.Pooling(value, kernel=(2, 2), stride=(2, 2), name=at.name())
        return made, (*shape[:2], shape[2] // 2, shape[3] // 2)
    options = {"kernel": (3, 3), "pad": (1, 1), "num_filter": 4, "name": at.name()}
    return getattr(at.sym, kind)(value, **options), (shape[0], 4, *shape[2:])


def with_variable(at: Maker, value: Any, shape: Shape) -> Any:
    kind = at.random.choice(["elemwise_add", "elemwise_mul", "broadcast_add", "broadcast_maximum"])
    other = at.variable(shape)
    pair = (value, other) if at.random.random() < 0.5 else (other, value)
    return getattr(at.sym, kind)(*pair, name=at.name()), shape


def joined(at: Maker, value: Any, shape: Shape) -> Any:
    axis = at.random.randrange(len(shape))
    if at.random.random() < 0.4:
        made = at.sym.stack(value, at.variable(shape), axis=axis, name=at.name())
        return made, (*shape[:axis], 2, *shape[axis:])
    made = at.sym.concat(value, at.variable(shape), dim=axis, name=at.name())
    return made, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])


def split(at: Maker, value: Any, shape: Shape) -> Any:
    axes = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    if not axes:
        return None
    axis = at.random.choice(axes)
    made = at.sym.SliceChannel(value, num_outputs=2, axis=axis, name=at.name())
    return made[1], (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])


def turned(at: Maker, value: Any, shape: Shape) -> Any:
    kind = at.random.choice(["transpose", "axes", "swap", "expand", "reshape", "flatten"])
    order = at.random.sample(range(len(shape)), len(shape))
    if kind == "transpose":
        return at.sym.transpose(value, name=at.name()), shape[::-1]
    if kind == "axes":
        made = at.sym.transpose(value, axes=tuple(order), name=at.name())
        return made, tuple(shape[axis] for axis in order)
    if kind == "swap":
        made = at.sym.swapaxes(value, dim1=0, dim2=1, name=at.name())
        return made, (shape[1], shape[0], *shape[2:])
    if kind == "expand":
        return at.sym.expand_dims(value, axis=1, name=at.name()), (shape[0], 1, *shape[1:])
    rest = int(np.prod(shape[1:]))
    if kind == "reshape":
        return at.sym.reshape(value, shape=(0, -1), name=at.name()), (shape[0], rest)
    return at.sym.flatten(value, name=at.name()), (shape[0], rest)


def same(at: Maker, value: Any, shape: Shape) -> Any:
    kind = at.random.choice(["relu", "BatchNorm", "LayerNorm", "softmax", "Dropout", "prelu"])
    if kind == "prelu":
        return at.sym.LeakyReLU(value, act_type="prelu", name=at.name()), shape
    return getattr(at.sym, kind)(value, name=at.name()), shape


def reduced(at: Maker, value: Any, shape: Shape) -> Any:
    axis = at.random.randrange(len(shape))
    if at.random.random() < 0.5:
        made = at.sym.slice_axis(value, axis=axis, begin=0, end=1, name=at.name())
    else:
        made = at.sym.sum(value, axis=axis, keepdims=True, name=at.name())
    return made, (*shape[:axis], 1, *shape[axis + 1 :])


def created(at: Maker, value: Any, shape: Shape) -> Any:
    sizes = tuple(0 if at.random.random() < 0.5 else size for size in shape)
    zeros = at.sym.zeros(sizes, name=at.name())
    return at.sym.elemwise_add(value, zeros, name=at.name()), shape


STEPS: Sequence[Callable[[Maker, Any, Shape], Any]] = (
    dense, window, window, with_variable, with_variable, joined, split, turned, turned, same, same,
    reduced, created,
)  # fmt: skip


def attempt(function: Callable[[], Any]) -> Any:
    """Return what a function finds as JSON has it, or that it fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return json.loads(json.dumps(function(), default=lambda t: np.dtype(t).name))
    except Exception as error:
        return f"error {type(error).__name__}: {error}"[:300]


def asked(symbol: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Infer from some shapes, and from one type."""
    shapes = {name: tuple(shape) for name, shape in given.items()}
    types = dict.fromkeys(list(shapes)[:1], TYPES[len(shapes) % 3])
    return {
        "whole": attempt(lambda: symbol.infer_shape(**shapes)),
        "partial": attempt(lambda: symbol.infer_shape_partial(**shapes)),
        "types": attempt(lambda: symbol.infer_type(**types)),
        "some types": attempt(lambda: symbol.infer_type_partial(**types)),
    }


def questions(maker: Maker, symbol: Any) -> list[dict[str, Any]]:
    """Choose what is known: the first variable, others, all but one, with open sizes."""
    names = symbol.list_arguments()
    found = attempt(lambda: symbol.infer_shape(**{names[0]: maker.values[0][1]}))
    if isinstance(found, str) or found[0] is None:
        return [{names[0]: maker.values[0][1]}]
    true = dict(zip(names, found[0], strict=True))
    chosen: list[dict[str, Any]] = [{names[0]: true[names[0]]}]
    for _ in range(4):
        some = maker.random.sample(names, maker.random.randint(1, len(names)))
        chosen.append({
            name: [0 if maker.random.random() < 0.15 else size for size in true[name]]
            for name in some
        })  # fmt: skip
    wrong = maker.random.choice(names)
    chosen.append({**true, wrong: [size + 1 for size in true[wrong]]})
    return chosen


def covers(ours: Any, real: Any) -> bool:
    """Whether the answer holds all that MXNet's does."""
    if isinstance(real, str) or isinstance(ours, str):
        return isinstance(real, str) == isinstance(ours, str)
    if real is None or real[0] is None:
        return True
    if ours is None or ours[0] is None:
        return False
    for one, other in zip(real, ours, strict=True):
        for known, found in zip(one, other, strict=True):
            if isinstance(known, str):
                if known != found:
                    return False
            elif known and (
                not found
                or len(known) != len(found)
                or any(a not in (0, b) for a, b in zip(known, found, strict=True))
            ):
                return False
    return True


def main(host: str, path: str, first: str = "0", last: str = "200") -> None:
    """Make and ask, or ask and compare."""
    mx = importlib.import_module(host)
    if host == "mxnet":
        lines = []
        for seed in range(int(first), int(last)):
            maker = Maker(mx, seed)
            symbol = maker.make()
            given = questions(maker, symbol)
            answers = [asked(symbol, each) for each in given]
            lines.append(json.dumps({"symbol": symbol.tojson(), "given": given, "found": answers}))
        Path(path).write_text("\n".join(lines), encoding="utf-8")
        return
    counts: Counter[str] = Counter()
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines()):
        record = json.loads(line)
        symbol = mx.sym.load_json(record["symbol"])
        for given, real in zip(record["given"], record["found"], strict=True):
            ours = asked(symbol, given)
            for what, answer in real.items():
                fits = covers(ours[what], answer)
                counts[
                    f"{what}: {'equal' if ours[what] == answer else 'more' if fits else 'DIFFERS'}"
                ] += 1
                if not fits:
                    print(number, what, given, answer, ours[what], sep="\n    ")
    print(dict(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
