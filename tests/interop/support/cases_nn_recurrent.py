"""Cases of the fused recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, real

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
TOLERANCE = 1e-4


def size(mode: str, width: int, state: int, layers: int, directions: int, out: int) -> int:
    """Compute the number of weights of a stack whose layers have ``out`` outputs a direction."""
    rows, total = GATES[mode] * state, 0
    for layer in range(layers):
        inputs = out * directions if layer else width
        total += rows * (inputs + out + 2) + (out * state if out != state else 0)
    return total * directions


def recurrent(
    mode: str,
    *,
    layers: int = 1,
    directions: int = 1,
    projection: int | None = None,
    dtype: str = "float32",
    **attributes: object,
) -> Case:
    time, batch, width, state = 4, 2, 3, 5
    out = projection or state
    weights = real(size(mode, width, state, layers, directions, out), low=-1, high=1)
    arrays = [real(time, batch, width), weights, real(layers * directions, batch, out)]
    if mode == "lstm":
        arrays.append(real(layers * directions, batch, state, low=-1))
    given: dict[str, object] = {
        "mode": mode,
        "state_size": state,
        "num_layers": layers,
        "bidirectional": directions == 2,
        **attributes,
    }
    if projection:
        given["projection_size"] = projection
    return Case("RNN", tuple(array.astype(dtype) for array in arrays), given, TOLERANCE)


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    for mode in GATES:
        for layers in (1, 2, 3):
            for directions in (1, 2):
                kept = layers == 2
                yield recurrent(mode, layers=layers, directions=directions, state_outputs=True)
                if kept:
                    yield recurrent(mode, layers=layers, directions=directions, p=0.5)
        yield recurrent(mode, dtype="float64", state_outputs=True)
        yield recurrent(mode, layers=2, train=True, state_outputs=True)
    yield recurrent("lstm", projection=2, state_outputs=True)
    yield recurrent("lstm", projection=2, directions=2, state_outputs=True)
    yield recurrent("lstm", projection=3, layers=2, state_outputs=True)
    yield recurrent("lstm", projection=3, layers=2, directions=2, state_outputs=True)
    pieces = [real(6), real(4), real(2)]
    yield case("_rnn_param_concat", *pieces, dim=0, num_args=len(pieces))
    yield case("_rnn_param_concat", np.ones(3, "float32"), num_args=1, dim=0)
