"""A symbol as a function of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib.errors import GraphError
from passlib.mxnet.nd.operators import write_out
from passlib.mxnet.symbol.symbol import Symbol
from passlib.runtime.runner import Runner


class CachedOp:
    """Computes the outputs of a symbol, which is compiled once for each kind of inputs.

    Parameters
    ----------
    flags : sequence of (str, str)
        Ignored; accepted for compatibility with MXNet.

    Examples
    --------
    >>> import passlib as mx
    >>> square = mx.nd.CachedOp(mx.sym.square(mx.sym.var("x")))
    >>> square(mx.nd.array([3])).asnumpy()
    array([9.], dtype=float32)
    """

    def __init__(self, sym: Symbol, flags: Sequence[tuple[str, str]] = ()) -> None:
        del flags
        self._names = sym.list_inputs()
        self._runner = Runner(sym, sym.family)

    def __call__(self, *args: Any, out: Any = None, **ignored: Any) -> Any:
        """Compute the outputs.

        Parameters
        ----------
        *args : array
            One for each of `Symbol.list_inputs`, in that order.
        out : array or sequence of arrays, optional
            Where the outputs are written to.
        **ignored
            Accepted for compatibility with MXNet.

        Raises
        ------
        GraphError
            There are not as many arrays as inputs, or they do not fit.
        """
        del ignored
        if len(args) != len(self._names):
            raise GraphError(
                f"the symbol has {len(self._names)} inputs ({', '.join(self._names)}), "
                f"not {len(args)}"
            )
        feeds = dict(zip(self._names, args, strict=True))
        outcome = self._runner.run(feeds, {})
        for name, updated in {**outcome.updates, **outcome.mutated}.items():
            np.copyto(np.asarray(feeds[name]), np.asarray(updated))
        outputs = list(outcome.outputs)
        if out is not None:
            outputs = write_out("CachedOp", out, outputs)
        return outputs[0] if len(outputs) == 1 else outputs
