"""``passlib new`` and ``passlib build``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import passlib
from commands import passlib_command
from passlib.cli import main

ENVIRONMENT = {**os.environ, "PYTHON": sys.executable}


def shell(command: str, folder: Path) -> str:
    run = subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_new_pass_works_at_once(tmp_path: Path) -> None:
    result = passlib_command("new", "tryIt", folder=tmp_path)
    assert result.returncode == 0
    *files, said = result.stdout.splitlines()
    assert said == "as an example, tryIt removes Identity; test it: make -C tryIt test"
    assert {line.rpartition("/")[2] for line in files} == {
        ".gitignore",
        "CMakeLists.txt",
        "Makefile",
        "README.md",
        "test_tryIt.py",
        "tryIt.cc",
    }
    assert "-m unittest" in shell("make -C tryIt test", tmp_path)
    listed = passlib_command("passes", "-l", tmp_path / "tryIt" / "libtryIt.so")
    assert "tryIt" in listed.stdout


@pytest.mark.sample(0)
@pytest.mark.parametrize("kind", ["operator", "pattern", "partitioner"])
def test_other_kinds_work_at_once(kind: str, tmp_path: Path) -> None:
    name = f"my{kind.title()}"
    result = passlib_command("new", name, f"--{kind}", folder=tmp_path)
    assert result.returncode == 0
    shell(printed_test(result.stdout), tmp_path)
    for place in (tmp_path / name).glob("*.py"):
        assert "import pytest" not in place.read_text()


def printed_test(said: str) -> str:
    """Return the command that `passlib new` prints."""
    return said.splitlines()[-1].partition("; test it: ")[2]


def test_a_new_pass_in_python(tmp_path: Path) -> None:
    result = passlib_command("new", "tryThis", "--python", folder=tmp_path)
    assert result.returncode == 0
    shell(printed_test(result.stdout).replace("python3", "$PYTHON"), tmp_path)
    listed = passlib_command("passes", "-l", tmp_path / "tryThis" / "tryThis.py")
    assert "Removes the operator Identity." in listed.stdout
    (tmp_path / "tryThis" / "tryThis.py").write_text("")
    with pytest.raises(AssertionError, match="FAILED"):
        shell("$PYTHON -m unittest", tmp_path / "tryThis")


def test_a_new_rule(tmp_path: Path) -> None:
    result = passlib_command("new", "tryRule", "--rule", folder=tmp_path)
    assert result.stdout.splitlines()[:2] == ["tryRule/README.md", "tryRule/tryRule.rules"]
    _, *words = printed_test(result.stdout).split()
    checked = passlib_command(*words, folder=tmp_path)
    assert checked.stdout == "tryRule/tryRule.rules: 1 rule, all as shown\n"
    file = tmp_path / "tryRule" / "tryRule.rules"
    file.write_text(file.read_text().replace("=> y = Relu(x)\n  exact", "=> y = Abs(x)\n  exact"))
    assert passlib_command(*words, folder=tmp_path).returncode == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["foldConstants"], "'foldConstants' is the name of a standard pass; choose another"),
        (["simplify", "--rule"], "'simplify' is the name of a standard pass"),
        (["class", "--python"], "'class' is a word or module of Python; choose another"),
        (["onnx", "--python"], "'onnx' is a word or module of Python"),
    ],
)
def test_a_name_that_is_taken(words: list[str], message: str, tmp_path: Path) -> None:
    result = passlib_command("new", *words, folder=tmp_path)
    assert result.returncode == 1
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["two words", "9lives", "../up", ""])
def test_a_name_that_cannot_be(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name]) == 1
    assert "cannot be the name of a pass" in capsys.readouterr().err


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    result = passlib_command("new", "here", folder=tmp_path)
    assert result.returncode == 1
    assert "exists already" in result.stderr
    assert list((tmp_path / "here").iterdir()) == []


SOURCE = """
#include "lib_api.h"
using namespace mxnet::ext;
MXReturnValue body(Graph*, const std::unordered_map<std::string, std::string>&) {
  return MX_SUCCESS;
}
REGISTER_PASS(builtByCommand).setBody(body);
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""
PLAIN = "int given[2];\nint taken(int place) { return given[place]; }\n"


class TestBuild:
    @pytest.mark.sample(1)
    @pytest.mark.parametrize("mode", [[], ["--debug"]], ids=["release", "debug"])
    def test_a_library(self, mode: list[str], tmp_path: Path) -> None:
        (tmp_path / "built.cc").write_text(SOURCE, "utf-8")
        result = passlib_command("build", "built.cc", *mode, folder=tmp_path)
        assert (result.returncode, result.stdout) == (0, "libbuilt.so\n"), result.stderr
        assert "builtByCommand" in passlib_command("passes", "-l", tmp_path / "libbuilt.so").stdout

    @pytest.mark.sample(1)
    @pytest.mark.parametrize("source", [PLAIN, SOURCE], ids=["plain", "header"])
    def test_asan(self, source: str, tmp_path: Path) -> None:
        (tmp_path / "built.cc").write_text(source, "utf-8")
        target = tmp_path / "x.so"
        assert (
            passlib_command("build", tmp_path / "built.cc", "-o", target, "--asan").returncode == 0
        )
        assert b"__asan_init" in target.read_bytes()

    def test_errors_are_the_compilers(self, tmp_path: Path) -> None:
        (tmp_path / "bad.cc").write_text("int x = nothing;", "utf-8")
        old = tmp_path / "libbad.so"
        old.write_text("an earlier build", "utf-8")
        result = passlib_command("build", "bad.cc", folder=tmp_path)
        assert result.returncode == 1
        assert "bad.cc:1:9: error:" in result.stderr
        assert old.read_text("utf-8") == "an earlier build"

    def test_without_a_compiler(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("CXX", "no-such-compiler")
        assert main(["build", str(tmp_path / "x.cc")]) == 1
        assert "compiler 'no-such-compiler' not found" in capsys.readouterr().err


def test_templates_are_installed() -> None:
    folder = Path(passlib.__file__).parent / "workbench" / "templates"
    assert {path.name for path in folder.iterdir()} == {
        *("common", "operator", "partitioner", "pass", "pattern", "python", "rule")
    }
