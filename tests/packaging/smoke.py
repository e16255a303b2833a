"""Check an installed wheel in an environment that has only its extra ``run`` besides.

Run as ``python smoke.py DATA``, where DATA is the folder tests/data, outside the repository: loads,
rewrites and saves a model of every dialect, compiles libraries by the command line and by CMake,
runs a model. Without ONNX Runtime, models are rewritten and not run. Raises at the first fault.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import graph_passlib
import passlib as pl

SOURCE = """
#include "lib_api.h"
using namespace mxnet::ext;
static MXReturnValue mark(Graph* graph, const std::unordered_map<std::string, std::string>&) {
  for (Node* node : graph->sorted())
    if (node->op != "null") node->attrs["__marked__"] = "yes";
  return MX_SUCCESS;
}
REGISTER_PASS(NAME).setBody(mark);
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""
PROJECT = """
cmake_minimum_required(VERSION 3.18...4.0)
project(author LANGUAGES CXX)
find_package(passlib REQUIRED)
passlib_add_library(marked marked.cc)
"""
MODELS = ("ark/gen_seed-mlp_softmax.full.json", "dlprim/pool_variants.json", "nnvm/custom_mlp.json")


def run(*command: str, folder: Path) -> str:
    """Return what a command prints."""
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def command(*arguments: str, folder: Path) -> str:
    """Return what the command ``passlib`` of this environment prints."""
    return run(str(Path(sys.executable).with_name("passlib")), *arguments, folder=folder)


def imports(data: Path, folder: Path) -> None:
    """Import the package by both names, from the environment."""
    del data, folder
    assert graph_passlib is pl
    assert Path(sys.prefix) in Path(pl.errors.__file__).parents, pl.errors.__file__
    assert command("--version", folder=Path.cwd()).strip() == pl.__version__


def build(data: Path, folder: Path) -> None:
    """Compile a pass by the command line, and load it."""
    del data
    (folder / "mark.cc").write_text(SOURCE.replace("NAME", "markAll"), "utf-8")
    command("build", "mark.cc", "-o", "libmark.so", folder=folder)
    library = pl.library.load(folder / "libmark.so", verbose=False)
    assert list(library.passes) == ["markAll"], library.passes


def cmake(data: Path, folder: Path) -> None:
    """Compile a pass by ``find_package(passlib)``, and load it."""
    del data
    (folder / "marked.cc").write_text(SOURCE.replace("NAME", "markByCMake"), "utf-8")
    (folder / "CMakeLists.txt").write_text(PROJECT, "utf-8")
    found = shutil.which(
        "cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    assert found, "cmake is missing"
    run(found, "-S.", "-Bbuild", f"-Dpasslib_DIR={pl.get_cmake_dir()}", folder=folder)
    run(found, "--build", "build", folder=folder)
    pl.library.load(folder / "build" / "libmarked.so", verbose=False)


def dialects(data: Path, folder: Path) -> None:
    """Load, rewrite and save a model of every dialect."""
    for number, name in enumerate(MODELS):
        model = pl.load(data / name)
        again = pl.load(model.optimize_for("markAll").save(folder / f"{number}.json")[0])
        assert len(again.symbol.nodes()) == len(model.symbol.nodes()), name
    pl.library.load_standard()
    smaller = pl.load(data / "mxnet" / "models" / "squeezenet1.1").optimize_for("removeDeadNodes")
    smaller.save(folder / "squeezenet")
    difference = pl.workbench.diff(smaller, pl.load(folder / "squeezenet"))
    assert difference.equal, difference


def runs(data: Path, folder: Path) -> None:
    """Export a model to ONNX, rewrite it there, and run both."""
    if importlib.util.find_spec("onnxruntime") is None:
        print("ONNX Runtime is not installed: no model is run")
        return
    model = pl.load(data / "mxnet" / "models" / "squeezenet1.1")
    model.to_onnx(folder / "net.onnx", shapes={"data": (1, 3, 224, 224)})
    command("opt", "net.onnx", "-o", "smaller.onnx", folder=folder)
    image = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    expected, given = (
        each.run({"data": image}) for each in (model, pl.load(folder / "smaller.onnx"))
    )
    assert list(given) == list(expected)
    for name, output in expected.items():
        np.testing.assert_allclose(
            np.asarray(given[name]), np.asarray(output), rtol=1e-4, atol=1e-5, err_msg=name
        )


WORK: tuple[Callable[[Path, Path], None], ...] = (build, cmake, dialects, runs)
"""In an order in which later ones use what earlier ones made."""


def main(checks: tuple[Callable[[Path, Path], None], ...] = (imports, *WORK)) -> None:
    """Run checks, all by default."""
    data = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        for check in checks:
            check(data, Path(folder))
            print(f"ok: {(check.__doc__ or '').strip()}")


if __name__ == "__main__":
    main()
