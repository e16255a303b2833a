"""Checks of the arguments of single ops."""

from __future__ import annotations

from typing import Any

from passlib.dialects.ark import schema
from passlib.dialects.ark.arguments import LARGEST_FLOAT, LIMITS
from passlib.dialects.ark.operators import FileOp
from passlib.dialects.ark.report import Report
from passlib.dialects.ark.tensors import MAX_RANK, kind, read_tensor
from passlib.dialects.json_text import JsonNumber
from passlib.errors import FormatError

__all__ = ["check"]


def check(report: Report, op: FileOp) -> bool:
    """Check the ``Args`` of an op; tell whether its operator can use them."""
    args, path = op.place.value["Args"], f"{op.place.path}.Args"
    fine = True
    for name, item in args.items():
        place = f"{path}.{name}"
        if not isinstance(item, dict) or len(item) != 1:
            report.error(place, "an object of one type and its value is wanted")
            fine = False
            continue
        tag, value = next(iter(item.items()))
        if tag not in schema.ARGUMENT_TYPES:
            report.error(place, f"there is no type {tag!r}")
            fine = False
        elif (problem := _misfit(tag, value, place)) is not None:
            report.error(place, problem)
            fine = False
    for name, tag in _wanted(op).items():
        place = f"{path}.{name}"
        if name not in args:
            report.error(place, f"{op.type} needs this argument")
            fine = False
        elif isinstance(args[name], dict) and tag not in args[name]:
            report.error(place, f"the argument is of type {tag}")
            fine = False
    if fine and op.type.startswith("Reduce") and schema.find(op.type) is not None:
        axis = args["Axis"]["INT"]
        if axis < 0:  # ARK counts axes from the end when it builds a model, not when it reads one
            report.error(f"{path}.Axis", f"the axis {axis} is negative; ARK counts from the front")
    return fine


def _wanted(op: FileOp) -> dict[str, str]:
    """Give the types of the arguments that an op needs."""
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
    """Say what is wrong with a value of a type."""
    if tag == "BOOL":
        return None if isinstance(value, bool) else f"true or false is wanted, not {kind(value)}"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if tag == "FLOAT":
        if number and abs(value) > LARGEST_FLOAT:
            return f"{kind(value)} is out of range"
        return None if number else f"a number is wanted, not {kind(value)}"
    if tag == "DIMS":
        sizes = isinstance(value, list) and all(type(size) is int for size in value)
        if not sizes or len(value) > MAX_RANK:
            return f"up to {MAX_RANK} whole numbers are wanted, not {kind(value)}"
        return None
    if tag == "TENSOR":
        try:
            read_tensor(value, place)
        except FormatError as error:
            return str(error).removeprefix(f"{place}: ")
        return None
    if tag == "OFFSET":
        bare = type(value) is int  # so in an example of ARK's documentation
        members = isinstance(value, dict) and all(
            type(value.get(key)) is int for key in ("BufferId", "Value")
        )
        return None if bare or members else "BufferId and Value are wanted"
    whole = type(value) is int or (number and float(value).is_integer())
    if not whole:
        return f"a whole number is wanted, not {kind(value)}"
    digits = isinstance(value, JsonNumber) and value.text.lstrip("-").isdecimal()
    exact = int(value.text if digits else value)  # as a float, the largest would be rounded up
    low, high = LIMITS[tag]
    return None if low <= exact < high else f"{kind(value)} is out of range"
