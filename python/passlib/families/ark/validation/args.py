"""Checks of the arguments of single ops."""

from __future__ import annotations

from typing import Any

from passlib.dialects.json_text import JsonNumber
from passlib.errors import FormatError
from passlib.families.ark import schema
from passlib.families.ark.arguments import LARGEST_FLOAT, LIMITS
from passlib.families.ark.json_values import kind
from passlib.families.ark.operators import FileOp
from passlib.families.ark.tensors import MAX_RANK, read_tensor
from passlib.families.ark.validation.report import Report


def check_args(report: Report, op: FileOp) -> bool:
    """Check the ``Args`` of an op; return whether its operator can use them."""
    args, path = op.place.value["Args"], f"{op.place.path}.Args"
    fine = True
    for name, item in args.items():
        place = f"{path}.{name}"
        if not isinstance(item, dict) or len(item) != 1:
            report.error(place, "expected an object with one type and its value")
            fine = False
            continue
        tag, value = next(iter(item.items()))
        if tag not in schema.ARGUMENT_TYPES:
            report.error(place, f"unknown type {tag!r}")
            fine = False
        elif (problem := _misfit(tag, value, place)) is not None:
            report.error(place, problem)
            fine = False
    for name, tag in _wanted(op).items():
        place = f"{path}.{name}"
        if name not in args:
            report.error(place, f"{op.type} requires this argument")
            fine = False
        elif isinstance(args[name], dict) and tag not in args[name]:
            report.error(place, f"expected the type {tag}")
            fine = False
    if fine and op.type.startswith("Reduce") and schema.find(op.type) is not None:
        axis = args["Axis"]["INT"]
        if axis < 0:  # ARK counts axes from the end when it builds a model, not when it reads one
            report.error(f"{path}.Axis", f"the axis {axis} is negative; files count from the front")
    return fine


def _wanted(op: FileOp) -> dict[str, str]:
    """Return the types of the arguments that an op requires."""
    operator = schema.find(op.type)
    wanted = {} if operator is None else dict(operator.arguments)
    if op.type == "Matmul":
        padding = {
            key for tensor in op.reads for key in ("Pads", "PaddedShape") if key in tensor.source
        }
        oldest = padding == {"Pads"}
        if oldest or any(name in op.place.value["Args"] for name in schema.DERIVED):
            wanted.update(dict.fromkeys(schema.DERIVED, "DIMS"))
    return wanted


def _misfit(tag: str, value: Any, place: str) -> str | None:
    """Check a value against its type; return the problem, if any."""
    if tag == "BOOL":
        return None if isinstance(value, bool) else f"expected true or false, not {kind(value)}"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if tag == "FLOAT":
        if number and abs(value) > LARGEST_FLOAT:
            return f"{kind(value)} is out of range"
        return None if number else f"expected a number, not {kind(value)}"
    if tag == "DIMS":
        sizes = isinstance(value, list) and all(type(size) is int for size in value)
        if not sizes or len(value) > MAX_RANK:
            return f"expected at most {MAX_RANK} integers, not {kind(value)}"
        return None
    if tag == "TENSOR":
        try:
            read_tensor(value, place)
        except FormatError as error:
            return str(error).removeprefix(f"{place}: ")
        return None
    if tag == "OFFSET":
        bare = type(value) is int  # as in an example of ARK's documentation
        members = isinstance(value, dict) and all(
            type(value.get(key)) is int for key in ("BufferId", "Value")
        )
        return None if bare or members else "expected BufferId and Value"
    whole = type(value) is int or (number and float(value).is_integer())
    if not whole:
        return f"expected an integer, not {kind(value)}"
    digits = isinstance(value, JsonNumber) and value.text.lstrip("-").isdecimal()
    # A float would round the largest values up.
    exact = int(value.text if digits else value)
    low, high = LIMITS[tag]
    return None if low <= exact < high else f"{kind(value)} is out of range"
