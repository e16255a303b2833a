"""Progress on a terminal, with rich if it is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from passlib.errors import printable
from passlib.passes import Instrument, Pipeline

if TYPE_CHECKING:
    from rich.status import Status

    from passlib.library.pipeline import Step
    from passlib.model import Model
    from passlib.passes import StepResult
    from passlib.workbench.batch import Outcome


class _Steps(Instrument):
    def __init__(self, status: Status) -> None:
        self._status = status

    def before_pass(self, step: Step, model: Model) -> None:
        from rich.text import Text

        self._status.update(Text(printable(step)))

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        self._status.update("")


def _is_shown() -> bool:
    return sys.stderr.isatty() and importlib.util.find_spec("rich") is not None


@contextlib.contextmanager
def steps_shown(pipeline: Pipeline) -> Iterator[list[Instrument]]:
    """Show the current step; yield the instruments to do so."""
    if not _is_shown():
        yield []
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(pipeline))) as status:
        yield [_Steps(status)]


@contextlib.contextmanager
def models_shown(count: int) -> Iterator[Callable[[Outcome, int], None] | None]:
    """Show the number of finished models; yield the function to call for each outcome, or None."""
    if not _is_shown():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as shown:
        task = shown.add_task("models", total=count)

        def advance(outcome: Outcome, left: int) -> None:
            shown.update(task, completed=count - left, description=escape(printable(outcome.model)))

        yield advance
