"""How the arguments of a call are read: which are inputs of the operator, and which attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from passlib.mxnet.schema.operator import Operator

_IGNORED = ("name", "out", "attr")


class Call(NamedTuple):
    """The arguments of a call of an operator.

    Attributes
    ----------
    inputs : sequence or dict of str to object
        By position for operators with any number of inputs, else by name.
    attributes : dict of str to object
        As given, not yet spelled as text.
    """

    inputs: Sequence[Any] | Mapping[str, Any]
    attributes: dict[str, Any]


def read_call(
    operator: Operator,
    op: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    kind: type | tuple[type, ...],
    noun: str,
) -> Call:
    """Sort the arguments of a call.

    Parameters
    ----------
    operator : Operator
    op : str
        The name that it was called by, for messages.
    args, kwargs : sequence, mapping
        Inputs come first, then the declared attributes. ``name``, ``out`` and ``attr`` are no
        attributes and left out.
    kind : type or tuple of type
        What the inputs are.
    noun : str
        The word for it.

    Raises
    ------
    TypeError
        There are too many arguments, one is given twice, or an input is of another kind.
    """
    given = {key: value for key, value in kwargs.items() if key not in _IGNORED}
    if operator.takes_any_number:
        return _counted(op, args, given, kind, noun)
    return _fixed(operator, op, args, given, kind, noun)


def _counted(op: str, args: Sequence[Any], given: dict[str, Any], kind: Any, noun: str) -> Call:
    for position, value in enumerate(args):
        if not isinstance(value, kind):
            raise TypeError(f"{op}: argument {position} is no {noun} but {value!r}")
    named = {key: value for key, value in given.items() if isinstance(value, kind)}
    attributes = {key: value for key, value in given.items() if key not in named}
    if args and named:
        raise TypeError(f"{op}: give the inputs all by position or all by name, not both")
    return Call(named or args, attributes)


def _fixed(
    operator: Operator, op: str, args: Sequence[Any], given: dict[str, Any], kind: Any, noun: str
) -> Call:
    inputs, parameters = operator.declared_inputs, operator.parameters
    order = (*inputs, *parameters)
    if len(args) > len(order):
        raise TypeError(
            f"{op} takes at most {len(order)} arguments by position: {', '.join(order)}"
        )
    for key, value in zip(order, args, strict=False):
        if key in given:
            raise TypeError(f"{op}: {key!r} is given by position and by keyword")
        given[key] = value
    named: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, kind):
            named[key] = value
        elif key in inputs and key not in parameters:
            if value is not None:
                raise TypeError(f"{op}: input {key!r} is no {noun} but {value!r}")
        else:
            attributes[key] = value
    return Call(named, attributes)
