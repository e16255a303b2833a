"""The outcomes of a batch as JSON lines, from which a batch that was ended goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from passlib.files.regular import read_regular
from passlib.workbench.batch.job import Outcome


class Journal:
    """A file with one line for each model.

    Parameters
    ----------
    path : Path
        Made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._whole = True

    def read(self) -> Mapping[str, Outcome]:
        """Return the last outcome of each model, by its key; a damaged line does not count."""
        try:
            content = read_regular(self._path)
        except FileNotFoundError:
            return {}
        self._whole = content.endswith(b"\n") or not content
        outcomes = filter(None, map(_outcome, content.split(b"\n")))
        return {outcome.key: outcome for outcome in outcomes}

    def add(self, outcome: Outcome) -> None:
        """Write a line, which is in the file when this returns."""
        line = json.dumps(outcome.as_dict())
        with self._path.open("a", encoding="ascii") as file:
            # A line that was cut ends here.
            file.write(("" if self._whole else "\n") + line + "\n")
        self._whole = True


def _outcome(line: bytes) -> Outcome | None:
    """Return what a line says; None if it is no outcome."""
    try:
        facts = json.loads(line)
        outcome = Outcome(**{**facts, "nodes": tuple(facts["nodes"]), "earlier": True})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = [outcome.model, outcome.output, outcome.status, outcome.error, outcome.key]
    for files in (outcome.inputs, outcome.results):
        if not isinstance(files, dict):
            return None
        texts += [*files, *files.values()]
    is_right = all(isinstance(text, str) for text in texts)
    numbers = (outcome.seconds, *outcome.nodes)
    is_right = is_right and all(isinstance(number, (int, float)) for number in numbers)
    return outcome if is_right else None
