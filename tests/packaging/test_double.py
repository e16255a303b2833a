"""The password library ``passlib``: refused where it shares the folder of this package."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import passlib
from passlib.files import installation
from steps import counted_steps

OWN = "graph_passlib-0.1.0.dist-info"


def distribution(folder: Path, name: str) -> None:
    """Write the metadata of an installed distribution."""
    information = folder / name
    information.mkdir(parents=True)
    file = "PKG-INFO" if name.endswith(".egg-info") else "METADATA"
    project, version = name.split("-")[:2]
    text = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version.rpartition('.')[0]}\n"
    (information / file).write_text(text, "utf-8")


def python(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "other", ["passlib-1.7.4.dist-info", "Passlib-1.7.4.dist-info", "passlib-1.7.4.egg-info"]
)
def test_both_in_one_folder_are_refused(other: str, tmp_path: Path) -> None:
    distribution(tmp_path, OWN)
    distribution(tmp_path, other)
    result = python("import passlib", tmp_path)
    assert result.returncode == 1
    message = result.stderr.splitlines()[-1]
    assert message.startswith(f"ImportError: {tmp_path} has two distributions")
    assert "'graph-passlib'" in message
    assert "'passlib'" in message
    assert "pip uninstall passlib graph-passlib" in message


def test_each_in_a_folder_of_its_own_is_accepted(tmp_path: Path) -> None:
    distribution(tmp_path / "own", OWN)
    distribution(tmp_path / "other", "passlib-1.7.4.dist-info")
    result = python("import passlib", tmp_path / "own", tmp_path / "other")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("other", ["passlib_hash-1.0.0.dist-info", "my_passlib-1.0.0.dist-info"])
def test_other_names_are_accepted(other: str, tmp_path: Path) -> None:
    distribution(tmp_path, OWN)
    distribution(tmp_path, other)
    result = python("import passlib; print(passlib.__version__)", tmp_path)
    assert (result.stdout, result.returncode) == ("0.1.0\n", 0), result.stderr


def test_it_takes_few_steps() -> None:
    """All distributions of the environment are not opened for it: that takes milliseconds."""
    importlib.invalidate_caches()
    assert counted_steps(installation.checked_version)[1] < 3_000


def test_the_version_is_that_of_the_distribution() -> None:
    result = python("from importlib.metadata import version; print(version('graph-passlib'))")
    assert result.stdout.strip() == passlib.__version__


SECOND_NAME = """
import importlib, sys
{before}
import graph_passlib
import passlib
import graph_passlib.nd as second
from graph_passlib import Model
assert graph_passlib is passlib
assert second is passlib.nd
assert Model is passlib.Model
assert importlib.import_module("graph_passlib.cli.status") is passlib.cli.status
"""


@pytest.mark.parametrize("before", ["", "import passlib"])
def test_the_second_name_is_the_same_module(before: str) -> None:
    result = python(SECOND_NAME.format(before=before))
    assert result.returncode == 0, result.stderr


def test_the_second_name_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "graph_passlib", "--version"]
    assert subprocess.check_output(command, text=True).strip() == passlib.__version__


def test_the_second_name_refuses_a_process_with_the_password_library(tmp_path: Path) -> None:
    code = (
        "import sys, types\n"
        "sys.modules['passlib'] = types.ModuleType('passlib')\n"
        "import graph_passlib\n"
    )
    result = python(code)
    assert "already imported another distribution's 'passlib'" in result.stderr


def test_the_second_name_works_where_files_were_overwritten(tmp_path: Path) -> None:
    """The wheel's folders, with what the password library 1.7.4 writes over them."""
    package = Path(passlib.files.__path__[0]).parent
    (tmp_path / "passlib").mkdir()
    for each in package.iterdir():
        (tmp_path / "passlib" / each.name).symlink_to(each)
    for native in Path(passlib._core.__file__).parent.glob("*.so"):
        (tmp_path / "passlib" / native.name).symlink_to(native)
    spare = tmp_path / "graph_passlib" / "spare"
    spare.mkdir(parents=True)
    shutil.copy(package.parent / "graph_passlib" / "__init__.py", spare.parent)
    for name in ("__init__.py", "__init__.pyi"):
        shutil.copy(package / name, spare)
        (tmp_path / "passlib" / name).unlink()
        (tmp_path / "passlib" / name).write_text("raise AssertionError('overwritten')", "utf-8")
    distribution(tmp_path, OWN)
    points = metadata.distribution("graph-passlib").read_text("entry_points.txt")
    (tmp_path / OWN / "entry_points.txt").write_text(str(points), "utf-8")
    distribution(tmp_path, "passlib-1.7.4.dist-info")
    # Not the editable installation, which finds the package before the path does.
    code = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'ditable' not in repr(f)]\n"
    code += "import graph_passlib, passlib, passlib.context\n"
    code += "assert passlib.__path__[0].endswith('spare'), passlib.__path__\n"
    code += "print(graph_passlib.cpu(), passlib.sym.var('x').name)"
    result = python(code, tmp_path)
    assert result.stdout == "cpu(0) x\n", result.stderr
