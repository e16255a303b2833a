"""``find_package(passlib)``: from every form of installation, with the options of authors."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

import passlib
from places import ROOT
from printed_blocks import shell

SOURCE = """
#include "lib_api.h"
static_assert(__cplusplus >= 201103L, "the header needs C++11");
static mxnet::ext::MXReturnValue keep(mxnet::ext::Graph*,
    const std::unordered_map<std::string, std::string>&) { return mxnet::ext::MX_SUCCESS; }
REGISTER_PASS(keepAll).setBody(keep);
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
"""
PROJECT = """
cmake_minimum_required(VERSION 3.18...4.0)
project(author LANGUAGES CXX)
# The prefix that another package leaves behind.
set(PACKAGE_PREFIX_DIR /nowhere)
find_package(passlib REQUIRED)
@BEFORE@
passlib_add_library(keep keep.cc)
@AFTER@
"""

# The native module takes minutes to compile, and its place is not in question here.
BUILD = """
import sys
from scikit_build_core import build
settings = {"build-dir": sys.argv[2], "build.targets": ["help"]}
settings["install.components"] = ["development"]
getattr(build, sys.argv[1])(sys.argv[3], settings)
"""


def built_by(hook: str, folder: Path) -> Path:
    """Unpack what a hook of the build backend makes, as pip does, and return the package."""
    arguments = [hook, str(folder / "build"), str(folder / "wheel")]
    shell(ROOT, [sys.executable, "-c", BUILD, *arguments])
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site" / "passlib" / "cmake"


def wheel(folder: Path) -> Path:
    return built_by("build_wheel", folder)


def editable(folder: Path) -> Path:
    return built_by("build_editable", folder)


def build_directory(folder: Path) -> Path:
    pybind11 = shell(ROOT, [sys.executable, "-m", "pybind11", "--cmakedir"]).strip()
    options = [f"-Dpybind11_DIR={pybind11}", f"-DPython_EXECUTABLE={sys.executable}"]
    options.append("-DPASSLIB_PYTHON=ON")
    shell(ROOT, ["cmake", "-S", str(ROOT), "-B", str(folder / "build"), *options])
    return folder / "build"


def installed_here(folder: Path) -> Path:
    return Path(shell(folder, [sys.executable, "-m", "passlib", "--cmakedir"]).strip())


def author_project(folder: Path, *, before: str = "", after: str = "") -> Path:
    """Write the project of an author, with statements round ``passlib_add_library``."""
    folder.mkdir()
    (folder / "keep.cc").write_text(SOURCE, "utf-8")
    text = PROJECT.replace("@BEFORE@", before).replace("@AFTER@", after)
    (folder / "CMakeLists.txt").write_text(text, "utf-8")
    return folder


@pytest.mark.sample(1)
@pytest.mark.parametrize("form", [wheel, editable, build_directory, installed_here])
def test_authors_find_the_package(form, tmp_path: Path) -> None:
    package = form(tmp_path)
    project = author_project(tmp_path / "author")
    shell(project, ["cmake", "-B", "build", f"-Dpasslib_DIR={package}", "-DCMAKE_CXX_FLAGS=-O0"])
    shell(project, ["cmake", "--build", "build"])
    code = (
        "import passlib, sys\n"
        "passlib.library.load(sys.argv[1], verbose=False)\n"
        "x = passlib.sym.var('x')\n"
        "print(passlib.sym.exp(x, name='y').optimize_for('keepAll').list_outputs())\n"
    )
    library = project / "build" / "libkeep.so"
    assert shell(project, [sys.executable, "-c", code, str(library)]) == "['y_output']\n"
    symbols = shell(project, ["nm", "-D", "--defined-only", str(library)]).splitlines()
    names = [line.split()[-1] for line in symbols]
    assert [name for name in names if not re.match(r"initialize$|_(msg|op|part|pass)", name)] == []
    assert "_passCallGraphPass" in names
    assert "SYMBOLIC" in shell(project, ["readelf", "-d", str(library)])


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder with the CMake package, as the build writes it."""
    folder = tmp_path / "package"
    (folder / "cmake").mkdir(parents=True)
    text = (ROOT / "cmake" / "passlibConfig.cmake.in").read_text("utf-8")
    place = "${CMAKE_CURRENT_LIST_DIR}/../include"
    text = text.replace("@PASSLIB_CONFIG_INCLUDE@", place)
    text = text.replace("@PASSLIB_CONFIG_SCRIPT@", "${CMAKE_CURRENT_LIST_DIR}/passlib.map")
    shutil.copy(ROOT / "cmake" / "passlib.map", folder / "cmake")
    assert "@" not in text
    (folder / "cmake" / "passlibConfig.cmake").write_text(text, "utf-8")
    (folder / "include").symlink_to(ROOT / "include")
    return folder


def compiler_options(project: Path, package: Path, *options: str) -> list[str]:
    """Configure a project and return the words of the compiler's command."""
    command = ["cmake", "-B", "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    shell(project, [*command, f"-Dpasslib_DIR={package / 'cmake'}", *options])
    commands = json.loads((project / "build" / "compile_commands.json").read_text("utf-8"))
    return str(commands[0]["command"]).split()


AFTER = "target_compile_options(keep PRIVATE -O1)"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("options", "before", "after", "wanted"),
    [
        ([], "", "", "-O2"),
        (["-DCMAKE_BUILD_TYPE=Release"], "", "", "-O3"),
        (["-DCMAKE_BUILD_TYPE=Debug"], "", "", None),
        (["-DCMAKE_BUILD_TYPE=None"], "", "", "-O2"),
        (["-DCMAKE_BUILD_TYPE=Mine", "-DCMAKE_CXX_FLAGS_MINE=-g"], "", "", None),
        (["-DCMAKE_CXX_FLAGS=-g -O0"], "", "", "-O0"),
        (["-DCMAKE_CXX_FLAGS=-DX-O0"], "", "", "-O2"),
        ([], "add_compile_options(-Os)", "", "-Os"),
        ([], "", AFTER, "-O1"),
    ],
    ids=["plain", "release", "debug", "none", "own", "flags", "no-flag", "folder", "target"],
)
def test_optimization(
    options: list[str], before: str, after: str, wanted: str | None, package: Path, tmp_path: Path
) -> None:
    """The last of the compiler's options counts."""
    project = author_project(tmp_path / "author", before=before, after=after)
    words = compiler_options(project, package, *options)
    assert [word for word in words if word.startswith("-O")][-1:] == ([wanted] if wanted else [])


@pytest.mark.parametrize(("wanted", "used"), [(98, 11), (11, 11), (14, 14), (20, 20)])
def test_language(wanted: int, used: int, package: Path, tmp_path: Path) -> None:
    """A standard that is too old for the header is raised; others stay as they are."""
    project = author_project(tmp_path / "author")
    words = compiler_options(project, package, f"-DCMAKE_CXX_STANDARD={wanted}")
    chosen = [word for word in words if word.startswith("-std=")]
    assert chosen == [f"-std=gnu++{used}"]


def test_a_missing_header_is_named(package: Path, tmp_path: Path) -> None:
    (package / "include").unlink()
    project = author_project(tmp_path / "author")
    with pytest.raises(AssertionError, match=r"lib_api\.h\s+is missing"):
        compiler_options(project, package)


def test_two_uses_in_one_project(package: Path, tmp_path: Path) -> None:
    """A second find_package and a name with spaces in its folder do no harm."""
    spaced = tmp_path / "with space"
    shutil.copytree(package, spaced, symlinks=True)
    project = author_project(tmp_path / "author", before="find_package(passlib REQUIRED)")
    compiler_options(project, spaced)


def test_header_and_package_stand_together() -> None:
    include, cmake = Path(passlib.get_include()), Path(passlib.get_cmake_dir())
    assert (include / "lib_api.h").is_file()
    assert (include / "lib_patterns.h").is_file()
    assert (include / "mxnet" / "lib_api.h").is_file()
    assert include.parent == cmake.parent
    assert include.is_absolute()
