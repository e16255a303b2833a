"""Declarations of passes, and checks of options against them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, SupportsIndex, TypeAlias, get_args, overload

import numpy as np

import passlib._core as _core
from passlib.errors import PasslibError, UnsupportedError, did_you_mean, short_repr

Kind = Literal["boolean", "integer", "real", "text"]

_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^",][^,]*)?\s*(?:,|$)')
_TRUE = frozenset(("true", "1", "yes", "on"))
_FALSE = frozenset(("false", "0", "no", "off"))
_EXAMPLES: Mapping[Kind, str] = {
    "boolean": "true or false",
    "integer": "a whole number",
    "real": "a number",
    "text": "text",
}


class OptionError(PasslibError):
    """A pass does not have an option, lacks one, or does not accept its value.

    Attributes
    ----------
    option : str
        Its name.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


@short_repr
@dataclass(frozen=True)
class Option:
    """An option that a pass declares.

    Attributes
    ----------
    name : str
    kind : {"boolean", "integer", "real", "text"}
        Type of the value, or of each item of a list.
    default : bool, int, float, str, tuple of these, or None
        None for an option that must be given, or that is absent unless it is given.
    description : str
    choices : tuple
        The only values that are accepted, if there are any.
    low, high : int, float or None
        The smallest and the largest number that is accepted.
    is_list : bool
        Whether the value is a tuple of any length.
    required : bool

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def with_level(graph: pl.Graph, *, level: int = 1) -> None:
    ...     '''Leaves the graph as it is.'''
    >>> (option,) = with_level.declaration.options
    >>> option.name, option.kind, option.default
    ('level', 'integer', 1)
    """

    name: str
    kind: Kind
    default: Any = None
    description: str = ""
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    is_list: bool = False
    required: bool = False

    @property
    def type_text(self) -> str:
        """The accepted values in words, for messages and documentation."""
        if self.choices:
            text = "one of " + ", ".join(option_text(choice) for choice in self.choices)
        else:
            text = _EXAMPLES[self.kind] + self._range_text()
        return f"a list, each item {text}" if self.is_list else text

    def _range_text(self) -> str:
        if self.low is not None and self.high is not None:
            return f" from {self.low} to {self.high}"
        if self.low is not None:
            return f" of at least {self.low}"
        return "" if self.high is None else f" of at most {self.high}"

    def checked(self, value: Any) -> Any:
        """Return a value in the option's type.

        Parameters
        ----------
        value : object
            Of the type, or its text: ``"true"``, ``"3"``, ``"[1, 2]"``.

        Raises
        ------
        OptionError
            The value has another type, or is out of range; the message says what is accepted.
        """
        none = value is None or (  # in text as Python and MXNet spell it
            isinstance(value, str) and value == "None" and value not in self.choices
        )
        if none and self.default is None and not self.required:
            return None
        if not self.is_list:
            return self._item(value)
        if isinstance(value, str):
            try:
                value = _items(value)
            except ValueError:
                raise self._error(value) from None
        if isinstance(value, Mapping) or not isinstance(value, (Sequence, np.ndarray)):
            raise self._error(value)
        return tuple(self._item(item) for item in value)

    def _item(self, value: Any) -> Any:
        converted = _CONVERSIONS[self.kind](value)
        if converted is None or (self.choices and converted not in self.choices):
            raise self._error(value)
        if self.low is not None and converted < self.low:
            raise self._error(value)
        if self.high is not None and converted > self.high:
            raise self._error(value)
        return converted

    def _error(self, value: object) -> OptionError:
        message = f"option {self.name!r} takes {self.type_text}, not {value!r}"
        return OptionError(message, self.name)

    def named(self, name: str) -> Option:
        """Return the same option under another name."""
        return replace(self, name=name)


def kind_of(value: object) -> Kind | None:
    """Return the kind of a default value, or None for one that no option can have."""
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (int, np.integer)):
        return "integer"
    if isinstance(value, (float, np.floating)):
        return "real"
    return "text" if isinstance(value, str) else None


def option_text(value: object) -> str:
    """Return a value as pipelines spell it, and as compiled passes read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(option_text(item) for item in value) + "]"
    return str(value)


def list_text(values: Sequence[object]) -> str:
    """Return a list as JSON, as passes with declared options read it."""
    return json.dumps(list(values), ensure_ascii=False)


def names_of(what: str, given: Iterable[str] | str | None) -> list[str]:
    """Return a list of names; a text is one name.

    Raises
    ------
    TypeError
        It is something else; the message says what ``what`` must be.
    """
    if isinstance(given, str):
        return [given]
    names = list(given) if isinstance(given, Iterable) else [given] if given is not None else []
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} has {name!r}, but must be names, such as ['first', 'second']")
    return [name for name in names if isinstance(name, str)]


def _items(text: str) -> list[str]:
    """Split the text of a list: ``[1, 2]``, ``(1, 2)`` or ``1,2``; ValueError if it is none."""
    inner = text.strip()
    if inner[:1] + inner[-1:] in ("[]", "()"):
        inner = inner[1:-1]
    items = []
    place = 0
    while place < len(inner):
        found = _ITEM.match(inner, place)
        if found is None:
            raise ValueError(text)
        item = (found.group(1) or "").strip()
        if item:
            items.append(json.loads(item) if item[0] == '"' else item)
        place = found.end()
    return items


def _boolean(value: object) -> bool | None:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    return None


def _integer(value: object) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    # The length is bounded, because Python's int takes quadratic time.
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value):
        return int(value)
    return None


def _real(value: object) -> float | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, float, np.integer, np.floating)):
        number = float(value)
    elif isinstance(value, str) and len(value) < 100:
        try:
            number = float(value)
        except ValueError:
            return None
    else:
        return None
    return None if math.isnan(number) else number


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_CONVERSIONS: Mapping[Kind, Callable[[Any], Any]] = {
    "boolean": _boolean,
    "integer": _integer,
    "real": _real,
    "text": _text,
}


Lending: TypeAlias = Literal["nothing", "on demand", "whole"]
"""How the weights of a model are lent to a pass."""


CostClass: TypeAlias = Literal["nodes", "weights", "runs"]
"""The time of a pass grows with nodes, or with bytes of weights too, or with the operators run."""


@dataclass(frozen=True)
class Joins:
    """The role of a pass in the named pipelines that it joins.

    Attributes
    ----------
    pipelines : sequence of str
        Such as ``"simplify"`` and ``"clean"``.
    after : str
        The pass behind which it runs; empty, or none of the pipeline, for the end of a round.
    options : mapping of str to object
        Options that the pipelines give it.
    rounding : mapping of str to object
        Further ones where results may change by rounding, and in rare cases more.
    cost : {"nodes", "weights", "runs"}
        What its time grows with: the number of nodes, the size of the weights too, or the time of
        operators that it runs.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass(exact=True, triggers=["Abs"], joins=pl.passes.Joins(["simplify", "clean"]))
    ... def abs_of_abs(graph: pl.Graph) -> None:
    ...     '''Leaves one of two Abs.'''
    >>> abs_of_abs.declaration.joins.pipelines
    ('simplify', 'clean')
    """

    pipelines: Sequence[str]
    after: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rounding: Mapping[str, Any] = field(default_factory=dict)
    cost: CostClass = "nodes"

    def __post_init__(self) -> None:
        """Hold the names in a tuple.

        Raises
        ------
        TypeError
            They are one text.
        ValueError
            The cost is none of these.
        """
        if isinstance(self.pipelines, str):
            raise TypeError(f"pipelines must be a sequence of names, such as [{self.pipelines!r}]")
        if self.cost not in get_args(CostClass):
            raise ValueError(f"cost is one of {', '.join(get_args(CostClass))}, not {self.cost!r}")
        object.__setattr__(self, "pipelines", tuple(self.pipelines))


@short_repr
@dataclass(frozen=True, repr=False)
class Declaration:
    """A pass as it describes itself.

    ``help(passlib.library.passes()["name"])`` and ``print`` show it.

    Attributes
    ----------
    name : str
    description : str
        Empty for a pass that declares nothing.
    dialects : tuple of str
        Families of models that it works on; empty for all.
    options : tuple of Option or None
        None for a pass that declares nothing: it takes any options.
    needs_weights, needs_shapes : bool
        Whether it reads weights, and inferred shapes and types.
    weights_on_demand : bool
        Whether it asks for the weights that it reads.
    exact : bool
        Whether it keeps every bit of the model's results.
    triggers : tuple of str
        Operators without one of which it changes no graph; empty if it may change any.
    joins : Joins or None
        What it is in the named pipelines that it joins.
    library : str
        Path of the library, or module of the function.
    is_partitioner : bool
    any_options : bool
        Whether it takes other options than those that it declares.
    enters_functions : bool
        Whether `Model.optimize_for` also runs it on the bodies of local functions of ONNX models,
        as it does with all passes that join a named pipeline.
    in_functions : mapping of str to object
        Options, with values, that hold there whatever is asked for.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass(dialects=["onnx"])
    ... def nothing_at_all(graph: pl.Graph, *, level: int = 1) -> None:
    ...     '''Leaves the graph as it is.'''
    >>> declaration = nothing_at_all.declaration
    >>> declaration.dialects, declaration.description
    (('onnx',), 'Leaves the graph as it is.')
    """

    name: str
    description: str = ""
    dialects: tuple[str, ...] = ()
    options: tuple[Option, ...] | None = None
    needs_weights: bool = True
    needs_shapes: bool = True
    library: str = ""
    is_partitioner: bool = False
    any_options: bool = False
    weights_on_demand: bool = False
    exact: bool = False
    triggers: tuple[str, ...] = ()
    joins: Joins | None = None
    enters_functions: bool = False
    in_functions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lending(self) -> Lending:
        """How weights are lent to it."""
        if not self.needs_weights:
            return "nothing"
        return "on demand" if self.weights_on_demand else "whole"

    def __post_init__(self) -> None:
        """Set ``__doc__``, so that ``help`` of the object shows what the pass declares.

        Raises
        ------
        OptionError
            It joins a pipeline with an option that it does not have, or a wrong value.
        """
        object.__setattr__(self, "__doc__", str(self))
        if self.joins is not None:
            self._checked({**self.joins.options, **self.joins.rounding})

    def is_for(self, dialect: str) -> bool:
        """Whether the pass works on models of a dialect; it does if it declares none."""
        return not self.dialects or dialect in self.dialects

    def require_dialect(self, dialect: str) -> None:
        """Check that the pass works on models of a dialect.

        Raises
        ------
        UnsupportedError
            It declares others.
        """
        if not self.is_for(dialect):
            raise UnsupportedError(
                f"pass {self.name!r} is for models of {', '.join(self.dialects)}, and this one is "
                f"of {dialect}"
            )

    def checked(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return options in their declared types, without those that were not given.

        Parameters
        ----------
        given : mapping of str to object
            Values, or their text.

        Raises
        ------
        OptionError
            An option is unknown, missing, of a wrong type or out of range.
        """
        values = self._checked(given)
        missing = [each for each in self.options or () if each.required and each.name not in given]
        if missing:
            name, what = missing[0].name, missing[0].type_text
            raise OptionError(f"pass {self.name!r} needs the option {name!r}: {what}", name)
        return values

    def _checked(self, given: Mapping[str, object]) -> dict[str, Any]:
        if self.options is None:
            return dict(given)
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known and not self.any_options:
                hint = did_you_mean(name, list(known), 1)
                have = f"it has: {', '.join(known)}" if known else "it has none"
                message = f"pass {self.name!r} has no option {name!r}{hint} ({have})"
                raise OptionError(message, name)
        try:
            return {
                name: known[name].checked(value) if name in known else value
                for name, value in given.items()
            }
        except OptionError as error:
            raise OptionError(f"pass {self.name!r}: {error}", error.option) from None

    def __repr__(self) -> str:
        return f"<{'partitioner' if self.is_partitioner else 'pass'} {self.name}>"

    def __str__(self) -> str:
        lines = [self.name + (f": {self.description}" if self.description else "")]
        if self.dialects:
            lines.append(f"  dialects: {', '.join(self.dialects)}")
        if self.exact:
            lines.append("  keeps every bit of the results")
        if self.is_for("onnx") and (self.enters_functions or self.joins is not None):
            lines.append("  also changes the bodies of local functions")
        if self.triggers:
            lines.append(f"  does nothing without one of {', '.join(self.triggers)}")
        if self.joins is not None:
            lines.append(f"  part of the pipelines {', '.join(self.joins.pipelines)}")
        if self.options is None:
            lines.append("  options: not declared, any are passed on")
        if self.any_options:
            lines.append("  options: these, and any others are passed on")
        for option in self.options or ():
            default = "required" if option.required else f"default {option_text(option.default)}"
            lines.append(f"  {option.name}: {option.type_text}; {default}")
            lines += [f"      {line}" for line in option.description.splitlines()]
        return "\n".join(lines + ([f"  from {self.library}"] if self.library else []))


class PassNames(tuple[str, ...]):
    """Names of passes in the order of their registration, and their declarations by name.

    ``passes[0]`` is a name, ``passes["fold"]`` a `Declaration`.
    """

    declarations: dict[str, Declaration]
    """By name."""

    def __new__(cls, declarations: Iterable[Declaration]) -> PassNames:
        """Make the names of declarations."""
        listed = list(declarations)
        made = super().__new__(cls, (declaration.name for declaration in listed))
        made.declarations = {declaration.name: declaration for declaration in listed}
        return made

    @overload
    def __getitem__(self, key: str, /) -> Declaration: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> str: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[str, ...]: ...
    def __getitem__(self, key: Any, /) -> Any:
        """Return the name at a position, or what the pass of a name declares."""
        return self.declarations[key] if isinstance(key, str) else super().__getitem__(key)


_MOST_NESTED = 8
_INTEGER = re.compile(r"-?[0-9]{1,30}")


def read_declarations(text: bytes, library: str) -> dict[str, Declaration]:
    """Read declarations in the form of ``_passlibDeclarations`` in lib_api.h, by name.

    ``text``: JSON that the core has checked; empty where a library declares nothing. ``library``:
    its path.
    """
    if not text:
        return {}
    value = _core.parse_json(text, _number, comments=False, max_depth=_MOST_NESTED)
    return {each["name"]: _declaration(each, library) for each in value["passes"]}


def _number(text: str) -> int | float:
    return int(text) if _INTEGER.fullmatch(text) else float(text)


def _declaration(members: Mapping[str, Any], library: str) -> Declaration:
    return Declaration(
        members["name"],
        members["description"],
        tuple(members["dialects"]),
        tuple(_option(each) for each in members["options"]),
        members["needs_weights"],
        members["needs_shapes"],
        library,
        any_options=members["any_options"],
        weights_on_demand=members.get("weights_on_demand", False),
        exact=members.get("exact", False),
        enters_functions=members.get("enters_functions", False),
        in_functions=members.get("in_functions", {}),
        triggers=tuple(members.get("triggers", ())),
        joins=Joins(**members["joins"]) if members.get("joins") else None,
    )


def _option(members: Mapping[str, Any]) -> Option:
    of_kind: Callable[[Any], Any] = float if members["kind"] == "real" else lambda value: value
    low, high = map(of_kind, members["range"]) if members["range"] else (None, None)
    default, is_list = members["default"], members["list"]
    return Option(
        members["name"],
        members["kind"],
        tuple(map(of_kind, default)) if is_list else of_kind(default),
        members["description"],
        tuple(map(of_kind, members["choices"])),
        low,
        high,
        is_list,
    )
