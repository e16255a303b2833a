"""``--json`` of each command prints the keys, with the types, that docs/json.md lists."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import onnx.parser
import pytest

from passlib.cli import main
from passlib.cli.command import COMMANDS
from passlib.cli.tables import json_text
from passlib.library import load_standard
from places import ROOT

Key: TypeAlias = tuple[str, ...]

MODEL = """
<ir_version: 9, opset_import: ["" : 18], producer_name: "tests">
g (float[batch, 3] x, bool c) => (float[batch, 3] y) <float[3] w = {1, 2, 3}> {
  a = Add(x, w)
  r = Relu(a)
  s = Relu(r)
  y = If (c) <
    then_branch = t () => (z) { z = Sqrt(s) },
    else_branch = e () => (v) { k = Constant <value = float {2}> () v = Mul(s, k) }>
}
"""

MISSPELLED = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[1] x) => (float[1] y) { y = Cnov(x) }
"""

# One layer of a later operator set, from its parts.
LAYER = """
<ir_version: 9, opset_import: ["" : 16]>
g (float[2, 4] x) => (float[2, 4] out)
<int64[1] axis = {1}, float two = {2}, float tiny = {0.00001}> {
  mean = ReduceMean <axes = [-1]> (x)
  centred = Sub(x, mean)
  squares = Pow(centred, two)
  variance = ReduceMean <axes = [-1]> (squares)
  more = Add(variance, tiny)
  deviation = Sqrt(more)
  out = Div(centred, deviation)
}
"""

WRONG = """
import passlib as pl


@pl.rewrite("y = Relu(Relu(a))", dialects=["onnx"])
def wrong_by_design(m: pl.Match) -> object:
    return m.op("Neg", m.op("Abs", m.a))
"""

RULES = """
rule wrong "Wrong on purpose."
  onnx 13..
  y = Relu(x)
  => y = Abs(x)
  exact
  enables
  example
    y = Relu(x: float[n])
    => y = Abs(x)

rule joined "Concat of Concat along the same axis is one."
  onnx 13..
  y = Concat[axis=0](Concat[axis=0](*xs), *rest)
  => y = Concat[axis=0](*xs, *rest)
  exact
  enables
  example
    y = Concat[axis=0](Concat[axis=0](a: float[2], b: float[3]), c: float[4])
    => y = Concat[axis=0](a, b, c)
"""

RUNS = {
    "opt": [
        "j.onnx -o j2.onnx --check --certify j.cert.json --report j.html",
        "j.onnx -o j3.onnx --rewrite-limit 1 -l wrong.py --passes wrong_by_design",
        "j.onnx -o j3.onnx -l wrong.py --override --passes wrong_by_design --check",
        "layer.onnx -o layer2.onnx",
        "odd.onnx -o odd2.onnx",
        "never.onnx -o never2.onnx --passes removeDeadNodes --check",
    ],
    "opt, several models": ["j.onnx odd.onnx wrong.py -o several"],
    "inspect": ["j.onnx", "odd.onnx"],
    "inspect --ops": ["j.onnx --ops"],
    "inspect --weights": ["j.onnx --weights"],
    "inspect --shapes": ["j.onnx --shapes", "odd.onnx --shapes"],
    "inspect --costs": ["j.onnx --costs", "j.onnx --costs node"],
    "inspect --node": ["j.onnx --node r_node", "j.onnx --node x", "layer.onnx --node mean_node"],
    "validate": ["j.onnx odd.onnx"],
    "lint": ["odd.onnx --target opset=18"],
    "compare": ["j.onnx broken.onnx --per-node"],
    "bisect": ["j.onnx -l wrong.py --override --passes wrong_by_design --check"],
    "reduce": ["j.onnx -l wrong.py --override --passes wrong_by_design --check -o small.onnx"],
    "diff": ["j.onnx broken.onnx", "j.onnx layer.onnx"],
    "passes": [""],
    "rules": [""],
    "prove": ["some.rules"],
    "check-certificate": ["j.onnx j2.onnx j.cert.json"],
    "abi": ["LIBRARY", "LIBRARY --no-load"],
}
"""Command lines by section of the page; the later ones use files of the first ones."""


def sections() -> Iterator[tuple[str, dict[Key, set[str]]]]:
    """Yield the tables of the page: types by key. `opt` has two."""
    text = (ROOT / "docs" / "json.md").read_text("utf-8")
    for part in text.split("\n## ")[1:]:
        title = part.partition("\n")[0]
        tables = part.split("\n| key |")[1:]
        for number, table in enumerate(tables):
            rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", table, re.MULTILINE)
            name = f"{title}, several models" if number else title
            yield (
                name,
                {_parts(key): set(re.split(r", | or ", kinds.strip())) for key, kinds in rows},
            )


def _parts(key: str) -> Key:
    return tuple(filter(None, key.replace("[]", ".[]").split(".")))


def leaves(value: Any, key: Key = ()) -> Iterator[tuple[Key, str]]:
    """Yield the keys of a value and their types, those of lists and objects included."""
    if isinstance(value, dict):
        yield key, "object"
        for name, item in value.items():
            yield from leaves(item, (*key, name))
    elif isinstance(value, list):
        yield key, "list"
        for item in value:
            yield from leaves(item, (*key, "[]"))
    else:
        names = {bool: "boolean", int: "integer", float: "number", str: "string"}
        yield key, names.get(type(value), "null")


def _fits(listed: Key, key: Key) -> bool:
    same = (one in ("*", other) for one, other in zip(listed, key, strict=False))
    return len(listed) == len(key) and all(same)


PAGE = dict(sections())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("json")
    broken = MODEL.replace("{1, 2, 3}", "{1, 2, 4}").replace("r = Relu", "r = Abs")
    never = MODEL.replace("a = Add", "n = Constant <value = bool {0}> () d = And(c, n) a = Add")
    never = never.replace("If (c)", "If (d)")
    texts = {"j": MODEL, "odd": MISSPELLED, "layer": LAYER, "broken": broken, "never": never}
    for name, text in texts.items():
        model = onnx.parser.parse_model(text)
        for node in model.graph.node:
            node.name = f"{node.output[0]}_node"
        onnx.save(model, made / f"{name}.onnx")
    (made / "some.rules").write_text(RULES, "utf-8")
    (made / "wrong.py").write_text(WRONG, "utf-8")
    return made


@pytest.fixture(scope="module")
def certified(folder: Path) -> None:
    given = ("j.onnx", "-o", "j2.onnx", "--certify", "j.cert.json", "--quiet")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["opt", *given]) == 0
    finally:
        os.chdir(before)


def test_every_command_is_there() -> None:
    assert set(RUNS) == set(PAGE)
    with_json = {
        name for name in COMMANDS if "add_json(" in _source(name) or "json_text(" in _source(name)
    }
    assert {title.partition(",")[0].partition(" ")[0] for title in PAGE} == with_json


def _source(command: str) -> str:
    name = command.replace("-", "_")
    return (ROOT / f"python/passlib/cli/commands/{name}.py").read_text("utf-8")


@pytest.mark.parametrize("section", RUNS)
def test_the_keys_are_those_of_the_page(
    section: str,
    folder: Path,
    certified: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    page, seen = PAGE[section], set[Key]()
    library = str(load_standard().path)
    command = section.partition(",")[0].partition(" ")[0]
    for line in RUNS[section]:
        form = ["--format", "json"] if command == "diff" else ["--json"]
        main([command, *line.replace("LIBRARY", library).split(), *form])
        for key, kind in leaves(json.loads(capsys.readouterr().out, parse_constant=pytest.fail)):
            rows = [row for row in page if _fits(row, key)]
            seen.update(rows)
            # A list may be empty.
            seen.update(row for row in page if row[-1:] == ("[]",) and _fits(row[:-1], key))
            # Lists and objects need a row only where they may be null.
            is_inner = any(_fits(row[: len(key)], key) for row in page if len(row) > len(key))
            if kind in ("list", "object") and not rows and is_inner:
                continue
            assert rows, f"{section}: {'.'.join(key)} is not in the page"
            kinds = set().union(*(page[row] for row in rows))
            kinds |= {"integer"} if "number" in kinds else set()
            assert kind in kinds, f"{section}: {'.'.join(key)} is of type {kind}"
    missing = [".".join(row) for row in page if row not in seen]
    assert not missing, f"{section} has no such keys"


def test_numbers_that_are_not_finite_are_null() -> None:
    text = json_text([1.5, float("inf"), {"x": float("nan")}])
    assert json.loads(text, parse_constant=pytest.fail) == [1.5, None, {"x": None}]
