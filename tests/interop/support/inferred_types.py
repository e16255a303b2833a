"""Ask a real MXNet 1.9.1 for the shapes and types that its passes see, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``), with g++ installed::

    python tests/interop/support/inferred_types.py tests/data/mxnet

builds a pass with the header and source that MXNet's wheel ships, runs it on every model and every
case in that folder, and writes ``inferred_types.jsonl.gz``. A line is a graph and the variables
whose arrays were given (all of a case, its first alone, or a model's data): for each node its name,
``__ext_shape__`` and ``__ext_dtype__``. The digest of the case shows whether the case has changed
since. Graphs on which MXNet's own inference fails are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))
from case_files import case_files, case_lines, case_tensors

SOURCE = """
#include "mxnet/lib_api.h"
#include <fstream>
using namespace mxnet::ext;
MXReturnValue write(mxnet::ext::Graph* graph,
                    const std::unordered_map<std::string, std::string>& options) {
  std::ofstream(options.at("path")) << graph->toString();
  return MX_SUCCESS;
}
REGISTER_PASS(write).setBody(write);
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""
DATA_SHAPES = {
    "inceptionv3": (1, 3, 299, 299),
    "lstm_lm": (7, 2),
    "resnet_v1_small": (2, 3, 64, 64),
}


def build(folder: Path) -> None:
    """Compile the pass and load it."""
    root = Path(mx.__file__).parent
    source, library = folder / "write.cc", folder / "libwrite.so"
    source.write_text(SOURCE, encoding="utf-8")
    command = ["g++", "-shared", "-fPIC", "-std=c++11", str(source), str(root / "src/lib_api.cc")]
    subprocess.run([*command, "-I", str(root / "include"), "-o", str(library)], check=True)
    mx.library.load(str(library), verbose=False)


def graphs(folder: Path) -> Iterator[tuple[str, int, Any, dict[str, Any], dict[str, Any]]]:
    """Yield name, digest of the case, symbol, arguments and auxiliary states of every graph."""
    for path in sorted((folder / "models").glob("*-symbol.json")):
        model = path.name[: -len("-symbol.json")]
        data = mx.nd.zeros(DATA_SHAPES.get(model, (1, 3, 224, 224)))
        yield f"models/{model}/first", 0, mx.sym.load(str(path)), {"data": data}, {}
    for path in case_files(folder):
        tensors = case_tensors(path)
        for line in case_lines(path):
            case = json.loads(line)
            symbol, name = mx.sym.load_json(case["symbol"]), case["name"]
            arrays = {
                key: mx.nd.array(
                    tensors[f"{name}/in/{key}"], dtype=tensors[f"{name}/in/{key}"].dtype
                )
                for key in case["args"] + case["aux"]
            }
            args = {key: arrays[key] for key in case["args"]}
            aux = {key: arrays[key] for key in case["aux"]}
            where = f"{path.relative_to(folder)}/{name}"
            digest = zlib.crc32(line.encode())
            for key in sorted(arrays):
                digest = zlib.crc32(tensors[f"{name}/in/{key}"].tobytes(), digest)
            if args:
                yield f"{where}/all", digest, symbol, args, aux
            if len(arrays) > 1 and args:
                first = case["args"][0]
                yield f"{where}/first", digest, symbol, {first: args[first]}, {}


def seen(symbol: Any, args: dict[str, Any], aux: dict[str, Any], path: Path) -> list[Any] | None:
    """Return name, shapes and types of each node as the pass sees them, or None."""
    try:
        symbol.optimize_for("write", args, aux or {"": mx.nd.zeros(1)}, path=str(path))
    except mx.base.MXNetError:
        return None
    nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"]
    return [
        [node["name"], node["attrs"]["__ext_shape__"], node["attrs"]["__ext_dtype__"]]
        for node in nodes
    ]


def main() -> None:
    """Read the folder from the command line and write the file there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch))
        for name, digest, symbol, args, aux in graphs(folder):
            nodes = seen(symbol, args, aux, Path(scratch) / "graph.json")
            if nodes is not None:
                line = {
                    "name": name,
                    "given": sorted({**args, **aux}),
                    "digest": digest,
                    "nodes": nodes,
                }
                lines.append(json.dumps(line, separators=(",", ":")))
    text = "\n".join(lines) + "\n"
    target = folder / "inferred_types.jsonl.gz"
    target.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(lines)} graphs written to {target}")


if __name__ == "__main__":
    main()
