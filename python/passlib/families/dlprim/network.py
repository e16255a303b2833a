"""A network as stated in a file: inputs, operators in order, outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from passlib._core import JsonObject
from passlib.families.dlprim.types import Spec

SECTIONS = ("inputs", "operators", "outputs")
"""The lists of a file, in the order in which they are read."""

AUTO = ("", "auto")
"""Names that stand for automatic ones: the operator's name and the parameter's number."""

LOSS = "loss"
"""Prefix of the names of outputs that are losses without a loss weight."""


@dataclass(frozen=True)
class Input:
    """An input tensor.

    Attributes
    ----------
    place : str
        Its place in the file, such as ``inputs[0]``.
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
        Its place in the file, such as ``operators[3]``.
    params : tuple of str
        Names of parameters as stated in the file, including ``auto``.
    parameters : tuple of str
        Names of all parameters, automatic ones spelled out.
    attributes : mapping of str to str
        The options that the parser respects, as text.
    output : Spec or None
        None if it cannot be inferred because of an error.
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
    """An output tensor; ``loss_weight`` is None unless stated in the file."""

    place: str
    name: str
    loss_weight: Any
    json: Any

    @property
    def is_loss(self) -> bool:
        """Whether training minimises it."""
        return self.loss_weight is not None or is_loss(self.name)


@dataclass(frozen=True)
class Network:
    """A whole file."""

    inputs: tuple[Input, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    """Without duplicates."""

    @cached_property
    def parameters(self) -> dict[str, Spec]:
        """Return type and shape of all parameters, by name."""
        found: dict[str, Spec] = {}
        for operator in self.operators:
            for name, spec in zip(operator.parameters, operator.parameter_specs, strict=True):
                found.setdefault(name, spec)
        return found


def is_loss(name: str) -> bool:
    """Whether an output of this name is a loss even without a loss weight."""
    return name.startswith(LOSS)


def parameter_names(operator: str, params: Iterable[str], count: int) -> tuple[str, ...]:
    """Return the names of an operator's parameters.

    Parameters
    ----------
    operator : str
        Its name.
    params : iterable of str
        The names stated in the file, including ``auto``; at most ``count``.
    count : int
        The number of parameters.
    """
    given = [*params]
    given += [""] * (count - len(given))
    if not given:
        return ()
    return tuple(
        [f"{operator}.{index}" if name in AUTO else name for index, name in enumerate(given)]
    )
