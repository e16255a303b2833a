"""The museum: built libraries of every version of the ABI and the header, for later hosts to load.

``python tests/support/museum.py`` builds the exhibits that tests/data/museum lacks and for which
this machine has the compiler, and says what it left out. An exhibit that is there is never built
again: it stands for what its compiler made on its day. Headers are those of the commits that
brought them, so this needs the whole history.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from places import DATA, ROOT, TESTS
from plugin_build import INCLUDE

MUSEUM = DATA / "museum"
_SMALL = ("-Os", "-s", "-shared", "-fPIC", "-ffunction-sections", "-Wl,--gc-sections")

HEADERS = {
    "first": "fe108c3c",
    "operators": "5759c973",
    "build_tag": "448c9195",
    "flat_1": "a2de2338",
    "flat_2": "22d51eb2",
}
"""The commits after which a library has other functions or is handed other data."""


@dataclass(frozen=True)
class Exhibit:
    """How a library is built.

    Attributes
    ----------
    source : str
        A file in tests/plugins.
    command : tuple of str
        A compiler with its flags.
    header : str
        A key of `HEADERS`; "" for the header of the work tree, or for none.
    string_abi : str
        What `pl.library.abi` finds.
    """

    source: str
    command: tuple[str, ...]
    header: str = ""
    string_abi: str = ""

    @property
    def compiler(self) -> str:
        return self.command[0]


def _plain(source: str, abi: int) -> Exhibit:
    return Exhibit(source, ("gcc-12", f"-DABI={abi}"))


def _compiled(header: str, string_abi: str, *command: str) -> Exhibit:
    return Exhibit("museum.cc", (*command, "-std=c++17", "-fvisibility=hidden"), header, string_abi)


_OLD_STRING = "-D_GLIBCXX_USE_CXX11_ABI=0"

EXHIBITS = {
    **{f"c_passes_{abi}": _plain("plain.c", abi) for abi in range(7, 12)},
    **{f"c_operators_{abi}": _plain("plain_operator.c", abi) for abi in range(7, 12)},
    **{f"{header}_gcc12": _compiled(header, "new", "g++-12") for header in HEADERS},
    **{f"flat_2_gcc{n}": _compiled("flat_2", "new", f"g++-{n}") for n in (9, 10, 11, 13, 14)},
    "first_gcc12_old_string": _compiled("first", "old", "g++-12", _OLD_STRING),
    "flat_2_gcc12_old_string": _compiled("flat_2", "old", "g++-12", _OLD_STRING),
    "flat_2_clang14": _compiled("flat_2", "new", "clang++-14"),
    "flat_2_clang19": _compiled("flat_2", "new", "clang++-19"),
    "first_clang14_libcxx": _compiled("first", "libc++", "clang++-14", "-stdlib=libc++"),
    "flat_2_clang14_libcxx": _compiled("flat_2", "libc++", "clang++-14", "-stdlib=libc++"),
}


def stored(name: str) -> Path:
    return MUSEUM / f"{name}.so.xz"


def unpack(name: str, folder: Path) -> Path:
    """Write a stored exhibit to a folder."""
    target = folder / f"{name}.so"
    target.write_bytes(lzma.decompress(stored(name).read_bytes()))
    return target


def build(name: str, folder: Path, include: Path | None = None) -> Path:
    """Build an exhibit; with the header in another folder if one is given."""
    exhibit = EXHIBITS[name]
    if include is None:
        include = _header(exhibit.header, folder) if exhibit.header else INCLUDE
    target = folder / f"{name}.so"
    flags = (*_SMALL, f"-DEXHIBIT={name}", f"-I{include}")
    command = (*exhibit.command, *flags, exhibit.source, "-o", str(target))
    subprocess.run(command, cwd=TESTS / "plugins", check=True)
    return target


def _header(name: str, folder: Path) -> Path:
    text = subprocess.run(
        ["git", "show", f"{HEADERS[name]}:include/lib_api.h"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    place = folder / f"include_{name}"
    place.mkdir(exist_ok=True)
    (place / "lib_api.h").write_bytes(text)
    return place


def main() -> None:
    """Build the exhibits that are missing."""
    MUSEUM.mkdir(exist_ok=True)
    for name, exhibit in EXHIBITS.items():
        if stored(name).exists():
            continue
        if shutil.which(exhibit.compiler) is None:
            sys.stdout.write(f"{name}: left out, there is no {exhibit.compiler}\n")
            continue
        with tempfile.TemporaryDirectory() as folder:
            library = build(name, Path(folder)).read_bytes()
        stored(name).write_bytes(lzma.compress(library, preset=9))
        sizes = f"{len(library):,} bytes, {stored(name).stat().st_size:,} stored"
        sys.stdout.write(f"{name}: {sizes}\n")


if __name__ == "__main__":
    main()
