"""Saves a model over another one with every system call failing in turn; prints what was found.

Usage: python failing_saves.py SHIM FOLDER KIND, with LD_PRELOAD=SHIM and PASSLIB_FAIL_BELOW=FOLDER

Writes one JSON object a line: the call that failed, how ("error" or "kill"), how the save ended,
and whose content the files had afterwards: "old", "new", or something else. Where loading reports
that the files are of two saves: what they are put together with what the save left.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import passlib
import places
from passlib.model import Model

MODES = ("error", "kill", "full disk")
ENDED, FAILED, FINISHED = 0, 3, 9


def mxnet(folder: Path) -> Path:
    x = passlib.sym.var("x")
    graph = passlib.sym.FullyConnected(x, num_hidden=3, name="fc")
    weights = {"fc_weight": passlib.nd.ones((3, 4)), "fc_bias": passlib.nd.zeros(3)}
    Model(graph, weights).save(folder / "m")
    return folder / "m-symbol.json"


def onnx_external(folder: Path) -> Path:
    size = 4096
    tensors = []
    for name, value in (("w", 1.0), ("b", 2.0)):
        tensor = numpy_helper.from_array(np.full(size, value, np.float32), name)
        tensors.append(tensor)
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [size]) for n in ("x", "y")]
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["t"], name="mul"),
        helper.make_node("Add", ["t", "b"], ["y"], name="add"),
    ]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], tensors)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save_model(model, folder / "m.onnx", save_as_external_data=True, location="weights.bin")
    return folder / "m.onnx"


def onnx_location(folder: Path) -> Path:
    path = onnx_external(folder)
    passlib.load(path).save(path, **OPTIONS["onnx_location"])
    (folder / "weights.bin").unlink()
    return path


def dlprim(folder: Path) -> Path:
    found = next(p for p in sorted((places.DATA / "dlprim").rglob("*.dlp")))
    for path in found.parent.glob(f"{found.stem}.*"):
        shutil.copy(path, folder / path.name)
    return folder / f"{found.stem}.json"


def ark(folder: Path) -> Path:
    found = min((places.DATA / "ark").rglob("*.json"), key=lambda path: path.stat().st_size)
    return Path(shutil.copy(found, folder / "model.json"))


def nnvm(folder: Path) -> Path:
    nodes = [{"op": "null", "name": name, "inputs": []} for name in ("data", "w")] + [
        {"op": "elemwise_mul", "name": "y", "inputs": [[0, 0, 0], [1, 0, 0]]}
    ]
    text = json.dumps(
        {"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3]}
    )
    (folder / "net.json").write_text(text)
    model = passlib.load(folder / "net.json", dialect="nnvm")
    Model(model.symbol, {"w": np.ones(5, np.float32)}, dialect="nnvm").save(folder / "net.json")
    return folder / "net.json"


MAKERS: dict[str, Callable[[Path], Path]] = {
    function.__name__: function
    for function in (mxnet, onnx_external, onnx_location, dlprim, ark, nnvm)
}
OPTIONS: dict[str, dict[str, Any]] = {
    "onnx_location": {"external_data": True, "location": "w.bin", "size_threshold": 0}
}


def changed(model: Model) -> Model:
    """Return the model with other weights, and with another graph where it has none."""
    args = {name: np.asarray(array) + 1 for name, array in model.args.items()}
    aux = {name: np.asarray(array) + 1 for name, array in model.aux.items()}
    return Model(model.symbol, args, aux, model.dialect, template=model._template)


def content(path: Path, dialect: str) -> str:
    """Return what the files say, for comparison."""
    model = passlib.load(path, dialect=dialect)
    arrays = {**model.args, **model.aux}
    numbers = {name: np.asarray(arrays[name]).tobytes().hex() for name in sorted(arrays)}
    return model.symbol.graph.print(pretty=False, attributes={}) + json.dumps(numbers)


def seen_by_onnx(path: Path) -> list[bytes]:
    tensors = onnx.load(path).graph.initializer
    return [numpy_helper.to_array(tensor).tobytes() for tensor in tensors]


def put_together(folder: Path, main: Path, dialect: str) -> set[str]:
    """Return the contents of models made of what is in a folder and what a killed save left."""
    found = set()
    for left in folder.glob(".passlib-*.tmp"):
        kind = left.read_bytes()[:1]
        if kind == b"\x89":
            continue  # the .h5 file, which is not read where there is a .dlp file
        copy = folder.with_name(f"{folder.name}-copy")
        shutil.copytree(folder, copy, symlinks=True)
        for stamp in copy.glob(".passlib-*.stamp"):
            stamp.unlink()
        suffix = ".dlp" if kind == b"D" else ".params"
        weights = [each.name for each in copy.iterdir() if each.suffix == suffix]
        (copy / left.name).replace(copy / (main.name if kind == b"{" else weights[0]))
        found.add(content(copy / main.name, dialect))
        shutil.rmtree(copy)
    return found


def main(shim: str, folder: Path, kind: str) -> None:
    logging.disable(logging.WARNING)
    library = ctypes.CDLL(shim)
    library.fail_at.argtypes = [ctypes.c_long, ctypes.c_int]
    library.calls_seen.restype = ctypes.c_long
    path = MAKERS[kind](folder)
    dialect = kind.partition("_")[0]
    before = folder.with_name(f"{folder.name}-before")
    shutil.copytree(folder, before)
    new = changed(passlib.load(path, dialect=dialect))
    options = OPTIONS.get(kind, {})
    contents = {content(path, dialect): "old"}
    new.save(path, **options)
    contents.setdefault(content(path, dialect), "new")
    others = {}
    if kind.startswith("onnx"):
        others = {str(seen_by_onnx(path)): "new"}

    def restore() -> None:
        shutil.rmtree(folder)
        shutil.copytree(before, folder)

    restore()
    if others:
        others[str(seen_by_onnx(path))] = "old"
    for mode, name in enumerate(MODES):
        for number in range(1, 10_000):
            restore()
            # Mapped files of the model must not be those that are about to be replaced.
            child = os.fork()
            if child == 0:
                library.fail_at(number, mode)
                ended = ENDED
                try:
                    new.save(path, **options)
                except (OSError, passlib.PasslibError):
                    ended = FAILED
                os._exit(FINISHED if library.calls_seen() < number else ended)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            found: dict[str, Any] = {"call": number, "how": name, "ended": status}
            if others:
                found["onnx"] = others.get(str(seen_by_onnx(path)), "something else")
            try:
                found["content"] = contents.get(content(path, dialect), "something else")
            except passlib.FormatError as error:
                found["content"] = str(error)
                put = put_together(folder, path, dialect)
                found["put together"] = sorted(contents.get(text, "something else") for text in put)
            new.save(path, **options, durable=False)
            found["left"] = sorted(p.name for p in folder.iterdir() if p.name.startswith("."))
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
            if status == FINISHED:
                break


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
