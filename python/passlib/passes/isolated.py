"""The process that runs a pipeline: ``python -m passlib.passes.isolated FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from passlib.passes.instruments import target_name
from passlib.passes.isolation.child import Progress, answer
from passlib.passes.isolation.reproducer import Reproducer
from passlib.passes.pipeline import Pipeline


def main(folder: Path) -> None:
    """Run the pipeline that a folder holds; the answer is the path of the result, and the steps."""

    def work(reproducer: Reproducer) -> Any:
        model = reproducer.load(folder)
        pipeline = Pipeline(reproducer.pipeline)
        result = pipeline.run(model, [Progress(folder)], **reproducer.inference)
        place = folder / "result"
        place.mkdir(exist_ok=True)
        files = result.model.save(place / target_name(result.model), durable=False)
        return files[0], result.steps

    answer(folder, work)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
