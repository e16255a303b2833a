"""``passlib``: where the header and the CMake package are, and how it is called."""

from __future__ import annotations

import importlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import passlib
from commands import passlib_command
from onnx_models import CHAIN, save
from passlib import _core
from passlib.cli import main
from passlib.cli.command import COMMANDS
from places import ROOT
from plugin_build import compile_to

SOURCE = """
#include "lib_api.h"
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
"""


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--include"], [passlib.get_include()]),
        (["--include-flags"], [f"-I{passlib.get_include()}"]),
        (["--cmakedir"], [passlib.get_cmake_dir()]),
        (["--version"], [passlib.__version__]),
        (["--version", "--include"], [passlib.get_include(), passlib.__version__]),
    ],
    ids=" ".join,
)
def test_options_print_a_line_each(
    arguments: list[str], wanted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == wanted


def test_the_module_is_run() -> None:
    command = [sys.executable, "-m", "passlib", "--include"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{passlib.get_include()}\n"


def test_flags_compile_a_library(tmp_path: Path) -> None:
    source = tmp_path / "empty.cc"
    source.write_text(SOURCE, "utf-8")
    flags = passlib_command("--include-flags").stdout.split()
    compile_to(tmp_path / "empty.so", ("g++", "-shared", "-fPIC", "-std=c++11", *flags), [source])


def test_without_an_option_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("usage: passlib ")
    assert "--include-flags" in printed
    assert len(printed.splitlines()) <= 46


def test_an_unknown_option_is_an_error() -> None:
    result = passlib_command("--libs")
    assert result.returncode == 1
    assert result.stderr == "passlib: unrecognized arguments: --libs; see passlib --help\n"


@pytest.mark.parametrize("option", ["--include", "--include-flags", "--cmakedir"])
def test_a_missing_folder_is_named(
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(_core, "__file__", str(tmp_path / "_core.so"))
    assert main([option]) == 1
    assert f"passlib: {tmp_path}" in (message := capsys.readouterr().err)
    assert "is missing; install graph-passlib again" in message


def test_a_folder_with_a_space_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a b" / "include"
    folder.mkdir(parents=True)
    (folder / "lib_api.h").touch()
    monkeypatch.setattr(_core, "__file__", str(folder.with_name("_core.so")))
    assert main(["--include-flags"]) == 0
    assert capsys.readouterr().out == f"'-I{folder}'\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_fits_a_screen(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: passlib {command} ")
    assert f"example:\n  passlib {command}" in printed
    assert len(printed.splitlines()) <= 40
    assert max(map(len, printed.splitlines())) <= 80


def test_help_imports_no_arrays() -> None:
    code = "import sys; from passlib.cli.command import _parser; _parser()[0].format_help(); "
    code += "print({'numpy', 'passlib.dialects'} & {*sys.modules})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "set()\n"


def on_a_terminal(*arguments: str, folder: Path) -> str:
    """Run the command with a terminal of 100 columns as its output, and return what it shows."""
    reader, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    command = [sys.executable, "-m", "passlib", *arguments]
    with subprocess.Popen(
        command, stdout=terminal, stderr=terminal, cwd=folder, env=environment
    ) as process:
        os.close(terminal)
        shown = b""
        while True:
            try:
                block = os.read(reader, 1 << 16)
            except OSError:  # how Linux says that the other end is closed
                break
            if not block:
                break
            shown += block
    os.close(reader)
    assert process.returncode == 0, shown
    return shown.decode()


def test_tables_on_a_terminal_and_elsewhere(tmp_path: Path) -> None:
    """Rich draws them in colours on a terminal; a pipe gets the same words in plain text."""
    pytest.importorskip("rich", reason="the package rich is not installed")
    save(CHAIN, tmp_path / "m.onnx")
    given = ("opt", "m.onnx", "-o", "o.onnx")
    shown = on_a_terminal(*given, folder=tmp_path)
    assert "\x1b[" in shown
    plain = passlib_command(*given, folder=tmp_path)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert "\x1b" not in plain.stdout
    rows = [line.split() for line in re.sub(r", in .*", "", plain.stdout).splitlines()]
    assert ["operator", "before", "after"] in rows
    written = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).split()
    assert " ".join(word for row in rows for word in row) in " ".join(written)


def test_names_with_brackets_on_a_terminal(tmp_path: Path) -> None:
    """Rich takes what stands in brackets for styles."""
    pytest.importorskip("rich", reason="the package rich is not installed")
    (tmp_path / "a[").mkdir()
    save(CHAIN, tmp_path / "a[" / "bold].onnx")
    save(CHAIN, tmp_path / "b[bold].onnx")
    shown = on_a_terminal("opt", "a[/bold].onnx", "b[bold].onnx", "-o", "o", folder=tmp_path)
    assert "2 done" in shown
    assert "b[bold].onnx" in shown


def test_the_console_script(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    module, _, function = text.partition('\npasslib = "')[2].partition('"')[0].partition(":")
    assert getattr(importlib.import_module(module), function)(["--version"]) == 0
    assert capsys.readouterr().out == f"{passlib.__version__}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("passlib comp", {"compare"}),
        ("passlib opt model.onnx --verify", {"--verify-each"}),
        ("passlib diff a b --format ", {"text", "json", "html"}),
        ("passlib passes foldC", {"foldConstants"}),
        ("passlib opt m.onnx --skip mergeEqualN", {"mergeEqualNodes"}),
        ("passlib opt m.onnx --passes removeNo", {"removeNoOps"}),
        ("passlib opt m.onnx --passes clean,removeNo", {"clean,removeNoOps"}),
        ('passlib bisect m.onnx --passes "repeat<2>(toH', {"repeat<2>(toHalf"}),
        ('passlib opt m.onnx --passes "simplify{fi', {"simplify{fixed="}),
        ('passlib opt m.onnx --passes "simplify{max_rounds=1,co', {"simplify{max_rounds=1,cost="}),
        (
            'passlib opt m.onnx --passes "simplify{max_rounds=1},clea',
            {"simplify{max_rounds=1},clean"},
        ),
        ("passlib rules reluTw", {"reluTwice"}),
    ],
)
def test_completion(line: str, words: set[str], tmp_path: Path) -> None:
    pytest.importorskip("argcomplete", reason="the package argcomplete is not installed")
    found = tmp_path / "found.txt"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([sys.executable, "-m", "passlib"], env=environment, check=False)
    assert {word.strip() for word in found.read_text("utf-8").splitlines()} == words


def test_commands_leave_the_environment_of_others_as_it_was() -> None:
    program = (
        "import os; from passlib.cli import main; before = dict(os.environ); main(['passes']);"
        "assert dict(os.environ) == before"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, stdout=subprocess.DEVNULL
    )
