"""What an operator makes of its inputs: its output, and the parameters that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from passlib.dialects.dlprim import options as option_texts
from passlib.dialects.dlprim.schema import OPERATORS
from passlib.dialects.dlprim.shape_rules import RULES, Misfit
from passlib.dialects.dlprim.types import FLOAT, LARGEST, MAX_RANK, NAMES, Spec

__all__ = ["Inferred", "infer", "infer_cached"]

_Options = Mapping[str, Any]


class Inferred(NamedTuple):
    """What an operator makes of its inputs.

    Attributes
    ----------
    output : Spec
    parameters : tuple of Spec
        In the operator's order.
    """

    output: Spec
    parameters: tuple[Spec, ...]


def infer(op: str, options: _Options, inputs: Sequence[Spec]) -> Inferred:
    """Check inputs and options as the original program does, and infer what comes out.

    Parameters
    ----------
    op : str
        A known operator.
    options : mapping
        As `options.read` gives them.
    inputs : sequence of Spec
        Data inputs.

    Returns
    -------
    Inferred

    Raises
    ------
    Misfit
    """
    wanted = OPERATORS[op].inputs
    if wanted is not None and len(inputs) != wanted:
        raise Misfit(f"takes {_count(wanted, 'input')}, has {len(inputs)}")
    if wanted is None and not inputs:
        raise Misfit("takes one input or more, has none")
    output = RULES[op](options, inputs)
    _need(
        1 <= len(output.shape) <= MAX_RANK,
        f"gives a tensor of {len(output.shape)} dimensions, 1 to {MAX_RANK} are possible",
    )
    _need(min(output.shape) > 0, f"gives an empty tensor, {output}")
    _need(output.elements < LARGEST, f"gives a tensor beyond all measure, {output}")
    return Inferred(output, _parameters(op, options, inputs))


@lru_cache(maxsize=4096)
def infer_cached(
    op: str, attributes: tuple[tuple[str, str], ...], inputs: tuple[Spec, ...]
) -> Inferred:
    """Do what `infer` does, from attribute texts. Networks repeat their layers.

    Raises
    ------
    Misfit, OptionError
    """
    return infer(op, option_texts.read(op, dict(attributes)), inputs)


def _parameters(op: str, options: _Options, inputs: Sequence[Spec]) -> tuple[Spec, ...]:
    if op == "Parameter":
        return (Spec(NAMES[options["dtype"]], options["shape"]),)
    if op == "BatchNorm":
        return (Spec(FLOAT, inputs[0].shape[1:2]),) * (4 if options["affine"] else 2)
    if op == "InnerProduct":
        shape: tuple[int, ...] = (options["outputs"], math.prod(inputs[0].shape[1:]))
    elif op == "Convolution2D":
        inner = inputs[0].shape[1] // options["groups"]
        shape = (options["channels_out"], inner, *options["kernel"])
    elif op == "TransposedConvolution2D":
        outer = options["channels_out"] // options["groups"]
        shape = (inputs[0].shape[1], outer, *options["kernel"])
    else:
        return ()
    weight, bias = Spec(FLOAT, shape), Spec(FLOAT, (shape[0],))
    if op == "TransposedConvolution2D":
        bias = Spec(FLOAT, (options["channels_out"],))
    return (weight, bias) if options["bias"] else (weight,)


def _need(condition: object, message: str) -> None:
    if not condition:
        raise Misfit(message)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
