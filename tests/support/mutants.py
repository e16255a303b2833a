"""Mutates a room of the package, one place at a time, and prints what its tests do not notice.

Run as ``python mutants.py ROOM COUNT``, ``ROOM`` as in python/passlib and tests, such as
``dialects/onnx``: cosmic-ray changes the files of the room in place, and restores them. COUNT of
all mutants are drawn, the same ones each time.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import WorkerOutcome, WorkItem, WorkResult

from places import ROOT

CONFIG = """
[cosmic-ray]
module-path = "python/passlib/{room}"
timeout = 900
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider --sample 10 tests/{room}"
[cosmic-ray.distributor]
name = "local"
"""
SEED = 0


def main() -> int:
    """Print the survivors and the score."""
    room, count = sys.argv[1], int(sys.argv[2])
    if subprocess.run(["git", "diff", "--quiet"], cwd=ROOT, check=False).returncode:
        sys.exit("the tree has changes that are not committed; files are mutated in place")
    with tempfile.TemporaryDirectory() as folder:
        config, session = Path(folder, "config.toml"), Path(folder, "session.sqlite")
        config.write_text(CONFIG.format(room=room, python=sys.executable), "utf-8")
        _run("init", str(config), str(session))
        with use_db(session) as db:
            items = {str(item.mutations): item for item in db.work_items}
            everything = sorted(text for text, item in items.items() if _counts(item))
            drawn = random.Random(SEED).sample(everything, min(count, len(everything)))
            skipped = [items[text].job_id for text in items.keys() - set(drawn)]
            db.set_multiple_results(skipped, WorkResult(WorkerOutcome.SKIPPED))
        _run("exec", str(config), str(session))
        with use_db(session) as db:
            results = dict(db.results)
    survivors = [results[items[text].job_id] for text in drawn]
    survivors = [result for result in survivors if not result.is_killed]
    for result in survivors:
        print(result.diff)
    killed = len(drawn) - len(survivors)
    print(f"{room}: {killed} of {len(drawn)} mutants killed, of {len(everything)}")
    return 0


def _counts(item: WorkItem) -> bool:
    """Whether a test could notice: annotations are not evaluated, ``strict`` only checks."""
    (mutation,) = item.mutations
    line, column = mutation.start_pos
    before = (ROOT / mutation.module_path).read_text("utf-8").splitlines()[line - 1][:column]
    return "_BitOr_" not in mutation.operator_name and not before.endswith("strict=")


def _run(*arguments: str) -> None:
    # Byte code of a mutant would be used again for the next one of the same size and second.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(Path(sys.executable).with_name("cosmic-ray")), *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
