"""The page docs/mxnet-operators.md, made from the code.

Run ``.venv/bin/python tests/support/operator_table.py`` to write it again.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from pathlib import Path

from passlib.mxnet.lowering import load_table
from passlib.mxnet.lowering.refused import REFUSED, TRAINING, reason

PAGE = Path(__file__).parents[2] / "docs" / "mxnet-operators.md"

_HEAD = """# MXNet's operators

Generated from the code by `tests/support/operator_table.py`.

MXNet 1.9.1 registers {total} operators, without gradients. passlib lowers {ONNX} of them to ONNX's
standard operators, so it can run and export them; tests compare their results with MXNet's.
{training} are only for training, which ONNX does not describe. {refused} are rejected, with the
reason in the table and in the error, which names the node. Unsupported attributes of an operator
are an `UnsupportedError` that names them. All operators can be read, composed, passed to passes
and written.

| Operator | Other names | Becomes |
|---|---|---|
"""


def classes() -> dict[str, list[str]]:
    """Return, by registered name, the classes that an operator is in: one, if all is well."""
    lowered = set(load_table().operators())
    found = {}
    for name, names in _registry().items():
        member = {
            "ONNX": not lowered.isdisjoint(names),
            "training": any(TRAINING.fullmatch(each) for each in names),
            "refused": any(each in REFUSED for each in names),
        }
        found[name] = [key for key, value in member.items() if value]
    return found


def text() -> str:
    """Return the page."""
    found, names = classes(), _registry()
    counts = Counter(member for members in found.values() for member in members)
    rows = []
    for name in sorted(found, key=lambda key: (key.strip("_").lower(), key)):
        others = ", ".join(f"`{other}`" for other in names[name] if other != name)
        member = ", ".join(found[name])
        if member == "refused":
            member = f"refused: {reason(name)}"
        rows.append(f"| `{name}` | {others} | {member} |")
    return _HEAD.format(total=len(found), **counts) + "\n".join(rows) + "\n"


def _registry() -> dict[str, list[str]]:
    """Return the names of MXNet's operators, those of loaded libraries left out."""
    table = resources.files("passlib.mxnet.schema").joinpath("operators.json")
    facts = json.loads(table.read_text("utf-8"))
    return {name: [name, *known.get("aliases", ())] for name, known in facts.items()}


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
