"""The installed distribution: its version, its header and CMake package, and its double."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

import passlib._core as _core
from passlib.errors import PasslibError

OWN = "graph-passlib"
DOUBLE = "passlib"
"""A password library on PyPI, which installs into a folder ``passlib`` too."""

# The folder of a distribution's metadata: its name, with every - as _, and its version.
_OWN_METADATA: Final = re.compile(r"graph_passlib-([^-]+)\.dist-info")
_DOUBLE_METADATA: Final = re.compile(r"passlib-.+\.(?:dist|egg)-info", re.IGNORECASE)


def checked_version() -> str:
    """Return the version of this distribution.

    The folders of the search path are listed here, because importing ``importlib.metadata`` takes
    longer than all the rest. Raises `ImportError` if the password library ``passlib`` is installed
    in the same folder: each of the two has overwritten files of the other.
    """
    # graph_passlib imports the package from a folder with copies of all that may be overwritten.
    shared = Path(sys.modules["passlib"].__path__[0]).name != "spare"
    for folder in sys.path:
        try:
            with os.scandir(folder or os.curdir) as found:
                entries = [entry.name for entry in found]
        except OSError:  # an archive, or nothing at all
            continue
        own = next(filter(None, map(_OWN_METADATA.fullmatch, entries)), None)
        if own is None:
            continue
        # Elsewhere on the path it shares no files with this one.
        if shared and any(map(_DOUBLE_METADATA.fullmatch, entries)):
            message = (
                f"{folder} has two distributions that both install into its folder passlib/: "
                f"{OWN!r} (graph passes) and {DOUBLE!r} (a password library); the later one has "
                f"overwritten files of the earlier one. 'import graph_passlib' imports {OWN} all "
                f"the same; to have both, keep them in separate environments: run "
                f"'pip uninstall {DOUBLE} {OWN}', then 'pip install' with the one that this "
                f"environment needs"
            )
            raise ImportError(message, name=DOUBLE)
        return own[1]
    from importlib.metadata import version

    return version(OWN)


def get_include() -> str:
    """Return the folder of the header ``lib_api.h``, for the compiler's option ``-I``.

    Raises
    ------
    PasslibError
        The installation has no header.

    Examples
    --------
    >>> import pathlib
    >>> import passlib as pl
    >>> (pathlib.Path(pl.get_include()) / "lib_api.h").exists()
    True
    """
    return _installed("include", "lib_api.h")


def get_cmake_dir() -> str:
    """Return the folder of the CMake package, for ``cmake -Dpasslib_DIR=``.

    Raises
    ------
    PasslibError
        The installation has no CMake package.

    Examples
    --------
    >>> import pathlib
    >>> import passlib as pl
    >>> (pathlib.Path(pl.get_cmake_dir()) / "passlibConfig.cmake").exists()
    True
    """
    return _installed("cmake", "passlibConfig.cmake")


def ort_library() -> str:
    """Return the path of the library that runs operators of libraries in ONNX Runtime.

    ONNX Runtime loads it with ``SessionOptions.register_custom_ops_library``. It loads the
    libraries that the environment variable ``PASSLIB_LIBRARIES`` names, or the entry
    ``passlib.libraries`` of the session options.

    Raises
    ------
    PasslibError
        The installation has no such library.

    Examples
    --------
    >>> import pathlib
    >>> import passlib as pl
    >>> pathlib.Path(pl.ort_library()).name
    'libpasslib_ort.so'
    """
    name = "libpasslib_ort.so"
    return str(Path(_installed("", name)) / name)


def _installed(folder: str, file: str) -> str:
    # The build installs them next to the native module; in an editable installation, that is not
    # the folder of the Python files.
    found = Path(_core.__file__).absolute().parent / folder
    if not (found / file).is_file():
        message = f"{found / file} is missing; install {OWN} again"
        raise PasslibError(message)
    return str(found)
