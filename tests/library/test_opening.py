"""Opening files of libraries: initializers that fail, files that were built again, shared data."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import passlib
from passlib.errors import LoadError
from plugin_build import EXTRA_FLAGS, INCLUDE, compile_to
from sanitized import unless_sanitized

PASS = """
#include <unistd.h>
#include <cstdlib>
#include "lib_api.h"
using namespace mxnet::ext;
DATA
static MXReturnValue body(Graph* graph, const options_map_t&) {
  (void)graph;
  BODY return MX_SUCCESS;
}
REGISTER_PASS(FIRST).setBody(body);
BETWEEN
REGISTER_PASS(SECOND).setBody(body);
MXReturnValue initialize(int) { INITIALIZE return MX_SUCCESS; }
"""


def build(path: Path, name: str, *flags: str, **parts: str) -> Path:
    """Compile a library with the passes NAME1 and NAME2, and move it into place."""
    text = PASS.replace("FIRST", f"{name}1").replace("SECOND", f"{name}2")
    for part in ("DATA", "BODY", "BETWEEN", "INITIALIZE"):
        text = text.replace(part, parts.get(part.lower(), ""))
    source = path.with_suffix(".cc")
    source.write_text(text, "utf-8")
    command = ("g++", "-shared", "-fPIC", "-std=c++17", "-I", str(INCLUDE), *EXTRA_FLAGS, *flags)
    compile_to(path, command, [source])
    return path


def run(code: str, *arguments: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys\nimport passlib as pl\n{code}", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


FAILING = {
    "exception": ("throw std::runtime_error(getenv_text());", "it threw: no level"),
    "standard": (
        "std::stoi(getenv_text());",
        "it threw: stoi(.|\n)*That text means: a text is no number",
    ),
    "null": ("std::string(getenv(none));", r"it threw: (.|\n)*null(.|\n)*That text means"),
    "number": ("throw 5;", "it threw something that is not a std::exception"),
    "exit": ("exit(0);", r"it called exit\(0\)"),
    "quiet exit": ("_exit(3);", "it ended the process with status 3"),
    "signal": ("raise(SIGSEGV);", "it ended the process by a signal: Segmentation fault"),
    "abort": ("abort();", "it ended the process by a signal: Aborted"),
}

HELPERS = """
#include <csignal>
static const char* volatile none = "PASSLIB_TEST_OF_NO_VARIABLE";
static std::string getenv_text() { return "no level"; }
static int start() {
  std::cout << "starts" << std::endl;
  if (getenv("PASSLIB_TEST_LEVEL") != nullptr) return 1;
  START
  return 0;
}
"""

TWICE = """
import threading, ctypes
for _ in range(2):
    try:
        print(*pl.library.load(sys.argv[1], verbose=False).passes)
    except pl.LoadError as error:
        print(error)
thread = threading.Thread(target=ctypes.CDLL, args=["libm.so.6"], daemon=True)
thread.start()
thread.join(60)
print("other threads:", not thread.is_alive(), flush=True)
"""


@unless_sanitized("the sanitizer reports the signals itself")
@pytest.mark.parametrize("kind", FAILING)
def test_a_static_initializer_that_fails(kind: str, tmp_path: Path) -> None:
    statement, wanted = FAILING[kind]
    path = build(
        tmp_path / "fails.so",
        "starts",
        data=HELPERS.replace("START", statement),
        between="static const int level = start();",
    )
    ended = run(TWICE, path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count(f"cannot load library '{path}': a static initializer failed") == 2
    assert ended.stdout.endswith("other threads: True\n")
    assert re.search(wanted, ended.stdout), ended.stdout
    # The library that it needs is there now.
    ended = run(TWICE, path, PASSLIB_TEST_LEVEL="1")
    assert ended.stdout == "starts\nstarts1 starts2\nstarts1 starts2\nother threads: True\n"


def test_a_library_that_was_refused_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "mended.so"
    for number in range(2):
        build(path, "mended", initialize=f'MX_ERROR_MSG << "no licence {number}"; return MX_FAIL;')
        with pytest.raises(LoadError, match=f"no licence {number}"):
            passlib.library.load(path, verbose=False)
    build(path, "mended")
    assert passlib.library.load(path, verbose=False).passes == ("mended1", "mended2")


def test_a_refused_library_that_was_overwritten(tmp_path: Path) -> None:
    path = build(tmp_path / "over.so", "over", initialize="return MX_FAIL;")
    with pytest.raises(LoadError, match="initialize"):
        passlib.library.load(path, verbose=False)
    other = build(tmp_path / "other.so", "over")
    path.write_bytes(other.read_bytes())
    with pytest.raises(LoadError, match=r"overwritten.*restart this process"):
        passlib.library.load(path, verbose=False)


OVERWRITTEN = """
try:
    pl.library.load(sys.argv[1], verbose=False)
except pl.LoadError:
    print("refused")
open(sys.argv[1], "wb").close()
print("ends", end="")
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("initialize", "printed"), [("return MX_FAIL;", "refused\nends"), ("", "ends")]
)
def test_the_end_after_a_library_was_overwritten(
    initialize: str, printed: str, tmp_path: Path
) -> None:
    path = build(tmp_path / "over.so", "over", initialize=initialize)
    ended = run(OVERWRITTEN, path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, printed, "")


COUNTS = (
    "inline std::map<std::string, int>& seen() { static std::map<std::string, int> s; return s; }"
)
LISTS = "inline std::vector<std::string>& seen() { static std::vector<std::string> s; return s; }"
RELOAD = """
import os
symbol = pl.sym.relu(pl.sym.var("x"))
for build, name in zip(sys.argv[2::2], sys.argv[3::2]):
    target = sys.argv[1] + name
    os.replace(build, target)
    try:
        pl.library.load(target, verbose=False, replace=True)
        symbol.optimize_for("unique1")
        print("runs")
    except pl.LoadError as error:
        print(error)
"""


@unless_sanitized("exports what its runtime needs")
@pytest.mark.parametrize("names", [("u.so", "u.so"), ("u1.so", "u2.so")])
@pytest.mark.parametrize("hidden", [(False, False), (True, True), (False, True), (True, False)])
def test_static_data_of_inline_functions(
    names: tuple[str, str], hidden: tuple[bool, bool], tmp_path: Path
) -> None:
    """GCC shares it between all libraries of a process, also where the type has changed."""
    builds = [
        build(
            tmp_path / f"build{number}.so",
            "unique",
            "-O1",
            *(["-fvisibility=hidden"] if is_hidden else []),
            data=data,
            body=body,
        )
        for number, (is_hidden, data, body) in enumerate(
            zip(hidden, (COUNTS, LISTS), ('++seen()["a"];', 'seen().push_back("a");'), strict=True)
        )
    ]
    folder = tmp_path / "used"
    folder.mkdir()
    pairs = [Path(text) for pair in zip(map(str, builds), names, strict=True) for text in pair]
    ended = run(RELOAD.replace("sys.argv[1] +", "sys.argv[1] + '/' +"), folder, *pairs)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "runs"
    if any(hidden):
        assert lines[1:] == ["runs"]
    else:
        assert "it would share" in lines[1]
        assert "seen" in lines[1]
        assert "compile it with -fvisibility=hidden, then restart this process" in lines[1]


EXIT = """
pl.library.load(sys.argv[1], verbose=False)
pl.sym.relu(pl.sym.var("x")).optimize_for("leaves1")
"""


@pytest.mark.parametrize("status", [0, 7])
def test_a_library_that_calls_exit(status: int, tmp_path: Path) -> None:
    path = build(tmp_path / "leaves.so", "leaves", body=f"exit({status});")
    ended = run(EXIT, path)
    assert ended.returncode == (status or 1)
    assert f"pass 'leaves1' of library '{path}' called exit({status})" in ended.stderr
    path = build(tmp_path / "starts.so", "starts", initialize=f"exit({status});")
    ended = run("pl.library.load(sys.argv[1])", path)
    assert ended.returncode == (status or 1)
    assert f"loading library '{path}' called exit({status})" in ended.stderr


def test_messages_of_what_succeeds_are_warnings(tmp_path: Path) -> None:
    path = build(
        tmp_path / "warns.so",
        "warns",
        body='MX_ERROR_MSG << "two convolutions left" << std::endl;',
        initialize='MX_ERROR_MSG << "licence ends soon";',
    )
    with pytest.warns(RuntimeWarning, match=r"warns\.so' .*licence ends soon$"):
        passlib.library.load(path, verbose=False)
    symbol = passlib.sym.relu(passlib.sym.var("x"))
    with pytest.warns(RuntimeWarning, match=r"warns\.cc\[\d+\]: two convolutions left$") as caught:
        symbol.optimize_for("warns1")
    assert len(caught) == 1


def test_a_library_with_its_own_malloc(tmp_path: Path) -> None:
    own = """
    static char pool[8 << 20];
    static std::size_t used = 0;
    extern "C" void* malloc(std::size_t size) {
      char* const place = pool + (used + 31) / 16 * 16;
      used = static_cast<std::size_t>(place - pool) + size;
      memcpy(place - 8, &size, 8);
      return place;
    }
    extern "C" void free(void*) {}
    extern "C" void* calloc(std::size_t count, std::size_t size) { return malloc(count * size); }
    extern "C" void* realloc(void* from, std::size_t size) {
      void* const to = malloc(size);
      std::size_t had = 0;
      if (from != nullptr) memcpy(&had, static_cast<char*>(from) - 8, 8);
      if (from != nullptr) memcpy(to, from, had < size ? had : size);
      return to;
    }
    """
    body = 'graph->attrs["note"] = JsonVal("x"); graph->attrs.erase("note");'
    path = build(tmp_path / "own.so", "own", "-Wl,-Bsymbolic", data=own, body=body)
    ended = run(
        "pl.library.load(sys.argv[1], verbose=False)\n"
        "symbol = pl.sym.relu(pl.sym.var('x'))\n"
        "print(symbol.optimize_for('own1').optimize_for('own1').tojson() == symbol.tojson())\n",
        path,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "True\n"
