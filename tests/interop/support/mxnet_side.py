"""The MXNet side of the interop tests: a process that answers questions, one JSON line each.

Runs in the environment that has MXNet 1.9.1. A question is ``{"call": name, "arguments": {...}}``,
an answer ``{"value": ...}`` or ``{"error": type, "message": text}``. Both kinds of answer have
``"printed"``: the call's standard output, including that of libraries.
"""

from __future__ import annotations

import ctypes
import functools
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "support")]

CALLS: dict[str, Callable[..., Any]] = {}


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function that the tests call by name."""
    CALLS[function.__name__] = function
    return function


def attempt(function: Callable[[], Any]) -> dict[str, Any]:
    """Call a function, and return its value or exception in the form of an answer."""
    try:
        return {"value": function()}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


@call
def version() -> str:
    return str(mx.__version__)


@call
def die() -> None:
    """End this process as a crash in a library would."""
    os.abort()


@call
def load_library(path: str) -> None:
    mx.library.load(path, verbose=False)


@call
def rewrite(texts: list[str]) -> list[dict[str, Any]]:
    """Load symbols from their text and write each one again."""
    return [attempt(functools.partial(_rewritten, text)) for text in texts]


def _rewritten(text: str) -> str:
    return str(mx.sym.load_json(text).tojson())


@call
def accept(text: str) -> None:
    """Load a symbol."""
    mx.sym.load_json(text)


@functools.lru_cache(maxsize=1)
def _source(text: str) -> Any:
    """Load a symbol that several successive calls start from and none changes."""
    return mx.sym.load_json(text)


@call
def load(path: str) -> str:
    return str(mx.sym.load(path).tojson())


@call
def optimize(text: str, backend: str, options: dict[str, Any]) -> str:
    return str(_source(text).optimize_for(backend, **options).tojson())


@call
def optimize_ones(text: str, backend: str, options: dict[str, Any], shape: list[int]) -> str:
    """Run a pass or partitioner with an array of ones for each argument."""
    symbol = mx.sym.load_json(text)
    args = {name: mx.nd.ones(tuple(shape)) for name in symbol.list_arguments()}
    # MXNet may call a library before its arrays are complete.
    mx.nd.waitall()
    return str(symbol.optimize_for(backend, args, {}, **options).tojson())


@call
def optimize_weights(
    text: str,
    backend: str,
    options: dict[str, Any],
    params: str,
    shapes: dict[str, list[int]],
    result: str,
) -> dict[str, Any]:
    """Run a pass with weights, and write the resulting ones to the .params file `result`."""
    symbol = mx.sym.load_json(text)
    saved = mx.nd.load(params)
    # As in optimize_ones.
    mx.nd.waitall()
    args = {key[4:]: array for key, array in saved.items() if key.startswith("arg:")}
    aux = {key[4:]: array for key, array in saved.items() if key.startswith("aux:")}
    given = {name: tuple(shape) for name, shape in shapes.items()}
    answer = attempt(
        lambda: symbol.optimize_for(backend, args, aux, shape_dict=given, **options).tojson()
    )
    left = {f"arg:{name}": array for name, array in args.items()}
    left.update({f"aux:{name}": array for name, array in aux.items()})
    mx.nd.save(result, left)
    return answer


@call
def describe(text: str) -> dict[str, Any]:
    import observe

    return observe.describe(mx.sym.load_json(text))


@call
def compose(name: str) -> dict[str, Any]:
    """Run one of the programs that build symbols."""
    import compose_programs
    import observe

    with mx.name.NameManager():
        symbol = compose_programs.PROGRAMS[name](mx)
    return {"json": symbol.tojson(remove_amp_cast=False), "answers": observe.describe(symbol)}


@call
def forward(text: str, params: str, inputs: str, outputs: str) -> None:
    """Run a model once; inputs and outputs are .npz files, the latter with keys 0, 1, ..."""
    symbol = mx.sym.load_json(text)
    arrays = {key.split(":", 1)[-1]: value for key, value in mx.nd.load(params).items()}
    with np.load(inputs) as given:
        arrays.update({key: mx.nd.array(given[key], dtype=given[key].dtype) for key in given.files})
    args = {name: arrays[name] for name in symbol.list_arguments()}
    aux = {name: arrays[name] for name in symbol.list_auxiliary_states()}
    executor = symbol.bind(mx.cpu(), args=args, aux_states=aux, grad_req="null")
    results = executor.forward(is_train=False)
    np.savez(outputs, **{str(i): result.asnumpy() for i, result in enumerate(results)})


@call
def export_zoo(name: str, folder: str, shapes: list[list[int]]) -> None:
    """Export an architecture of MXNet's model zoo with weights drawn anew.

    The files are those of ``HybridBlock.export`` and ``<name>-io.npz``, with ``in/<number>`` and
    ``out/<number>`` for each shape. The first shape determines those of the weights; where MXNet
    cannot run another one, there is no output.
    """
    mx.random.seed(7)
    network = mx.gluon.model_zoo.vision.get_model(name)
    network.initialize(mx.init.Xavier(magnitude=2))
    network.hybridize()
    draws = np.random.RandomState(7)
    arrays = {}
    for number, shape in enumerate(shapes):
        data = arrays[f"in/{number}"] = draws.rand(*shape).astype("float32")
        answer = attempt(lambda given=data: network(mx.nd.array(given)).asnumpy())
        if "value" in answer:
            arrays[f"out/{number}"] = answer["value"]
    network.export(str(Path(folder) / name))
    np.savez(Path(folder) / f"{name}-io.npz", **arrays)


@call
def save_arrays(source: str, target: str, named: bool) -> None:
    """Write the arrays of an .npz file as MXNet's .params."""
    with np.load(source) as given:
        # Without dtype, array() makes everything float32.
        arrays = {key: mx.nd.array(given[key], dtype=given[key].dtype) for key in given.files}
    mx.nd.save(target, arrays if named else list(arrays.values()))


@call
def load_arrays(source: str, target: str) -> None:
    """Write the arrays of a .params file as .npz; arrays without a name get their number."""
    arrays = mx.nd.load(source)
    if isinstance(arrays, list):
        arrays = {str(i): array for i, array in enumerate(arrays)}
    np.savez(target, **{key: array.asnumpy() for key, array in arrays.items()})


@call
def resave_arrays(source: str, target: str, np_shape: bool) -> None:
    with mx.util.np_shape(np_shape):
        mx.nd.save(target, mx.nd.load(source))


def serve() -> None:
    """Answer questions until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
        for line in sys.stdin:
            question = json.loads(line)
            function = CALLS[question["call"]]
            answer = attempt(functools.partial(function, **question["arguments"]))
            sys.stdout.flush()
            libc.fflush(None)
            printed.seek(0)
            answer["printed"] = printed.read().decode("utf-8", "replace")
            printed.seek(0)
            printed.truncate()
            channel.write(json.dumps(answer) + "\n")
            channel.flush()


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import mxnet as mx
    import numpy as np

    serve()
