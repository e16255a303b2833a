"""The process of one model: ``python -m passlib.workbench.batch.child FOLDER``."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from passlib.passes import Pipeline
from passlib.passes.isolation.child import Progress, answer
from passlib.passes.isolation.reproducer import Reproducer
from passlib.workbench.batch.optimizing import optimize
from passlib.workbench.batch.traced import trace_reads


def main(folder: Path) -> None:
    """Do the job of a folder."""
    trace_reads(folder)

    def work(reproducer: Reproducer) -> dict[str, Any]:
        reproducer.load_libraries()
        path, output, request = pickle.loads((folder / "job").read_bytes())
        pipeline = Pipeline(reproducer.pipeline)
        return optimize(path, output, pipeline, request, [Progress(folder)])

    answer(folder, work)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
