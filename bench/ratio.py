"""How long one thing takes beside another: both in one process, by turns, in processor time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["HEAD", "Ratio", "measure_ratio"]


@dataclass(frozen=True)
class Ratio:
    """Best rounds of both, in seconds of processor time of all threads of the process.

    Attributes
    ----------
    ours, theirs : float
    """

    ours: float
    theirs: float

    @property
    def value(self) -> float:
        """How many times their time ours is."""
        return self.ours / self.theirs

    def row(self, name: str, reference: str) -> str:
        """Format as a row of the table that `HEAD` opens."""
        cells = (name, f"{self.ours * 1e3:,.1f}", reference, f"{self.theirs * 1e3:,.1f}")
        return f"| {' | '.join(cells)} | {self.value:.2f} |"


HEAD = "| what | ms | against | ms | ratio |\n|---|---|---|---|---|"


def measure_ratio(ours: Callable[[], Any], theirs: Callable[[], Any], *, rounds: int = 5) -> Ratio:
    """Run two things by turns and compare their best rounds.

    What a round gives is freed, and the collector run, outside the times: load and save are
    compared, not the end of what they made.

    Parameters
    ----------
    ours, theirs : callable
        Run once before the rounds, for what either sets up only once.
    rounds : int
        How often each is timed.
    """
    best = [float("inf"), float("inf")]
    for number in range(-1, rounds):
        for which, run in enumerate((ours, theirs)):
            gc.collect()
            start = time.process_time()
            kept = run()
            taken = time.process_time() - start
            del kept
            if number >= 0:
                best[which] = min(best[which], taken)
    return Ratio(*best)
