"""Compile time of libraries: one pass, beside MXNet's header with its lib_api.cc; two patterns.

Usage: compile.py --mxnet PYTHON [--rounds N]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
COMPILER = "/usr/bin/g++"
"""By its path: a compiler cache may come first in PATH."""
SOURCE = """\
#include "lib_api.h"

using namespace mxnet::ext;

MXReturnValue renameRelu(Graph* graph,
                         const std::unordered_map<std::string, std::string>& options) {
  for (size_t i = 0; i < graph->size(); ++i) {
    Node* node = graph->getNode(i);
    if (node->op == "relu") node->op = "Activation";
  }
  return options.count("fail") != 0 ? MX_FAIL : MX_SUCCESS;
}

REGISTER_PASS(renameRelu).setBody(renameRelu);

MXReturnValue initialize(int version) { return version >= 10700 ? MX_SUCCESS : MX_FAIL; }
"""
PATTERNS = """\
#include "lib_patterns.h"

using namespace mxnet::ext;

PATTERN_PASS(fuseMatMulAdd, "MatMul and Add become Gemm", "onnx") {
  Pattern p("y = Add(MatMul(x, w:param), b:param)");
  p.where([](const Match& m) { return m.rank("x") == 2 && m.broadcasts("b", "y"); });
  p.replace("y = Gemm(x, w, b)");
}

PATTERN_PASS(dropDropout, "Dropout goes", "onnx") {
  Pattern p("y = Dropout(x)");
  p.rewrite([](Match& m) { m.replace("y", m["x"]); });
}

MXReturnValue initialize(int version) { return version >= 10700 ? MX_SUCCESS : MX_FAIL; }
"""
HEAD = """\
| option | passlib's header, s | .so, KB | MXNet's header and lib_api.cc, s | .so, KB | ratio |
|---|---|---|---|---|---|"""


def processor_time(command: list[str]) -> float:
    """Run a command and return the user time of it and its children, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def mxnet_flags(python: str) -> list[str]:
    """Return the second source of a library for MXNet, and the include folders."""
    code = "import importlib.util as u; print(u.find_spec('mxnet').origin)"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    root = Path(done.stdout.strip()).parent
    include = root / "include"
    return [str(root / "src/lib_api.cc"), "-I", str(include / "mxnet"), "-I", str(include)]


def main() -> None:
    """Compile alternately and print the best rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", required=True, help="a Python that has MXNet 1.9.1")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ways = [["-I", str(HERE.parent / "include")], mxnet_flags(options.mxnet)]
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "pass.cc"), Path(folder, "libpass.so")
        source.write_text(SOURCE, "utf-8")
        for level in ("-O0", "-O2"):
            common = [COMPILER, "-shared", "-fPIC", "-std=c++11", level, str(source)]
            best, sizes = [float("inf")] * 2, [0, 0]
            for _ in range(options.rounds):
                for which, flags in enumerate(ways):
                    taken = processor_time([*common, *flags, "-o", str(library)])
                    best[which] = min(best[which], taken)
                    sizes[which] = library.stat().st_size
            cells = [f"{best[i]:.2f} | {sizes[i] / 1000:.0f}" for i in range(2)]
            print(f"| {level} | {' | '.join(cells)} | {best[0] / best[1]:.2f} |", flush=True)
        source.write_text(PATTERNS, "utf-8")
        command = [*common, *ways[0], "-o", str(library)]
        taken = min(processor_time(command) for _ in range(options.rounds))
        size = library.stat().st_size / 1000
    print(f"\ntwo PATTERN_PASSes at -O2: {taken:.1f} s, {size:.0f} KB")


if __name__ == "__main__":
    main()
