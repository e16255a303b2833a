"""One call of a pass on a graph: options, parameters, output, and the result."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from passlib import _core
from passlib.library.handle import Backend

__all__ = ["Call", "NewParam", "Outcome", "Param", "call_pass"]

Param = tuple[str, "np.ndarray[Any, Any]", int]
"""A parameter as the host hands it over: name, C-contiguous array, MXNet's dtype code."""


class NewParam(NamedTuple):
    """A parameter that a pass allocated."""

    name: str
    is_arg: bool
    dtype: int
    shape: tuple[int, ...]
    data: np.ndarray[Any, Any]
    """The bytes, which own the memory."""


@dataclass(frozen=True)
class Call:
    """A pass or partitioner, and what it is called with besides the graph.

    Attributes
    ----------
    backend : Backend
    options : mapping
        Reach the library as ``str(value)``.
    attributes : mapping of str to str
        Attributes of the graph that the library sees, as JSON by key.
    args, aux : sequence of Param
    accept_args, accept_aux : bool
        Whether the pass may allocate new ones.
    consume : bool
        Whether the graph may be used up, because nobody needs it any more.
    """

    backend: Backend
    options: Mapping[str, object]
    attributes: Mapping[str, str] = field(default_factory=dict)
    args: Sequence[Param] = ()
    aux: Sequence[Param] = ()
    accept_args: bool = False
    accept_aux: bool = False
    consume: bool = False

    @property
    def option_texts(self) -> list[tuple[str, str]]:
        """The options as the library gets them."""
        return [(key, str(value)) for key, value in self.options.items()]


class Outcome(NamedTuple):
    """The result of a pass."""

    graph: _core.Graph
    """Checked."""
    attributes: dict[str, str]
    """The graph's own attributes, as JSON by key."""
    params: list[NewParam]
    gone: list[str]
    """Variables that the graph had before and no longer has."""


def call_pass(call: Call, graph: _core.Graph, *, ordered: bool = True) -> Outcome:
    """Run a pass on a copy of ``graph``.

    What the library prints to ``std::cout`` goes to `sys.stdout`. Where the environment has
    ``PASSLIB_FORCE_JSON=1``, graphs cross as JSON text even to libraries that could take them as
    objects.

    Parameters
    ----------
    call : Call
        Of a pass.
    graph : _core.Graph
        Stays as it is, unless ``call.consume``.
    ordered : bool
        Put the result into post-order and leave out what no output needs.

    Returns
    -------
    Outcome

    Raises
    ------
    PassError
        The pass failed, or returned no sound graph (`PassResultError`).
    """
    settings = _core.CallSettings(
        accept_args=call.accept_args,
        accept_aux=call.accept_aux,
        force_json=os.environ.get("PASSLIB_FORCE_JSON", "") not in ("", "0"),
        consume=call.consume,
        ordered=ordered,
    )
    result, own, params, gone = _core.run_pass(
        call.backend.library.core,
        call.backend.index,
        graph,
        dict(call.attributes),
        call.option_texts,
        list(call.args),
        list(call.aux),
        settings,
        sys.stdout.write,
    )
    return Outcome(result, own, [NewParam(*param) for param in params], gone)
