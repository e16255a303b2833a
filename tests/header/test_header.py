"""The header: it compiles quietly everywhere, exports what it should, and scales."""

from __future__ import annotations

import os
import re
import shutil
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plugin_build import INCLUDE, PLUGINS, TESTS
from sanitized import unless_sanitized

PathOf = Callable[[str], Path]

ENTRY_POINTS = [
    "_opVersion", "_msgSize", "_msgGet", "initialize", "_opCallFree", "_opCallParseAttrs",
    "_opCallInferShape", "_opCallInferType", "_opCallInferSType", "_opCallFCompute",
    "_opCallMutateInputs", "_opCallCreateOpState", "_opCallDestroyOpState",
    "_opCallFStatefulCompute", "_opRegSize", "_opRegGet", "_partCallSupportedOps",
    "_partCallCreateSelector", "_partCallSelect", "_partCallSelectInput",
    "_partCallSelectOutput", "_partCallFilter", "_partCallReset", "_partCallReviewSubgraph",
    "_partRegSize", "_partRegGetCount", "_partRegGet", "_passCallGraphPass", "_passRegSize",
    "_passRegGet",
]  # fmt: skip

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only")
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
STANDARDS = ["c++11", "c++14", "c++17", "c++20", "c++23"]
MINIMAL = """
static mxnet::ext::MXReturnValue body(
    mxnet::ext::Graph*, const std::unordered_map<std::string, std::string>&) {
  return mxnet::ext::MX_SUCCESS;
}
REGISTER_PASS(NAME).setBody(body);
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
"""


def compile_quietly(compiler: str, standard: str, source: Path, *flags: str) -> None:
    # The name of C++23 depends on the compiler's age.
    for spelling in (standard, standard.replace("23", "2b")):
        run = subprocess.run(
            [compiler, f"-std={spelling}", *STRICT, *flags, "-I", str(INCLUDE), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if "-std=" not in run.stderr:
            break
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""


@pytest.mark.sample(2)
@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_compiles_quietly(compiler: str, standard: str, tmp_path: Path) -> None:
    source = tmp_path / "minimal.cc"
    source.write_text('#include "lib_api.h"\n' + MINIMAL)
    compile_quietly(compiler, standard, source)


@pytest.mark.sample(1)
@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_patterns_compile_quietly(compiler: str, standard: str) -> None:
    compile_quietly(compiler, standard, TESTS / "plugins" / "fusions.cc")


@pytest.mark.sample(1)
@pytest.mark.parametrize("include", ["<mxnet/lib_api.h>", '"mxnet/lib_api.h"', "<lib_api.h>"])
def test_ways_to_include_it(include: str, tmp_path: Path) -> None:
    source = tmp_path / "minimal.cc"
    source.write_text(f"#include {include}\n{MINIMAL}")
    compile_quietly("g++", "c++11", source)


PATTERNS = """
using namespace mxnet::ext;
PATTERN_PASS(usesPatterns, "Neg becomes Relu") {
  Pattern("y = Neg(x)").replace("y = Relu(x)");
}
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "includes",
    [
        '#include "lib_patterns.h"',
        '#include "lib_api.h"\n#include "lib_patterns.h"',
        '#define PASSLIB_PATTERNS\n#include "lib_api.h"',
        '#define PASSLIB_PATTERNS\n#include "lib_patterns.h"',
        "#define PASSLIB_PATTERNS\n#include <mxnet/lib_api.h>",
    ],
)
def test_ways_to_include_patterns(includes: str, tmp_path: Path) -> None:
    source = tmp_path / "patterns.cc"
    source.write_text(includes + PATTERNS)
    compile_quietly("g++", "c++11", source)


def test_patterns_without_their_header(tmp_path: Path) -> None:
    source = tmp_path / "patterns.cc"
    source.write_text('#include "lib_api.h"\n' + PATTERNS)
    command = ["g++", "-std=c++11", "-fsyntax-only", "-I", str(INCLUDE), str(source)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in run.stderr.splitlines() if "error: " in line]
    assert 'PATTERN_PASS needs #include "lib_patterns.h"' in errors[0], run.stderr


def test_headers_are_their_parts() -> None:
    """`make header` joins the parts; a change of a joined file would be lost."""
    command = [sys.executable, str(INCLUDE.parent / "header" / "join.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, ""), run.stdout


def test_cuda_types_under_nvcc(tmp_path: Path) -> None:
    """CUDA's compiler gets the types of streams and random states from CUDA's own headers."""
    (tmp_path / "cuda_runtime.h").write_text("typedef struct Stream* cudaStream_t;\n")
    (tmp_path / "curand_kernel.h").write_text("struct curandStatePhilox4_32_10_t {};\n")
    source = tmp_path / "minimal.cc"
    source.write_text('#define __NVCC__\n#include "lib_api.h"\n' + MINIMAL)
    compile_quietly("g++", "c++11", source, "-isystem", str(tmp_path))


PUBLIC = {"op", "at", "do", "if", "or", "DL"}
"""Names of two letters that are the interface's, the standard library's or the language's."""

STANDARD_HEADERS = [
    name
    for header in ("lib_api.h", "lib_patterns.h")
    for name in re.findall(
        r"^#include <(?!cxxabi|cu)([\w/]+(?:\.h)?)>", (INCLUDE / header).read_text(), re.M
    )
]


def macro_names() -> list[str]:
    letters = string.ascii_letters
    short = [*letters, *(a + b for a in letters for b in letters + string.digits)]
    windows = "near far small interface IN OUT ERROR DELETE OPTIONAL CONST VOID TRUE FALSE STRICT"
    others = "CreateWindow GetObject SendMessage GetMessage Yield Status None True Bool check unix"
    return [name for name in (*short, *windows.split(), *others.split()) if name not in PUBLIC]


@pytest.mark.sample(1)
@pytest.mark.parametrize("header", ["lib_patterns.h", "lib_api.h"])
def test_macros_of_other_headers(header: str, tmp_path: Path) -> None:
    """The header uses no name that somebody's macro may have."""
    source = tmp_path / "macros.cc"
    source.write_text(
        "\n".join(
            [
                *(f"#include <{name}>" for name in STANDARD_HEADERS if name != "charconv"),
                *(f"#define {name} +" for name in macro_names()),
                "#define min() +\n#define max() +",
                f'#include "{header}"\n',
            ]
        )
    )
    compile_quietly("g++", "c++11", source)


@pytest.mark.sample(1)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_after_every_standard_header(compiler: str, standard: str, tmp_path: Path) -> None:
    """No name of the header means another one of the standard library, such as std::quoted."""
    source = tmp_path / "all.cc"
    every_api = (TESTS / "plugins" / "every_api.cc").read_text("utf-8")
    source.write_text(f"#include <filesystem>\n#include <bits/stdc++.h>\n{every_api}", "utf-8")
    compile_quietly(compiler, standard, source)


def test_without_exceptions(tmp_path: Path) -> None:
    source = tmp_path / "minimal.cc"
    source.write_text('#include "lib_api.h"\n')
    run = subprocess.run(
        ["g++", "-fno-exceptions", "-fsyntax-only", "-I", str(INCLUDE), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in run.stderr.splitlines() if "error: " in line]
    assert len(errors) == 1, run.stderr
    assert "compile without -fno-exceptions" in errors[0]


@pytest.mark.parametrize("flags", [(), ("-funsigned-char",), ("-O2",)], ids=" ".join)
def test_every_function_compiles_quietly(flags: tuple[str, ...]) -> None:
    """Also where char has no sign, as on ARM."""
    compile_quietly("g++", "c++11", TESTS / "plugins" / "every_api.cc", *flags)


def test_it_compiles_quietly_for_arm(tmp_path: Path) -> None:
    compiler = "aarch64-linux-gnu-g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    source = tmp_path / "minimal.cc"
    source.write_text('#include "lib_patterns.h"\n' + MINIMAL)
    compile_quietly(compiler, "c++11", source)


USE = """#include "lib_api.h"
static mxnet::ext::MXReturnValue body(mxnet::ext::Graph* graph,
                                      const std::unordered_map<std::string, std::string>&) {
  mxnet::ext::Node* node = graph->nodes[0];
  const std::string text = "text";
  STATEMENT
  return mxnet::ext::MX_SUCCESS;
}
REGISTER_PASS(use).setBody(body);
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
"""


def errors_of(statement: str, tmp_path: Path, *flags: str) -> str:
    """Return what a compiler says of a statement with a node; "" if nothing."""
    source = tmp_path / "use.cc"
    source.write_text(USE.replace("STATEMENT", f"{statement} (void)node; (void)text;"))
    command = ["g++", "-std=c++11", *STRICT[:-1], "-c", "-o", os.devnull, *flags]
    command += ["-I", str(INCLUDE), str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


NUMBERS = ["3", "0", "2.5", "true", "node->num_outputs", "mxnet::ext::kInt8"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("left", ["attrs[text] =", 'attrs.at("k") =', 'attrs["k"] +='])
@pytest.mark.parametrize("right", NUMBERS)
def test_numbers_are_no_attributes(left: str, right: str, tmp_path: Path) -> None:
    assert "use of deleted function" in errors_of(f"node->{left} {right};", tmp_path)


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_texts_are_attributes_and_nodes_are_copied(level: str, tmp_path: Path) -> None:
    statement = """
      std::string other("other");
      node->attrs["k"] = "v";
      node->attrs["k"] = text;
      node->attrs["k"] = std::to_string(3);
      node->attrs["k"] = 'c';
      node->attrs["k"] = {};
      node->attrs["k"] = node->attrs["l"];
      node->attrs["k"] += text + node->attrs["l"] + 'c';
      std::string& kept = node->attrs["k"];
      kept = text.empty() ? node->attrs["k"] : "none";
      kept = text.empty() ? node->attrs["k"] : text;
      std::swap(node->attrs["k"], other);
      std::swap(node->attrs["k"], node->attrs["l"]);
      std::vector<std::string> list{node->attrs["k"], "b"};
      list.push_back(node->attrs.at("k"));
      if (node->attrs["k"] == "v" && std::stoi(node->attrs["k"]) > 3) std::cin >> node->attrs["k"];
      mxnet::ext::Node* copy = new mxnet::ext::Node(*node);
      delete copy;
    """
    assert errors_of(statement, tmp_path, level) == ""


def test_other_dlpack_header(tmp_path: Path) -> None:
    source = tmp_path / "dlpack.cc"
    source.write_text(
        '#define PASSLIB_NO_GLOBAL_DLPACK\n#include "lib_api.h"\n'
        "struct DLTensor { int other; };\n" + MINIMAL
    )
    compile_quietly("g++", "c++17", source)


def exported(path: Path) -> dict[str, str]:
    run = subprocess.run(
        ["nm", "-D", "-C", "--defined-only", str(path)], capture_output=True, text=True, check=True
    )
    return {line.split(" ", 2)[2]: line.split(" ", 2)[1] for line in run.stdout.splitlines()}


def test_pass_only_library_exports_all_entry_points(plugin: PathOf) -> None:
    assert len(ENTRY_POINTS) == 30
    symbols = exported(plugin("good"))
    assert [name for name in ENTRY_POINTS if name not in symbols] == []


@unless_sanitized("exports what its runtime needs")
def test_nothing_with_state_is_exported(plugin: PathOf) -> None:
    for name in ("good", "two_sources", "mxnet_style"):
        symbols = exported(plugin(name))
        # Unique symbols are shared by the whole process, even between libraries opened apart.
        assert [s for s, kind in symbols.items() if kind == "u" and "std::" not in s] == []
        assert [s for s in symbols if re.match(r"[\w ]*mxnet::ext::", s)] == []


def test_libraries_see_only_their_own_passes(plugin: PathOf) -> None:
    """Even where somebody loads them all into the global scope, and in either order."""
    names = ["good", "mxnet_style", "two_sources"]
    code = """
import ctypes, sys
libraries = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in sys.argv[1:]]
for library in libraries:
    names = []
    for i in range(library._passRegSize()):
        body, name = ctypes.c_void_p(), ctypes.c_char_p()
        library._passRegGet(i, ctypes.byref(body), ctypes.byref(name))
        names.append(name.value.decode())
    print(*sorted(names), library._msgSize())
"""
    wanted = {
        "good": "addControl catchesItself echoOptions identity",
        "mxnet_style": "styledAddInput styledAlloc styledJson",
        "two_sources": "fromSourceA fromSourceB 0",
    }
    for order in (names, names[::-1]):
        run = subprocess.run(
            [sys.executable, "-c", code, *(str(plugin(name)) for name in order)],
            capture_output=True,
            text=True,
            check=True,
        )
        for name, line in zip(order, run.stdout.splitlines(), strict=True):
            assert line.startswith(wanted[name]), line
            assert line.endswith(" 0")


def cases(*sources: str) -> list[str]:
    text = "".join((TESTS / "cpp" / source).read_text("utf-8") for source in sources)
    return sorted(re.findall(r"^TEST\((\w+)\)", text, re.MULTILINE))


UNIT = cases(
    *("attributes.cc", "json.cc", "graph.cc", "graph_attributes.cc", "helpers.cc"),
    *("random_edits.cc", "tensor.cc"),
)
SCALE = cases("scale.cc")
ENTRY_POINT_CASES = {name: cases(f"{name}.cc") for name in ("operators", "partitioners")}
PROGRAM_CASES = {"unit": UNIT, **ENTRY_POINT_CASES}


@pytest.mark.parametrize(("name", "known"), [*PROGRAM_CASES.items(), ("scale", SCALE)])
def test_no_case_is_lost(program: PathOf, name: str, known: list[str]) -> None:
    run = subprocess.run([program(name)], capture_output=True, text=True, check=True)
    assert sorted(run.stdout.split()) == known


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, known in PROGRAM_CASES.items() for case in known]
)
def test_unit(program: PathOf, name: str, case: str) -> None:
    run = subprocess.run(
        [program(name), case], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr


@unless_sanitized("takes much longer")
@pytest.mark.parametrize("case", SCALE)
def test_scale(program: PathOf, case: str) -> None:
    """With 1 MB of stack, and in time that is far too short for quadratic growth."""
    run = subprocess.run(
        ["sh", "-c", 'ulimit -s 1024 && ulimit -t 60 && exec "$0" "$@"', program("scale"), case],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr or f"ended by signal {-run.returncode}"


def test_recipes_have_all_sources() -> None:
    used = {source for recipe in PLUGINS.values() for source in recipe.sources}
    there = {f"plugins/{path.name}" for path in (TESTS / "plugins").iterdir() if path.is_file()}
    assert {name for name in used if name.endswith((".c", ".cc"))} <= there
