"""Shapes after operators that ONNX Runtime has and ONNX does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> '


def whole_numbers(name: str, *shape: int) -> str:
    numbers = ", ".join(str(item % 7 - 3) for item in range(int(np.prod(shape))))
    return f"int8[{', '.join(map(str, shape))}] {name} = {{{numbers}}}"


LSTM = f"""g (float[T, N, 3] x) => (float[A, B] y) <int64 zero = {{0}}, int64[1] first = {{0}},
  int64[1] four = {{4}}, int64[1] half = {{-1}}, float[2] scale = {{0.1, 0.2}},
  int8[2] point = {{0, 0}}, {whole_numbers("w", 2, 3, 8)}, {whole_numbers("r", 2, 2, 8)}>
{{
  u, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size = 2, direction = "bidirectional"> (
    x, w, r, , , , , , scale, point, scale, point)
  v = Transpose <perm = [0, 2, 1, 3]> (u) s = Shape(v) t = Gather(s, zero)
  n = Unsqueeze(t, first) l = Concat <axis = 0> (n, half) y = Reshape(v, l)
}}"""


@pytest.mark.parametrize("name", ["Gelu", "FastGelu", "QuickGelu", "BiasGelu"])
def test_activations_keep_the_shape(name: str, tmp_path: Path) -> None:
    bias = ", b" if name == "BiasGelu" else ""
    data = parsed(
        HEAD
        + f"""g (float[N, 2, 6] x) => (float[A, B] y) <int64 zero = {{0}}, int64[1] first = {{0}},
        int64[1] rest = {{-1}}, float[6] b = {{0, 1, 2, 3, 4, 5}}>
        {{
          u = com.microsoft.{name} (x{bias}) s = Shape(u) t = Gather(s, zero)
          n = Unsqueeze(t, first) l = Concat <axis = 0> (n, rest) y = Reshape(u, l)
        }}"""
    )
    made = after(data, "foldShapes", tmp_path)
    assert operators(made) == {name: 1, "Reshape": 1}
    x = np.random.default_rng(1).standard_normal((3, 2, 6)).astype(np.float32)
    assert same_bits(results(made, {"x": x}), results(data, {"x": x}))


def test_a_quantized_lstm_has_the_shapes_of_an_lstm(tmp_path: Path) -> None:
    data = parsed(HEAD + LSTM)
    made = after(data, "foldShapes", tmp_path)
    assert operators(made) == {"DynamicQuantizeLSTM": 1, "Transpose": 1, "Reshape": 1}
    for length, batch in ((3, 1), (1, 2)):
        x = np.random.default_rng(1).standard_normal((length, batch, 3)).astype(np.float32)
        assert same_bits(results(made, {"x": x}), results(data, {"x": x}))
