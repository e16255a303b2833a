"""Partitioners built with either header give the same subgraphs in MXNet and in passlib."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import environment
import passlib
from environment import Environment
from mxnet_process import DiedError, MXNet, MXNetError
from partition_graphs import CHAIN, random_text
from places import ROOT, TESTS

SOURCE = TESTS / "plugins" / "partitioners.cc"
SHAPE = [2, 4]
OPERATORS = ["exp", "log", "tanh", "relu", "elemwise_add", "elemwise_mul", "add_n", "topk"]

FIXED = [
    ("partitionSupported", {"ops": "exp,log", "show": 1}),
    ("partitionReviewed", {"ops": "exp,log", "show": 1, "attrs": "__attr__=x"}),
    ("partitionReviewed", {"ops": "exp,log", "show": 1, "reject": "0"}),
    ("partitionReviewed", {"ops": "exp,log,elemwise_add", "show": 1, "reject": "0,1"}),
    ("partitionReviewed", {"ops": "elemwise_add", "show": 1, "dedup_subgraph": True}),
    ("partitionSelected", {"ops": "exp,log", "show": 1}),
    ("partitionSelected", {"ops": "exp,log", "show": 1, "drop": "l1"}),
    ("partitionTwice", {"ops": "log", "more_ops": "exp", "show": 1, "attrs": "__attr__=x"}),
    ("partitionTwice", {"ops": "exp", "more_ops": "_partition,tanh", "show": 1, "reject": "0"}),
]


@pytest.fixture(params=["passlib", "mxnet"], scope="module")
def mxnet(request: pytest.FixtureRequest, mxnet_environment: Environment) -> Iterator[MXNet]:
    """Run MXNet, with partitioners built with passlib's header or with MXNet's."""
    if request.param == "passlib":
        library = environment.build("partition_passlib", [SOURCE], [ROOT / "include"])
    else:
        package = mxnet_environment.package
        sources = [SOURCE, package / "src" / "lib_api.cc"]
        library = environment.build("partition_mxnet", sources, [package / "include"])
    assert isinstance(library, Path)
    passlib.library.load(library, verbose=False, replace=True)
    process = MXNet(mxnet_environment, [library])
    yield process
    process.close()


def ours(text: str, backend: str, options: dict[str, object]) -> str:
    symbol = passlib.sym.load_json(text)
    args = {name: np.ones(SHAPE, np.float32) for name in symbol.list_arguments()}
    return symbol.optimize_for(backend, args, {}, keep_inferred=True, **options).tojson()


def without_numbers(text: str) -> str:
    """Remove the numbers from the names of subgraph nodes, which MXNet gives to several nodes."""
    return re.sub(r"\b_op\d+", "_op", text)


@pytest.mark.parametrize(("backend", "options"), FIXED)
def test_same_subgraphs(
    mxnet: MXNet, backend: str, options: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = mxnet.observe(
        "optimize_ones", text=CHAIN, backend=backend, options=options, shape=SHAPE
    )
    result = ours(CHAIN, backend, options)
    assert "_partition" in result or options.get("reject") == "0,1"
    assert without_numbers(result) == without_numbers(theirs.value)
    # The graphs that the library prints have one more attribute in passlib, and in some libraries
    # another order of nodes; the questions to a selector and the input of a review are the same.
    told, heard = (
        [line for line in printed.splitlines() if line[0] != "{" and line != "destroyed"]
        for printed in (theirs.printed, capsys.readouterr().out)
    )
    assert heard == told
    assert bool(heard) == (backend != "partitionSupported")


@pytest.mark.parametrize("groups", [[-1], [0], [0, 1], [-1, 0, 1, 2], []])
def test_same_subgraphs_of_random_graphs(mxnet: MXNet, groups: list[int]) -> None:
    rng = random.Random(len(groups))
    compared = 0
    for _ in range(60):
        size = rng.choice([3, 8, 20, 60])
        text = random_text(rng, size, groups or [0], rng.choice([0.3, 0.6, 0.9]) if groups else 0)
        options: dict[str, object] = {"ops": ",".join(rng.sample(OPERATORS, 4))}
        backend = "partitionSupported" if groups else "partitionSelected"
        try:
            theirs = mxnet(
                "optimize_ones", text=text, backend=backend, options=options, shape=SHAPE
            )
        except (MXNetError, DiedError):
            # Subgraphs that surround each other: MXNet makes a cycle of them.
            ours(text, backend, options)
            continue
        assert ours(text, backend, options) == theirs
        compared += 1
    assert compared > 50


def test_what_is_partitioned_is_accepted(mxnet: MXNet) -> None:
    for backend, options in FIXED:
        text = passlib.sym.load_json(CHAIN).optimize_for(backend, **options).tojson()
        mxnet("accept", text=text)
