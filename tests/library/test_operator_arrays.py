"""Operators of libraries on arrays: layouts, states, mutated inputs, storage, random numbers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib as pl
from operator_calls import FLOAT, operator, run
from passlib.errors import OperatorError, UnsupportedError
from passlib.library.operator import ArrayType
from places import TESTS

pytestmark = pytest.mark.usefixtures("operators")

A = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
B = np.array([[1, -1], [0.5, 2], [3, 0]], np.float32)


def alive() -> float:
    return float(run("plugin_alive").asscalar())


def test_product() -> None:
    result = run("plugin_product", pl.nd.array(A), pl.nd.array(B))
    assert type(result) is pl.nd.NDArray
    assert result.dtype == FLOAT
    np.testing.assert_array_equal(result, A @ B)


@pytest.mark.parametrize(
    "a",
    [np.asfortranarray(A), A.T.copy().T, np.repeat(A, 2, axis=0)[::2], A.astype(">f4")],
    ids=["Fortran", "transposed", "steps", "byte order"],
)
def test_inputs_of_any_layout(a: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(run("plugin_product", a, B), A @ B)


def test_gradients_of_product() -> None:
    gradient = np.array([[1, -1], [2, 0.5]], np.float32)
    found = operator("plugin_product").backward("n", {}, [gradient], [A, B], [A @ B])
    np.testing.assert_allclose(found[0], gradient @ B.T)
    np.testing.assert_allclose(found[1], A.T @ gradient)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    assert run("plugin_abs", np.zeros(shape, np.float32)).shape == shape


def test_several_outputs_and_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    results = run("plugin_sums", A, A, inputs=2, outputs=np.int64(3), note=(1, "x"))
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, 2 * A + k)
    assert capsys.readouterr().out == "sums inputs=2 outputs=3 note=(1, 'x')\n"


def test_operator_without_inputs() -> None:
    np.testing.assert_array_equal(run("plugin_sums", inputs=0, outputs=1), [0, 0])


def test_results_into_arrays() -> None:
    target = pl.nd.zeros((2, 2))
    assert run("plugin_product", A, B, out=target) is target
    np.testing.assert_array_equal(target, A @ B)
    with pytest.raises(
        TypeError, match="out must be an array of that type, not float32 of shape \\(3, 2\\)"
    ):
        run("plugin_product", A, B, out=pl.nd.zeros((3, 2)))
    with pytest.raises(TypeError, match="has 1 outputs, and out has 2"):
        run("plugin_product", A, B, out=[target, target])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ((A,), "takes 2 arrays, not 1"),
        ((A, 3), "input 1 is 3, not an array"),
        ((A, "x"), "not an array"),
    ],
)
def test_wrong_arguments(arrays: tuple[Any, ...], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        run("plugin_product", *arrays)


def test_scratch_memory() -> None:
    values = np.arange(100_000, dtype=np.float32)
    np.testing.assert_array_equal(run("plugin_reverse", values), values[::-1])


def test_names_on_arrays() -> None:
    assert "plugin_product" in dir(pl.nd)
    assert "plugin_abs" in dir(pl.nd.contrib)
    np.testing.assert_array_equal(pl.nd.contrib.plugin_abs(-A), A)
    np.testing.assert_array_equal(pl.nd.op.plugin_abs(-A), A)
    assert pl.nd.plugin_abs.__name__ == "plugin_abs"
    with pytest.raises(AttributeError, match=r"plugin_prodct.*did you mean 'plugin_product'"):
        _ = pl.nd.plugin_prodct
    with pytest.raises(UnsupportedError, match="subgraph operator"):
        pl.nd._internal._plugin_subgraph(A)


# States.


def test_state_counts_and_is_destroyed(capsys: pytest.CaptureFixture[str]) -> None:
    before = alive()
    counter = operator("plugin_counter")
    state = counter.create_state("n", {"start": "10"}, [(2, 3)], [FLOAT])
    outputs = [ArrayType(FLOAT, (2, 3))]
    for number in (11, 12):
        np.testing.assert_array_equal(state.forward([A], outputs)[0], A + number)
    np.testing.assert_array_equal(state.backward([A], [A], [A])[0], 12 * A)
    assert alive() == before + 1
    assert capsys.readouterr().out == ""
    del state
    assert capsys.readouterr().out == "counter destroyed\n"
    assert alive() == before


def test_state_knows_shapes_and_types() -> None:
    state = operator("plugin_counter").create_state("n", {"from_shape": "1"}, [(7,)], [FLOAT])
    zeros = np.zeros(7, np.float32)
    assert state.forward([zeros], [ArrayType(FLOAT, (7,))])[0].tolist() == [71] * 7


def test_stateful_operator_on_arrays_starts_anew() -> None:
    before = alive()
    for _ in range(2):
        np.testing.assert_array_equal(run("plugin_counter", A, start=1), A + 2)
    assert alive() == before


def test_states_are_destroyed_in_any_thread() -> None:
    before = alive()
    states = [
        operator("plugin_counter").create_state("n", {}, [(2, 3)], [FLOAT]) for _ in range(40)
    ]
    threads = [threading.Thread(target=states.pop) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert alive() == before


KEPT = {
    "a module": "kept = state()",
    "sys": "sys.kept = state()",
    "builtins": "import builtins; builtins.kept = state()",
    "a cycle": "kept = [state()]; kept.append(kept); del kept",
    "a thread": (
        "threading.Thread(target=lambda kept: time.sleep(60), args=[state()], daemon=True).start()"
    ),
    "a closed stdout": "kept = state(); sys.stdout.close()",
    "a removed stdout": "kept = state(); del sys.stdout",
    "a model": (
        "kept = pl.Model(pl.sym.plugin_counter(pl.sym.var('x'))); kept(np.ones((2, 3), np.float32))"
    ),
}


@pytest.mark.parametrize("keeper", KEPT)
def test_states_that_live_to_the_end_print_to_the_process_itself(
    keeper: str, plugin: Callable[[str], Path]
) -> None:
    script = f"""
import sys, threading, time
import numpy as np
import passlib as pl
from operator_calls import FLOAT, operator
pl.library.load({str(plugin("operators"))!r}, verbose=False)
def state():
    return operator("plugin_counter").create_state("n", {{}}, [(2, 3)], [FLOAT])
{KEPT[keeper]}
"""
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(TESTS / "support")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    # Nothing destroys what a thread holds that outlives the interpreter.
    expected = "" if keeper == "a thread" else "counter destroyed\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


# Inputs that are written to.


def test_mutated_input() -> None:
    total = pl.nd.array(A)
    assert operator("plugin_accumulate").mutated_inputs({}) == (1,)
    result = run("plugin_accumulate", A, total)
    np.testing.assert_array_equal(total, 2 * A)
    np.testing.assert_array_equal(result, 2 * A)


def test_mutated_input_that_is_not_contiguous() -> None:
    wide = np.repeat(A, 2, axis=1)
    run("plugin_accumulate", A, wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], 2 * A)
    np.testing.assert_array_equal(wide[:, 1::2], A)


def test_mutated_input_that_is_read_only() -> None:
    total = A.copy()
    total.flags.writeable = False
    with pytest.raises(ValueError, match="writes to its input 1, which is read-only"):
        run("plugin_accumulate", A, total)


# Sparse arrays.

SPARSE = np.array([[0, 0, -1, 0], [0, 0, 0, 0], [2, 0, 0, -3]], np.float32)


def test_csr() -> None:
    given = pl.nd.array(SPARSE).tostype("csr")
    result = run("plugin_transpose", given)
    assert isinstance(result, pl.nd.CSRNDArray)
    assert result.shape == (4, 3)
    np.testing.assert_array_equal(result.asnumpy(), SPARSE.T)
    np.testing.assert_array_equal(result.indptr, [0, 1, 1, 2, 3])


def test_row_sparse() -> None:
    result = run("plugin_abs", pl.nd.array(SPARSE).tostype("row_sparse"))
    assert isinstance(result, pl.nd.RowSparseNDArray)
    np.testing.assert_array_equal(result.indices, [0, 2])
    np.testing.assert_array_equal(result.asnumpy(), np.abs(SPARSE))
    np.testing.assert_array_equal(run("plugin_abs", SPARSE), np.abs(SPARSE))


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_sparse_array_without_values(stype: str) -> None:
    name = "plugin_transpose" if stype == "csr" else "plugin_abs"
    result = run(name, pl.nd.zeros((3, 2)).tostype(stype))
    assert result.stype == stype
    assert not result.asnumpy().any()


def test_storage_types() -> None:
    absolute = operator("plugin_abs")
    assert absolute.infer_storage({}, ["row_sparse"], 1) == (["row_sparse"], ["row_sparse"])
    assert operator("plugin_product").infer_storage({}, ["default"] * 2, 1)[1] == ["default"]
    with pytest.raises(OperatorError, match=r"dense inputs only.*setInferSType.*input 1 is sparse"):
        run("plugin_product", SPARSE.T.copy(), pl.nd.array(SPARSE).tostype("csr"))


# Random numbers that MXNet 1.9.1 gives to the same operator.

DRAWN = {
    0: [[2357136044, 1791095845, 1872583848], [2546248239, 4282876139, 794921487]],
    42: [[3560930129, 546507123, 1769108979], [3211926476, 1104871518, 4181197626]],
}


@pytest.mark.parametrize("seed", DRAWN)
def test_random_numbers_are_those_of_mxnet(seed: int) -> None:
    pl.random.seed(seed)
    first = run("plugin_draw", np.zeros(3, np.float32))
    rest: list[Any] = []
    thread = threading.Thread(
        target=lambda: rest.append(run("plugin_draw", np.zeros(3, np.float32)))
    )
    thread.start()
    thread.join()
    assert [first.tolist(), rest[0].tolist()] == DRAWN[seed]


def test_all_generators_are_there_and_differ() -> None:
    pl.random.seed(2**32 + 5, ctx=pl.cpu())
    drawn = run("plugin_draw", np.zeros(1024, np.float32)).tolist()
    assert len(set(drawn)) == 1024
    pl.random.seed(5)
    assert run("plugin_draw", np.zeros(1024, np.float32)).tolist() == drawn
    with pytest.raises(UnsupportedError, match="random numbers"):
        pl.random.seed(1, pl.gpu())
