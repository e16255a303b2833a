"""Writes the table of the operators of ONNX Runtime's CPU provider, from its registered kernels.

Run as ``kernel_table.py`` with the package onnxruntime that the table is for.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

TABLE = Path(__file__).parents[2] / "python/passlib/dialects/onnx/tables/onnxruntime-cpu.json"
_OPEN = 2**31 - 1


def plain(text: str) -> str:
    """Return a type without ``tensor()``."""
    return text.replace("tensor(", "", 1).replace(")", "", 1)


def merged(kernels: list[dict[str, list[str]]]) -> list[dict[str, list[str]]]:
    """Join kernels that differ in the types of one variable."""
    found: list[dict[str, list[str]]] = []
    for types in kernels:
        for known in found:
            if known.keys() != types.keys():
                continue
            different = [key for key in types if known[key] != types[key]]
            if len(different) <= 1:
                for key in different:
                    known[key] = sorted({*known[key], *types[key]})
                break
        else:
            found.append({key: sorted(each) for key, each in types.items()})
    return found if len(found) == len(kernels) else merged(found)


def main() -> None:
    """Write the table."""
    by_range: dict[str, dict[tuple[int, int], list[dict[str, list[str]]]]] = {}
    for each in runtime.get_all_opkernel_def():
        name = f"{each.domain}::{each.op_name}" if each.domain else each.op_name
        types = {key: [plain(t) for t in kinds] for key, kinds in each.type_constraints.items()}
        ranges = by_range.setdefault(name, {})
        ranges.setdefault(tuple(each.version_range), []).append(types)
    own = parameters()
    operators = {}
    for name, ranges in sorted(by_range.items()):
        kernels = []
        for (since, until), alternatives in sorted(ranges.items()):
            end = {} if until == _OPEN else {"until": until}
            kernels += [{"since": since, **end, "types": types} for types in merged(alternatives)]
        operators[name] = {**own.get(name, {}), "kernels": kernels}
    table = {
        "name": "onnxruntime-cpu",
        "version": f"ONNX Runtime {onnxruntime.__version__}",
        "source": f"the kernels that package onnxruntime {onnxruntime.__version__} registers",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "functions": True,
        "casts": {"float16": "float"},
        "free": ["Constant"],
    }
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text_of(table, operators))


def text_of(table: dict[str, Any], operators: dict[str, Any]) -> str:
    """Return the text of a table, with one operator a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in table.items()]
    rows = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in operators.items()]
    body = ",\n".join(rows)
    return "{\n" + "\n".join(lines) + '\n"operators": {\n' + body + "\n}\n}\n"


def parameters() -> dict[str, dict[str, Any]]:
    """Return the inputs and outputs of ONNX Runtime's own operators."""
    return {
        f"{each.domain}::{each.name}": {
            "inputs": [[p.name, p.typeStr] for p in each.inputs],
            "outputs": [[p.name, p.typeStr] for p in each.outputs],
        }
        for each in runtime.get_all_operator_schema()
        if each.domain not in ("", "ai.onnx.ml")
    }


if __name__ == "__main__":
    main()
