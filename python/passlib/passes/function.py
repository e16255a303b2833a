"""Functions as passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, overload

from passlib.dialects.table import check_known
from passlib.errors import PasslibError
from passlib.library.backends import register, require_free, require_pipelines
from passlib.library.declared import Declaration, Joins
from passlib.library.python import PythonPass
from passlib.passes.docstring import summary
from passlib.passes.signature import options_of

F = TypeVar("F", bound=Callable[..., None])


class Pass(Protocol):
    """A function that was registered as a pass."""

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
    triggers: Sequence[str] = (),
    joins: Joins | None = None,
) -> Any:
    """Register a function as a pass, which ``optimize_for`` runs by its name.

    The function gets a `Graph`, which it changes in place, and returns None. Its keyword-only
    parameters are the options of the pass; its docstring describes both. The decorated function
    stays as it is, with its declaration as attribute ``declaration``.

    Parameters
    ----------
    name : str, optional
        Name of the pass, by default that of the function.
    dialects : sequence of str
        Families of models that the pass works on, by default all.
    shapes : bool
        Infer shapes and types when the pass first reads ``value.shape`` or ``value.dtype``.
    replace : bool
        Take over the name from another pass. Not needed to define the same function again.
    exact : bool
        The pass keeps every bit of the model's results.
    triggers : sequence of str
        Operators without one of which the pass changes no graph; by default it may change any.
    joins : Joins, optional
        What the pass is in named pipelines such as ``simplify``.

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
    ...     '''Takes Identity out.'''
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
    """Register a pass that is described by a function, which gets it as ``declaration``.

    Parameters
    ----------
    function : callable
        Has the name, the docstring and the options of the pass.
    body : callable
        Runs it: gets the graph and the options.
    takes : str
        What the first parameter of ``function`` is, for messages.
    name, replace
        As of `graph_pass`.
    **declared
        What else the pass declares: fields of `Declaration`.
    """
    if not inspect.isfunction(function):
        raise TypeError(
            f"a function is needed, which {function!r} is not: write one with def that calls it"
        )
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"the name of a pass is text, not {name!r}")
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
