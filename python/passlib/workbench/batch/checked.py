"""The process that checks a pipeline: ``main(FOLDER)`` in one that a server forked."""

from __future__ import annotations

from pathlib import Path

from passlib.passes import Pipeline
from passlib.passes.isolation.child import answer
from passlib.passes.isolation.reproducer import Reproducer


def main(folder: Path) -> None:
    """Load the libraries of a folder, and check its pipeline."""

    def work(reproducer: Reproducer) -> None:
        reproducer.load_libraries()
        Pipeline(reproducer.pipeline).check()

    answer(folder, work)
