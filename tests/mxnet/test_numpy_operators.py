"""The NumPy operators against MXNet 1.9.1's numbers, one model for each operator."""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import places
from case_files import case_lines, case_tensors
from mxnet_graph import PlainGraph, read_graph
from passlib import runtime
from passlib.errors import UnsupportedError
from passlib.graph.node import Entry, Node
from passlib.lowering import TypeSpec
from passlib.mxnet import schema
from passlib.mxnet.inference.infer import infer
from passlib.mxnet.lower import lower
from passlib.mxnet.lowering import load_table

FOLDER = places.DATA / "mxnet" / "numpy"
FAMILIES = sorted(path.with_suffix("") for path in FOLDER.glob("*.jsonl.gz"))

Case = dict[str, Any]

tensors = functools.cache(case_tensors)


@functools.cache
def cases() -> dict[tuple[Path, str], list[Case]]:
    """Return the cases of each family and operator."""
    found: dict[tuple[Path, str], list[Case]] = defaultdict(list)
    for path in FAMILIES:
        for line in case_lines(path):
            case = json.loads(line)
            operator = json.loads(case["symbol"])["nodes"][-1]["op"]
            found[path, operator].append(case)
    return found


def inputs_of(path: Path, case: Case) -> dict[str, np.ndarray]:
    return {name: tensors(path)[f"{case['name']}/in/{name}"] for name in case["args"]}


def joined(path: Path, group: list[Case]) -> tuple[PlainGraph, dict[str, np.ndarray]]:
    """Make one graph of all cases, and its inputs."""
    entries: list[Entry] = []
    inputs: dict[str, np.ndarray] = {}
    for case in group:
        graph = read_graph(case["symbol"])
        own = [
            Entry(Node("null", f"{case['name']}/{entry.node.name}"))
            for entry in graph.entries[0].node.inputs
        ]
        old = graph.entries[0].node
        node = Node(old.op, old.name, dict(old.attrs), own, old.num_outputs)
        entries += [Entry(node, index) for index in range(case["outputs"])]
        for entry, array in zip(own, inputs_of(path, case).values(), strict=True):
            inputs[entry.node.name] = array
    return PlainGraph(tuple(entries), graph.attributes), inputs


@pytest.mark.parametrize(
    ("path", "operator"), sorted(cases()), ids=lambda part: getattr(part, "stem", part)
)
def test_same_numbers_as_mxnet(path: Path, operator: str) -> None:
    group = cases()[path, operator]
    graph, inputs = joined(path, group)
    specs = {name: TypeSpec(array.dtype, array.shape) for name, array in inputs.items()}
    lowered = lower(graph, specs, {})
    onnx.checker.check_model(lowered.model, full_check=True)
    outputs = iter(runtime.Session(lowered, runtime.Settings(threads=1)).run(inputs))
    entries = iter(graph.entries)
    for case in group:
        for index in range(case["outputs"]):
            actual, expected = next(outputs), tensors(path)[f"{case['name']}/out/{index}"]
            entry = next(entries)
            value = lowered.value_of[entry.node, entry.index]
            where = f"{case['name']} {entry.node.attrs}"
            assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), where
            assert value.dtype == expected.dtype, where
            assert value.shape is not None, where
            assert len(value.shape) == expected.ndim, where
            np.testing.assert_allclose(
                actual, expected, rtol=case["tol"], atol=case["tol"], err_msg=where
            )


def test_every_numpy_operator_that_is_lowered_has_cases() -> None:
    recorded: set[str] = set()
    for _, name in cases():
        operator = schema.find(name)
        assert operator is not None
        recorded.add(operator.name)
    lowered = {
        operator.name
        for name in load_table().operators()
        if name.startswith("_np") and (operator := schema.find(name)) and operator.name == name
    }
    assert sorted(lowered - recorded - DRAWS) == []


_DRAWS = (
    "bernoulli choice exponential gamma gumbel logistic multinomial normal normal_n pareto powerd "
    "rayleigh uniform uniform_n weibull"
)
DRAWS = {f"_npi_{name}" for name in _DRAWS.split()}
"""Operators that draw random numbers, which test_numpy_draws.py tests."""


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_types_are_inferred_without_shapes(path: Path) -> None:
    wrong = []
    for (family, _), group in cases().items():
        for case in group if family == path else ():
            graph = read_graph(case["symbol"])
            types = {name: array.dtype for name, array in inputs_of(path, case).items()}
            found = infer(graph, {}, types)[graph.entries[0].node]
            expected = [
                tensors(path)[f"{case['name']}/out/{index}"].dtype
                for index in range(case["outputs"])
            ]
            if [spec.dtype for spec in found[: len(expected)]] != expected:
                wrong.append(case["name"])
    assert wrong == []


_NEED_SIZES = (
    "_linalg_det _linalg_inverse _linalg_potrf _linalg_potri _linalg_slogdet _np_squeeze "
    "_npi_cholesky _npi_delete _npi_insert_slice _npi_insert_tensor _npi_pad _npi_polyval "
    "_npi_solve _npi_tensorinv _npi_tensorsolve _npx_reshape _slice_assign _slice_assign_scalar"
)
NEEDS_SIZES = set(_NEED_SIZES.split())
"""Operators of which some case needs a known size."""


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_sizes_may_be_unknown(path: Path) -> None:
    for (family, operator), group in cases().items():
        found = [case for case in group if case["args"]]
        if family != path or operator in NEEDS_SIZES or not found or path.stem == "elementwise":
            continue
        graph, inputs = joined(path, found)
        specs = {name: TypeSpec(a.dtype, (None,) * a.ndim) for name, a in inputs.items()}
        outputs = iter(runtime.Session(lower(graph, specs, {})).run(inputs))
        for case in found:
            for index in range(case["outputs"]):
                actual, expected = next(outputs), tensors(path)[f"{case['name']}/out/{index}"]
                assert actual.shape == expected.shape, case["name"]
                np.testing.assert_allclose(
                    actual, expected, rtol=case["tol"], atol=case["tol"], err_msg=case["name"]
                )


def test_documents_list_the_sizes_that_must_be_known() -> None:
    text = (places.ROOT / "docs/mxnet-differences.md").read_text("utf-8")
    section = text.split("## Sizes that an export must know")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(_\w+)`", row)]
    assert sorted(listed) == sorted(NEEDS_SIZES)


_NAMED = re.compile(
    r"node '\w+' \(\w+\): "
    r"(requires a known size of axis \d+ of .*input \d+ \('x\d+'\).*state it"
    r"|attribute 'newshape' .*whose size is not known)"
)


@pytest.mark.parametrize("operator", sorted(NEEDS_SIZES))
def test_a_size_that_must_be_known_is_named(operator: str) -> None:
    messages = []
    for (family, name), group in cases().items():
        for case in group if name == operator else ():
            given = inputs_of(family, case)
            specs = {key: TypeSpec(a.dtype, (None,) * a.ndim) for key, a in given.items()}
            try:
                lower(read_graph(case["symbol"]), specs, {})
            except UnsupportedError as error:
                messages.append(str(error))
    assert messages
    assert [text for text in messages if not _NAMED.match(text)] == []


_BATCHED = "_linalg_det _linalg_inverse _linalg_slogdet _npi_cholesky _npi_solve"


@pytest.mark.parametrize("operator", _BATCHED.split())
def test_batches_of_matrices_may_have_any_size(operator: str) -> None:
    checked = 0
    for (family, name), group in cases().items():
        for case in group if name == operator else ():
            given = inputs_of(family, case)
            if any(array.ndim < 3 or 0 in array.shape for array in given.values()):
                continue
            specs = {
                key: TypeSpec(a.dtype, (*[None] * (a.ndim - 2), *a.shape[-2:]))
                for key, a in given.items()
            }
            lowered = lower(read_graph(case["symbol"]), specs, {})
            for index, actual in enumerate(runtime.Session(lowered).run(given)):
                if index < case["outputs"]:
                    expected = tensors(family)[f"{case['name']}/out/{index}"]
                    assert actual.shape == expected.shape
                    np.testing.assert_allclose(actual, expected, rtol=case["tol"], atol=case["tol"])
            checked += 1
    assert checked
