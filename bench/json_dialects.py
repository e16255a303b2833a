"""The JSON dialects against Python's json on the same file: loading, and with a pass and saving.

Usage: json_dialects.py [--nodes N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import passlib
from generate_dialects import write_ark, write_dlprim, write_nnvm
from ratio import HEAD, measure_ratio
from run import DATA, build_library

FILES: dict[str, tuple[str, Callable[[Path, int], None], int]] = {
    "ark": ("ARK, version 3", write_ark, 2),
    "nnvm": ("NNVM, TVM's graph executor", write_nnvm, 2),
    "dlprim": ("DLPrimitives", write_dlprim, 4),
}
"""By dialect: title, generator, and the indentation of its own program."""


def round_trip(path: Path, target: Path) -> None:
    """Load, run the identity pass and save by passlib."""
    passlib.load(path).optimize_for("identity").save(target)


def parse(path: Path) -> object:
    """Parse by json."""
    return json.loads(path.read_bytes())


def parse_and_print(path: Path, target: Path, indent: int | None) -> None:
    """Parse and print by json; `json.dumps` is faster than `json.dump`."""
    target.write_text(json.dumps(parse(path), indent=indent), "utf-8")


def main() -> None:
    """Measure each dialect and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_001, help="an odd number")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    passlib.library.load(str(build_library()), verbose=False)
    print(HEAD)
    for dialect, (title, write, indent) in FILES.items():
        path, target = DATA / f"{dialect}{options.nodes}.json", DATA / f"{dialect}.saved.json"
        write(path, options.nodes)
        name = f"{title}, {options.nodes:,} nodes, {path.stat().st_size / 1e6:.0f} MB"
        ratio = measure_ratio(
            partial(passlib.load, path), partial(parse, path), rounds=options.rounds
        )
        print(ratio.row(f"{name}: load alone", "json.loads"), flush=True)
        for printed, reference, rounds in (
            (None, "json, on one line", options.rounds),
            (indent, f"json, indent={indent}", 1),
        ):
            ratio = measure_ratio(
                partial(round_trip, path, target),
                partial(parse_and_print, path, target.with_suffix(".plain"), printed),
                rounds=rounds,
            )
            print(ratio.row(name, reference), flush=True)
        if target.read_bytes() != path.read_bytes():
            message = f"{target} differs from {path}"
            raise SystemExit(message)


if __name__ == "__main__":
    main()
