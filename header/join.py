"""Join the parts of the two headers into include/lib_api.h and include/lib_patterns.h.

Usage: join.py [--check]
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

PARTS = Path(__file__).parent
INCLUDE = PARTS.parent / "include"
HEADERS = {
    "lib_api.h": [
        *("opening", "graph", "attributes", "passes", "options", "tensors", "helpers"),
        *("operators", "partitioners"),
        *("json", "errors"),
        *("lists", "error_bodies", "tensor_bodies", "node_bodies", "registry"),
        *("json_reader", "json_values"),
        *("flat_views", "attribute_texts", "tables", "params"),
        *("graph_reader", "graph_writer", "graph_bodies"),
        *("attribute_bodies", "helper_bodies", "declarations"),
        *("flat", "guards", "pass_calls", "operator_calls", "partitioner_calls", "c_functions"),
    ],
    "lib_patterns.h": [
        *("pattern_opening", "patterns", "pattern_macro", "pattern_bodies", "pattern_closing"),
    ],
}
"""The parts of each header, in their order; readers of a header read them in this order too."""


def joined(name: str) -> str:
    """Return the text of a header."""
    texts = ((PARTS / f"{part}.h").read_text("utf-8").strip() for part in HEADERS[name])
    return "\n\n".join(texts) + "\n"


def unused() -> list[str]:
    """Return the names of parts that belong to no header, or to several."""
    used = [f"{part}.h" for parts in HEADERS.values() for part in parts]
    present = [path.name for path in PARTS.glob("*.h")]
    return sorted({name for name in present if used.count(name) != 1})


def differences() -> list[str]:
    """Return the lines in which the committed headers differ from their parts."""
    found = [f"{name} must be a part of exactly one header" for name in unused()]
    for name in HEADERS:
        committed = INCLUDE / name
        old = committed.read_text("utf-8").splitlines() if committed.exists() else []
        new = joined(name).splitlines()
        found += difflib.unified_diff(old, new, f"include/{name}", "its parts", lineterm="", n=1)
    return found


def main() -> int:
    """Write the headers, or check them. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on differences")
    if parser.parse_args().check:
        found = differences()
        if found:
            print(*found, sep="\n")
            print("the headers differ from header/*.h: edit the parts and run `make header`")
        return int(bool(found))
    for name in HEADERS:
        target, text = INCLUDE / name, joined(name)
        if not target.exists() or target.read_text("utf-8") != text:
            target.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
