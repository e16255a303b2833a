"""inlineFunctions and outline: passes that change the message of an ONNX model, in the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.reading import Content
from passlib.library.backends import NamedPipeline
from passlib.library.declared import OptionError, names_of, option_text
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.model.edits import content_of, of_content
from passlib.model.loading import AnyModel, as_model

Since = Callable[[str, str, int], int]


def inline_functions(model: AnyModel, *, names: Collection[str] | None = None) -> Model:
    """Return an ONNX model with the bodies of local functions in place of their calls.

    It is the pass ``inlineFunctions``. Functions that nothing calls any more are removed. Values
    and nodes of a body get the name of the call as a prefix.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    names : collection of str, optional
        The functions, as ``name`` or ``domain.name``, with all overloads (default: all functions).

    Raises
    ------
    PasslibError
        The model cannot be loaded, or has no such function; or an operator of a function differs
        between the operator sets of the function and the model.

    Examples
    --------
    >>> import passlib
    >>> passlib.inline_functions("model.onnx").save("flat.onnx")  # doctest: +SKIP
    """
    found = as_model(model)
    return found.optimize_for("inlineFunctions", names=sorted(names_of("names", names)))


def outline(
    model: AnyModel,
    *,
    least: int = 4,
    domain: str = "layers",
) -> Model:
    """Return an ONNX model whose repeated layers are calls of local functions.

    It is the pass ``outline``: layers are equal up to their weights, which become inputs of the
    function. `inline_functions` is the way back.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    least : int
        The smallest number of operators of a layer.
    domain : str
        The domain of the functions, which are called Layer, Layer_1 and so on.

    Raises
    ------
    PasslibError
        The model cannot be loaded.

    Examples
    --------
    >>> import passlib
    >>> passlib.outline("model.onnx").save("layers.onnx")  # doctest: +SKIP
    """
    found = as_model(model)
    return found.optimize_for("outline", least=least, domain=domain)


@dataclass(frozen=True)
class MessagePass(NamedPipeline):
    """A pass that changes the message of an ONNX model, local functions included.

    ``change`` gets the message, the options and `since_version`, and returns a new message, or None
    if it stays.
    """

    change: Callable[[bytes, Mapping[str, Any], Since], bytes | None]

    def check(self, options: Mapping[str, Any]) -> None:
        """Check options; the declaration knows all."""

    def run(self, model: Model, options: Mapping[str, Any], watch: Any = None) -> Model:
        """Return the changed model; the same object if nothing changes."""
        body = partial(self._changed, model, dict(options))
        texts = tuple((key, option_text(value)) for key, value in options.items())
        step = Step(self.declaration.name, texts)
        made: Model = body() if watch is None else watch(step, model, body)
        return made

    def _changed(self, model: Model, options: Mapping[str, Any]) -> Model:
        content = content_of(model)
        try:
            made = self.change(content, options, since_version)
        except ValueError as error:
            if "names" not in options:
                raise
            raise OptionError(str(error), "names") from None
        return model if made is None else of_content(model, Content.of(made, content.weights))


def since_version(op: str, domain: str, version: int) -> int:
    """Return the version of an operator set that brought an operator's form; 0 if it has none."""
    found = schema.schema_of(op, domain, version)
    return 0 if found is None else int(found.since_version)
