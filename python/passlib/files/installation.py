"""The installed distribution: its version, its header and CMake package, and its double."""

from __future__ import annotations

from importlib.metadata import Distribution, distribution
from pathlib import Path

from passlib import _core
from passlib.errors import PasslibError

__all__ = ["checked_version", "get_cmake_dir", "get_include"]

OWN = "graph-passlib"
DOUBLE = "passlib"
"""A password library on PyPI, which installs into a folder ``passlib`` too."""


def checked_version() -> str:
    """Return the version of this distribution.

    Raises
    ------
    ImportError
        The password library ``passlib`` is installed in the same folder: each of the two has
        overwritten files of the other.
    """
    own = distribution(OWN)
    folder = str(own.locate_file(""))
    # Elsewhere on the path it shares no files with this one.
    if any(True for _ in Distribution.discover(name=DOUBLE, path=[folder])):
        message = (
            f"{folder} has two distributions that both install into its folder passlib/: {OWN!r} "
            f"(graph passes) and {DOUBLE!r} (a password library); the later one has overwritten "
            f"files of the earlier one. Keep them in separate environments: run "
            f"'pip uninstall {DOUBLE} {OWN}', then 'pip install' with the one that this "
            f"environment needs"
        )
        raise ImportError(message, name=DOUBLE)
    return own.version


def get_include() -> str:
    """Return the folder of the header ``lib_api.h``, for the compiler's option ``-I``.

    Raises
    ------
    PasslibError
        The installation has no header.
    """
    return _installed("include", "lib_api.h")


def get_cmake_dir() -> str:
    """Return the folder of the CMake package, for ``cmake -Dpasslib_DIR=``.

    Raises
    ------
    PasslibError
        The installation has no CMake package.
    """
    return _installed("cmake", "passlibConfig.cmake")


def _installed(folder: str, file: str) -> str:
    # The build installs them next to the native module; in an editable installation, that is not
    # the folder of the Python files.
    found = Path(_core.__file__).absolute().parent / folder
    if not (found / file).is_file():
        message = f"{found / file} is missing; install {OWN} again"
        raise PasslibError(message)
    return str(found)
