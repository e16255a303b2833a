"""Real numbers of JSON and of attributes: the same in every standard of C++ and every locale."""

from __future__ import annotations

import math
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = ["reals", "reals_without_charconv"]
DEFINITIONS = Path("/usr/share/i18n/locales")
LOCALES = ["C", "de_DE", "ps_AF"]
"""Of which de_DE separates fractions by a comma, ps_AF by an Arabic one of two bytes."""


def drawn_doubles() -> list[float]:
    draw = random.Random(7)
    bits = (struct.unpack("d", draw.randbytes(8))[0] for _ in range(3000))
    special = [0.1, -0.5, 0.0, -0.0, 1e22, 1e23, 5e-324, 2.2250738585072014e-308, math.pi]
    return [*special, 1.7976931348623157e308, *(value for value in bits if math.isfinite(value))]


def bits(value: float) -> str:
    return struct.pack(">d", value).hex()


@pytest.fixture(params=LOCALES)
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    name: str = request.param
    if name == "C":
        return os.environ | {"LC_ALL": "C"}
    if shutil.which("localedef") is None or not (DEFINITIONS / name).exists():
        pytest.skip(f"the definition of the locale {name} is not installed (package locales)")
    command = ["localedef", "-i", name, "-f", "UTF-8", str(tmp_path / f"{name}.UTF-8")]
    subprocess.run(command, check=False, capture_output=True)  # it fails on warnings, too
    return os.environ | {"LC_ALL": f"{name}.UTF-8", "LOCPATH": str(tmp_path)}


def answers(program: Path, texts: list[str], environment: dict[str, str]) -> list[list[str]]:
    run = subprocess.run(
        [program],
        input="\n".join(texts),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    return [lines[pos : pos + 2] for pos in range(0, len(lines), 2)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_doubles_come_back(
    program: Callable[[str], Path], name: str, environment: dict[str, str]
) -> None:
    values = drawn_doubles()
    read = answers(program(name), [repr(value) for value in values], environment)
    assert len(read) == len(values)
    for value, (printed, attribute) in zip(values, read, strict=True):
        assert float(printed) == value
        assert math.copysign(1, float(printed)) == math.copysign(1, value)
        assert len(printed) <= 24
        assert attribute == bits(value)


TEXTS = [
    ("1e400", "inf", bits(math.inf)),
    ("1e-400", "0", bits(0.0)),
    ("0x10", "refused", "refused"),
    ("1,5", "refused", "refused"),
    ("1.5.5", "refused", "refused"),
    ("1e", "refused", "refused"),
    ("-", "refused", "refused"),
    (".5", "refused", bits(0.5)),
    ("5.", "refused", bits(5.0)),
    ("inf", "refused", bits(math.inf)),
    ("infinity", "refused", "refused"),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_no_number(
    program: Callable[[str], Path], name: str, environment: dict[str, str]
) -> None:
    read = answers(program(name), [text for text, _, _ in TEXTS], environment)
    assert [(text, *pair) for (text, _, _), pair in zip(TEXTS, read, strict=True)] == TEXTS
