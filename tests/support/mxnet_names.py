"""MXNet's public names that passlib has, and the page in docs/ that lists them.

Usage: python mxnet_names.py

Writes docs/mxnet-names.md. The names are those that make_names.py recorded.
"""

from __future__ import annotations

import json
import textwrap
from functools import reduce
from typing import Any

import passlib
from passlib.mxnet.lowering.refused import TRAINING
from passlib.mxnet.schema import calls as namespaces
from places import DATA, ROOT

PAGE = ROOT / "docs" / "mxnet-names.md"
NAMES: dict[str, list[str]] = json.loads((DATA / "mxnet/public_names.json").read_text("utf-8"))

OPERATOR_SPACES = {
    f"{module}{'.' if name else ''}{name}": name
    for module in ("nd", "sym")
    for name in ("", "op", *namespaces.NAMESPACES)
}
"""Modules with operators, and the name of their namespace."""

_TRAINING_NAMES = {
    *("attach_grad", "backward", "detach", "grad", "gradient"),
    *("check_numeric_gradient", "check_symbolic_backward", "compare_optimizer", "numeric_grad"),
    *("check_consistency", "check_gluon_hybridize_consistency", "check_speed"),
}

_HEAD = "# MXNet's public names\n\n"

_INTRODUCTION = (
    (
        "The public names of MXNet 1.9.1 in passlib, by module and class. "
        "`tests/support/mxnet_names.py` writes this page from the names reported by the real "
        "MXNet and those of passlib; a test compares it with both."
    ),
    (
        "A name is *present* if passlib has it. *Training* counts names that only training uses: "
        "steps of optimizers, gradients. They raise `UnsupportedError`, or do nothing. Functions "
        "of operators exist even if the operator cannot be lowered to ONNX; running such an "
        "operator raises the reason."
    ),
)


def registered(space: str, name: str) -> str | None:
    """Return the operator that a function of a module applies, None if it applies none."""
    namespace = OPERATOR_SPACES.get(space)
    if namespace is None:
        return None
    short = "" if namespace == "op" else namespace
    return namespaces.registered_name(name, short) or (
        namespaces.registered_name(name) if short == "sparse" else None
    )


def is_training(space: str, name: str) -> bool:
    """Whether only training uses a name."""
    operator = registered(space, name) or name
    return name in _TRAINING_NAMES or bool(
        TRAINING.fullmatch(operator) or TRAINING.fullmatch(name) or name.startswith("backward_")
    )


def is_present(space: str, name: str) -> bool:
    """Whether passlib has a name."""
    try:
        owner: Any = reduce(getattr, space.split("."), passlib)
        getattr(passlib.sym.var("x") if space == "sym.Symbol" else owner, name)
    except AttributeError:
        return False
    return True


def page() -> str:
    """Return the text of the page."""
    rows, sections = [], []
    for space, names in NAMES.items():
        kinds: dict[str, list[str]] = {"present": [], "training": [], "absent": []}
        for name in names:
            kind = "training" if is_training(space, name) else "present"
            kinds[kind if kind == "training" or is_present(space, name) else "absent"].append(name)
        counts = [len(kinds[kind]) for kind in kinds]
        rows.append(f"| `{space}` | {' | '.join(map(str, counts))} |\n")
        sections.append(f"## {space}\n\n" + "".join(_listed(*kind) for kind in kinds.items()))
    total = [sum(int(row.split("|")[i]) for row in rows) for i in (2, 3, 4)]
    share = total[0] / (total[0] + total[2])
    table = "| Module or class | present | training | absent |\n|---|---|---|---|\n" + "".join(rows)
    summary = (
        f"Of {total[0] + total[2]} names that do not train, {total[0]} are present: {share:.1%}."
    )
    head = _HEAD + "".join(f"{_wrapped(text)}\n\n" for text in _INTRODUCTION)
    return head + table + f"\n{summary}\n\n" + "".join(sections)


def _listed(kind: str, names: list[str]) -> str:
    if not names:
        return ""
    return _wrapped(f"{kind.capitalize()}: {', '.join(f'`{name}`' for name in names)}.") + "\n\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page().rstrip() + "\n", "utf-8")
