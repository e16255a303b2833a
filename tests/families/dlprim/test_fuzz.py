"""Damaged networks and weights of DLPrimitives raise only passlib's errors, and quickly."""

from __future__ import annotations

import io
import json
import os
import resource
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import passlib
from dlprim_files import COPIED, DATA, dialect
from passlib import _core
from passlib.dialects.json_text import parse
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.families.dlprim.network import Findings
from passlib.families.dlprim.reading.document import build_graph
from passlib.families.dlprim.reading.network import read_network
from passlib.families.dlprim.schema import OPERATORS

OWN = (FormatError, GraphError, UnsupportedError)
EXAMPLES = int(os.environ.get("PASSLIB_FUZZ_EXAMPLES", "150"))
quick = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TEXTS = [path.read_bytes() for path in COPIED]
TREES = [json.loads(text) for text in TEXTS]
WEIGHTS = [path.read_bytes() for path in sorted(DATA.glob("*.dlp"))]

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([2**31, -(2**63), 10**30, 1e400, 0.5, 3.0, -0.0, "", "auto", "data", "loss"]),
    st.sampled_from(sorted(OPERATORS)),
    st.lists(st.one_of(st.integers(-2, 9), st.none(), st.text(max_size=3)), max_size=9),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def load_and_save(text: bytes, weights: bytes | None = None) -> None:
    """Validate, load and save a file; only passlib's own errors may be raised."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.json"
        path.write_bytes(text)
        if weights is not None:
            path.with_suffix(".dlp").write_bytes(weights)
        dialect.recognises(path)
        problems = dialect.validate(path)
        try:
            model = passlib.load(path, "dlprim", allow_missing=True)
        except OWN:
            if weights is None:
                fine = all(problem.severity == "warning" for problem in problems)
                assert not fine or not json.loads(text)["operators"]
            return
        if weights is None:
            assert all(problem.severity == "warning" for problem in problems)
        model.save(Path(folder) / "saved.json")
        assert (Path(folder) / "saved.json").read_bytes() == text


@st.composite
def mutated_trees(draw: st.DrawFn) -> Any:
    tree = json.loads(json.dumps(draw(st.sampled_from(TREES))))
    for _ in range(draw(st.integers(1, 4))):
        places = [(None, None, tree)]
        containers = []
        while places:
            *_, node = places.pop()
            items = (
                node.items()
                if isinstance(node, dict)
                else enumerate(node)
                if isinstance(node, list)
                else ()
            )
            for key, value in items:
                containers.append((node, key))
                places.append((node, key, value))
        if not containers:
            return tree
        node, key = draw(st.sampled_from(containers))
        action = draw(st.sampled_from(["set", "delete", "repeat", "swap"]))
        if action == "set":
            node[key] = draw(odd_values)
        elif action == "delete":
            del node[key]
        elif isinstance(node, list):
            other = draw(st.integers(0, len(node) - 1))
            if action == "repeat":
                node.insert(other, node[key])
            else:
                node[key], node[other] = node[other], node[key]
    return tree


@quick
@given(mutated_trees())
def test_mutated_networks(tree: Any) -> None:
    load_and_save(json.dumps(tree).replace("Infinity", "1e400").encode())


@st.composite
def mutated_bytes(draw: st.DrawFn, originals: list[bytes]) -> bytes:
    text = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        count = draw(st.integers(0, 8))
        text[start : start + count] = draw(st.binary(max_size=8))
    return bytes(text)


odd_texts = st.one_of(
    st.sampled_from(["", "0", "-1", "1", "3", "True", "false", "0.5", "inf", "nan", "1e400"]),
    st.sampled_from(["[1, 2]", "(2,)", "[", "[0, -1]", "[None]", "relu", "max", "sum", "nearest"]),
    st.sampled_from(["view", "operators[0]", "operators[99]", "inputs[0]", "inputs[x]", "data"]),
    st.text(max_size=4),
)
KEYS = sorted({name for known in OPERATORS.values() for name in known.options})
NOTES = ["__id__", "__tensor__", "__frozen__", "__shape__", "__dtype__", "note"]


@quick
@given(st.data())
def test_what_save_accepts_can_be_loaded(data: st.DataObject) -> None:
    """Any graph that a pass leaves behind raises one of passlib's errors or makes a sound file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.json"
        path.write_bytes(data.draw(st.sampled_from(TEXTS)))
        model = dialect.load(path)
        nodes, heads = model.graph.nodes(), model.graph.heads()
        for _ in range(data.draw(st.integers(1, 4))):
            index = data.draw(st.integers(1, len(nodes) - 1))
            op, name, attributes, inputs, *rest = nodes[index]
            attributes = dict(attributes)
            action = data.draw(st.sampled_from(["op", "name", "set", "drop", "inputs", "head"]))
            source = (data.draw(st.integers(0, index - 1)), 0, 0)
            if action == "op":
                op = data.draw(st.sampled_from(["null", "Gelu", *OPERATORS]))
            elif action == "name":
                name = data.draw(odd_texts)
            elif action == "set":
                attributes[data.draw(st.sampled_from(KEYS + NOTES))] = data.draw(odd_texts)
            elif action == "drop":
                attributes.pop(data.draw(st.sampled_from(KEYS + NOTES)), None)
            elif action == "inputs":
                slot = data.draw(st.integers(0, len(inputs)))
                count = data.draw(st.integers(0, 1))
                inputs = [*inputs[:slot], *[source] * count, *inputs[slot + 1 :]]
            else:
                heads = [*heads, source][-data.draw(st.integers(1, 2)) :]
            nodes[index] = _core.NodeTuple(op, name, attributes, inputs, *rest)
        try:
            graph = _core.Graph.build(nodes, heads)
            graph.check()
            changed = ModelData(graph, model.attributes, {}, {}, model.template)
            dialect.save(Path(folder) / "saved.json", changed)
        except OWN:
            return
        loaded = dialect.load(Path(folder) / "saved.json")
        assert len(loaded.graph.heads()) <= len(heads)


@quick
@given(mutated_bytes(TEXTS))
def test_damaged_text(text: bytes) -> None:
    load_and_save_if_json(text)


def load_and_save_if_json(text: bytes) -> None:
    try:
        root = parse(text, comments=True)
    except FormatError:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.json"
            path.write_bytes(text)
            with pytest.raises(FormatError):
                passlib.load(path, "dlprim")
        return
    findings = Findings()
    network = read_network(text, root, findings)
    if not findings.failed:
        build_graph(network)


@quick
@given(mutated_bytes(WEIGHTS))
def test_damaged_weights(weights: bytes) -> None:
    load_and_save(TEXTS[0], weights)


@cache
def stored_in_many_ways() -> bytes:
    """Return an HDF5 file with chunks, filters, groups in a circle and shared datasets."""
    h5py: Any = pytest.importorskip("h5py")
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        numbers = np.arange(600, dtype="f4")
        file.create_dataset("gzip", data=numbers, chunks=(100,), compression="gzip", shuffle=True)
        file.create_dataset("lzf", data=numbers, chunks=(200,), compression="lzf", fletcher32=True)
        file.create_dataset("none", (1 << 16,), "f4", chunks=(64,))
        group = file.create_group("group")
        group["inner"] = numbers[:3].astype("f8")
        group["back"] = file["/"]
        file["shared"] = group["inner"]
    return buffer.getvalue()


@quick
@given(st.data())
def test_damaged_hdf5(data: st.DataObject) -> None:
    pytest.importorskip("h5py")
    originals = [path.read_bytes() for path in sorted(DATA.glob("*.h5"))]
    weights = data.draw(mutated_bytes([*originals, stored_in_many_ways()]))
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    load_and_save(TEXTS[0], weights)
    assert time.process_time() - start < 10
    # In KB: the limit for so small a file is 64 MB, and arrays are converted once.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


LARGE: list[dict[str, Any]] = [
    {"type": "Convolution2D", "options": {"channels_out": 2**31 - 1, "kernel": 2**31 - 1}},
    {"type": "Interpolation", "options": {"method": "nearest", "scale_x": 1e30, "scale_y": 1e30}},
    {"type": "InnerProduct", "options": {"outputs": 2**31 - 1}},
    {"type": "Parameter", "inputs": [], "options": {"shape": [2**31 - 1] * 8}},
    {"type": "Reshape", "options": {"dims": [1] * 100_000}},
    {"type": "Concat", "inputs": ["data"] * 100_000},
    {"type": "Pooling2D", "options": {"kernel": 1, "pad": 2**30}},
]


@pytest.mark.parametrize("layer", LARGE, ids=lambda layer: layer["type"])
def test_nothing_is_allocated_for_sizes(layer: dict[str, Any]) -> None:
    tree = {
        "inputs": [{"shape": [1, 1, 2, 2]}],
        "operators": [{"name": "a", "inputs": ["data"], "outputs": ["a"], **layer}],
        "outputs": ["a"],
    }
    load_and_save(json.dumps(tree).encode())


def test_many_operators() -> None:
    """A long chain needs no deep recursion, and linear time."""
    layers = [
        {
            "name": f"n{i}",
            "type": "Abs",
            "inputs": [f"n{i - 1}" if i else "data"],
            "outputs": [f"n{i}"],
        }
        for i in range(20_000)
    ]
    tree = {"inputs": [{"shape": [2]}], "operators": layers, "outputs": ["n19999"]}
    load_and_save(json.dumps(tree).encode())
