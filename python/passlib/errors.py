"""The exceptions of passlib: one tree, so that one ``except`` catches them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

__all__ = [
    "FormatError",
    "GraphError",
    "InputError",
    "InternalError",
    "LoadError",
    "OperatorError",
    "PassError",
    "PassResultError",
    "PasslibError",
    "PatternError",
    "PipelineError",
    "UnsoundFileError",
    "UnsupportedError",
    "counted",
    "did_you_mean",
    "listed",
    "printable",
]


_LINE: Final = "\n  "


class PasslibError(Exception):
    """Base of every error that passlib raises on purpose.

    Examples
    --------
    >>> import passlib as pl
    >>> try:
    ...     pl.sym.var("x").optimize_for("unheard_of")
    ... except pl.PasslibError as error:
    ...     print(str(error).partition(" (")[0])
    there is no pass or partitioner 'unheard_of'
    """

    def __str__(self) -> str:
        # Messages contain names from files, and may end with indented lines of a library.
        return _LINE.join(map(printable, super().__str__().split(_LINE)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Some constructors have required keywords, which Exception's own form would not pass.
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[PasslibError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> PasslibError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class LoadError(PasslibError):
    """A library could not be loaded, failed to initialize, or may not be called any more.

    Examples
    --------
    >>> import passlib as pl
    >>> try:
    ...     pl.library.load("nowhere/libpass.so")
    ... except pl.LoadError as error:
    ...     print("nowhere/libpass.so" in str(error))
    True
    """


class FormatError(PasslibError):
    """A file or text does not follow its format; the message names the place.

    Attributes
    ----------
    offset, line, column : int or None
        Place of the fault: byte offset from 0, line and column from 1; None if the
        format has no such notion.

    Examples
    --------
    >>> import passlib as pl
    >>> try:
    ...     pl.sym.load_json('{"nodes": [}')
    ... except pl.FormatError as error:
    ...     print(error.line, error.column)
    1 12
    """

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.offset = offset
        self.line = line
        self.column = column

    def within(self, place: object) -> FormatError:
        """Return the same error with the file or member that it occurred in before its message."""
        return type(self)(
            f"{place}: {self}", offset=self.offset, line=self.line, column=self.column
        )


class PatternError(FormatError):
    """The text of a pattern is not well-formed; ``line`` and ``column`` are the place.

    Examples
    --------
    >>> import passlib as pl
    >>> try:
    ...     pl.find(pl.sym.var("x"), "y = relu(x")
    ... except pl.PatternError as error:
    ...     print(error.line, error.column)
    1 11
    """


class GraphError(PasslibError):
    """A graph is not sound; the message names the nodes concerned.

    Examples
    --------
    >>> import passlib as pl
    >>> x, y = pl.sym.var("x"), pl.sym.var("x")
    >>> try:
    ...     (x + y).tojson()
    ... except pl.GraphError as error:
    ...     print("x" in str(error))
    True
    """


class InputError(GraphError):
    """Inputs are given that a model does not have, or a value or shape that it needs is not.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> try:
    ...     pl.workbench.compare(model, model)
    ... except pl.InputError as error:
    ...     print(str(error).partition(";")[0])
    the model does not state the shapes of x
    """


class PassError(PasslibError):
    """A pass failed; the message names the pass and its library, and includes the library's own.

    Attributes
    ----------
    messages : tuple of str
        Messages that the library reported through ``MX_ERROR_MSG`` during this one call.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def never_ready(graph: pl.Graph) -> None:
    ...     raise ValueError("not today")
    >>> try:
    ...     pl.sym.relu(pl.sym.var("x")).optimize_for("never_ready")
    ... except pl.PassError as error:
    ...     print(error.__cause__)
    not today
    """

    def __init__(self, message: str, *, messages: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.messages = messages


class PipelineError(PassError):
    """A step of a pipeline failed; the cause is the error of the step.

    Attributes
    ----------
    step : str
        The step with its options.
    model : Model
        The model that the step failed on.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def give_up(graph: pl.Graph) -> None:
    ...     raise ValueError("too hard")
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> try:
    ...     pl.Pipeline("give_up").run(model)
    ... except pl.PipelineError as error:
    ...     print(error.step, len(error.model.symbol.nodes()))
    give_up 2
    """

    def __init__(
        self, message: str, *, step: str, model: Any, messages: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, messages=messages)
        self.step = step
        self.model = model


class OperatorError(PasslibError):
    """A library's operator failed, or broke the rules for operators.

    Attributes
    ----------
    operator : str
    library : str
        Path of the library that registered it.
    node : str
        Name of the node; empty if the operator was called without one.
    messages : tuple of str
        Messages that the library reported through ``MX_ERROR_MSG`` during this one call.

    Examples
    --------
    >>> import passlib as pl
    >>> error = pl.OperatorError("it failed", operator="my_gemm", library="libgemm.so", node="fc")
    >>> error.operator, error.node
    ('my_gemm', 'fc')
    """

    def __init__(
        self,
        message: str,
        *,
        operator: str,
        library: str,
        node: str = "",
        messages: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.operator = operator
        self.library = library
        self.node = node
        self.messages = messages


class UnsupportedError(PasslibError):
    """Something has no faithful translation; the message names node, operator and attribute.

    Examples
    --------
    >>> import passlib as pl
    >>> try:
    ...     pl.nd.zeros((2, 3), ctx=pl.gpu())
    ... except pl.UnsupportedError as error:
    ...     print(str(error).partition(",")[0])
    an array was requested on gpu(0)
    """


class InternalError(PasslibError):
    """A mistake in passlib itself; the message names the node, and the cause has the traceback.

    Examples
    --------
    >>> import passlib as pl
    >>> issubclass(pl.InternalError, pl.PasslibError), issubclass(pl.InternalError, pl.GraphError)
    (True, False)
    """


class UnsoundFileError(FormatError, GraphError):
    """A file is well formed, but the graph in it contradicts itself.

    Examples
    --------
    >>> import passlib as pl
    >>> empty = '{"nodes": [], "arg_nodes": [], "heads": [[3, 0, 0]]}'
    >>> try:
    ...     pl.sym.load_json(empty)
    ... except pl.UnsoundFileError as error:
    ...     print(type(error).__mro__[1].__name__)
    FormatError
    """


class PassResultError(PassError, GraphError):
    """A pass reported success, but returned no sound graph.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def turn_in_circles(graph: pl.Graph) -> None:
    ...     graph.set_inputs(graph.find("y"), [graph.find("z").outputs[0]])
    >>> symbol = pl.sym.relu(pl.sym.relu(pl.sym.var("x"), name="y"), name="z")
    >>> try:
    ...     symbol.optimize_for("turn_in_circles")
    ... except pl.PassResultError as error:
    ...     print("wait for each other in a cycle" in str(error))
    True
    """


def printable(value: object, keep: str = "") -> str:
    """Return the text of a value with escapes for characters that a terminal may act on.

    Names from files may hold control sequences, line breaks, and marks that reverse the direction
    of writing. They become what `repr` writes for them. The characters ``keep`` stay, such as the
    line breaks between lines that are escaped already.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def counted(count: int, word: str) -> str:
    """Return a number with its noun, as in ``1 input`` and ``3 inputs``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def sized(nbytes: int) -> str:
    """Spell a number of bytes, as in ``12 B`` and ``3.4 MB``."""
    size, unit = float(nbytes), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.95 or unit == "GB":
            break
        size /= 1000
    return f"{nbytes} B" if unit == "B" else f"{size:.1f} {unit}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Spell names for a message: the first ones, and how many there are in all."""
    shown = ", ".join(map(printable, names[:most])) or "none"
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


LONGEST_REPR: Final = 2_000
"""A `repr` is read in terminals and debuggers."""

_Kind = TypeVar("_Kind", bound=type)


def short_repr(kind: _Kind) -> _Kind:
    """Decorate a class so that `repr` has at most `LONGEST_REPR` characters, without the middle."""
    whole: Callable[[object], str] = vars(kind)["__repr__"]

    def short(self: object) -> str:
        text = whole(self)
        if len(text) <= LONGEST_REPR:
            return text
        return f"{text[:1500]} ... ({len(text):,} characters) ... {text[-400:]}"

    setattr(kind, "__repr__", short)  # noqa: B010  # mypy takes it for a method of the metaclass
    return kind


def no_input(unknown: Sequence[str], inputs: Sequence[str]) -> str:
    """Return the message for values under names that no input has."""
    return f"the model has no input {listed([repr(n) for n in unknown])}; its inputs are " + listed(
        inputs
    )


def did_you_mean(word: str, known: Iterable[str], most: int = 3) -> str:
    """Return a clause with the nearest spellings of an unknown word; empty if none is near."""
    from difflib import get_close_matches  # which only messages need

    near = get_close_matches(word, list(known), most)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
