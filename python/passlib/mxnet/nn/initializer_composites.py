"""Initializers that leave parameters to others: of a part, from a file, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from passlib.mxnet.nd import load
from passlib.mxnet.nn.initializer import InitDesc, Initializer, create, register

_GATES: Final = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


@register
class FusedRNN(Initializer):
    """Sets the one parameter of a fused RNN: its weights by another initializer, its biases to 0.

    Parameters
    ----------
    init : Initializer, str or None
        None is that of the `InitDesc`.
    num_hidden, num_layers, mode, bidirectional
        As of the operator RNN.
    forget_bias : float
        For the biases of the forget gates of an LSTM.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.init.FusedRNN("ones", num_hidden=2, num_layers=1, mode="lstm").dumps()[:10]
    '["fusedrnn'
    """

    def __init__(
        self,
        init: Any,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        chosen = create(init) if isinstance(init, str) else init
        super().__init__(
            init=None if chosen is None else chosen.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = chosen

    def _init_weight(self, name: str, arr: Any) -> None:
        given = self._kwargs
        init = self._init or getattr(name, "global_init", None)
        if init is None:
            raise ValueError(f"FusedRNN has no initializer for the weights of {name!r}")
        hidden, rows = given["num_hidden"], _GATES[given["mode"]] * given["num_hidden"]
        directions = 2 if given["bidirectional"] else 1
        biases = 2 * given["num_layers"] * directions * rows
        deeper = (given["num_layers"] - 1) * directions * rows * (directions + 1) * hidden
        first = arr.size - biases - deeper - directions * rows * hidden
        inputs, rest = divmod(first, directions * rows)
        if rest or inputs < 1:
            raise ValueError(f"{name!r} has {arr.size} elements, which no RNN {given} has")
        position = 0
        for layer in range(given["num_layers"]):
            width = inputs if layer == 0 else directions * hidden
            for columns in (width, hidden) * directions:
                part = arr[position : position + rows * columns].reshape((rows, columns))
                init._init_weight(InitDesc(f"{name}_weight"), part)
                position += rows * columns
        arr[position:] = 0.0
        if given["mode"] == "lstm":
            for start in range(position, arr.size, rows):
                arr[start + hidden : start + 2 * hidden] = given["forget_bias"]


class Load:
    """Sets parameters from a file or a dictionary, others by an initializer.

    Parameters
    ----------
    param : path-like or mapping of str to array
        Names may begin with ``arg:`` or ``aux:``.
    default_init : Initializer, optional
    verbose : bool
        Ignored; accepted for compatibility with MXNet.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((2,))
    >>> mx.init.Load({"arg:fc_weight": mx.nd.array([1, 2])})("fc_weight", weight)
    >>> weight.asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False) -> None:
        del verbose
        content = param if isinstance(param, Mapping) else load(param)
        if not isinstance(content, Mapping):
            raise ValueError(f"{param!r} has no names of arrays")
        self.param = {
            name.removeprefix("arg:").removeprefix("aux:"): array for name, array in content.items()
        }
        self.default_init = default_init

    def __call__(self, name: str, arr: Any) -> None:
        """Set the elements of an array; ValueError if the shapes differ, or nothing is known."""
        if name in self.param:
            if self.param[name].shape != arr.shape:
                raise ValueError(
                    f"parameter {name!r} has shape {arr.shape}, the loaded one "
                    f"{self.param[name].shape}"
                )
            arr[:] = self.param[name]
        elif self.default_init is None:
            raise ValueError(f"there is no array {name!r} to load, and no default_init")
        else:
            self.default_init(name, arr)


class Mixed:
    """Chooses an initializer by the first regular expression that matches a parameter's name.

    Parameters
    ----------
    patterns : sequence of str
    initializers : sequence of Initializer

    Raises
    ------
    ValueError
        There are more of one than of the other.

    Examples
    --------
    >>> import passlib as mx
    >>> mixed = mx.init.Mixed([".*bias", ".*"], [mx.init.Zero(), mx.init.One()])
    >>> weight = mx.nd.zeros((2,))
    >>> mixed("fc_weight", weight)
    >>> weight.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Any]) -> None:
        if len(patterns) != len(initializers):
            raise ValueError(f"{len(patterns)} patterns, but {len(initializers)} initializers")
        self.map = [(re.compile(p), i) for p, i in zip(patterns, initializers, strict=True)]

    def __call__(self, name: str, arr: Any) -> None:
        """Set the elements of an array; ValueError if no pattern matches the name."""
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ValueError(f'no pattern matches the parameter {name!r}; add ".*" as the last one')
