"""The native reader of ARK's models makes what Python makes of them, and accepts nothing more."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passlib._core as _core
from ark_files import FILES, genuine
from passlib.dialects.ark.reading.graph import read, read_plain
from plain_readings import both_outcomes, is_plain

PATHS = genuine()
TEXTS = [path.read_bytes() for path in PATHS]
SMALL = (FILES / "gen_py-quickstart_add_fp16.full.json").read_bytes()
OLD = (FILES / "gen_seed-mlp_softmax.compressed.json").read_bytes()
GROUPS = ("ReadTensors", "WriteTensors", "ResultTensors")
WRONG = [None, True, -1, 0, 1, 5, 2**62, 2**63, 2**70, 1.5, "", "x", "Add", [], {}, [[]], [0]]

Change = Callable[[dict[str, Any]], object]


def outcomes(text: bytes) -> tuple[Any, Any]:
    def read_all() -> tuple[_core.Graph, Any]:
        graph, template = read(text)
        return graph, (template.rank, template.world_size, template.ops.keys())

    return both_outcomes("read_ark", read_all)


def changed(change: Change, text: bytes = SMALL) -> bytes:
    root = json.loads(text)
    change(root)
    return json.dumps(root).encode()


def ops_of(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for unit in root["Nodes"]:
        yield from unit.get("Ops", [unit.get("Op")])


def tensors_of(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for op in ops_of(root):
        for group in GROUPS:
            yield from op[group]


def first_op(**members: Any) -> bytes:
    """The small model with other members of its last op, which computes."""
    return changed(lambda root: list(ops_of(root))[-1].update(members))


def node(number: int, **members: Any) -> bytes:
    return changed(lambda root: root["Nodes"][number].update(members))


def first_tensor(**members: Any) -> bytes:
    """The small model with other members of one tensor, wherever it is mentioned."""

    def change(root: dict[str, Any]) -> None:
        tensors = list(tensors_of(root))
        number = tensors[0]["Id"]
        for tensor in tensors:
            if tensor["Id"] == number:
                tensor.update(copy.deepcopy(members))

    return changed(change)


def one_mention(**members: Any) -> bytes:
    return changed(lambda root: list(tensors_of(root))[-1].update(members))


DEEP = b"[" * 190 + b"]" * 190

ACCEPTED = {
    "as ARK writes it": SMALL,
    "a list of ops": OLD,
    "indented": json.dumps(json.loads(SMALL), indent=4).encode(),
    "another rank": changed(lambda root: root.update(Rank=7, WorldSize=8)),
    "another member": changed(lambda root: root.update(More={"a": [1.5, None]})),
    "deep nesting": SMALL.rstrip()[:-1] + b', "x": ' + DEEP + b"}",
    "an unknown operator": first_op(Type="Unknown"),
    "no name": first_op(Name=""),
    "a name of a letter beyond ASCII": first_op(Name="\u00e9\n"),
    "arguments": first_op(
        Args={
            "a": {"FLOAT": 1.50},
            "b": {"BOOL": True},
            "c": {"DIMS": [1, -0.0, 2**70]},
            "d": {"TEXT": "\u00e9"},
            "e": {"DIMS": []},
        }
    ),
    "an unknown element type": first_tensor(DataType="OTHER"),
    "a sent buffer": first_tensor(
        Buffer={"Id": 0, "Rank": -1, "SendTags": [[1, 2], [3, 4]], "RecvTags": []}
    ),
    "a buffer without tags": first_tensor(Buffer={"Id": 0, "Rank": -1}),
    "a part of an array": first_tensor(
        Shape=[2, 2], Strides=[4, 4], Offsets=[2, 2], PaddedShape=[2, 2]
    ),
    "a large number": first_tensor(Id=2**63 - 1),
}

REFUSED = {
    "nothing": b"",
    "too deep nesting": SMALL.rstrip()[:-1] + b', "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    "bytes that are no UTF-8": SMALL.replace(b'"FP16"', b'"\xff"'),
    "half of a surrogate pair": SMALL.replace(b'"FP16"', b'"\\ud800"'),
    "something behind the end": SMALL + b"x",
    "a cut text": SMALL.rstrip()[:-1],
    "a repeated member": SMALL.rstrip()[:-1] + b', "Rank": 0}',
    "a repeated other member": SMALL.rstrip()[:-1] + b', "x": 1, "x": 1}',
    "a repeated field": SMALL.replace(b'"Type"', b'"Name": "", "Type"', 1),
    "a repeated field of a tensor": SMALL.replace(b'"DataType"', b'"Id": 0, "DataType"', 1),
    "no rank": changed(lambda root: root.pop("Rank")),
    "a rank that is no integer": changed(lambda root: root.update(Rank=True)),
    "no nodes": changed(lambda root: root.pop("Nodes")),
    "an empty list of nodes": changed(lambda root: root.update(Nodes=[])),
    "a plan": (FILES / "gen_head-residual_dag.plan.json").read_bytes(),
    "two nodes of one Id": node(1, Id=0),
    "a node without an op": changed(lambda root: root["Nodes"][0].pop("Op")),
    "an op and a list of ops": node(0, Ops=[]),
    "a producer that is not there": node(1, ProducerNodeIds=[99]),
    "a later producer": node(0, ProducerNodeIds=[1]),
    "a node that produces for itself": node(1, ProducerNodeIds=[1]),
    "a producer that is no number": node(1, ProducerNodeIds=["0"]),
    "a producer beyond 64 bits": node(1, ProducerNodeIds=[10**400]),
    "a consumer that is no number": node(1, ConsumerNodeIds=[0.0]),
    "no type": first_op(Type=""),
    "the type of variables": first_op(Type="null"),
    "a member of plans": first_op(Config={"a": 1}),
    "an argument without a type": first_op(Args={"a": 1}),
    "an argument of no value": first_op(Args={"a": {}}),
    "an argument of two values": first_op(Args={"a": {"INT": 1, "FLOAT": 1}}),
    "an argument of nested lists": first_op(Args={"a": {"DIMS": [[1]]}}),
    "many arguments": first_op(Args={f"a{i}": {"INT": 1} for i in range(1000)}),
    "an argument named like passlib's": first_op(Args={"__id__": {"INT": 1}}),
    "a tensor that is no object": first_op(ReadTensors=[1]),
    "a tensor that two ops return": changed(
        lambda root: list(ops_of(root))[-1].update(
            ResultTensors=next(ops_of(root))["ResultTensors"]
        )
    ),
    "another description": one_mention(Shape=[1]),
    "another order of the keys": changed(
        lambda root: list(ops_of(root))[-1].update(
            ReadTensors=[
                dict(reversed(tensor.items())) for tensor in list(ops_of(root))[-1]["ReadTensors"]
            ]
        )
    ),
    "a member that nobody knows": first_tensor(More=1),
    "five dimensions": first_tensor(
        Shape=[1] * 5, Strides=[1] * 5, Offsets=[0] * 5, PaddedShape=[1] * 5
    ),
    "no dimensions": first_tensor(Shape=[], Strides=[], Offsets=[], PaddedShape=[]),
    "lists of different lengths": first_tensor(Shape=[1]),
    "a shape outside": first_tensor(Shape=[2], Strides=[4], Offsets=[3], PaddedShape=[2]),
    "an offset before": first_tensor(Shape=[2], Strides=[4], Offsets=[-1], PaddedShape=[2]),
    "a size of 0": first_tensor(Shape=[0], Strides=[4], Offsets=[0], PaddedShape=[2]),
    "sums that overflow": first_tensor(
        Shape=[2**63 - 1], Strides=[2**63 - 1], Offsets=[2**63 - 1], PaddedShape=[1]
    ),
    "a size with a fraction": first_tensor(Shape=[2.0], Strides=[4], Offsets=[0], PaddedShape=[2]),
    "an element type that JSON escapes": first_tensor(DataType='F"'),
    "tags that are no pairs": first_tensor(Buffer={"Id": 0, "Rank": -1, "SendTags": [[1]]}),
    "no buffer": first_tensor(Buffer=None),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=list(ACCEPTED))
def test_plain_file_is_read_natively_as_by_python(text: bytes) -> None:
    assert is_plain("read_ark", lambda: read(text))
    native, python = outcomes(text)
    assert native == python
    assert native[1]  # heads


@pytest.mark.parametrize("text", REFUSED.values(), ids=list(REFUSED))
def test_other_file_is_left_to_python(text: bytes) -> None:
    assert read_plain(text) is None


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_genuine_file_has_the_same_outcome(path: Any) -> None:
    native, python = outcomes(path.read_bytes())
    assert native == python


def test_models_with_virtual_ops_are_plain() -> None:
    full = [path.read_bytes() for path in FILES.glob("*.full.json")]
    assert len(full) > 15
    assert all(read_plain(text) for text in full)


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_changed_values_have_the_same_outcome(seed: int) -> None:
    chance = random.Random(seed)
    root = json.loads(chance.choice(TEXTS))
    place: Any = root
    while isinstance(place, (dict, list)) and place:
        above = place
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        place = place[key]
        if chance.random() < 0.1:
            break
    above[key] = chance.choice(WRONG)
    native, python = outcomes(json.dumps(root).encode())
    assert native == python


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_models_of_other_structure_have_the_same_outcome(seed: int) -> None:
    """Consistent changes, most of which are sound models."""
    chance = random.Random(seed)
    root = json.loads(chance.choice([text for text in TEXTS if b'"TaskInfos"' not in text]))
    for _ in range(chance.randint(1, 4)):
        ops, tensors = list(ops_of(root)), list(tensors_of(root))
        op, tensor = chance.choice(ops), copy.deepcopy(chance.choice(tensors))
        kind = chance.randrange(8)
        members = [
            {"DataType": chance.choice(["FP32", "BYTE", "OTHER"])},
            {"Buffer": copy.deepcopy(chance.choice(tensors)["Buffer"])},
            {"Buffer": {**tensor["Buffer"], "Rank": chance.randrange(-1, 3)}},
            {"Buffer": {**tensor["Buffer"], "RecvTags": [[1, 2]]}},
        ]
        if kind < len(members):
            for other in tensors:
                if other["Id"] == tensor["Id"]:
                    other.update(copy.deepcopy(members[kind]))
        elif kind == 4:
            op["Name"] = chance.choice(["", chance.choice(ops)["Name"], "buffer1", "tensor1"])
        elif kind == 5:
            op["IsVirtual"] = not op["IsVirtual"]
        elif kind == 6:
            op[chance.choice(GROUPS[:2])].append(tensor)
        else:
            unit = chance.choice(root["Nodes"])
            unit["ProducerNodeIds"].append(chance.choice(root["Nodes"])["Id"])
    native, python = outcomes(json.dumps(root).encode())
    assert native == python


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_changed_bytes_have_the_same_outcome(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(chance.choice(TEXTS))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        data[at : at + chance.choice([0, 1, 10])] = chance.choice(
            [b"", b"0", b"9" * 30, b'"', b"[", b"}", b"\\u0000", b"\xff", bytes(data[at : at + 30])]
        )
    native, python = outcomes(bytes(data))
    assert native == python
