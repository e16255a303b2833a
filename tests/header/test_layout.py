"""The build tag: libraries share objects with the host if, and only if, all is laid out alike."""

from __future__ import annotations

import ctypes
import json
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
VERSION = int(re.findall(r"^#define PASSLIB_HEADER_VERSION (\d+)$", HEADER, re.M)[0])
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


VALUES = """
#include "lib_api.h"
using namespace mxnet::ext;
MXReturnValue count(Graph* graph, const options_map_t&) {
  std::vector<JsonVal>& seen = graph->nodes[0]->subgraphs[0]->attrs["seen"].list;
  seen.push_back(JsonVal(static_cast<int>(seen.size())));
  return MX_SUCCESS;
}
REGISTER_PASS(NAME).setBody(count);
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""


def build(folder: Path, name: str, *command: str, header: str = "", text: str = SOURCE) -> Path:
    """Compile a library with one pass of this name, against another header if one is given."""
    if header:
        (folder / "lib_api.h").write_text(header, "utf-8")
    source = folder / f"{name}.cc"
    source.write_text(text.replace("NAME", name), "utf-8")
    path = folder / f"lib{name}.so"
    include = folder if header else INCLUDE
    flags = ("-shared", "-fPIC", "-std=c++11", "-O0", "-I", str(include))
    compile_to(path, (command[0], *flags, *command[1:]), [source])
    return path


def tag_of(path: Path) -> str:
    function = ctypes.CDLL(str(path))._passlibBuildTag
    function.restype = ctypes.c_char_p
    text: bytes = function(ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_void_p()))
    return text.decode()


@pytest.mark.skipif(
    (platform.machine(), sys.platform) != ("x86_64", "linux"),
    reason="the recorded layout is that of libstdc++ on 64-bit x86",
)
def test_the_layout_is_the_one_recorded_for_its_version(tmp_path: Path) -> None:
    recorded = DATA / "layout" / f"{VERSION}.txt"
    found = tag_of(build(tmp_path, "recordedLayout", "g++"))
    assert recorded.exists(), f"record the layout of this version:\n{found}"
    assert found == recorded.read_text("utf-8"), (
        "a type in Graph changed: raise PASSLIB_HEADER_VERSION in include/lib_api.h, and record "
        "the layout of that version in tests/data/layout"
    )


def test_the_namespace_has_the_version_in_its_name(tmp_path: Path) -> None:
    other = HEADER.replace(
        f"#define PASSLIB_HEADER_VERSION {VERSION}", f"#define PASSLIB_HEADER_VERSION {VERSION + 1}"
    )
    assert not re.search(r"namespace passlib\d", HEADER)
    path = build(tmp_path, "nextVersion", "g++", "-fvisibility=default", "-g", header=other)
    names = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
    assert f"mxnet::ext::passlib{VERSION + 1}::Graph" in names
    assert f"mxnet::ext::passlib{VERSION}::" not in names


def other_gcc() -> str:
    """Return the name of a g++ of another major version than the system's, there or not."""
    version = ["g++", "-dumpversion"]
    found = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    default = found.strip().partition(".")[0]
    names = [f"g++-{major}" for major in range(9, 20) if str(major) != default]
    return next(filter(shutil.which, names), "g++ of another major version")


ALIKE = {
    "alikeFlags": ("g++", "-std=c++20", "-O1", "-D_GLIBCXX_ASSERTIONS"),
    "alikeOtherGcc": (other_gcc(),),
    "alikeClang": ("clang++",),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ALIKE)
def test_other_compilers_share_types(name: str, tmp_path: Path) -> None:
    compiler = ALIKE[name][0]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    library = passlib.library.load(build(tmp_path, name, *ALIKE[name]), verbose=False)
    assert library.why_not_shared == ""
    assert library.shares_types
    assert library.handover == "direct"
    assert renamed_by(name)


def renamed_by(name: str) -> bool:
    symbol = passlib.sym.relu(passlib.sym.var("x"), name="r").optimize_for(name)
    return symbol.list_outputs() == ["new_r_output"]


NAMES_SWAPPED = ("std::string op;\n  std::string name;", "std::string name;\n  std::string op;")
NUMBERS_SWAPPED = ("JsonType type;\n  int num;", "int num;\n  JsonType type;")
CALLS_SWAPPED = ("  Copy copy;\n  Print print;", "  Print print;\n  Copy copy;")

OTHERWISE: dict[str, tuple[tuple[str, ...], tuple[str, str] | None, str]] = {
    "otherEnums": (("g++", "-fshort-enums"), None, "DLDeviceType 1"),
    "otherDebug": (("g++", "-D_GLIBCXX_DEBUG"), None, "debug mode"),
    "otherGcc11": (("g++-11", "-D_GLIBCXX_DEBUG"), None, "debug mode"),
    "otherStrings": (("g++", "-D_GLIBCXX_USE_CXX11_ABI=0"), None, "C++11 ABI 0"),
    "otherVectors": (("g++", "-D_GLIBCXX_SANITIZE_VECTOR"), None, "sanitized vectors"),
    "otherNames": (("g++",), NAMES_SWAPPED, "node.op"),
    "otherCalls": (("g++",), CALLS_SWAPPED, "values.copy"),
    "otherLibrary": (("clang++", "-stdlib=libc++"), None, "libc++"),
    "otherAllocator": (("g++", "-static-libstdc++", "-Wl,-Bsymbolic"), None, "operator new"),
}
"""Compiler, a change of the header, and what the difference is said to be."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_laid_out_otherwise_gets_plain_arrays(name: str, tmp_path: Path) -> None:
    command, change, difference = OTHERWISE[name]
    header = HEADER.replace(*change) if change else ""
    assert header != HEADER, "the change no longer applies"
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    try:
        path = build(tmp_path, name, *command, header=header)
    except RuntimeError as error:
        if "-stdlib=libc++" in command and "file not found" in str(error):
            pytest.skip("libc++ is not installed")
        raise
    library = passlib.library.load(path, verbose=False)
    assert not library.shares_types
    assert library.handover == "flat"
    assert difference in library.why_not_shared
    assert renamed_by(name)


def test_json_values_may_be_laid_out_otherwise(tmp_path: Path) -> None:
    """Host and library share the texts of a graph's attributes, and look into maps of their own."""
    header = HEADER.replace(*NUMBERS_SWAPPED)
    assert header != HEADER, "the change no longer applies"
    paths = [
        build(tmp_path, "theseValues", "g++", text=VALUES),
        build(tmp_path, "otherValues", "g++", text=VALUES, header=header),
    ]
    for path in paths:
        assert passlib.library.load(path, verbose=False).handover == "direct"
    variable = {"op": "null", "name": "x", "inputs": []}
    inner = {"nodes": [variable], "arg_nodes": [0], "heads": [[0, 0, 0]], "seen": [1.50, "x"]}
    holder = {"op": "_holder", "name": "h", "inputs": [], "subgraphs": [inner]}
    outer = {"nodes": [holder], "arg_nodes": [], "heads": [[0, 0, 0]]}
    symbol = passlib.sym.load_json(json.dumps(outer))
    for name in ("theseValues", "otherValues", "otherValues", "theseValues"):
        symbol = symbol.optimize_for(name)
    (node,) = json.loads(symbol.tojson())["nodes"]
    assert node["subgraphs"][0]["seen"] == [1.50, "x", 2, 3, 4, 5]


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
    "num_control_deps pairs num_pairs packed_words memory owner",
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
