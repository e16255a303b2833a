"""The outcomes of a batch as JSON lines, from which a batch that was ended goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from passlib.workbench.batch.job import Outcome

__all__ = ["Journal"]


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
        """Return the last outcome of each model, by its key; a line that was cut does not count."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return {}
        self._whole = text.endswith("\n") or not text
        found = {}
        for line in text.splitlines():
            try:
                facts = json.loads(line)
                outcome = Outcome(**{**facts, "nodes": tuple(facts["nodes"])})
            except (ValueError, TypeError, KeyError):
                continue
            found[outcome.key] = replace(outcome, earlier=True)
        return found

    def add(self, outcome: Outcome) -> None:
        """Write a line, which is in the file when this returns."""
        line = json.dumps(outcome.as_dict(), ensure_ascii=False)
        with self._path.open("a", encoding="utf-8") as file:
            # A line that was cut ends here.
            file.write(("" if self._whole else "\n") + line + "\n")
        self._whole = True
