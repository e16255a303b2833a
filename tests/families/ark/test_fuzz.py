"""Damaged files raise one of three errors, or none."""

from __future__ import annotations

import copy
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import passlib
from ark_files import FILES
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.families.ark.lowering.lower import functionalise
from passlib.families.ark.reading import read
from passlib.families.ark.validation.file import validate
from passlib.families.ark.writing.file import write
from passlib.graph.node import Entry, Node
from passlib.graph.plain import freeze
from passlib.model.graph import graph_of
from passlib.symbol import Symbol

EXAMPLES = int(os.environ.get("PASSLIB_FUZZ_EXAMPLES", "120"))

NAMES = (
    "gen_head-views_concat.full",
    "gen_head-residual_dag.compressed",
    "gen_head-residual_dag.plan",
    "gen_head-allreduce_r2_of4.compressed",
    "gen_seed-allreduce_r0_of2.full",
    "gen_seed-mlp_softmax.compressed",
    "gen_seed-embedding_rope.full",
    "gen_py-quickstart_add_fp16.full",
    "gen_seed-matmul_variants.compressed",
    "gen_head-recv_reduce_send_r0_of2.full",
)
ROOTS = [json.loads((FILES / f"{name}.json").read_bytes()) for name in NAMES]
TEXTS = [(FILES / f"{name}.json").read_bytes() for name in NAMES]

NUMBERS = st.one_of(
    st.integers(-3, 40), st.sampled_from([2**31, 2**62, 2**63, -(2**63), 2**70, 1e300])
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        NUMBERS,
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=3),
        st.sampled_from(["Tensor", "Add", "Matmul", "null", "FP32", "BYTE", "Noop", "Recv"]),
    ),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["Id", "INT", "DIMS", "Rank", "Shape"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Yield every container of a tree with each of its keys."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        container = pending.pop()
        keys = container.keys() if isinstance(container, dict) else range(len(container))
        for key in keys:
            found.append((container, key))
            if isinstance(container[key], (dict, list)):
                pending.append(container[key])
    return found


def survive(text: bytes) -> None:
    """Read, validate, convert and write a file."""
    for problem in validate(text):
        assert problem.message
    try:
        graph, template = read(text)
    except (FormatError, GraphError, UnsupportedError):
        return
    assert write(template, graph) == text
    symbol = graph_of(graph, {}, "ark")
    for edited in (graph, _doubled(symbol)):
        with suppress(FormatError, GraphError, UnsupportedError):
            write(template, edited)
    with suppress(FormatError, GraphError, UnsupportedError):
        functionalise([symbol])


def _doubled(symbol: Symbol) -> Any:
    """Return the graph with a new operator after its first output."""
    head = symbol.entries[0]
    added = Node("Relu", "added by the test", {}, [head], 1)
    return freeze([Entry(added)], lambda nested: nested, [*symbol.nodes(), added])


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_trees(data: st.DataObject) -> None:
    root = copy.deepcopy(data.draw(st.sampled_from(ROOTS)))
    for _ in range(data.draw(st.integers(1, 3))):
        places = _places(root)
        if not places:
            break
        container, key = places[data.draw(st.integers(0, len(places) - 1))]
        what = data.draw(st.sampled_from(["replace", "number", "remove", "repeat", "swap"]))
        if what == "remove":
            del container[key]
        elif what == "repeat" and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        elif what == "swap":
            other, name = places[data.draw(st.integers(0, len(places) - 1))]
            container[key] = copy.deepcopy(other[name])
        else:
            container[key] = data.draw(NUMBERS if what == "number" else VALUES)
    survive(json.dumps(root).encode())


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_bytes(data: st.DataObject) -> None:
    text = bytearray(data.draw(st.sampled_from(TEXTS)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.sampled_from([1, 1, 2, 30]))
        text[start : start + length] = data.draw(st.binary(max_size=4))
        text = text or bytearray(b"{")
    survive(bytes(text))


@pytest.mark.parametrize("size", [1 << 40, 1 << 61])
def test_stated_sizes_take_no_memory(size: int) -> None:
    """A buffer of a trillion elements takes a few digits in a file."""
    text = (FILES / "gen_py-quickstart_add_fp16.full.json").read_text()
    text = text.replace("[64,64]", f"[{size},1]")
    assert str(size) in text
    survive(text.encode())


@pytest.mark.parametrize(("width", "fine"), [(10000, True), (1, False)])
def test_many_parts_of_one_buffer(width: int, fine: bool, tmp_path: Path) -> None:
    """Every op reads the memory of all earlier ones, or memory with countless overlaps."""
    buffer = {"Id": 0, "Rank": -1, "SendTags": [], "RecvTags": []}

    def tensor(number: int, offset: int, size: int) -> dict[str, Any]:
        box = {"Shape": [size], "Strides": [20000], "Offsets": [offset], "PaddedShape": [size]}
        return {"Id": number, "DataType": "FP32", **box, "Buffer": buffer}

    nodes = []
    for i in range(800):
        op = {
            "Type": "Exp",
            "Name": "",
            "IsVirtual": False,
            "ReadTensors": [tensor(3 * i, 0 if fine else 5000 - i, width if fine else 9000)],
            "WriteTensors": [tensor(3 * i + 1, i, 1)],
            "ResultTensors": [tensor(3 * i + 2, i, 1)],
            "Args": {},
        }
        nodes.append({"Id": i, "ProducerNodeIds": [], "ConsumerNodeIds": [], "Op": op})
    path = tmp_path / "many.json"
    path.write_text(json.dumps({"Rank": 0, "WorldSize": 1, "Nodes": nodes}))
    assert passlib.dialects.find("ark").validate(path)
    if fine:
        assert len(passlib.model.load(path).symbol.graph) < 4000
        return
    with pytest.raises(UnsupportedError, match="different parts"):
        passlib.model.load(path)
