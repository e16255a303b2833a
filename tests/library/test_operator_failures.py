"""Operators that fail or break their contract: one clear error each, and no data lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib as pl
from operator_calls import FLOAT, operator
from operator_failures import FAILURES, MEMORY, PLAIN, STATE_FAILURES
from passlib.errors import OperatorError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def library(
    operators: pl.library.Library, load_plugin: Callable[[str], pl.library.Library]
) -> pl.library.Library:
    return load_plugin("bad_operators")


def check_nothing_lost(before: list[np.ndarray[Any, Any]]) -> None:
    for array in before:
        np.testing.assert_array_equal(array, X)
    np.testing.assert_array_equal(pl.nd.plugin_abs(-X), X)


def fails(name: str, how: str, words: str, library: pl.library.Library) -> OperatorError:
    """Run an operator twice: the second error must not repeat messages of the first."""
    arrays = [X.copy(), X.copy()]
    texts = []
    for _ in range(2):
        with pytest.raises(OperatorError, match=f"(?s){words}") as caught:
            getattr(pl.nd, name)(*arrays, how=how, name="culprit")
        texts.append(str(caught.value))
        check_nothing_lost(arrays)
    error = caught.value
    assert texts[0] == texts[1]
    assert texts[0].startswith(f"operator {name!r} of library {library.path!r} (node 'culprit') ")
    assert (error.operator, error.library, error.node) == (name, library.path, "culprit")
    return error


@pytest.mark.parametrize("how", FAILURES)
def test_failure(library: pl.library.Library, how: str) -> None:
    error = fails("bad_operator", how, FAILURES[how], library)
    if how.endswith((" fails", " is silent")):
        assert len(error.messages) == how.endswith(" fails")


@pytest.mark.parametrize("how", STATE_FAILURES)
def test_failure_of_a_state(library: pl.library.Library, how: str) -> None:
    fails("bad_state", how, STATE_FAILURES[how], library)


@pytest.mark.parametrize("how", MEMORY)
@pytest.mark.parametrize("name", ["bad_operator", "bad_state"])
def test_writes_where_it_must_not(
    library: pl.library.Library, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    monkeypatch.setenv("PASSLIB_CHECK_MEMORY", "1")
    fails(name, how, MEMORY[how], library)


def test_checking_memory_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    csr = pl.nd.array(X).tostype("csr")
    for value in ("0", "1"):
        monkeypatch.setenv("PASSLIB_CHECK_MEMORY", value)
        total = X.copy()
        np.testing.assert_array_equal(pl.nd.plugin_accumulate(X, total), 2 * X)
        np.testing.assert_array_equal(total, 2 * X)
        np.testing.assert_array_equal(pl.nd.plugin_transpose(csr).asnumpy(), X.T)
        np.testing.assert_array_equal(pl.nd.plugin_product(X, X.T.copy()), X @ X.T)
        np.testing.assert_array_equal(pl.nd.plugin_reverse(X.ravel()), X.ravel()[::-1])


@pytest.mark.parametrize("how", PLAIN)
def test_nonsense_across_the_abi(plugin: Callable[[str], Path], how: str) -> None:
    pl.library.load(plugin("plain_operator_11"), verbose=False)
    values = np.arange(3, dtype=np.float32)
    for _ in range(2):
        with pytest.raises(OperatorError, match=PLAIN[how]):
            pl.nd.plain_double11(values, how=how)
    np.testing.assert_array_equal(pl.nd.plain_double11(values), 2 * values)


@pytest.mark.parametrize("ending", ["fails", "throws int"])
def test_backward_that_fails(ending: str) -> None:
    with pytest.raises(OperatorError, match="failed in backward"):
        operator("bad_operator").backward("n", {"how": f"backward {ending}"}, [X], [X, X], [X])


def test_no_backward() -> None:
    with pytest.raises(OperatorError, match="has no backward function for the cpu"):
        operator("plugin_abs").backward("n", {}, [X], [X], [X])
    state = operator("bad_state").create_state("n", {}, [X.shape] * 2, [FLOAT] * 2)
    with pytest.raises(OperatorError, match=r"failed in backward\n .*no Backward"):
        state.backward([X], [X, X], [X])


def test_operator_for_another_device() -> None:
    with pytest.raises(OperatorError, match=r"only_on_gpu.*has no forward function for the cpu"):
        pl.nd.only_on_gpu(X, X)


def test_mutated_inputs_in_any_order_and_number() -> None:
    assert operator("bad_operator").mutated_inputs({"how": "mutates twice"}) == (0, 1)


def test_operator_without_state() -> None:
    with pytest.raises(OperatorError, match="has no state on the cpu"):
        operator("plugin_abs").create_state("n", {}, [X.shape], [FLOAT])


@pytest.mark.parametrize(
    ("how", "count"), [("made by new", 1), ("made by new, and says so", 0), ("", 0)]
)
def test_states_not_made_by_create(caplog: pytest.LogCaptureFixture, how: str, count: int) -> None:
    with caplog.at_level(logging.WARNING, "passlib.library.operator"):
        pl.nd.bad_state(X, X, how=how, name="culprit")
    assert len(caplog.records) == count
    for record in caplog.records:
        assert "'culprit'" in record.getMessage()
        assert "ignore_warn" in record.getMessage()


@pytest.mark.parametrize("how", ["parse fails", "negative inputs", "mutates input 5"])
def test_failure_in_a_symbol(how: str) -> None:
    a, b = pl.sym.var("a"), pl.sym.var("b")
    with pytest.raises(OperatorError, match="bad_operator"):
        pl.sym.bad_operator(a, b, how=how)
    text = pl.sym.bad_operator(a, b, how="forward fails").tojson()
    with pytest.raises(OperatorError, match="bad_operator"):
        pl.sym.load_json(text.replace("forward fails", how)).list_arguments()
