"""Functions as passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, overload

from passlib.dialects.table import check_known
from passlib.errors import PasslibError
from passlib.library.backends import register, require_free
from passlib.library.declared import Declaration
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
) -> Callable[[F], F]: ...
def graph_pass(
    function: Callable[..., None] | None = None,
    /,
    *,
    name: str | None = None,
    dialects: Sequence[str] = (),
    shapes: bool = False,
    replace: bool = False,
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
        Infer shapes and types before the pass runs, for ``value.shape`` and ``value.dtype``.
    replace : bool
        Take over the name from another pass. Not needed to define the same function again.

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
            body, body, takes="graph", name=name, dialects=dialects, shapes=shapes, replace=replace
        )
        return body

    return decorate if function is None else decorate(function)


def register_function(
    function: Callable[..., Any],
    body: Callable[..., None],
    *,
    takes: str,
    name: str | None,
    dialects: Sequence[str],
    shapes: bool,
    replace: bool,
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
    name, dialects, shapes, replace
        As of `graph_pass`.
    """
    if not inspect.isfunction(function):
        raise TypeError(
            f"a function is needed, which {function!r} is not: write one with def that calls it"
        )
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"the name of a pass is text, not {name!r}")
    if isinstance(dialects, str):
        raise TypeError(f"dialects must be a sequence of names, such as [{dialects!r}]")
    for dialect in dialects:
        check_known(dialect)
    place = f"{function.__module__}.{function.__qualname__}"
    declaration = Declaration(
        function.__name__ if name is None else name,
        summary(function.__doc__),
        tuple(dialects),
        options_of(function, takes),
        needs_shapes=shapes,
        library=place,
    )
    if not declaration.name:
        raise PasslibError(f"the pass {place} needs a name")
    made = PythonPass(declaration, body, place)
    if not replace:
        require_free({declaration.name: made}, f"cannot register {place}: ")
    register({declaration.name: made})
    function.declaration = declaration  # type: ignore[attr-defined]
