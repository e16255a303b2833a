"""Loading libraries: their contents, refusals, and the messages."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import passlib
from passlib.errors import LoadError, PasslibError
from passlib.symbol import Symbol
from plugin_build import INCLUDE, compile_to

Plugin = Callable[[str], Path]

RENAMED = """
#include "lib_api.h"
static mxnet::ext::MXReturnValue body(
    mxnet::ext::Graph*, const std::unordered_map<std::string, std::string>&) {
  std::cout << "TEXT";
  return mxnet::ext::MX_SUCCESS;
}
REGISTER_PASS(NAME).setBody(body);
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
"""


def write_library(path: Path, name: str, text: str) -> Path:
    source = path.with_suffix(".cc")
    source.write_text(RENAMED.replace("NAME", name).replace("TEXT", text), "utf-8")
    compile_to(path, ("g++", "-shared", "-fPIC", "-std=c++11", "-I", str(INCLUDE)), [source])
    return path


def test_library_says_what_it_holds(plugin: Plugin) -> None:
    path = plugin("bad_endings")
    library = passlib.library.load(path, verbose=False)
    assert library.path == str(path)
    assert library.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert library.abi_version == 11
    assert library.passes[0] == "throwsException"
    assert len(library.passes) == 8
    assert library.partitioners == ()
    assert library.ops == ()
    assert library in passlib.library.loaded()
    assert repr(str(path)) in repr(library)


def test_loading_again_gives_the_same_library(plugin: Plugin) -> None:
    first = passlib.library.load(plugin("good"), verbose=False)
    count = len(passlib.library.loaded())
    assert passlib.library.load(plugin("good")) is first
    assert len(passlib.library.loaded()) == count


def test_relative_path(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plugin("good")
    monkeypatch.chdir(path.parent)
    assert passlib.library.load(path.name, verbose=False).path == str(path)


def test_path_by_another_name_is_the_same_library(plugin: Plugin, tmp_path: Path) -> None:
    library = passlib.library.load(plugin("good"), verbose=False)
    link = tmp_path / "link.so"
    link.symlink_to(plugin("good"))
    assert passlib.library.load(link, verbose=False) is library


def test_what_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_library(tmp_path / "logged.so", "loggedPass", "")
    with caplog.at_level(logging.INFO, "passlib.library"):
        passlib.library.load(path)
    assert [record.getMessage() for record in caplog.records] == [
        "Found 0 operators in library",
        "Found 0 partitioners in library",
        "Found 1 graph passes in library",
        "\tGraph Pass [0] loggedPass",
    ]


def test_strategies_are_logged(plugin: Callable[[str], Path]) -> None:
    script = (
        "import logging, sys, passlib; logging.basicConfig(level='INFO', format='%(message)s'); "
        "passlib.library.load(sys.argv[1])"
    )
    command = [sys.executable, "-c", script, str(plugin("partitioners"))]
    logged = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    lines = r"\tPartitioner\[\d\] partitionTwice\n\t\tStrategy\[0\] first\n\t\tStrategy\[1\] second"
    assert re.search(lines, logged)


def test_quiet_loading_logs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    passlib.library.load(write_library(tmp_path / "quiet.so", "quietPass", ""), verbose=False)
    assert caplog.records == []


def test_two_libraries_with_one_pass_name(
    tmp_path: Path, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_library(tmp_path / "one.so", "contestedPass", "one")
    two = write_library(tmp_path / "two.so", "contestedPass", "two")
    passlib.library.load(one, verbose=False)
    with pytest.raises(LoadError) as caught:
        passlib.library.load(two, verbose=False)
    for word in (str(one), str(two), "contestedPass", "replace=True"):
        assert word in str(caught.value)
    assert str(two) not in [library.path for library in passlib.library.loaded()]
    resnet.optimize_for("contestedPass")
    assert capsys.readouterr().out == "one"
    passlib.library.load(two, verbose=False, replace=True)
    resnet.optimize_for("contestedPass")
    assert capsys.readouterr().out == "two"


def test_library_that_was_built_again(
    tmp_path: Path, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rebuilt.so"
    first = passlib.library.load(write_library(path, "rebuiltPass", "old"), verbose=False)
    write_library(path, "rebuiltPass", "new")
    with pytest.raises(LoadError, match=r"earlier build.*replace=True"):
        passlib.library.load(path, verbose=False)
    resnet.optimize_for("rebuiltPass")
    assert capsys.readouterr().out == "old"
    second = passlib.library.load(path, verbose=False, replace=True)
    assert second.sha256 != first.sha256
    assert second.path == first.path
    resnet.optimize_for("rebuiltPass")
    assert capsys.readouterr().out == "new"


def test_library_that_was_overwritten_in_place(tmp_path: Path) -> None:
    path = write_library(tmp_path / "overwritten.so", "overwrittenPass", "")
    passlib.library.load(path, verbose=False)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(LoadError, match="overwritten after it was loaded"):
        passlib.library.load(path, verbose=False)


@pytest.mark.parametrize("abi", [7, 8, 9, 10, 11])
def test_older_versions_of_the_abi(plugin: Plugin, abi: int, resnet: Symbol) -> None:
    library = passlib.library.load(plugin(f"plain_c_{abi}"), verbose=False)
    assert library.abi_version == abi
    assert resnet.optimize_for(f"plainCopy{abi}").tojson() == resnet.tojson()


@pytest.mark.parametrize("abi", [8, 11])
def test_messages_of_a_plain_c_library(plugin: Plugin, abi: int, resnet: Symbol) -> None:
    passlib.library.load(plugin(f"plain_c_{abi}"), verbose=False)
    said = []
    for _ in range(3):
        with pytest.raises(passlib.PassError) as caught:
            resnet.optimize_for(f"plainFail{abi}")
        said.append(caught.value.messages)
    assert said == [("first failure",), ("later failure",), ("later failure",)]


def test_two_sources_in_one_library(
    plugin: Plugin, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    library = passlib.library.load(plugin("two_sources"), verbose=False)
    assert sorted(library.passes) == ["fromSourceA", "fromSourceB"]
    resnet.optimize_for("fromSourceA").optimize_for("fromSourceB")
    assert capsys.readouterr().out == "source a\nsource b\n"
    with pytest.raises(passlib.PassError, match="message of source b"):
        resnet.optimize_for("fromSourceB", fail=1)


REFUSED: dict[str, tuple[str, str]] = {
    "version 6": ("plain_c_6", r"speaks version 6 .*7 to 11"),
    "version 12": ("plain_c_12", r"speaks version 12 .*7 to 11"),
    "missing symbol": ("missing_symbol", r"undefined symbol.*neverDefinedAnywhere"),
    "no initialize": ("no_initialize", r"no function initialize"),
    "no function to free": ("plain_c_no_free", r"no function _opCallFree"),
    "one name twice": ("plain_c_same_name", r"registers the pass 'plainTwin' twice"),
    "program": ("program", r"it is a program, not a library"),
    "position-independent program": ("program_pie", r"it is a program, not a library"),
}


@pytest.mark.parametrize(("name", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(plugin: Plugin, resnet: Symbol, name: str, words: str) -> None:
    passlib.library.load(plugin("good"), verbose=False)
    before = passlib.library.loaded()
    texts = []
    for _ in range(2):
        with pytest.raises(LoadError, match=words) as caught:
            passlib.library.load(plugin(name), verbose=False)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert repr(str(plugin(name))) in texts[0]
    assert passlib.library.loaded() == before
    assert resnet.optimize_for("identity").tojson() == resnet.tojson()


@pytest.mark.parametrize(
    ("version", "words", "others"),
    [
        (1, "version 1 is too old for this library", "no memory"),
        (2, r"initialize\(2\) failed", "too old|no memory"),
        (3, "threw: initialize has no memory", "too old"),
        (4, "not a std::exception", "too old|no memory"),
    ],
)
def test_initialize_refuses(plugin: Plugin, version: int, words: str, others: str) -> None:
    path = plugin("refuses")
    for _ in range(2):
        with pytest.raises(LoadError, match=words) as caught:
            passlib.library.load(path, verbose=False, version=version)
        assert str(caught.value).count("too old") == (version == 1)
        assert not any(word in str(caught.value) for word in others.split("|"))
    with pytest.raises(PasslibError, match="choosyPass"):
        passlib.library.find_backend("choosyPass")


def write_version(folder: Path) -> Path:
    """Write a library in C that registers nothing and takes one version only."""
    source = folder / "version.c"
    source.write_text(
        "int _opVersion(void) { return 11; }\n"
        "void _opCallFree(void* p) { (void)p; }\n"
        "int initialize(int version) { return version == 10901; }\n"
    )
    return source


@pytest.mark.filterwarnings("ignore:.*registered no pass")
def test_initialize_is_told_the_version_of_mxnet(tmp_path: Path) -> None:
    path = tmp_path / "version.so"
    compile_to(path, ("gcc", "-shared", "-fPIC"), [write_version(tmp_path)])
    assert passlib.library.load(path).passes == ()
    other = shutil.copy(path, tmp_path / "other.so")
    with pytest.raises(LoadError, match=r"initialize\(20000\) failed"):
        passlib.library.load(other, version=20000)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"!<arch>\n", "an archive of object files"),
        (b"MZ" + bytes(100), "for Windows"),
        (b"\xcf\xfa\xed\xfe" + bytes(100), "for macOS"),
        (b"PK\x03\x04" + bytes(100), "a zip archive"),
        (b"#!/bin/sh\n", "no ELF header"),
        (b"\x7fELF", "no ELF header"),
        (b"\x7fELF" + bytes(60), "machine type 0"),
        (None, "does not exist"),
    ],
    ids=["empty", "objects", "windows", "macos", "zip", "script", "four bytes", "zeros", "absent"],
)
def test_file_that_is_no_library(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "library.so"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LoadError, match=words) as caught:
        passlib.library.load(path)
    assert str(path) in str(caught.value)


def test_folders_and_pipes_are_no_libraries(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path, "a folder"), (tmp_path / "pipe", "a named pipe")):
        with pytest.raises(LoadError, match=words) as caught:
            passlib.library.load(path)
        assert str(path) in str(caught.value)


def test_object_file_is_no_library(tmp_path: Path) -> None:
    source, path = tmp_path / "part.c", tmp_path / "part.o"
    source.write_text("int part(void) { return 0; }\n", "utf-8")
    compile_to(path, ("gcc", "-c"), [source])
    with pytest.raises(LoadError, match="an object file, not a library"):
        passlib.library.load(path)


def test_library_that_registers_nothing(tmp_path: Path) -> None:
    path = tmp_path / "nothing.so"
    compile_to(path, ("gcc", "-shared", "-fPIC"), [write_version(tmp_path)])
    with pytest.warns(UserWarning, match="registered no pass.*REGISTER_PASS"):
        library = passlib.library.load(path)
    assert passlib.library.load(path) is library


@pytest.mark.parametrize(
    "line",
    [
        "x.optimize_for('removeDeadNodes')",
        "pl.Model(x).optimize_for('mergeEqualNodes')",
        "pl.Pipeline('removeDeadNodes, repeat<2>(removeNoOps)').run(pl.Model(x))",
        "pl.Pipeline('foldBatchNormalization').check()",
        "pl.passes.Pipeline('foldConstants').run(pl.Model(x))",
        "pl.library.find_backend('removeDeadNodes')",
        "pl.library.passes()['foldConstants']; pl.library.passes()['removeDeadNodes']",
    ],
)
def test_standard_passes_are_always_there(line: str) -> None:
    code = f"import passlib as pl; x = pl.sym.relu(pl.sym.var('x')); {line}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_standard_pass_of_a_replaced_name_does_not_come_back() -> None:
    code = (
        "import passlib as pl\n"
        "@pl.graph_pass(replace=True)\n"
        "def removeDeadNodes(graph: pl.Graph) -> None:\n"
        "    print('mine')\n"
        "x = pl.sym.relu(pl.sym.var('x'))\n"
        "x.optimize_for('mergeEqualNodes')\n"
        "x.optimize_for('removeDeadNodes')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "mine\n"


def test_another_spelling_of_a_standard_pass() -> None:
    with pytest.raises(PasslibError, match="did you mean 'removeDeadNodes'"):
        passlib.sym.var("x").optimize_for("RemoveDeadNode")


@pytest.mark.parametrize(
    ("machine", "words"),
    [(0xB7, "built for 64-bit ARM"), (0xF3, "built for RISC-V"), (0x1234, "machine type 4660")],
)
def test_library_for_another_machine(
    plugin: Plugin, tmp_path: Path, machine: int, words: str
) -> None:
    content = bytearray(plugin("plain_c_11").read_bytes())
    content[18:20] = machine.to_bytes(2, sys.byteorder)
    path = tmp_path / "foreign.so"
    path.write_bytes(content)
    with pytest.raises(LoadError, match=words):
        passlib.library.load(path)


@pytest.mark.parametrize("eighths", range(8))
def test_truncated_library(plugin: Plugin, tmp_path: Path, eighths: int) -> None:
    """Run in a child process, since the dynamic linker would end this one."""
    content = plugin("plain_c_11").read_bytes()
    path = tmp_path / "cut.so"
    path.write_bytes(content[: len(content) * eighths // 8])
    code = (
        "import sys, passlib\n"
        "try:\n"
        "    passlib.library.load(sys.argv[1])\n"
        "except passlib.LoadError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert repr(str(path)) in run.stdout


def test_pass_that_nobody_has(plugin: Plugin, resnet: Symbol) -> None:
    passlib.library.load(plugin("good"), verbose=False)
    with pytest.raises(PasslibError) as caught:
        resnet.optimize_for("identitty")
    message = str(caught.value)
    assert "there is no pass or partitioner 'identitty'" in message
    assert "did you mean 'identity'?" in message
    known = [name for name, found in passlib.library.passes().items() if not found.is_partitioner]
    assert "echoOptions" in known
    assert f"passes: {', '.join(known[:30])}" in message


def test_backend_must_be_a_name(resnet: Symbol) -> None:
    with pytest.raises(TypeError, match="backend must be the name of a pass or partitioner, not 7"):
        resnet.optimize_for(7)  # type: ignore[arg-type]


def test_unreadable_file(plugin: Plugin, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read every file")
    path = shutil.copy(plugin("plain_c_11"), tmp_path / "secret.so")
    Path(path).chmod(0)
    with pytest.raises(LoadError, match="Permission denied"):
        passlib.library.load(path)
