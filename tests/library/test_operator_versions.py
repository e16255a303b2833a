"""Libraries of operators in plain C: every ABI version, refusals, replaced names."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from operator_calls import operator, run, variables
from passlib.errors import LoadError

pytestmark = pytest.mark.usefixtures("operators")

A = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.mark.parametrize("abi", [7, 8, 9, 10, 11])
def test_versions_of_the_abi(
    plugin: Callable[[str], Path], abi: int, caplog: pytest.LogCaptureFixture
) -> None:
    pl.library.load(plugin(f"plain_operator_{abi}"), verbose=False)
    values = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(run(f"plain_double{abi}", values), 2 * values)
    with caplog.at_level(logging.WARNING, "passlib.library.operator"):
        for number in (1, 2):
            # States are never destroyed before version 11.
            states = number if abi < 11 else 1
            result = run(f"plain_double{abi}_counter", values)
            np.testing.assert_array_equal(result, values + 1 + 100 * states)
    assert len(caplog.records) == (2 if abi == 11 else 0)


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no parse": (("-DWITHOUT_PARSE",), "'plain_double11' is not complete: setParseAttrs was not"),
    "no types": (("-DWITHOUT_TYPE",), "is not complete: setInferType was not called"),
    "no shapes": (("-DWITHOUT_SHAPE",), "is not complete: setInferShape was not called"),
    "no forward": (("-DWITHOUT_FORWARD",), "setForward or setCreateOpState was not called"),
    "no state": (("-DWITHOUT_STATE",), "is not complete: setCreateOpState was not called"),
    "no entry point": (("-DWITHOUT_ENTRY",), "has no function _opCallFCompute"),
    "name of MXNet's": (("-DNAME=Convolution",), "'Convolution' is one that MXNet itself has"),
    "alias of MXNet's": (("-DNAME=relu",), r"'relu' is one that MXNet itself has; rename it, or"),
    "name twice": (("-DTWICE",), "registers the operator 'plain_double11' twice"),
    "name of another's": (("-DNAME=plugin_abs",), r"already registered by '.*operators\.so'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(
    tmp_path: Path, compile_plain: Callable[..., Path], operators: pl.library.Library, case: str
) -> None:
    flags, words = REFUSED[case]
    path = compile_plain(tmp_path, *flags)
    before = pl.library.loaded()
    for _ in range(2):
        with pytest.raises(LoadError, match=words) as caught:
            pl.library.load(path)
        assert repr(str(path)) in str(caught.value)
    assert pl.library.loaded() == before
    np.testing.assert_array_equal(run("plugin_abs", -A), A)


def test_taking_a_name_over(tmp_path: Path, compile_plain: Callable[..., Path]) -> None:
    first = pl.library.load(compile_plain(tmp_path, "-DNAME=contested_operator", "-DABI=8"))
    values = np.array([1, 2, 3], np.float32)
    symbol = pl.sym.contested_operator
    path = compile_plain(tmp_path, "-DNAME=contested_operator", "-DABI=9")
    with pytest.raises(LoadError, match="replace=True"):
        pl.library.load(path)
    assert operator("contested_operator").library is first
    second = pl.library.load(path, replace=True)
    assert operator("contested_operator").library is second
    np.testing.assert_array_equal(run("contested_operator", values), 2 * values)
    assert symbol(variables("a")[0], name="x").list_outputs() == ["x_output"]


def test_loading_again_changes_nothing(plugin: Callable[[str], Path]) -> None:
    before = operator("plugin_abs")
    pl.library.load(plugin("operators"))
    assert operator("plugin_abs") is before
