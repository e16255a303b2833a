"""The options of a pass, from the signature of its function."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from passlib.library.declared import Kind, Option
from passlib.library.declared.option import OptionError, kind_of
from passlib.passes.docstring import descriptions

_KINDS: dict[object, Kind] = {bool: "boolean", int: "integer", float: "real", str: "text"}
_LISTS = (list, tuple, Sequence)
_OF_OPTIMIZE_FOR = frozenset(
    ("args", "aux", "ctx", "shapes", "types", "shape_dict", "type_dict", "stype_dict",
     "skip_infer", "keep_inferred", "self", "backend")
)  # fmt: skip


def options_of(function: Callable[..., Any], takes: str = "graph") -> tuple[Option, ...]:
    """Return the options that a function declares by its keyword-only parameters.

    Their types are those of the annotations, or else of the defaults: ``bool``, ``int``,
    ``float``, ``str``, sequences of these, ``Literal`` for choices, ``Annotated[int, range(1, 4)]``
    for a range, ``| None`` for an option that may be absent.

    Raises
    ------
    TypeError
        The function takes nothing first (``takes`` is what), or a parameter cannot be an option.
    """
    name = getattr(function, "__qualname__", repr(function))
    parameters = list(inspect.signature(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise TypeError(f"{name} must take the {takes} as its first parameter")
    texts = descriptions(function.__doc__)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise TypeError(f"the annotations of {name} cannot be evaluated: {error}") from error
    options = []
    for parameter in parameters[1:]:
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            raise TypeError(
                f"parameter {parameter.name!r} of {name} must follow a *, because options are "
                f"passed by name: def {function.__name__}({takes}, *, {parameter.name}=...)"
            )
        if parameter.name in _OF_OPTIMIZE_FOR:
            raise TypeError(
                f"parameter {parameter.name!r} of {name} needs another name, because optimize_for "
                "has a parameter of this one"
            )
        options.append(
            _option(name, parameter, hints.get(parameter.name), texts.get(parameter.name, ""))
        )
    return tuple(options)


def _option(function: str, parameter: inspect.Parameter, hint: Any, text: str) -> Option:
    required = parameter.default is inspect.Parameter.empty
    default = None if required else parameter.default
    hint, bounds = _unwrapped(hint, range(0))
    is_list = typing.get_origin(hint) in _LISTS or isinstance(default, (list, tuple))
    item = hint
    if typing.get_origin(hint) in _LISTS:
        members = typing.get_args(hint) or (None,)
        item, bounds = _unwrapped(members[0], bounds)
    choices = typing.get_args(item) if typing.get_origin(item) is Literal else ()
    sample = choices[0] if choices else default[0] if is_list and default else default
    kind = _KINDS.get(item) or (None if _is_union(item) else kind_of(sample))
    if kind is None or any(kind_of(choice) != kind for choice in choices):
        raise TypeError(
            f"parameter {parameter.name!r} of {function} cannot be an option: annotate it with "
            "bool, int, float, str, Literal, or a sequence of these"
        )
    option = Option(
        parameter.name,
        kind,
        tuple(default) if isinstance(default, list) else default,
        text,
        choices,
        bounds.start if bounds else None,
        bounds[-1] if bounds else None,
        is_list,
        required,
    )
    if bounds and bounds.step != 1:
        raise TypeError(f"parameter {parameter.name!r} of {function}: its range must have step 1")
    if default is not None:
        try:
            option.checked(default)
        except OptionError as error:
            message = f"parameter {parameter.name!r} of {function}: its default does not fit"
            raise TypeError(f"{message}: {error}") from None
    return option


def _unwrapped(hint: Any, bounds: range) -> tuple[Any, range]:
    """Return what an annotation with ``Annotated`` and ``| None`` is about, and the range."""
    while True:
        if typing.get_origin(hint) is Annotated:
            hint, *extras = typing.get_args(hint)
            bounds = next((extra for extra in extras if isinstance(extra, range)), bounds)
            continue
        members = [each for each in typing.get_args(hint) if each is not type(None)]
        if not (_is_union(hint) and len(members) == 1):
            break
        hint = members[0]
    if hint in _LISTS:  # a list of anything
        hint = None
    return hint, bounds


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)
