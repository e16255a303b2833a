"""Whether the repository is ready for a release: ``python release_check.py [TAG]``.

Prints one line a condition, and ends with status 1 where one is missing. ``make release-check``
runs everything else that a release needs before.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


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


def conditions(tag: str | None) -> Iterator[tuple[str, bool]]:
    """Yield what a release needs, and whether it is there."""
    version = declared_version()
    yield f"the tag is v{version}", tag in (None, f"v{version}")
    yield "the tree is clean", not git("status", "--porcelain")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$"
    yield (
        f"CHANGELOG.md has a dated section {version}",
        bool(re.search(heading, changes, re.MULTILINE)),
    )
    wheel, source = only(f"*-{version}-*.whl"), only(f"*-{version}.tar.gz")
    yield "dist/ has one wheel of this version", wheel is not None
    yield "dist/ has one source distribution of this version", source is not None
    if wheel is not None:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        for name in (
            "passlib/include/lib_api.h",
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
    missing = 0
    for condition, holds in conditions(sys.argv[1] if len(sys.argv) > 1 else None):
        print(f"{'ok' if holds else 'MISSING'}: {condition}")
        missing += not holds
    print(f"{missing} conditions are missing" if missing else "ready for a release")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
