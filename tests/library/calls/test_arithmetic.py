"""Libraries that change floating-point arithmetic, and what they print while they are loaded."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import passlib

SMALLEST = np.float32(1e-45)


def arithmetic() -> list[float]:
    """Compute numbers that differ where small numbers are 0 or results are rounded otherwise."""
    ones = np.ones(3, np.float32)
    numbers = [float((ones * SMALLEST)[0]), float((ones / np.float32(3))[0]), 1.0 / 3.0]
    third = np.longdouble(1) / np.longdouble(3)
    with np.errstate(divide="ignore"):
        endless = np.longdouble(1) / np.longdouble(0)
    return [*numbers, float((third - np.float64(third)) * 1e20), float(endless)]


def test_arithmetic_stays_the_callers(
    plugin: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shutil.copy(plugin("arithmetic"), tmp_path / "arithmetic.so")
    before = arithmetic()
    with pytest.warns(RuntimeWarning, match="changed how this process computes.*-Ofast") as caught:
        passlib.library.load(path, verbose=False)
    assert str(path) in str(caught[0].message)
    assert arithmetic() == before
    assert capsys.readouterr().out == "constructed\ninitialized\n"
    symbol = passlib.sym.exp(passlib.sym.var("x"))
    with warnings.catch_warnings():  # one warning for a library is enough
        warnings.simplefilter("error")
        symbol.optimize_for("keepArithmetic")
        for name in ("roundUp", "shortenLong", "trapZero"):
            symbol.optimize_for(name)
            assert arithmetic() == before
    assert arithmetic() == before


def test_output_of_loading_that_fails(
    plugin: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passlib.library.load(plugin("all_kinds_3"), verbose=False)
    capsys.readouterr()
    path = shutil.copy(plugin("all_kinds_3"), tmp_path / "copy.so")
    with pytest.raises(passlib.LoadError, match="already registered"):
        passlib.library.load(path, verbose=False)
    assert capsys.readouterr().out == "initialize3\n"
