"""A network as a file has it: inputs, operators in order, outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from passlib.dialects.dlprim.types import Spec
from passlib.dialects.json_text import JsonObject

__all__ = [
    "AUTO",
    "LOSS",
    "SECTIONS",
    "Input",
    "Network",
    "Operator",
    "Output",
    "is_loss",
    "parameter_names",
]

SECTIONS = ("inputs", "operators", "outputs")
"""The lists of a file, in the order in which they are read."""

AUTO = ("", "auto")
"""Names of parameters that stand for the operator's name and the parameter's number."""

LOSS = "loss"
"""What the name of an output begins with that is a loss without saying so."""


@dataclass(frozen=True)
class Input:
    """An input tensor.

    Attributes
    ----------
    place : str
        Where it stands in the file, such as ``inputs[0]``.
    json : JsonObject
        The file's own object.
    """

    place: str
    name: str
    spec: Spec
    json: JsonObject


class Operator(NamedTuple):
    """An operator, as the original parser understands it.

    Attributes
    ----------
    place : str
        Where it stands in the file, such as ``operators[3]``.
    params : tuple of str
        Names of parameters that the file gives, ``auto`` ones among them.
    parameters : tuple of str
        Names of all parameters that it has.
    attributes : mapping of str to str
        The options that count, as text.
    output : Spec or None
        None where it does not follow, as something is wrong.
    parameter_specs : tuple of Spec
    """

    place: str
    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    params: tuple[str, ...]
    parameters: tuple[str, ...]
    frozen: bool
    attributes: Mapping[str, str]
    output: Spec | None
    parameter_specs: tuple[Spec, ...]
    json: JsonObject


@dataclass(frozen=True)
class Output:
    """An output tensor; ``loss_weight`` is None unless the file gives one."""

    place: str
    name: str
    loss_weight: Any
    json: Any

    @property
    def is_loss(self) -> bool:
        """Whether training goes out from it."""
        return self.loss_weight is not None or is_loss(self.name)


@dataclass(frozen=True)
class Network:
    """A whole file."""

    inputs: tuple[Input, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    """Each name once."""

    @cached_property
    def parameters(self) -> dict[str, Spec]:
        """Give what is known of all parameters, by name."""
        found: dict[str, Spec] = {}
        for operator in self.operators:
            for name, spec in zip(operator.parameters, operator.parameter_specs, strict=True):
                found.setdefault(name, spec)
        return found


def is_loss(name: str) -> bool:
    """Whether an output of this name is a loss without saying so."""
    return name.startswith(LOSS)


def parameter_names(operator: str, params: Iterable[str], count: int) -> tuple[str, ...]:
    """Name the parameters of an operator.

    Parameters
    ----------
    operator : str
        Its name.
    params : iterable of str
        The names that the file gives, ``auto`` ones among them; at most ``count``.
    count : int
        How many parameters it has.
    """
    given = [*params]
    given += [""] * (count - len(given))
    if not given:
        return ()
    return tuple(
        [f"{operator}.{index}" if name in AUTO else name for index, name in enumerate(given)]
    )
