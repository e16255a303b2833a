"""Compilation of the libraries and programs that the tests need, cached by content."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from places import ROOT, TESTS

INCLUDE = ROOT / "include"
CACHE = ROOT / "build" / "tests"
CXX = ("g++", "-std=c++17", "-I", str(INCLUDE))
"""Without optimization, which would take a third of the time of a cold run of the suite."""
LIBRARY = ("-shared", "-fPIC")
HOST = ("-DPASSLIB_NO_ENTRY_POINTS", "-I", str(ROOT / "cpp"))
"""For programs that use the host's own readers."""
OPTIMIZED = ("-O1",)
"""For libraries whose speed or exported names are tested: without it, compilers export more."""
EXTRA_FLAGS = tuple(os.environ.get("PASSLIB_TEST_FLAGS", "").split())
"""Compiler flags for all of them, usually sanitizers."""


@dataclass(frozen=True)
class Recipe:
    """Build instructions for one file: a compiler with its flags, and sources below tests/."""

    sources: tuple[str, ...]
    command: tuple[str, ...] = (*CXX, *LIBRARY)
    included: tuple[str, ...] = ()
    """Sources that are compiled together with the first one: the header takes most of the time."""


def library(*sources: str, flags: tuple[str, ...] = ()) -> Recipe:
    return Recipe(tuple(f"plugins/{name}" for name in sources), (*CXX, *LIBRARY, *flags))


def all_kinds(number: int) -> Recipe:
    return Recipe(("plugins/all_kinds.cc",), (*CXX, *LIBRARY, f"-DNUMBER={number}"))


def plain_c(abi: int, *flags: str) -> Recipe:
    return Recipe(("plugins/plain.c",), ("gcc", *LIBRARY, f"-DABI={abi}", *flags))


def plain_operator(*flags: str) -> Recipe:
    return Recipe(("plugins/plain_operator.c",), ("gcc", *LIBRARY, *flags))


PLUGINS: dict[str, Recipe] = {
    "good": library("good.cc", flags=OPTIMIZED),
    "edits": library("edits.cc"),
    "graph_operators": library("graph_operators.cc"),
    "onnx_subgraphs": library("onnx_subgraphs.cc"),
    "dlprim": library("dlprim.cc"),
    "ark_passes": library("ark_passes.cc"),
    "onnx_edits": library("onnx_edits.cc"),
    "fusions": library("fusions.cc"),
    "rewrites": library("rewrites.cc"),
    "bad_patterns": library("bad_patterns.cc"),
    "two_sources": library("two_sources_a.cc", "two_sources_b.cc", flags=OPTIMIZED),
    "patterns_beside": library(
        "two_sources_a.cc", "patterns_beside.cc", flags=("-DfromSourceA=besideEntry",)
    ),
    "patterns_beside_unclosed": library(
        "two_sources_a.cc",
        "patterns_beside.cc",
        flags=("-DUNCLOSED", "-DfromSourceA=besideUnclosedEntry"),
    ),
    "mxnet_style": library("mxnet_style.cc", flags=OPTIMIZED),
    "every_api": library("every_api.cc"),
    "bad_endings": library("bad_endings.cc"),
    "bad_edges": library("bad_edges.cc"),
    "bad_nodes": library("bad_nodes.cc"),
    "partitioners": library("partitioners.cc", flags=OPTIMIZED),
    "bad_partitioners": library("bad_partitioners.cc"),
    "refuses": library("refuses.cc"),
    **{f"all_kinds_{number}": all_kinds(number) for number in range(4)},
    "slow": library("slow.cc"),
    "slow_start": library("slow_start.cc"),
    "arithmetic": library("arithmetic.cc"),
    "careless": library("careless.cc"),
    "crashes": library("crashes.cc"),
    "declared": library("declared.cc"),
    "on_demand": library("on_demand.cc"),
    "tensors": library("tensors.cc", flags=("-pthread",)),
    "flat_views": library("flat_views.cc"),
    "reads_types": library("reads_types.cc", flags=("-pthread",)),
    "joins": library("joins.cc"),
    "in_functions": library("in_functions.cc"),
    "joins_unknown": library("joins.cc", flags=("-DUNKNOWN",)),
    "flat_views_newer": library("flat_views.cc", flags=("-DVERSION=3", "-DONLY=flatNewer")),
    "flat_views_no_free": library("flat_views.cc", flags=("-DNO_FREE", "-DONLY=flatNoFree")),
    "declares_text": Recipe(("plugins/declares_text.c",), ("gcc", *LIBRARY)),
    **{f"plain_c_{abi}": plain_c(abi) for abi in range(6, 13)},
    "operators": library("operators.cc"),
    "bad_operators": library("bad_operators.cc"),
    **{f"plain_operator_{abi}": plain_operator(f"-DABI={abi}") for abi in range(7, 12)},
    "plain_c_results": plain_c(11, "-DRESULTS"),
    "plain_c_same_name": plain_c(11, "-DSAME_NAME"),
    "plain_c_no_free": plain_c(11, "-DNO_FREE"),
    "missing_symbol": plain_c(11, "-DMISSING_SYMBOL"),
    "no_initialize": plain_c(11, "-DNO_INITIALIZE"),
    "failing_calls": Recipe(("plugins/failing_calls.c",), ("gcc", *LIBRARY)),
    "program": Recipe(("plugins/program.c",), ("gcc", "-no-pie")),
    "program_pie": Recipe(("plugins/program.c",), ("gcc", "-fPIE", "-pie")),
}

PROGRAMS: dict[str, Recipe] = {
    "unit": Recipe(
        ("cpp/main.cc",),
        (*CXX, *HOST),
        tuple(
            f"cpp/{name}.cc"
            for name in (
                *("attributes", "json", "graph", "graph_attributes", "helpers"),
                *("random_edits", "tensor"),
            )
        ),
    ),
    "operators": Recipe(("cpp/main.cc", "cpp/operators.cc"), CXX),
    "partitioners": Recipe(("cpp/main.cc", "cpp/partitioners.cc"), CXX),
    "scale": Recipe(("cpp/main.cc", "cpp/scale.cc"), (*CXX, "-O1", "-DPASSLIB_NO_ENTRY_POINTS")),
    "json_filter": Recipe(("cpp/json_filter.cc",), (*CXX, "-DPASSLIB_NO_ENTRY_POINTS")),
    "graph_text": Recipe(("cpp/graph_text.cc",), (*CXX, *HOST, "-DHOST_READER")),
    "graph_text_library": Recipe(("cpp/graph_text.cc",), (*CXX, "-O1")),
    "reals": Recipe(("cpp/reals.cc",), (*CXX, "-DPASSLIB_NO_ENTRY_POINTS")),
    "reals_without_charconv": Recipe(
        ("cpp/reals.cc",), (*CXX, "-std=c++11", "-DPASSLIB_NO_ENTRY_POINTS")
    ),
}


def compile_new(target: Path, command: tuple[str, ...], sources: list[Path]) -> None:
    """Run a compiler on sources in one folder; its messages are the text of the error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{os.getpid()}-{target.name}")
    run = _compiler(command, sources, "-o", str(partial))
    if run.returncode != 0:
        message = f"{' '.join(command)} failed on {[s.name for s in sources]}:\n{run.stderr!s}"
        raise RuntimeError(message)
    partial.replace(target)


def compile_once(
    target: Path, command: tuple[str, ...], sources: list[Path], *, wait: bool = True
) -> Path:
    """Compile what is not there yet; wait for a process or thread that compiles it, or leave it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return target
        if not target.exists():
            compile_new(target, command, sources)
    return target


def compile_to(target: Path, command: tuple[str, ...], sources: list[Path]) -> None:
    """Compile, or copy what the same compiler made of the same text with the same flags before."""
    kept = compile_once(CACHE / _digest_of(command, sources) / "compiled", command, sources)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{os.getpid()}-{target.name}")
    shutil.copy(kept, partial)
    partial.replace(target)


def _compiler(
    command: tuple[str, ...], sources: list[Path], *more: str
) -> subprocess.CompletedProcess[str]:
    """Run a compiler where the sources are, so that what it makes does not name their folder."""
    return subprocess.run(
        [*command, *more, *(source.name for source in sources)],
        cwd=sources[0].parent,
        capture_output=True,
        text=True,
        check=False,
    )


def _digest_of(command: tuple[str, ...], sources: list[Path]) -> str:
    digest = hashlib.sha256(compiler_version(command[0]))
    # The text has the content of the headers; their place does not matter.
    places = {i + after for i, word in enumerate(command) if word == "-I" for after in (0, 1)}
    for word in (word for i, word in enumerate(command) if i not in places):
        digest.update(word.encode() + b"\0")
        named = Path(word.rpartition("=")[2])
        if named.is_file():
            digest.update(named.read_bytes())
    digest.update(_compiler(command, sources, "-E", "-P").stdout.encode())
    return digest.hexdigest()[:16]


@functools.cache
def compiler_version(compiler: str) -> bytes:
    path = shutil.which(compiler)
    if path is None:
        message = f"the tests compile libraries and need {compiler}"
        raise RuntimeError(message)
    return subprocess.run([path, "--version"], capture_output=True, check=True).stdout


@functools.cache
def headers() -> bytes:
    files = [*INCLUDE.rglob("*.h"), *(TESTS / "cpp").glob("*.h"), *(TESTS / "plugins").glob("*.h")]
    return b"".join(path.read_bytes() for path in sorted(files))


class Builder:
    """Builds a file when it is wanted and, if `ahead`, all others in the background."""

    def __init__(self, recipes: dict[str, Recipe], suffix: str, *, ahead: bool = False) -> None:
        self._recipes = recipes
        self._suffix = suffix
        self._left = [*recipes] if ahead else []
        self._pool = ThreadPoolExecutor(1)
        self._made: dict[str, Path] = {}

    def __call__(self, name: str) -> Path:
        while self._left:
            self._pool.submit(self._make, self._left.pop(0), wait=False)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _make(self, name: str, *, wait: bool = True) -> Path:
        recipe = self._recipes[name]
        command = (*recipe.command, *EXTRA_FLAGS)
        for source in recipe.included:
            command += ("-include", str(TESTS / source))
        digest = hashlib.sha256(" ".join(command).encode())
        digest.update(compiler_version(command[0]))
        digest.update(headers())
        for source in (*recipe.sources, *recipe.included):
            digest.update((TESTS / source).read_bytes())
        target = CACHE / digest.hexdigest()[:16] / f"{name}{self._suffix}"
        sources = [TESTS / source for source in recipe.sources]
        return compile_once(target, command, sources, wait=wait)
