"""Tables of what sweeps found, for the tests that check it.

``python tests/support/sweep_table.py TABLE KIND OUTPUT...`` writes a table of what the sweeps whose
outputs these are found of a kind: the two smallest cases for each form of an operator.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import onnx
import onnxruntime
from onnx import defs

from places import DATA

SHAPES: Final = DATA / "onnx" / "shapes.jsonl"
VALUES: Final = DATA / "onnx" / "values.jsonl"

_MOST: Final = 2


def read(table: Path) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the versions that a table is about, and its cases."""
    versions, *records = map(json.loads, table.read_text().splitlines())
    return versions, records


def _written(kind: str, outputs: list[str]) -> list[str]:
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for output in outputs:
        for line in Path(output).read_text().splitlines():
            record = json.loads(line) if line.startswith("{") else {}
            for whose, there, runtime in record.get("found", ()):
                if whose != kind:
                    continue
                case = json.loads(record["case"])
                form = defs.get_schema(case["op"], case["version"], case["domain"])
                entry = {"found": there, "runtime": runtime, "case": case}
                found.setdefault((case["op"], form.since_version), []).append(entry)
    versions = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
    lines = [json.dumps(versions)]
    for _, entries in sorted(found.items()):
        unique = {json.dumps(entry) for entry in entries}
        lines += sorted(unique, key=lambda text: (len(text), text))[:_MOST]
    return lines


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(_written(sys.argv[2], sys.argv[3:])) + "\n")
