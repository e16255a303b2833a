"""Symbols compared question by question: composed in both hosts, and read from files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import passlib
from compose_programs import PROGRAMS
from corpus import MODELS, read_model
from legacy_cases import GRAPHS, VERSIONS, versioned
from mxnet_process import MXNet
from observe import describe
from passlib import sym
from passlib.mxnet import schema
from passlib.mxnet.symbol.composition import create
from places import DATA

PROBES = json.loads((DATA / "schema/probes.json").read_text("utf-8"))


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("program", PROGRAMS)
def test_composed_alike(mxnet: MXNet, program: str) -> None:
    theirs = mxnet("compose", name=program)
    with passlib.name.NameManager():
        symbol = PROGRAMS[program](passlib)
    ours = symbol.tojson(remove_amp_cast=False)
    assert ours == theirs["json"]
    assert ours == (DATA / "compose" / f"{program}.json").read_text("utf-8")
    assert as_json(describe(symbol)) == theirs["answers"]


@pytest.mark.parametrize("model", MODELS)
def test_answers_alike(mxnet: MXNet, model: str) -> None:
    text = read_model(model)
    assert as_json(describe(sym.load_json(text))) == mxnet("describe", text=text)


@pytest.mark.parametrize("model", MODELS)
def test_read_and_written_alike(mxnet: MXNet, model: str) -> None:
    ours = sym.load(MODELS[model]).tojson()
    assert ours == mxnet("load", path=str(MODELS[model]))


def test_aliases_become_the_same_operators(mxnet: MXNet) -> None:
    named, texts = [], []
    for name, cases in PROBES.items():
        operator = schema.find(name)
        if operator is None or not operator.aliases or not operator.makes_variables:
            continue
        count = len(cases[0]["inputs"]) if operator.takes_any_number else 0
        inputs = [sym.var(f"x{i}") for i in range(count)]
        text = sym.Symbol(create(name, inputs, cases[0]["attrs"], "n")).tojson()
        for alias in operator.aliases:
            named.append(text)
            texts.append(text.replace(f'"op": "{name}"', f'"op": "{alias}"'))
    assert len(texts) > 150
    answers = mxnet("rewrite", texts=texts)
    assert [answer.get("value") for answer in answers] == named
    assert [sym.load_json(text).tojson() for text in texts] == named


def test_composed_symbols_load_in_mxnet(mxnet: MXNet) -> None:
    texts = {}
    for program, build in PROGRAMS.items():
        with passlib.name.NameManager():
            texts[program] = build(passlib).tojson()
    answers = mxnet("rewrite", texts=list(texts.values()))
    for (program, text), answer in zip(texts.items(), answers, strict=True):
        assert answer == {"value": text}, program


def test_legacy_files_upgraded_alike(mxnet: MXNet) -> None:
    files = {
        (name, version): json.dumps(versioned(name, version))
        for name in GRAPHS
        for version in VERSIONS
    }
    answers = mxnet("rewrite", texts=list(files.values()))
    upgraded = {}
    for (case, text), answer in zip(files.items(), answers, strict=True):
        if "value" not in answer:
            continue
        upgraded[case] = sym.load_json(text).tojson()
        assert upgraded[case] == answer["value"], case
    assert len(upgraded) > len(files) // 2
    again = mxnet("rewrite", texts=list(upgraded.values()))
    assert again == [{"value": text} for text in upgraded.values()]
