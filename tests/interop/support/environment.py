"""The environment of the real MXNet, and the compilation of libraries that both hosts load."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from places import ROOT, TESTS

PASSES = TESTS / "interop" / "passes"
CACHE = ROOT / "build" / "interop"


class UnavailableError(Exception):
    """The environment with the real MXNet is not available; the text is the reason."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has MXNet 1.9.1.

    Attributes
    ----------
    python : Path
        Its interpreter.
    package : Path
        The folder of the package ``mxnet``, which holds ``include/mxnet`` and ``src/lib_api.cc``.
    """

    python: Path
    package: Path


@functools.cache
def find() -> Environment:
    """Find the environment that PASSLIB_MXNET_ENV names, or ``.venv-mxnet`` of this repository."""
    folder = Path(os.environ.get("PASSLIB_MXNET_ENV", ROOT / ".venv-mxnet")).absolute()
    python = folder / "bin" / "python"
    if not python.exists():
        raise UnavailableError(
            f"there is no MXNet environment at {folder}; 'make interop' makes it"
        )
    code = "import mxnet; print(mxnet.__version__, mxnet.__path__[0], sep='\\n')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise UnavailableError(f"MXNet in {folder} cannot be imported: {reason}")
    version, package = done.stdout.splitlines()[-2:]
    if version != "1.9.1":
        raise UnavailableError(f"{folder} has MXNet {version}, not 1.9.1")
    return Environment(python, Path(package))


def build(name: str, sources: list[Path], include: list[Path]) -> Path:
    """Compile a library, unless an identical one is in the cache.

    Parameters
    ----------
    name : str
        Name of the file, without ``lib``.
    sources, include : list of Path
        Source files, and folders of headers. A change in either recompiles the library.

    Returns
    -------
    Path
    """
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise UnavailableError(f"there is no C++ compiler {compiler!r}")
    headers = [
        header
        for folder in (*include, PASSES)
        for header in (*folder.glob("*.h"), *folder.glob("mxnet/lib_api.h"))
    ]
    digest = hashlib.sha256(compiler.encode())
    for path in sorted({*sources, *headers}):
        digest.update(path.read_bytes())
    folder = CACHE / digest.hexdigest()[:16]
    library = folder / f"lib{name}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for source in sources:
        flags = ["-std=c++11", "-O0", "-fPIC", *[f"-I{each}" for each in include]]
        target = folder / f"{source.stem}.o"
        jobs.append((target, subprocess.Popen([compiler, *flags, "-c", source, "-o", target])))
    codes = [job.wait() for _, job in jobs]
    if any(codes):
        raise RuntimeError(f"{compiler} could not compile {name}; its messages are above")
    unfinished = folder / f"{name}.{os.getpid()}"
    objects = [target for target, _ in jobs]
    subprocess.run([compiler, "-shared", *objects, "-o", unfinished], check=True)
    unfinished.replace(library)
    return library
