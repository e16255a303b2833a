"""Libraries that were built long ago, or by other compilers, load and compute; `library.abi`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import passlib as pl
from museum import EXHIBITS, MUSEUM, build, stored, unpack
from passlib.errors import LoadError
from plugin_build import INCLUDE

STORED = [name for name in EXHIBITS if stored(name).exists()]

VISIT = """
import sys
import numpy as np
import passlib as pl
from passlib import sym

found = pl.library.load(sys.argv[1], verbose=False)
values = np.array([1, 2, 4], np.float32)
computed = []
for name in found.passes:
    if name.startswith("plainFail"):
        try:
            sym.exp(sym.var("x")).optimize_for(name)
        except pl.PassError as error:
            assert "first failure" in str(error)
            computed.append(name)
        continue
    options = {"by": "log"} if name.startswith("museum") else {}
    changed = sym.exp(sym.var("x"), name="e").optimize_for(name, **options)
    expected = np.log(values) if options else np.exp(values)
    np.testing.assert_allclose(changed.eval(x=values)[0], expected, rtol=1e-6)
    if options:
        assert changed.attr("__note__").startswith("e was an exp before ")
    computed.append(name)
for name in found.ops:
    made = getattr(sym, name)
    counts = name.endswith("_counter")
    is_museum = name.startswith("museum")
    made = made(sym.var("x"), factor=3) if is_museum else made(sym.var("x"))
    first = made.eval(x=values)[0]
    expected = values + 101 if counts else (3 if is_museum else 2) * values
    np.testing.assert_array_equal(first, expected)
    computed.append(name)
print(found.abi_version, found.handover, len(computed))
"""


def visit(path: Path) -> str:
    """Use everything in a library, in a process of its own, and return what it says."""
    run = subprocess.run(
        [sys.executable, "-c", VISIT, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def expected(name: str) -> str:
    """Return what `visit` says of an exhibit."""
    kind, rest = name.split("_", 1)
    if kind == "c":
        what, version = rest.split("_")
        return f"{version} json {1 if (what, version) == ('passes', '7') else 2}"
    parts = 1 if EXHIBITS[name].header == "first" else 2
    return f"11 {'flat' if EXHIBITS[name].header in ('', 'flat_2') else 'json'} {parts}"


def or_skip(path: Path) -> None:
    """Skip where a library's C++ library is not installed."""
    problem = pl.library.abi(path).problem
    if "cannot open shared object file" in problem:
        pytest.skip(problem.rpartition(": ")[0])


def test_every_stored_library_is_listed() -> None:
    assert {path.name.partition(".")[0] for path in MUSEUM.iterdir()} == {*STORED}


@pytest.mark.parametrize("name", STORED)
def test_stored_libraries_compute(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    or_skip(path)
    assert visit(path) == expected(name)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [each for each in EXHIBITS if each.startswith("flat_2")])
def test_todays_header_with_the_compilers_that_are_here(name: str, tmp_path: Path) -> None:
    if shutil.which(EXHIBITS[name].compiler) is None:
        pytest.skip(f"there is no {EXHIBITS[name].compiler}")
    path = build(name, tmp_path, INCLUDE)
    assert visit(path) == expected(name)


class TestAbi:
    @pytest.mark.parametrize("name", STORED)
    def test_what_files_state(self, name: str, tmp_path: Path) -> None:
        found = pl.library.abi(unpack(name, tmp_path), load=False)
        exhibit = EXHIBITS[name]
        version = re.search(r"-?(\d+)$", exhibit.compiler)
        assert version is not None
        compiler = "clang version" if "clang" in exhibit.compiler else "GCC:"
        assert any(
            compiler in text and re.search(rf" {version[1]}\.", text) for text in found.compilers
        )
        assert found.string_abi == exhibit.string_abi
        libraries = {"": "", "libc++": "libc++"}
        assert found.standard_library == libraries.get(exhibit.string_abi, "libstdc++")
        assert found.libc.startswith("glibc 2.")
        assert (found.loads, found.abi_version, found.passes, found.mxnet) == (None,) * 4
        assert ("_passlibFlatVersion" in found.entry_points) == exhibit.header.startswith("flat")

    def test_what_libraries_hold(self, tmp_path: Path) -> None:
        found = pl.library.abi(unpack("flat_1_gcc12", tmp_path))
        assert found.passes == ("museumReplace_flat_1_gcc12",)
        assert found.ops == ("museum_scale_flat_1_gcc12",)
        assert (found.abi_version, found.flat_version, found.partitioners) == (11, 1, ())
        assert (found.machine, found.mxnet, found.missing) == ("x86-64", ("1.9", "2.0"), ())
        assert "libstdc++.so.6" in found.libraries
        assert found.gcc == "11.1"
        assert found.passes[0] not in pl.library.passes()

    @pytest.mark.parametrize(
        ("name", "lacks"), [("c_passes_7", "_opRegSize"), ("c_operators_10", "_passRegSize")]
    )
    def test_what_mxnet_lacks(self, name: str, lacks: str, tmp_path: Path) -> None:
        found = pl.library.abi(unpack(name, tmp_path))
        assert found.mxnet == ()
        assert lacks in found.missing
        assert "_opCallDestroyOpState" not in found.missing

    def test_a_library_that_does_not_load(self, tmp_path: Path) -> None:
        path = unpack("flat_2_gcc12", tmp_path)
        data = path.read_bytes()
        path.write_bytes(data.replace(b"libm.so.6\0", b"libq.so.6\0"))
        found = pl.library.abi(path)
        assert found.loads is False
        assert "libq.so.6: cannot open shared object file" in found.problem
        assert "libq.so.6" in found.libraries
        machine = bytes([183, 0])
        path.write_bytes(data[:18] + machine + data[20:])
        found = pl.library.abi(path)
        assert found.machine == "64-bit ARM"
        assert found.problem.endswith("it was built for 64-bit ARM, this is x86-64")

    @pytest.mark.parametrize("missing", ["GLIBCXX_3.4.29", "CXXABI_1.3.13"])
    def test_a_later_standard_library(self, missing: str, tmp_path: Path) -> None:
        path = unpack("flat_2_gcc12", tmp_path)
        later = missing[:-2] + "98"
        data = path.read_bytes().replace(b"GLIBCXX_3.4.29", later.encode().ljust(14, b"\0"))
        path.write_bytes(data)
        assert pl.library.abi(path, load=False).gcc == f"later than 15.1, for {later}"

    @pytest.mark.parametrize("text", ["", "not a library", "!<arch>\nx"])
    def test_other_files(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "other.so"
        path.write_text(text)
        with pytest.raises(LoadError, match=r"cannot load library .*other\.so"):
            pl.library.abi(path)

    def test_damaged_files(self, tmp_path: Path) -> None:
        """Every byte of the tables that are read takes extreme values."""
        path = unpack("c_operators_11", tmp_path)
        data = path.read_bytes()
        sections = int.from_bytes(data[40:48], "little")
        places = [*range(4, 64), *range(sections, len(data))]
        dynamic = data.index(b"libc.so.6\0")
        places += range(max(64, dynamic - 1500), dynamic + 400, 3)
        outcomes = {True: 0, False: 0}
        for place in places:
            for value in (0, 1, 0x7F, 0xFF):
                path.write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
                try:
                    found = pl.library.abi(path, load=False)
                    outcomes[len(found.entry_points) > 0] += 1
                except LoadError:
                    outcomes[False] += 1
        assert min(outcomes.values()) > 100

    def test_names_that_overlap(self, tmp_path: Path) -> None:
        """Ten thousand symbols with one name of a megabyte are refused, not copied."""
        path = tmp_path / "overlapping.so"
        name, count = b"n" * (1 << 20) + b"\0", 10_000
        header = bytearray(unpack("c_operators_11", tmp_path).read_bytes()[:64])
        symbol = (0).to_bytes(4, "little") + bytes([0x12, 0, 1, 0]) + bytes(16)
        strings, symbols = 64, 64 + len(name)
        table = symbols + 24 * count

        def section(kind: int, offset: int, size: int, link: int) -> bytes:
            words = (0).to_bytes(4, "little") + kind.to_bytes(4, "little") + bytes(16)
            words += offset.to_bytes(8, "little") + size.to_bytes(8, "little")
            return words + link.to_bytes(4, "little") + bytes(20)

        header[32:40] = bytes(8)
        header[40:48] = table.to_bytes(8, "little")
        header[56:58] = bytes(2)
        header[60:64] = (3).to_bytes(2, "little") + bytes(2)
        rows = section(0, 0, 0, 0) + section(11, symbols, 24 * count, 2)
        rows += section(3, strings, len(name), 0)
        path.write_bytes(bytes(header) + name + symbol * count + rows)
        with pytest.raises(LoadError, match="the names of its symbols overlap"):
            pl.library.abi(path, load=False)
