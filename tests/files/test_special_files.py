"""Paths that lead to no regular file, and paths that no file can have: errors, never a wait."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passlib
from passlib import nd
from passlib.errors import FormatError, PasslibError
from sanitized import unless_sanitized
from waiting import within_seconds

DIALECTS = ("mxnet", "nnvm", "dlprim", "ark", "onnx")
SUFFIXES = {"mxnet": "-symbol.json"}

READERS: dict[str, Callable[[str], Any]] = {
    "load": passlib.load,
    "validate": passlib.validate,
    "nd.load": nd.load,
    "sym.load": passlib.sym.load,
    **{
        f"load {name}": lambda path, name=name: passlib.load(path, dialect=name)
        for name in DIALECTS
    },
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.close()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


KINDS = {pipe: "a named pipe", unix_socket: "a socket", device: "a device", folder: "a folder"}


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_named(
    tmp_path: Path, reader: str, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    path = Path("x-symbol.json")
    make(path)
    error = within_seconds(lambda: READERS[reader](str(path)))
    assert isinstance(error, FormatError)
    # Without a dialect a folder may be a model of several files, so its reader says more.
    if make is folder and reader in ("load", "validate"):
        expected = "this is not a model that passlib reads, but a folder; name the file"
    else:
        expected = f"this is {KINDS[make]}, and only regular files"
    assert str(error).startswith(f"x-symbol.json: {expected}")


@pytest.mark.parametrize("name", ["mxnet", "nnvm"])
def test_a_pipe_as_weights(tmp_path: Path, name: str) -> None:
    graph = tmp_path / "x-symbol.json"
    passlib.sym.Variable("x").save(graph)
    os.mkfifo(tmp_path / "w.params")
    error = within_seconds(lambda: passlib.load(graph, dialect=name, params=tmp_path / "w.params"))
    assert isinstance(error, FormatError)
    assert "w.params: this is a named pipe" in str(error)


def test_links_to_files_are_followed(tmp_path: Path) -> None:
    passlib.sym.Variable("x").save(tmp_path / "real.json")
    (tmp_path / "x-symbol.json").symlink_to("real.json")
    assert passlib.load(tmp_path / "x-symbol.json").symbol.list_arguments() == ["x"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("path", "message"),
    [("a\0b-symbol.json", "NUL character"), ("a\ud800b-symbol.json", "half of a surrogate")],
)
def test_paths_that_no_file_can_have(reader: str, path: str, message: str) -> None:
    with pytest.raises(PasslibError, match=message):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_file_is_still_a_missing_file(reader: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        READERS[reader](str(tmp_path / "missing-symbol.json"))


SHORT_OF_MEMORY = """
import resource, sys, passlib
from passlib import nd
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
readers = {"sym": passlib.sym.load, "nd": nd.load, "load": lambda path: passlib.load(path, "nnvm")}
try:
    with passlib.limits(expanded_bytes=1 << 40):
        readers[sys.argv[1]](sys.argv[2])
except passlib.FormatError as error:
    print(error)
"""


def large_text(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)  # without blocks on the disk


def large_archive(path: Path) -> None:
    """Write a small archive whose member unpacks to 400 MB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a.npy", bytes(400 << 20))


@pytest.mark.parametrize(
    ("reader", "make"), [("sym", large_text), ("load", large_text), ("nd", large_archive)]
)
def test_lack_of_memory_names_the_file(
    tmp_path: Path, reader: str, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "large.json"
    make(path)
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY, reader, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"{path}: reading this file of {path.stat().st_size} bytes needs more" in done.stdout


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="graph_depth is -1"), passlib.limits(graph_depth=-1):
        pass
    with passlib.limits(graph_depth=7) as outer, passlib.limits(expanded_bytes=5) as inner:
        assert (outer.graph_depth, inner.graph_depth, inner.expanded_bytes) == (7, 7, 5)


@pytest.mark.parametrize(
    ("size", "most"), [(0, 64 << 20), (1 << 20, 100 << 20), (1 << 30, 4 << 30)]
)
def test_the_default_follows_the_size_of_the_file(size: int, most: int) -> None:
    with passlib.limits() as limits:
        assert limits.expansion_of(size) == most


@unless_sanitized("reserves all of the address space")
@pytest.mark.parametrize("reader", ["nd.load", "load onnx", "load mxnet", "validate onnx"])
def test_files_beyond_the_address_space(tmp_path: Path, reader: str) -> None:
    path = tmp_path / ("x-0000.params" if reader.endswith("mxnet") else "x.onnx")
    path.write_bytes((0x112).to_bytes(8, "little"))
    os.truncate(path, 1 << 31)
    passlib.sym.var("x").save(tmp_path / "x-symbol.json")
    code = (
        "import resource, sys, passlib\n"
        "import onnx\n"
        "path, (call, _, dialect) = sys.argv[1], sys.argv[2].partition(' ')\n"
        "call = passlib.nd.load if call == 'nd.load' else getattr(passlib, call)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))\n"
        "try:\n"
        "    print(*call(path, *filter(None, [dialect])))\n"
        "except passlib.FormatError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, path, reader], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert f"{path}: reading this file of {1 << 31} bytes needs more memory" in run.stdout


@pytest.mark.parametrize("given", ["path", "bytes"])
def test_lack_of_memory_names_what_is_loaded(
    tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    path = tmp_path / "x-symbol.json"
    passlib.sym.var("x").save(path)
    monkeypatch.setattr(passlib.Model, "of_data", fail)
    if given == "path":
        with pytest.raises(FormatError, match=r"x-symbol\.json: reading this file of \d+ bytes"):
            passlib.load(path)
        return
    onnx = pytest.importorskip("onnx", reason="needs the package onnx")
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Neg(x) }'
    with pytest.raises(FormatError, match=r"^the given bytes: reading it needs more memory"):
        passlib.load(onnx.parser.parse_model(text).SerializeToString())
