"""Graphs cross to libraries of any compiler and standard library as plain structs of one layout."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import passlib
from places import DATA
from plugin_build import INCLUDE, compile_to

HEADER = (INCLUDE / "lib_api.h").read_text("utf-8")
SOURCE = """
#include "lib_api.h"
using namespace mxnet::ext;
MXReturnValue rename(Graph* graph, const options_map_t&) {
  for (Node* node : graph->nodes) {
    if (node->op != "null") node->name = "new_" + node->name;
  }
  return MX_SUCCESS;
}
REGISTER_PASS(NAME).setBody(rename);
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""


def build(folder: Path, name: str, *command: str) -> Path:
    """Compile a library with one pass of this name."""
    source = folder / f"{name}.cc"
    source.write_text(SOURCE.replace("NAME", name), "utf-8")
    path = folder / f"lib{name}.so"
    flags = ("-shared", "-fPIC", "-std=c++11", "-O0", "-I", str(INCLUDE))
    compile_to(path, (command[0], *flags, *command[1:]), [source])
    return path


def other_gcc() -> str:
    """Return the name of a g++ of another major version than the system's, there or not."""
    version = ["g++", "-dumpversion"]
    found = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    default = found.strip().partition(".")[0]
    names = [f"g++-{major}" for major in range(9, 20) if str(major) != default]
    return next(filter(shutil.which, names), "g++ of another major version")


COMMANDS = {
    "withFlags": ("g++", "-std=c++20", "-O1", "-D_GLIBCXX_ASSERTIONS"),
    "withOtherGcc": (other_gcc(),),
    "withClang": ("clang++",),
    "withLibcxx": ("clang++", "-stdlib=libc++"),
    "withShortEnums": ("g++", "-fshort-enums"),
    "withDebugMode": ("g++", "-D_GLIBCXX_DEBUG"),
    "withOldStrings": ("g++", "-D_GLIBCXX_USE_CXX11_ABI=0"),
    "withSanitizedVectors": ("g++", "-D_GLIBCXX_SANITIZE_VECTOR"),
    "withOwnAllocator": ("g++", "-static-libstdc++", "-Wl,-Bsymbolic"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_any_build_gets_plain_arrays(name: str, tmp_path: Path) -> None:
    command = COMMANDS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    try:
        path = build(tmp_path, name, *command)
    except RuntimeError as error:
        if "-stdlib=libc++" in command and "file not found" in str(error):
            pytest.skip("libc++ is not installed")
        raise
    assert passlib.library.load(path, verbose=False).handover == "flat"
    symbol = passlib.sym.relu(passlib.sym.var("x"), name="r").optimize_for(name)
    assert symbol.list_outputs() == ["new_r_output"]


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_messages_with_numbers_by_a_static_standard_library(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    name = f"countsWith{len(compiler)}"
    source = tmp_path / f"{name}.cc"
    fails = (
        'MX_ERROR_MSG << "has " << graph->size() << " nodes, " << 0.5 << std::endl; return MX_FAIL;'
    )
    source.write_text(SOURCE.replace("NAME", name).replace("return MX_SUCCESS;", fails, 1), "utf-8")
    path = tmp_path / f"lib{name}.so"
    flags = ("-shared", "-fPIC", "-std=c++11", "-O0", "-static-libstdc++", "-I", str(INCLUDE))
    compile_to(path, (compiler, *flags), [source])
    passlib.library.load(path, verbose=False)
    with pytest.raises(passlib.PassError, match=r"\.cc\[\d+\]: has 2 nodes, 0\.5"):
        passlib.sym.relu(passlib.sym.var("x")).optimize_for(name)


FLAT_VERSION = int(re.findall(r"^#define PASSLIB_FLAT_VERSION (\d+)$", HEADER, re.M)[0])
FLAT = {
    "FlatText": "data size",
    "FlatPair": "key text",
    "FlatEdge": "node entry version",
    "FlatNode": "op name packed packed_words num_attrs num_extra num_inputs num_control_deps "
    "num_subgraphs num_outputs outputs_declared",
    "FlatGraph": "num_nodes num_outputs num_attrs",
    "FlatMemory": "allocate release",
    "FlatModel": "version size graphs num_graphs nodes num_nodes edges num_edges control_deps "
    "num_control_deps pairs num_pairs packed_words memory owner types host",
}


def flat_members() -> dict[str, str]:
    """Return the members of the structs as the header has them."""
    found = {}
    for name, body in re.findall(r"^struct (Flat\w+) \{\n(.*?)^\};", HEADER, re.M | re.S):
        if name in FLAT:
            code = re.sub(r"//.*", "", body)
            found[name] = " ".join(re.findall(r"(\w+)\)?(?:\([^)]*\))?;", code))
    return found


@pytest.mark.skipif(
    (platform.machine(), sys.platform) != ("x86_64", "linux"),
    reason="the recorded layout is that of 64-bit x86",
)
@pytest.mark.parametrize("compiler", [("g++",), ("clang++", "-stdlib=libc++", "-fshort-enums")])
def test_plain_structs_are_the_ones_recorded(compiler: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    assert flat_members() == FLAT
    lines = [
        f'printf("{place} %zu @%zu\\n", sizeof({name}::{member}), offsetof({name}, {member}));'
        for name, members in FLAT.items()
        for member in members.split()
        for place in [f"{name}.{member}"]
    ]
    lines += [f'printf("{name} %zu\\n", sizeof({name}));' for name in FLAT]
    source = tmp_path / "flat.cc"
    text = [
        "#define PASSLIB_NO_ENTRY_POINTS",
        '#include "lib_api.h"',
        "using namespace mxnet::ext;",
    ]
    source.write_text("\n".join([*text, "int main() {", *lines, "}"]), "utf-8")
    program = tmp_path / "flat"
    flags = ("-std=c++11", "-O0", "-I", str(INCLUDE))
    try:
        compile_to(program, (compiler[0], *flags, *compiler[1:]), [source])
    except RuntimeError as error:
        if "-stdlib=libc++" in compiler and "file not found" in str(error):
            pytest.skip("libc++ is not installed")
        raise
    found = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    recorded = DATA / "layout" / f"flat-{FLAT_VERSION}.txt"
    assert recorded.exists(), f"record the layout of this version:\n{found}"
    assert found == recorded.read_text("utf-8"), (
        "a plain struct changed: raise PASSLIB_FLAT_VERSION in include/lib_api.h, and record the "
        "layout of that version in tests/data/layout"
    )
