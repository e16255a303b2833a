"""Measure the ways in which a graph is handed to a pass: flat views and JSON, in one run.

Usage: handover.py [--nodes N] [--rounds N] [--compiler COMMAND ...]
"""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import passlib
from generate import write_chain
from run import DATA, HERE

COMPILERS = ("g++", "g++-11", "clang++", "clang++ -stdlib=libc++")
WAYS = ("flat", "json")
PASSES = ("identity", "kernels")
"""Changes nothing; reads and changes attributes."""
KEPT = "identity, of a graph that stays"
"""A symbol that a pass made, and that is used again: the host copies its graph for each call."""
HEAD = """\
| pass | compiler | nodes | flat, ms | JSON, ms | flat / JSON |
|---|---|---|---|---|---|"""


def build(pass_name: str, compiler: str) -> Path | None:
    """Compile a pass under a separate name; return None if this compiler cannot."""
    command = shlex.split(compiler)
    if shutil.which(command[0]) is None:
        return None
    name = pass_name + "".join(c for c in compiler if c.isalnum())
    DATA.mkdir(exist_ok=True)
    source, target = DATA / f"{name}.cc", DATA / f"lib{name}.so"
    text = (HERE / f"{pass_name}.cc").read_text("utf-8")
    source.write_text(text.replace(f"({pass_name})", f"({name})", 1), "utf-8")
    flags = ["-O2", "-shared", "-fPIC", "-std=c++11", "-I", str(HERE.parent / "include")]
    done = subprocess.run([*command, *flags, str(source), "-o", str(target)], check=False)
    return target if done.returncode == 0 else None


def measure(text: str, library: Path, rounds: int, *, stays: bool) -> dict[str, float]:
    """Return the best processor time of each way that the library has, in seconds."""
    loaded = passlib.library.load(str(library), verbose=False)
    (name,) = loaded.passes
    ways = WAYS[WAYS.index(loaded.handover) :]
    best = dict.fromkeys(ways, float("inf"))
    kept = passlib.sym.load_json(text).optimize_for(name)
    for _ in range(rounds):
        for way in ways:
            os.environ["PASSLIB_HANDOVER"] = way
            symbol = kept if stays else passlib.sym.load_json(text)
            gc.collect()
            start = time.process_time()
            result = symbol.optimize_for(name)
            best[way] = min(best[way], time.process_time() - start)
            del symbol, result
    return best


def main() -> None:
    """Measure each compiler's library and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compiler", nargs="*", default=COMPILERS)
    options = parser.parse_args()
    path = DATA / f"chain{options.nodes}.json"
    DATA.mkdir(exist_ok=True)
    nodes = write_chain(path, options.nodes)
    text = path.read_text("utf-8")
    print(HEAD)
    for name in (*PASSES, KEPT):
        for compiler in options.compiler:
            library = build(name.partition(",")[0], compiler)
            if library is None:
                print(f"| {name} | {compiler} | is not installed | | | | | |", flush=True)
                continue
            best = measure(text, library, options.rounds, stays=name == KEPT)
            cells = [
                name,
                compiler,
                f"{nodes:,}",
                *(f"{best[way] * 1e3:.1f}" if way in best else "" for way in WAYS),
            ]
            cells.append(f"{best['flat'] / best['json']:.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
