"""Results of pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from passlib.errors import counted, printable, short_repr
from passlib.graph.tables import Table
from passlib.model import Model
from passlib.pages import MOST_IN_NOTEBOOKS, Side, content_of, document, framed

_COLUMNS: Final = ("step", "changed", "ms")


@short_repr
@dataclass(frozen=True)
class StepResult:
    """The result of one step.

    Attributes
    ----------
    name : str
        The pass.
    text : str
        The step with its options.
    seconds : float
        Wall clock time.
    nodes_before, nodes_after : int
        Numbers of operators, those of nested graphs included.
    changed_nodes : int
        Number of operators that are new, removed, or have another type, attributes or
        inputs. Variables, such as weights, and nodes of nested graphs do not count.
    modified : bool
        Whether the graph, a weight or a local function changed.
    messages : tuple of str
        The lines that the pass printed.
    names : tuple of str
        The names of the changed nodes, unless more than 20,000 changed.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> result = pl.Pipeline("mergeEqualNodes").run(pl.Model(pl.sym.exp(x) + pl.sym.exp(x)))
    >>> [(step.name, step.nodes_before, step.nodes_after) for step in result.steps]
    [('mergeEqualNodes', 3, 2)]
    """

    name: str
    text: str
    seconds: float
    nodes_before: int
    nodes_after: int
    changed_nodes: int
    modified: bool
    messages: tuple[str, ...]
    names: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        change = "nothing changed"
        if self.modified:
            count = self.changed_nodes
            change = f"{counted(count, 'operator') if count else 'weights'} changed"
        nodes = f"{self.nodes_before} -> {self.nodes_after} operators"
        return f"{printable(self.text)}: {nodes}, {change}, {1000 * self.seconds:.1f} ms"


@short_repr
@dataclass(frozen=True)
class PipelineResult:
    """The result of `Pipeline.run`.

    Attributes
    ----------
    model : Model
        The final model.
    steps : tuple of StepResult
        In order of execution; repeated steps once per round.
    before : Model
        The input of the pipeline.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> result = pl.Pipeline("mergeEqualNodes").run(pl.Model(pl.sym.exp(x) + pl.sym.exp(x)))
    >>> result.modified, len(result.model.symbol.nodes())
    (True, 3)
    """

    model: Model
    steps: tuple[StepResult, ...]
    before: Model = field(repr=False)

    @property
    def modified(self) -> bool:
        """Whether any step changed the graph or a weight."""
        return any(step.modified for step in self.steps)

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)

    def to_html(self, title: str = "pipeline", tables: Sequence[dict[str, Any]] = ()) -> str:
        """Return a self-contained HTML page with the steps and an overlay of both models.

        Parameters
        ----------
        tables : sequence of dict
            Additional tables, each with ``title``, ``columns`` and ``rows``.
        """
        return document(title, self._content(tables))

    def _repr_html_(self) -> str:
        rows = [tuple(map(str, row)) for row in self._rows()]
        table = Table(_COLUMNS, rows)._repr_html_()
        drawn = max(len(model.symbol.graph) for model in (self.before, self.model))
        return table if drawn > MOST_IN_NOTEBOOKS else table + framed("pipeline", self._content())

    def _content(self, tables: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        before, after = (
            Side(model.symbol, {**model.args, **model.aux}) for model in (self.before, self.model)
        )
        table = {"title": "Steps", "columns": _COLUMNS, "rows": self._rows()}
        steps = [(step.name, step.names) for step in self.steps]
        return content_of(after, before, tables=[*tables, table], steps=steps)

    def _rows(self) -> list[tuple[Any, ...]]:
        return [
            (step.text, step.changed_nodes, round(1000 * step.seconds, 1)) for step in self.steps
        ]
