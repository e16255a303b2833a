"""The native reader of networks makes what Python makes of them, and accepts nothing more."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import passlib
import passlib._core as _core
from dlprim_files import COPIED, dialect, network, operator, relu
from passlib.dialects.dlprim.reading.files import read_graph
from passlib.dialects.dlprim.reading.plain import read_plain
from plain_readings import both_outcomes, is_plain

CONV = {"kernel": 3, "pad": 1, "channels_out": 3}
WRONG = [None, True, -1, 0, 1, 3, 3.0, 2**31, 2**63, 1.5, "", "auto", "data", [], {}, [[]], ["a"]]


def outcomes(path: Path, text: bytes) -> tuple[Any, Any]:
    path.write_bytes(text)

    def read() -> tuple[_core.Graph, Any]:
        graph, document = read_graph(path)
        return graph, (document.inputs, document.outputs, document.parameters, document.text)

    return both_outcomes("read_dlprim", read)


def text_of(*operators: dict[str, Any], **more: Any) -> bytes:
    """Give a network as text, by default with one convolution."""
    made = network(*(operators or (operator("c", "Convolution2D", **CONV),)), **more)
    return json.dumps(made).encode()


def member(key: str, value: Any) -> bytes:
    """A network with another top-level member."""
    return json.dumps({**json.loads(text_of()), key: value}).encode()


TEXT = text_of()
DEEP = b"[" * 190 + b"]" * 190

ACCEPTED = {
    "one operator": TEXT,
    "indented, with comments and a last comma": b"// a network\n"
    + json.dumps(json.loads(TEXT), indent=4).replace('"c"\n    ]', '"c",\n    ]').encode(),
    "in place": text_of(operator("c", "Convolution2D", **CONV), relu("r", "c"), outputs=["c"]),
    "a tensor of two names": text_of(
        operator("r", "Reshape", dims=[2, 3, 16]), relu("q", "r"), outputs=["r"]
    ),
    "shared and automatic parameters": text_of(
        operator("c", "Convolution2D", params=["w", "auto"], **CONV),
        operator("d", "Convolution2D", "c", params=["w", ""], **CONV),
    ),
    "frozen": text_of(operator("c", "Convolution2D", frozen=True, **CONV)),
    "options that the operator ignores": text_of(operator("r", "Abs", more={"a": [1, None]})),
    "options of wrong types that count as absent": text_of(
        operator("c", "Convolution2D", groups="2", **CONV)
    ),
    "escapes": TEXT.replace(b'"c"', b'"\\u00e9\\n"'),
    "deep nesting in options": TEXT.replace(b'"kernel"', b'"x": ' + DEEP + b', "kernel"'),
    "no options": text_of(operator("r", "Abs")),
    "several inputs": text_of(
        operator("e", "Elementwise", ["a", "b"]),
        inputs=[{"name": "a", "shape": [2]}, {"name": "b", "shape": [2], "dtype": "float"}],
    ),
}

REFUSED = {
    "nothing": b"",
    "too deep nesting": TEXT.replace(
        b'"kernel"', b'"x": ' + b"[" * 10**5 + b"]" * 10**5 + b', "kernel"'
    ),
    "bytes that are no UTF-8": TEXT.replace(b'"c"', b'"\xff"'),
    "half of a surrogate pair": TEXT.replace(b'"c"', b'"\\ud800"'),
    "something behind the end": TEXT + b"x",
    "a cut text": TEXT[:-1],
    "a repeated member": TEXT[:-1] + b', "inputs": []}',
    "a repeated field": TEXT.replace(b'"type"', b'"name": "c", "type"', 1),
    "a repeated option": TEXT.replace(b'"pad"', b'"kernel": 3, "pad"'),
    "a repeated key deep in options": TEXT.replace(b'"pad"', b'"x": [{"a": 1, "a": 1}], "pad"'),
    "an unknown member": member("more", 1),
    "operators before inputs": json.dumps(
        {key: json.loads(TEXT)[key] for key in ("operators", "inputs", "outputs")}
    ).encode(),
    "no outputs": member("outputs", []),
    "an output twice": member("outputs", ["c", "c"]),
    "an output that is not there": member("outputs", ["x"]),
    "a weighted output": member("outputs", [{"name": "c", "loss_weight": 1.0}]),
    "a tensor without sizes": text_of(shape=()),
    "a tensor of nine dimensions": text_of(shape=(1,) * 9),
    "a size of 0": text_of(shape=(0, 3, 4, 4)),
    "a size beyond 32 bits": text_of(shape=(2**31, 3, 4, 4)),
    "a size beyond 64 bits": text_of(shape=(10**400, 3, 4, 4)),
    "a size with a fraction": TEXT.replace(b"[2, 3, 4, 4]", b"[2.0, 3, 4, 4]"),
    "an unknown type": text_of(inputs=[{"name": "data", "shape": [2, 3, 4, 4], "dtype": "char"}]),
    "an input twice": text_of(inputs=[{"name": "data", "shape": [2, 3, 4, 4]}] * 2),
    "an input without a name": text_of(inputs=[{"shape": [2, 3, 4, 4]}]),
    "an input named like a parameter": text_of(
        operator("c", "Convolution2D", params=["data"], **CONV)
    ),
    "an unknown operator": text_of(operator("r", "Unknown")),
    "an operator twice": text_of(operator("r", "Abs"), operator("r", "Abs", "r", "s")),
    "a tensor that is not there": text_of(operator("r", "Abs", "x")),
    "a later tensor": text_of(operator("r", "Abs", "s"), operator("s", "Abs")),
    "an input too many": text_of(operator("r", "Abs", ["data", "data"])),
    "no outputs of an operator": TEXT.replace(b'"outputs": ["c"], "opt', b'"outputs": [], "opt'),
    "two outputs of an operator": TEXT.replace(b'["c"], "opt', b'["c", "d"], "opt'),
    "options that do not fit": text_of(operator("c", "Convolution2D", **{**CONV, "kernel": 99})),
    "options of a wrong type": text_of(operator("c", "Convolution2D", **{**CONV, "kernel": "3"})),
    "options that are no object": TEXT.replace(b'"options": {', b'"options": 1, "x": {'),
    "a name too many": text_of(operator("c", "Convolution2D", params=["a", "b", "d"], **CONV)),
    "a parameter of two types": text_of(
        operator("c", "Convolution2D", params=["w"], **CONV),
        operator("d", "Convolution2D", "c", params=["w"], **{**CONV, "kernel": 1}),
    ),
    "another operator's tensor": text_of(operator("r", "Abs"), operator("s", "Abs", "data", "r")),
    "another type in place": text_of(operator("r", "GlobalPooling", "data", "data")),
    "memory that was written to under another name": text_of(
        operator("r", "Reshape", dims=[2, 48]),
        relu("q", "data"),
        operator("s", "Abs", "r"),
        outputs=["s"],
    ),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=list(ACCEPTED))
def test_plain_network_is_read_natively_as_by_python(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    native, python = outcomes(path, text)
    assert is_plain("read_dlprim", lambda: read_graph(path))
    assert native == python
    assert native[1]  # heads


@pytest.mark.parametrize("text", REFUSED.values(), ids=list(REFUSED))
def test_other_network_is_left_to_python(text: bytes) -> None:
    assert read_plain(text) is None


@pytest.mark.parametrize("path", COPIED, ids=lambda path: path.stem)
def test_genuine_network_has_the_same_outcome(path: Path, tmp_path: Path) -> None:
    native, python = outcomes(tmp_path / "net.json", path.read_bytes())
    assert native == python


@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_changed_values_have_the_same_outcome(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    texts = [text for text in ACCEPTED.values() if not text.startswith(b"//")]
    tree = copy.deepcopy(json.loads(chance.choice(texts)))
    place: Any = tree
    while isinstance(place, (dict, list)) and place:
        above = place
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        place = place[key]
        if chance.random() < 0.1:
            break
    above[key] = chance.choice(WRONG)
    native, python = outcomes(tmp_path / "net.json", json.dumps(tree).encode())
    assert native == python


@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_changed_bytes_have_the_same_outcome(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    data = bytearray(chance.choice([*ACCEPTED.values(), *(p.read_bytes() for p in COPIED)]))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        data[at : at + chance.choice([0, 1, 10])] = chance.choice(
            [
                b"",
                b"0",
                b"9" * 30,
                b'"',
                b"[",
                b"}",
                b",",
                b"//",
                b"\xff",
                bytes(data[at : at + 30]),
            ]
        )
    native, python = outcomes(tmp_path / "net.json", bytes(data))
    assert native == python


def test_edited_network_keeps_what_was_not_edited(tmp_path: Path) -> None:
    path, target = tmp_path / "net.json", tmp_path / "saved.json"
    path.write_bytes(ACCEPTED["indented, with comments and a last comma"])
    model = passlib.load(path)
    model.save(target)
    assert target.read_bytes() == path.read_bytes()
    assert len(model._template.document.network.operators) == 1


NO_NETWORKS = {
    "a list of inputs alone": b'{"inputs": [], "operators": {}}',
    "operators alone": b'{"operators": [], "x": "inputs"}',
    "operators inside": b'{"x": {"operators": [], "inputs": []}}',
    "a repeated key": b'{"operators": [], "inputs": [], "inputs": []}',
    "escapes in a key": b'{"operators": [], "inputs": [], "\\u0061": 1}',
}


@pytest.mark.parametrize(
    "text",
    [*ACCEPTED.values(), *REFUSED.values(), *NO_NETWORKS.values()],
    ids=[*ACCEPTED, *REFUSED, *NO_NETWORKS],
)
def test_network_is_recognised_as_by_parsing_it(
    text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.json"
    path.write_bytes(text)
    native = dialect.recognises(path)
    monkeypatch.setattr(_core, "json_members", lambda *_, **__: None)
    assert dialect.recognises(path) == native
