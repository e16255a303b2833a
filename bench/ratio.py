"""The ratio of two processor times, measured alternately in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Ratio:
    """Best rounds of both, in seconds of processor time over all threads.

    Attributes
    ----------
    ours, theirs : float
    """

    ours: float
    theirs: float

    @property
    def value(self) -> float:
        """Our time divided by theirs."""
        return self.ours / self.theirs

    def row(self, name: str, reference: str) -> str:
        """Format as a row of the table that begins with `HEAD`."""
        cells = (name, f"{self.ours * 1e3:,.1f}", reference, f"{self.theirs * 1e3:,.1f}")
        return f"| {' | '.join(cells)} | {self.value:.2f} |"


HEAD = "| what | ms | against | ms | ratio |\n|---|---|---|---|---|"


def in_own_process(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call a function that prepares a benchmark, in a process of its own.

    What it allocated and freed would leave the memory of this process in small pieces, in which
    large graphs are made more slowly.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def measure_ratio(ours: Callable[[], Any], theirs: Callable[[], Any], *, rounds: int = 5) -> Ratio:
    """Run two functions alternately and compare their best rounds.

    The result of a round is freed, and the collector run, outside the measured times.

    Parameters
    ----------
    ours, theirs : callable
        Each runs once before the rounds, for its one-time setup.
    rounds : int
        Number of timed rounds.
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
