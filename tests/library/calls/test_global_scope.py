"""Libraries that see each other's symbols: each uses its own functions all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT
from plugin_build import INCLUDE, compile_to

SOURCE = """
#include "lib_api.h"
#include <map>
using namespace mxnet::ext;
int helper() { return NUMBER; }  // exported, unless the linker is told otherwise
inline int counter() { static int calls = 0; return ++calls; }
template <typename T> struct Table { static std::map<std::string, T> values; };
template <typename T> std::map<std::string, T> Table<T>::values;
MXReturnValue tell(Graph* graph, const options_map_t&) {
  Table<int>::values[graph->outputs[0].node->name] = NUMBER;
  std::vector<Node*> nodes(graph->sorted());
  nodes.resize(nodes.size() * 2);
  std::cout << helper() << " " << counter() << " " << Table<int>::values.size() << std::endl;
  return MX_SUCCESS;
}
#define REGISTER(number) REGISTER_PASS(tell##number).setBody(tell)
REGISTER_NUMBER
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""

SCRIPT = """
import ctypes, sys
import passlib as pl
for path in sys.argv[2:]:
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
for path in sys.argv[2:]:
    pl.library.load(path, verbose=False)
for number in range(1, 1 + int(sys.argv[1])):
    symbol = pl.sym.exp(pl.sym.var("x"), name="y").optimize_for(f"tell{number}")
    assert symbol.list_outputs() == ["y_output"]
print([library.handover for library in pl.library.loaded()])
"""

BUILDS = [(1, ()), (2, ("-D_GLIBCXX_DEBUG",)), (3, ("-D_GLIBCXX_ASSERTIONS",))]
ALONE = ("-Wl,-Bsymbolic", f"-Wl,--version-script={ROOT / 'cmake' / 'passlib.map'}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("count", [2, 3])
def test_libraries_in_the_global_scope(count: int, tmp_path: Path) -> None:
    paths = []
    for number, flags in BUILDS[:count]:
        source = tmp_path / f"tell{number}.cc"
        text = SOURCE.replace("REGISTER_NUMBER", f"REGISTER({number});")
        source.write_text(text.replace("NUMBER", str(number)), "utf-8")
        path = tmp_path / f"libtell{number}.so"
        command = ("g++", "-shared", "-fPIC", "-std=c++17", "-I", str(INCLUDE), *flags, *ALONE)
        compile_to(path, command, [source])
        paths.append(str(path))
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(count), *paths],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    *told, ways = run.stdout.splitlines()
    assert told == ["1 1 1", "2 1 1", "3 1 1"][:count]
    assert ways == str(["flat"] * count)
