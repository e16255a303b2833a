"""Type inference for one operator: its output, and the parameters that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from passlib.families.dlprim import options as option_texts
from passlib.families.dlprim.schema import OPERATORS
from passlib.families.dlprim.shape_rules import RULES, need
from passlib.families.dlprim.types import FLOAT, LARGEST, MAX_RANK, NAMES, Spec
from passlib.lowering.misfit import Misfit

_Options = Mapping[str, Any]


class Inferred(NamedTuple):
    """Output and parameters of an operator.

    Attributes
    ----------
    output : Spec
    parameters : tuple of Spec
        In the order of the operator.
    """

    output: Spec
    parameters: tuple[Spec, ...]


def infer(op: str, options: _Options, inputs: Sequence[Spec]) -> Inferred:
    """Check inputs and options as the original program does, and infer output and parameters.

    Parameters
    ----------
    op : str
        A known operator.
    options : mapping
        As returned by `options.read`.
    inputs : sequence of Spec
        Data inputs.

    Returns
    -------
    Inferred

    Raises
    ------
    Misfit
        Inputs or options do not fit the operator.
    """
    wanted = OPERATORS[op].inputs
    if wanted is not None and len(inputs) != wanted:
        raise Misfit(f"takes {_count(wanted, 'input')}, has {len(inputs)}")
    if wanted is None and not inputs:
        raise Misfit("takes at least one input, has none")
    output = RULES[op](options, inputs)
    need(
        1 <= len(output.shape) <= MAX_RANK,
        f"returns a tensor of {len(output.shape)} dimensions, but 1 to {MAX_RANK} are possible",
    )
    need(min(output.shape) > 0, f"returns an empty tensor, {output}")
    need(output.elements < LARGEST, f"returns a tensor of 2^62 elements or more, {output}")
    return Inferred(output, _parameters(op, options, inputs))


@lru_cache(maxsize=4096)
def infer_cached(
    op: str, attributes: tuple[tuple[str, str], ...], inputs: tuple[Spec, ...]
) -> Inferred:
    """Apply `infer` to attribute texts, with a cache since networks repeat their layers.

    Raises
    ------
    Misfit
        Inputs or options do not fit the operator.
    OptionError
        An option is missing or has an invalid value.
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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
