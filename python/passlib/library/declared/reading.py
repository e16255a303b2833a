"""Reading what the passes of a library declare."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, cast, get_args

import passlib._core as _core
from passlib.errors import FormatError, PasslibError
from passlib.library.declared.declaration import Declaration, Joins
from passlib.library.declared.option import Kind, Option, OptionError, kind_of

_VERSION = 1
_MOST_NESTED = 8
_INTEGER = re.compile(r"-?[0-9]{1,30}")

_PASS: dict[str, type] = {
    "name": str,
    "description": str,
    "dialects": list,
    "options": list,
    "any_options": bool,
    "needs_weights": bool,
    "weights_on_demand": bool,
    "needs_shapes": bool,
    "exact": bool,
    "triggers": list,
    "joins": dict,
}
_ABSENT: dict[str, Any] = {
    "weights_on_demand": False, "exact": False, "triggers": [], "joins": {},
}  # fmt: skip
_JOINS: dict[str, type] = {
    "pipelines": list, "after": str, "options": dict, "rounding": dict, "cost": str,
}  # fmt: skip
_OPTION: dict[str, type] = {
    "name": str,
    "description": str,
    "kind": str,
    "list": bool,
    "default": object,
    "choices": list,
    "range": list,
}


def read_declarations(text: bytes, library: str, passes: Collection[str]) -> dict[str, Declaration]:
    """Read the declarations of a library, in the form of ``_passlibDeclarations`` in lib_api.h.

    Parameters
    ----------
    text : bytes
        JSON; empty where the library declares nothing.
    library : str
        Its path.
    passes : collection of str
        The passes that it registered.

    Returns
    -------
    dict of str to Declaration
        By name. Passes that declare nothing are missing.

    Raises
    ------
    FormatError
        The text is no such JSON, or contradicts itself; the message names the place.
    """
    if not text:
        return {}
    value = _core.parse_json(text, _number, comments=False, max_depth=_MOST_NESTED)
    outer = _members(value, {"version": object, "passes": list}, "the text")
    if outer["version"] != _VERSION:
        raise FormatError(
            f"it is of version {outer['version']!r}, and passlib reads version {_VERSION}; compile "
            "the library with the lib_api.h of this passlib"
        )
    found: dict[str, Declaration] = {}
    for position, item in enumerate(outer["passes"]):
        whole = {**_ABSENT, **item} if isinstance(item, dict) else item
        declaration = _declaration(_members(whole, _PASS, f"passes[{position}]"), library)
        if declaration.name in found:
            raise FormatError(f"the pass {declaration.name!r} is declared twice")
        if declaration.name not in passes:
            raise FormatError(f"{declaration.name!r} is declared, but no pass has that name")
        found[declaration.name] = declaration
    return found


def _number(text: str) -> int | float:
    return int(text) if _INTEGER.fullmatch(text) else float(text)


def _members(value: Any, members: dict[str, type], place: str) -> dict[str, Any]:
    """Check that a value is an object with exactly these members, of these types."""
    if not isinstance(value, dict):
        raise FormatError(f"{place} must be an object, not {_short(value)}")
    for name in members.keys() | value.keys():
        if name not in value:
            raise FormatError(f"{place} has no {name!r}")
        if name not in members:
            raise FormatError(f"{place} has an unknown member {_short(name)}")
        if not isinstance(value[name], members[name]):
            wanted = members[name].__name__
            raise FormatError(f"{place}: {name!r} must be a {wanted}, not {_short(value[name])}")
    return value


def _declaration(members: dict[str, Any], library: str) -> Declaration:
    name = members["name"]
    joins = members["joins"] and _members(members["joins"], _JOINS, f"pass {name!r}, joins")
    for kind, names in (
        ("a dialect", members["dialects"]),
        ("a trigger", members["triggers"]),
        ("a pipeline", joins.get("pipelines", [])),
    ):
        for item in names:
            if not isinstance(item, str) or not item:
                raise FormatError(f"pass {name!r}: {kind} must be a name, not {_short(item)}")
    options: dict[str, Option] = {}
    for position, item in enumerate(members["options"]):
        place = f"pass {name!r}, option {position}"
        option = _option(_members(item, _OPTION, place), place)
        if option.name in options:
            raise FormatError(f"pass {name!r} declares the option {option.name!r} twice")
        options[option.name] = option
    try:
        return Declaration(
            name,
            members["description"],
            tuple(members["dialects"]),
            tuple(options.values()),
            members["needs_weights"],
            members["needs_shapes"],
            library,
            any_options=members["any_options"],
            weights_on_demand=members["weights_on_demand"],
            exact=members["exact"],
            triggers=tuple(members["triggers"]),
            joins=Joins(**joins) if joins else None,
        )
    except (OptionError, ValueError) as error:
        raise FormatError(f"pass {name!r}, joins: {error}") from None


def _option(members: dict[str, Any], place: str) -> Option:
    name = members["name"]
    if not name:
        raise FormatError(f"{place} has no name")
    place = f"{place} ({name!r})"
    if members["kind"] not in get_args(Kind):
        raise FormatError(f"{place} is of the unknown kind {_short(members['kind'])}")
    kind = cast(Kind, members["kind"])
    choices = tuple(_value(item, kind, place) for item in members["choices"])
    bounds = [_value(item, kind, place) for item in members["range"]]
    if bounds and (len(bounds) != 2 or kind not in ("integer", "real") or bounds[0] > bounds[1]):
        raise FormatError(f"{place} has the range {_short(members['range'])}, which is none")
    low, high = bounds or (None, None)
    is_list, given = members["list"], members["default"]
    if is_list and not isinstance(given, list):
        raise FormatError(f"{place} is a list, but its default is {_short(given)}")
    default = (
        tuple(_value(item, kind, place) for item in given)
        if is_list
        else _value(given, kind, place)
    )
    option = Option(name, kind, default, members["description"], choices, low, high, is_list)
    try:
        option.checked(default)
    except PasslibError as error:
        raise FormatError(f"{place}: its default is not accepted: {error}") from None
    return option


def _value(value: Any, kind: Kind, place: str) -> Any:
    """Check that a value is of an option's kind; whole numbers are real ones as well."""
    found = kind_of(value)
    if found == kind:
        return value
    if found == "integer" and kind == "real":
        return float(value)
    raise FormatError(f"{place} is of kind {kind}, but has the value {_short(value)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
