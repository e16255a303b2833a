"""What a pipeline did."""

from __future__ import annotations

from dataclasses import dataclass

from passlib.model import Model

__all__ = ["PipelineResult", "StepResult"]


@dataclass(frozen=True)
class StepResult:
    """One pass that a pipeline ran.

    Attributes
    ----------
    name : str
        Of the pass.
    text : str
        The step with its options.
    seconds : float
        Wall clock time.
    nodes_before, nodes_after : int
        Numbers of nodes, variables included.
    changed_nodes : int
        Nodes that were added, removed or given another operator, other attributes or other inputs.
    modified : bool
        Whether the graph or a weight changed.
    messages : tuple of str
        Lines that the pass printed.
    """

    name: str
    text: str
    seconds: float
    nodes_before: int
    nodes_after: int
    changed_nodes: int
    modified: bool
    messages: tuple[str, ...]

    def __str__(self) -> str:
        change = f"{self.changed_nodes} nodes changed" if self.modified else "nothing changed"
        nodes = f"{self.nodes_before} -> {self.nodes_after} nodes"
        return f"{self.text}: {nodes}, {change}, {1000 * self.seconds:.1f} ms"


@dataclass(frozen=True)
class PipelineResult:
    """The result of `Pipeline.run`.

    Attributes
    ----------
    model : Model
    steps : tuple of StepResult
        In the order in which they ran; those of a repeat once a round.
    """

    model: Model
    steps: tuple[StepResult, ...]

    @property
    def modified(self) -> bool:
        """Whether any step changed the graph or a weight."""
        return any(step.modified for step in self.steps)

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)
