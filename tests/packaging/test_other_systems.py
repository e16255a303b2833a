"""The header, passes and cpp/platform with other compilers, C libraries, processors and systems.

Each test skips where its compiler or emulator is not installed.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import passlib as pl
from passlib import sym
from places import ROOT, TESTS
from plugin_build import CACHE, HOST, INCLUDE, PROGRAMS
from sanitized import without_sanitizer

FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(INCLUDE))
WINE = CACHE / "wine"
PLATFORM = sorted((ROOT / "cpp" / "platform").glob("*.cc"))


@functools.cache
def has_library(cxx: tuple[str, ...]) -> bool:
    """Whether a compiler finds the library of C++."""
    command = [*cxx, "-fsyntax-only", "-x", "c++", "-"]
    text = "#include <vector>\n"
    return not subprocess.run(
        command, input=text, capture_output=True, text=True, check=False
    ).returncode


@dataclass(frozen=True)
class System:
    """Compilers of a system and how its programs are started."""

    cxx: tuple[str, ...]
    cc: tuple[str, ...]
    start: tuple[str, ...] = ()
    suffixes: tuple[str, str] = ("", ".so")
    """The endings of the names of programs and of libraries."""

    def require(self) -> None:
        for name in (self.cxx[:1], self.cc[:1], self.start[:1]):
            if name and shutil.which(name[0]) is None:
                pytest.skip(f"there is no {name[0]}")
        if self.cxx and not has_library(self.cxx):
            pytest.skip(f"{' '.join(self.cxx)} has no library of C++")

    def run(self, *words: object) -> str:
        WINE.mkdir(parents=True, exist_ok=True)
        command = [*self.start, *map(str, words)]
        # The sanitizers are those of this system's C library.
        environment = {**without_sanitizer(), "WINEPREFIX": str(WINE), "WINEDEBUG": "-all"}
        run = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout


SYSTEMS = {
    "clang": System(("clang++",), ("clang",)),
    "libc++": System(("clang++", "-stdlib=libc++"), ("clang",)),
    "aarch64": System(
        ("aarch64-linux-gnu-g++",),
        ("aarch64-linux-gnu-gcc",),
        ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    ),
    # Debian has no C++ library for musl.
    "musl": System((), ("musl-gcc",)),
    "windows": System(
        ("x86_64-w64-mingw32-g++-posix", "-static"),
        ("x86_64-w64-mingw32-gcc-posix",),
        ("wine",),
        (".exe", ".dll"),
    ),
}
CXX = [name for name, system in SYSTEMS.items() if system.cxx]


def compile_to(target: Path, *command: object) -> Path:
    run = subprocess.run(
        [*map(str, command), "-o", str(target)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return target


@pytest.mark.sample(1)
@pytest.mark.parametrize("system", CXX)
@pytest.mark.parametrize("program", ["unit", "operators", "partitioners"])
def test_header(system: str, program: str, tmp_path: Path) -> None:
    on = SYSTEMS[system]
    on.require()
    recipe = PROGRAMS[program]
    flags = HOST if HOST[0] in recipe.command else ()
    command = (*on.cxx, *FLAGS, *flags)
    for source in recipe.included:
        command += ("-include", str(TESTS / source))
    target = tmp_path / (program + on.suffixes[0])
    built = compile_to(target, *command, *(TESTS / name for name in recipe.sources))
    on.run(built)


@pytest.mark.parametrize("system", SYSTEMS)
def test_pass(system: str, tmp_path: Path) -> None:
    """A library is compiled for a system and called by a host in C there."""
    on = SYSTEMS[system]
    on.require()
    plugins = TESTS / "plugins"
    host = tmp_path / f"host{on.suffixes[0]}"
    dynamic = () if system == "windows" else ("-ldl",)
    compile_to(host, *on.cc, plugins / "small_host.c", *dynamic)
    graph = tmp_path / "graph.json"
    graph.write_text(sym.exp(sym.var("x"), name="e").tojson())
    library = tmp_path / f"lib{on.suffixes[1]}"
    if on.cxx:
        source = plugins / "museum.cc"
        flags = ("-shared", "-fPIC", "-fvisibility=hidden", "-DEXHIBIT=here")
        compile_to(library, *on.cxx, *FLAGS, *flags, source)
        name, op = "museumReplace_here", "log"
    else:
        compile_to(library, *on.cc, "-shared", "-fPIC", "-DABI=11", plugins / "plain.c")
        name, op = "plainCopy11", "exp"
    heading, _, text = on.run(host, library, graph).partition("\n")
    assert heading == f"11 {name}"
    assert [node["op"] for node in json.loads(text)["nodes"]] == ["null", op]
    if system == "windows":
        with pytest.raises(pl.LoadError, match="it is a program or library for Windows"):
            pl.library.abi(library, load=False)
        return
    found = pl.library.abi(library, load=False)
    assert found.machine == (
        "64-bit ARM"
        if system == "aarch64"
        else pl.library.abi(pl.library.load_standard().path, load=False).machine
    )
    assert found.libc.split()[0] == ("musl" if system == "musl" else "glibc")
    assert found.missing == () or not on.cxx


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("mode", ["Linux", "portable"])
def test_platform(mode: str, compiler: str, tmp_path: Path) -> None:
    System((compiler,), ()).require()
    flags = ("-DPASSLIB_PORTABLE",) if mode == "portable" else ()
    program = compile_to(
        tmp_path / "platform",
        compiler,
        *FLAGS,
        *HOST,
        *flags,
        TESTS / "cpp" / "platform.cc",
        *PLATFORM,
        "-pthread",
    )
    library = pl.library.load_standard().path
    run = subprocess.run(
        [program, library, tmp_path / "file"], capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.returncode) == (f"{mode}: 0 failures\n", 0), run.stderr


@pytest.mark.sample(1)
@pytest.mark.parametrize("system", [name for name in CXX if name != "windows"])
def test_platform_elsewhere(system: str, tmp_path: Path) -> None:
    on = SYSTEMS[system]
    on.require()
    source = TESTS / "cpp" / "platform.cc"
    program = compile_to(
        tmp_path / "platform", *on.cxx, *FLAGS, *HOST, source, *PLATFORM, "-pthread"
    )
    library = compile_to(
        tmp_path / "lib.so", *on.cc, "-shared", "-fPIC", "-DABI=11", TESTS / "plugins" / "plain.c"
    )
    assert on.run(program, library, tmp_path / "file") == "Linux: 0 failures\n"
