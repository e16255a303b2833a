"""README and the start page, block by block, as a newcomer follows them with a wheel.

Run as ``python first_steps.py WHEEL`` with tests/support on the path. Each page gets an empty
folder and an empty environment. ``graph-passlib`` is installed from the wheel, all else from the
package index. Fails at the first command that fails or prints something else than the page says.
"""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from places import ROOT
from printed_blocks import Block, blocks_of, same_output

PAGES = ("README.md", "docs/start.md")
MARK = "----"
"""Is printed between the blocks of a page's one Python session."""


def follow(page: str, wheel: Path, folder: Path) -> None:
    """Install, write the files, run the commands and the Python of a page, in order."""
    venv.create(folder / "environment", with_pip=True)
    blocks = blocks_of(ROOT / page)
    session: list[str] = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        wanted = after.text if after is not None and after.language == "text" else ""
        name = block.info.removeprefix("file=")
        if name != block.info:
            (folder / name).write_text(block.text, "utf-8")
        elif block.language in ("sh", "bash"):
            text = block.text.replace("graph-passlib[run]", f"{wheel}[run]")
            check(page, block, wanted, run(folder, "bash", "-e", "-o", "pipefail", "-c", text))
        elif block.language == "python":
            session.append(block.text)
            printed = run(folder, "python", "-c", f"print({MARK!r})\n".join(session))
            check(page, block, wanted, printed.rpartition(MARK + "\n")[2])


def check(page: str, block: Block, wanted: str, printed: str) -> None:
    """Compare what a block printed with the page."""
    start = printed.find(wanted.partition("\n")[0].partition("...")[0])
    if wanted and not same_output(wanted, printed[max(start, 0) :], doctest.NORMALIZE_WHITESPACE):
        sys.exit(f"{page}, line {block.line} printed\n{printed}\nbut the page says\n{wanted}")
    print(f"{page}, line {block.line}: as printed", flush=True)


def run(folder: Path, *command: str) -> str:
    """Run a command in the environment of a folder, and return its output."""
    path = f"{folder / 'environment' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "PASSLIB", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment, "PATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{command}\n{done.stdout}\nended with status {done.returncode}")
    return done.stdout


def main() -> None:
    """Follow each page."""
    wheel = Path(sys.argv[1]).resolve()
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            follow(page, wheel, Path(folder))


main()
