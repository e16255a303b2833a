"""One call of a pass on a graph: options, parameters, output, and what comes back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from passlib import _core, library

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

__all__ = ["NewParam", "Param", "call_pass"]

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


def call_pass(
    name: str,
    graph: _core.Graph,
    options: Mapping[str, object],
    *,
    attributes: Mapping[str, str] | None = None,
    args: Sequence[Param] = (),
    aux: Sequence[Param] = (),
    accept_args: bool = False,
    accept_aux: bool = False,
) -> tuple[_core.Graph, list[NewParam]]:
    """Run the pass that is registered under ``name`` on a copy of ``graph``.

    What the library prints to ``std::cout`` goes to `sys.stdout`. Where the environment has
    ``PASSLIB_FORCE_JSON=1``, graphs cross as JSON text even to libraries that could take them as
    objects.

    Parameters
    ----------
    name : str
    graph : _core.Graph
        Stays as it is.
    options : mapping
        Reach the pass as ``str(value)``.
    attributes : mapping of str to str, optional
        Attributes of the graph that the pass sees, as JSON by key.
    args, aux : sequence of Param
    accept_args, accept_aux : bool
        Whether the pass may allocate new ones.

    Returns
    -------
    graph : _core.Graph
        Checked.
    params : list of NewParam

    Raises
    ------
    PasslibError
        There is no such pass.
    PassError
        The pass failed, or gave back no sound graph (`PassResultError`).
    """
    holder, index = library.find_pass(name)
    result, params = _core.run_pass(
        holder.core,
        index,
        graph,
        dict(attributes or {}),
        [(key, str(value)) for key, value in options.items()],
        list(args),
        list(aux),
        accept_args,
        accept_aux,
        os.environ.get("PASSLIB_FORCE_JSON", "") not in ("", "0"),
        sys.stdout.write,
    )
    return result, [NewParam(*param) for param in params]
