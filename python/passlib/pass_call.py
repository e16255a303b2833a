"""One call of a pass on a graph: options, parameters, output, and what comes back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from passlib import _core

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from passlib.library import Backend

__all__ = ["NewParam", "Outcome", "Param", "call_pass"]

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


class Outcome(NamedTuple):
    """What a pass gave back."""

    graph: _core.Graph
    """Checked."""
    attributes: dict[str, str]
    """The graph's own attributes, as JSON by key."""
    params: list[NewParam]
    gone: list[str]
    """Variables that the graph had before and has no more."""


def call_pass(
    backend: Backend,
    graph: _core.Graph,
    options: Mapping[str, object],
    *,
    consume: bool = False,
    attributes: Mapping[str, str] | None = None,
    args: Sequence[Param] = (),
    aux: Sequence[Param] = (),
    accept_args: bool = False,
    accept_aux: bool = False,
    ordered: bool = True,
) -> Outcome:
    """Run a pass on a copy of ``graph``.

    What the library prints to ``std::cout`` goes to `sys.stdout`. Where the environment has
    ``PASSLIB_FORCE_JSON=1``, graphs cross as JSON text even to libraries that could take them as
    objects.

    Parameters
    ----------
    backend : Backend
        A pass.
    graph : _core.Graph
        Stays as it is, unless ``consume``.
    options : mapping
        Reach the pass as ``str(value)``.
    consume : bool
        Whether ``graph`` may be used up, for nobody needs it any more.
    attributes : mapping of str to str, optional
        Attributes of the graph that the pass sees, as JSON by key.
    args, aux : sequence of Param
    accept_args, accept_aux : bool
        Whether the pass may allocate new ones.
    ordered : bool
        Put the result into post-order and leave out what no output needs.

    Returns
    -------
    Outcome

    Raises
    ------
    PassError
        The pass failed, or gave back no sound graph (`PassResultError`).
    """
    settings = _core.CallSettings(
        accept_args=accept_args,
        accept_aux=accept_aux,
        force_json=os.environ.get("PASSLIB_FORCE_JSON", "") not in ("", "0"),
        consume=consume,
        ordered=ordered,
    )
    result, own, params, gone = _core.run_pass(
        backend.library.core,
        backend.index,
        graph,
        dict(attributes or {}),
        [(key, str(value)) for key, value in options.items()],
        list(args),
        list(aux),
        settings,
        sys.stdout.write,
    )
    return Outcome(result, own, [NewParam(*param) for param in params], gone)
