"""Passes from Python functions: the docstring and the signature are the declaration."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar, overload

from passlib.dialects.table import check_known
from passlib.errors import PasslibError
from passlib.library.backends import register, require_free, require_pipelines
from passlib.library.declared import Declaration, Joins, Kind, Option, OptionError, kind_of
from passlib.library.python import PythonPass

_UNDERLINE = re.compile(r"-{3,}\s*")
_PARAMETER = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")


def summary(docstring: str | None) -> str:
    """Return the first paragraph of a docstring on one line."""
    text = inspect.cleandoc(docstring or "")
    return " ".join(text.split("\n\n", 1)[0].split())


def descriptions(docstring: str | None) -> dict[str, str]:
    """Return the descriptions in the section ``Parameters`` of a docstring, by name.

    Source of the format: the numpydoc style guide.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    starts = [
        i
        for i in range(len(lines) - 1)
        if lines[i].strip() == "Parameters" and _UNDERLINE.fullmatch(lines[i + 1])
    ]
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for number in range(starts[0] + 2 if starts else len(lines), len(lines)):
        line = lines[number]
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line and not line[0].isspace():
            match = _PARAMETER.fullmatch(line)
            if match is None or _UNDERLINE.fullmatch(following):
                break
            names = [name.strip() for name in match.group(1).split(",")]
            found.update({name: [] for name in names})
        else:
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(" ".join(text).split()) for name, text in found.items()}


_KINDS: dict[object, Kind] = {bool: "boolean", int: "integer", float: "real", str: "text"}
_LISTS = (list, tuple, Sequence)
_OF_OPTIMIZE_FOR = frozenset(
    ("args", "aux", "ctx", "shapes", "types", "shape_dict", "type_dict", "stype_dict",
     "skip_infer", "keep_inferred", "self", "backend")
)  # fmt: skip


def options_of(function: Callable[..., Any], takes: str = "graph") -> tuple[Option, ...]:
    """Return the options that a function declares by its keyword-only parameters.

    The annotations, or else the defaults, determine the types: ``bool``, ``int``, ``float``,
    ``str``, sequences of them, ``Literal`` for choices, ``Annotated[int, range(1, 4)]`` for a
    range, ``| None`` for an optional value.

    Raises
    ------
    TypeError
        The function does not take ``takes`` first, or a parameter cannot be an option.
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
            message = f"parameter {parameter.name!r} of {function}: invalid default"
            raise TypeError(f"{message}: {error}") from None
    return option


def _unwrapped(hint: Any, bounds: range) -> tuple[Any, range]:
    """Return an annotation without ``Annotated`` and ``| None``, and its range."""
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


F = TypeVar("F", bound=Callable[..., None])


class Pass(Protocol):
    """A function registered as a pass."""

    declaration: Declaration


@overload
def graph_pass(function: F, /) -> F: ...
@overload
def graph_pass(
    *,
    name: str | None = ...,
    dialects: Sequence[str] = ...,
    shapes: bool = ...,
    replace: bool = ...,
    exact: bool = ...,
    enters_functions: bool = ...,
    triggers: Sequence[str] = ...,
    joins: Joins | None = ...,
) -> Callable[[F], F]: ...
def graph_pass(
    function: Callable[..., None] | None = None,
    /,
    *,
    name: str | None = None,
    dialects: Sequence[str] = (),
    shapes: bool = False,
    replace: bool = False,
    exact: bool = False,
    enters_functions: bool = False,
    triggers: Sequence[str] = (),
    joins: Joins | None = None,
) -> Any:
    """Register a function as a pass, which ``optimize_for`` runs by its name.

    The function changes a `Graph` in place and returns None. Its keyword-only parameters are the
    options of the pass, and its docstring describes both. The function is returned unchanged, with
    its declaration as attribute ``declaration``.

    Parameters
    ----------
    name : str, optional
        Name of the pass (default: the name of the function).
    dialects : sequence of str
        Dialects that the pass supports (default: all).
    shapes : bool
        Infer shapes and dtypes when the pass first reads ``value.shape`` or ``value.dtype``.
    replace : bool
        Replace another pass of this name. Not needed to redefine the same function.
    exact : bool
        The pass is bit-exact: it keeps every bit of the model's results.
    enters_functions : bool
        `Model.optimize_for` also runs the pass on the body of each local function of an ONNX model,
        which is then the graph. It must keep inputs, outputs and operators of the domain
        ``referring``, which stand for the results and for operators that read attributes of the
        call.
    triggers : sequence of str
        The pass is skipped for graphs without any of these operators (default: never).
    joins : Joins, optional
        Role of the pass in named pipelines such as ``simplify``.

    Raises
    ------
    TypeError
        The function does not take a graph, or a parameter cannot be an option.
    UnsupportedError
        A dialect is unknown.
    PasslibError
        The name is taken.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass(dialects=["onnx"])
    ... def drop_identity(graph: pl.Graph) -> None:
    ...     '''Remove Identity.'''
    ...     for node in graph.sorted():
    ...         if node.op == "Identity":
    ...             graph.replace(node.outputs[0], node.inputs[0])
    ...             graph.remove(node)
    """

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        register_function(
            body,
            body,
            "graph",
            name,
            replace=replace,
            dialects=dialects,
            needs_shapes=shapes,
            exact=exact,
            enters_functions=enters_functions,
            triggers=triggers,
            joins=joins,
        )
        return body

    return decorate if function is None else decorate(function)


def register_function(
    function: Callable[..., Any],
    body: Callable[..., None],
    takes: str,
    name: str | None,
    *,
    replace: bool,
    **declared: Any,
) -> None:
    """Register a pass described by a function, which receives the attribute ``declaration``.

    Parameters
    ----------
    function : callable
        Determines the name, the description and the options of the pass.
    body : callable
        Runs the pass on a graph with options.
    takes : str
        Name of the first parameter of ``function``, for messages.
    **declared
        Other fields of `Declaration`.
    """
    if not inspect.isfunction(function):
        raise TypeError(f"expected a function, got {function!r}: wrap it in a def")
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"the name of a pass must be a string, not {name!r}")
    for what in {"dialects", "triggers"} & declared.keys():
        if isinstance(declared[what], str):
            raise TypeError(f"{what} must be a sequence of names, such as [{declared[what]!r}]")
        declared[what] = tuple(declared[what])
    for dialect in declared["dialects"]:
        check_known(dialect)
    place = f"{function.__module__}.{function.__qualname__}"
    declaration = Declaration(
        function.__name__ if name is None else name,
        summary(function.__doc__),
        options=options_of(function, takes),
        library=place,
        **declared,
    )
    if not declaration.name:
        raise PasslibError(f"the pass {place} needs a name")
    made = PythonPass(declaration, body, place)
    require_pipelines({declaration.name: made}, f"cannot register {place}: ")
    if not replace:
        require_free({declaration.name: made}, f"cannot register {place}: ")
    register({declaration.name: made})
    function.declaration = declaration  # type: ignore[attr-defined]
