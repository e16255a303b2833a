"""Whether the repository is ready for a release: ``python release_check.py [--no-targets] [TAG]``.

Runs the targets of make that a release needs, all of them even where one fails, then prints one
line a condition, and ends with status 1 where one is missing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


TARGETS = (
    *("lint", "docs", "docs-links", "interop", "test", "test-rest", "test-lowest", "demo"),
    *("wheel", "sdist"),
)
"""The commands of a release; the last two make the files that are checked."""

TO_COME = re.compile(r"until \S+ is released|is to have wheels", re.IGNORECASE)
"""How pages say that the first release is still to come."""


def succeeds(target: str) -> bool:
    """Whether make makes a target; tests that need MXNet fail without it instead of skipping."""
    print(f"make {target}", flush=True)
    environment = {**os.environ, "PASSLIB_REQUIRE_INTEROP": "1"}
    done = subprocess.run(["make", target], cwd=ROOT, env=environment, check=False)
    return done.returncode == 0


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.splitlines()


def declared_version() -> str:
    """Return the version in pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    found = re.search(r'^version = "(.*)"$', text, re.MULTILINE)
    assert found
    return found[1]


def only(pattern: str) -> Path | None:
    """Return the file in dist/ that fits a pattern, if there is exactly one."""
    found = sorted((ROOT / "dist").glob(pattern))
    return found[0] if len(found) == 1 else None


def answers(address: str) -> bool:
    """Whether there is a page at an address."""
    try:
        with urllib.request.urlopen(address, timeout=20) as response:
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False


def speaks_of_a_release_to_come(page: Path) -> bool:
    """Whether a page says how things are before the first release."""
    return bool(TO_COME.search(" ".join(page.read_text("utf-8").split())))


def index_accepts(file: Path) -> bool:
    """Whether a package index takes the metadata of a file in dist/, and shows its readme."""
    command = [sys.executable, "-m", "twine", "check", "--strict", str(file)]
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 0


def conditions(tag: str | None) -> Iterator[tuple[str, bool]]:
    """Yield what a release needs, and whether it is there."""
    version = declared_version()
    if tag is not None:
        yield f"the tag {tag} is v{version}", tag == f"v{version}"
    yield "the tree is clean", not git("status", "--porcelain")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$"
    yield (
        f"CHANGELOG.md has a dated section {version}",
        bool(re.search(heading, changes, re.MULTILINE)),
    )
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    early = [page.name for page in pages if speaks_of_a_release_to_come(page)]
    yield f"pages that speak of a release to come: {', '.join(early) or 'none'}", not early
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for name, address in re.findall(r'^(\w+) = "(https://[^"]+)"$', text, re.MULTILINE):
        yield f"{name} of the metadata answers: {address}", answers(address)
    wheel, source = only(f"*-{version}-*.whl"), only(f"*-{version}.tar.gz")
    yield "dist/ has one wheel of this version", wheel is not None
    yield "dist/ has one source distribution of this version", source is not None
    for file in filter(None, (wheel, source)):
        yield f"a package index takes {file.name}", index_accepts(file)
    if wheel is not None:
        yield "the wheel is for any Linux (manylinux)", "-manylinux_" in wheel.name
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        for name in (
            "passlib/include/lib_api.h",
            "passlib/include/lib_patterns.h",
            "passlib/cmake/passlibConfig.cmake",
            "passlib/py.typed",
        ):
            yield f"the wheel has {name}", name in names
    if source is not None:
        with tarfile.open(source) as unpacked:
            members = {name.partition("/")[2] for name in unpacked.getnames()}
        missing = [name for name in git("ls-files") if name not in members]
        yield f"the source distribution has every file ({len(missing)} missing)", not missing


def main() -> int:
    """Print the conditions and return the status."""
    arguments = sys.argv[1:]
    targets = () if "--no-targets" in arguments else TARGETS
    tags = [argument for argument in arguments if argument != "--no-targets"]
    found = [(f"make {target} succeeds", succeeds(target)) for target in targets]
    found += conditions(tags[0] if tags else None)
    missing = 0
    for condition, holds in found:
        print(f"{'ok' if holds else 'MISSING'}: {condition}")
        missing += not holds
    print(f"{missing} conditions are missing" if missing else "ready for a release")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
