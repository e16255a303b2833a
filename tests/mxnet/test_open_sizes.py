"""Lowering with open sizes: what it computes is what lowering with all sizes known computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from passlib import runtime, sym
from passlib.errors import UnsupportedError
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.mxnet.lower import lower
from passlib.symbol import Symbol

X, F32 = sym.var("x"), np.dtype(np.float32)
IMAGE, MAP, STEPS = (2, 4, 7, 9), (None, 4, None, None), (None, None, 6)
Shape = tuple[Any, ...]


def rnn(mode: str, *, bidirectional: bool) -> Symbol:
    directions = 2 if bidirectional else 1
    zeros = sym.zeros((2 * directions, 0, 4))
    cell = {"state_cell": zeros} if mode == "lstm" else {}
    return sym.RNN(
        X,
        sym.var("weights"),
        zeros,
        **cell,
        mode=mode,
        state_size=4,
        num_layers=2,
        bidirectional=bidirectional,
        state_outputs=True,
    )


def unrolled() -> Symbol:
    weights = [sym.var(name) for name in ("wi", "bi", "wh", "bh")]
    state = sym.zeros((0, 4))
    for step in sym.SliceChannel(X, num_outputs=3, axis=1, squeeze_axis=True):
        moved = sym.FullyConnected(state, *weights[2:], num_hidden=4)
        state = sym.tanh(sym.FullyConnected(step, *weights[:2], num_hidden=4) + moved)
    return state


def attention() -> Symbol:
    scores = sym.contrib.interleaved_matmul_selfatt_qk(X, heads=2)
    return sym.contrib.interleaved_matmul_selfatt_valatt(X, sym.softmax(scores), heads=2)


def crossed() -> Symbol:
    scores = sym.contrib.interleaved_matmul_encdec_qk(sym.var("q"), X, heads=2)
    return sym.contrib.interleaved_matmul_encdec_valatt(X, sym.softmax(scores), heads=2)


def pooled(kind: str, **more: Any) -> Symbol:
    more = {"kernel": (3, 3), "stride": (2, 3), "pad": (1, 0), **more}
    return sym.Pooling(X, pool_type=kind, pooling_convention="full", **more)


def image(make: Any, **more: Any) -> tuple[Any, dict[str, Shape], dict[str, Shape]]:
    return (lambda: make(X, **more), {"x": IMAGE}, {"x": MAP})


CASES: dict[str, tuple[Any, dict[str, Shape], dict[str, Shape]]] = {
    **{
        f"{mode}-{both}": (
            lambda mode=mode, both=both: rnn(mode, bidirectional=both), {"x": (5, 3, 6)},
            {"x": STEPS},
        )
        for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu")
        for both in (False, True)
    },
    "unrolled": (unrolled, {"x": (2, 3, 5)}, {"x": (None, 3, 5)}),
    "attention": (attention, {"x": (5, 3, 24)}, {"x": (None, None, 24)}),
    "encdec": (
        crossed, {"q": (4, 3, 8), "x": (5, 3, 16)}, {"q": (None, None, 8), "x": (None, None, 16)}
    ),
    **{f"pool-{kind}": (lambda kind=kind: pooled(kind), {"x": IMAGE}, {"x": MAP})
       for kind in ("max", "avg", "sum")},
    "pool-inside": (
        lambda: pooled("avg", count_include_pad=False, kernel=(2, 2)), {"x": IMAGE}, {"x": MAP}
    ),
    "group_norm": (
        lambda: sym.GroupNorm(X, num_groups=2), {"x": IMAGE}, {"x": MAP}
    ),
    "up-nearest": image(sym.UpSampling, scale=2, sample_type="nearest"),
    "up-two": (
        lambda: sym.UpSampling(X, sym.var("y"), scale=2, sample_type="nearest", num_args=2),
        {"x": (2, 4, 8, 8), "y": (2, 3, 4, 4)}, {"x": MAP, "y": (None, 3, None, None)},
    ),
    "up-bilinear": (
        lambda: sym.UpSampling(
            X, sym.var("w"), scale=2, sample_type="bilinear", num_args=2, num_filter=4
        ),
        {"x": IMAGE}, {"x": MAP},
    ),
    "resize": image(sym.contrib.BilinearResize2D, height=5, width=6),
    "resize-by": image(sym.contrib.BilinearResize2D, scale_height=2.0, scale_width=1.5),
    "adaptive": image(sym.contrib.AdaptiveAvgPooling2D, output_size=(3, 4)),
    "prior": image(sym.contrib.MultiBoxPrior, sizes=(0.5, 0.2), ratios=(1, 2), clip=True),
    "nms": (
        lambda: sym.contrib.box_nms(X, overlap_thresh=0.5, topk=7),
        {"x": (2, 20, 6)}, {"x": (None, None, 6)},
    ),
    "detection": (
        lambda: sym.contrib.MultiBoxDetection(sym.var("c"), sym.var("l"), X),
        {"c": (2, 3, 10), "l": (2, 40), "x": (1, 10, 4)},
        {"c": (None, 3, None), "l": (None, None), "x": (1, None, 4)},
    ),
    "iou": (
        lambda: sym.contrib.box_iou(X, sym.var("y")),
        {"x": (2, 4), "y": (3, 4)}, {"x": (None, 4), "y": (None, 4)},
    ),
    "crop": (
        lambda: sym.Crop(X, sym.var("y"), num_args=2, center_crop=True),
        {"x": IMAGE, "y": (1, 1, 3, 4)}, {"x": MAP, "y": (1, 1, None, None)},
    ),
    "mask": (
        lambda: sym.SequenceMask(X, sym.var("l"), use_sequence_length=True),
        {"x": (5, 3, 2), "l": (3,)}, {"x": (None, None, 2), "l": (None,)},
    ),
    "reverse": (lambda: sym.SequenceReverse(X), {"x": (5, 3, 2)}, {"x": (None, None, 2)}),
    "l2": image(sym.L2Normalization, mode="spatial"),
    "sqrt-dim": (lambda: sym.contrib.div_sqrt_dim(X), {"x": (2, 5)}, {"x": (None, None)}),
    "im2col": image(sym.im2col, kernel=(2, 2)),
    "range": (
        lambda: X + sym.arange(1, step=2, repeat=2, infer_range=True),
        {"x": (6,)}, {"x": (None,)},
    ),
    "range-2d": (
        lambda: X + sym.arange(0, infer_range=True), {"x": (2, 3)}, {"x": (None, None)}
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("start", "options", "shape", "expected"),
    [
        (0, {}, (4,), [0, 1, 2, 3]),
        (1, {"step": 2, "repeat": 2}, (6,), [1, 1, 3, 3, 5, 5]),
        (4, {"step": -1}, (3,), [4, 3, 2]),
        (0, {}, (2, 3), [[0, 1, 2], [3, 4, 5]]),
        (0, {"dtype": "int32"}, (3,), [0, 1, 2]),
    ],
)
def test_a_range_fills_the_inferred_shape(
    start: int, options: dict[str, Any], shape: Shape, expected: list[Any]
) -> None:
    """The expected numbers are MXNet's."""
    dtype = options.get("dtype", "float32")
    numbers = sym.arange(start, infer_range=True, **options)
    (found,) = (numbers + X).eval(x=np.zeros(shape, dtype))
    assert (found.dtype, found.asnumpy().tolist()) == (np.dtype(dtype), expected)
    (found,) = sym.elemwise_add(numbers, sym.zeros(shape, dtype=dtype)).eval()
    assert found.asnumpy().tolist() == expected


def arrays(symbol: Symbol, shapes: Mapping[str, Shape]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    found, _, states = symbol.infer_shape(**shapes)
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    return {
        name: random.random(shape).astype(np.float32)
        for name, shape in zip(names, [*found, *states], strict=True)
    }


@pytest.mark.parametrize("case", CASES)
def test_open_sizes_compute_the_same(case: str) -> None:
    make, full, left_open = CASES[case]
    symbol = make()
    values = arrays(symbol, full)
    given = {name: values[name] for name in full}
    weights = {name: array for name, array in values.items() if name not in full}
    results = []
    for shapes in (full, left_open):
        specs = {name: TypeSpec(F32, tuple(shape)) for name, shape in shapes.items()}
        results.append(runtime.Session(lower(symbol, specs, weights)).run(given))
    for known, found in zip(*results, strict=True):
        assert known.shape == found.shape
        np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("symbol", "shape", "message"),
    [
        (
            sym.RNN(
                X, sym.var("w"), sym.var("s"), mode="gru", state_size=4, num_layers=1, name="r"
            ),
            (None, None, None),
            r"node 'r' \(RNN\): requires a known size of axis 2 of input 0 \('x'\)",
        ),
        (
            sym.GroupNorm(X, num_groups=2, name="g"),
            (None, None, 3, 3),
            r"node 'g' \(GroupNorm\): requires a known size of axis 1 of input 0 \('x'\)",
        ),
        (
            sym.zeros((0, 3), name="z"),
            None,
            r"node 'z' \(_zeros\): attribute 'shape'.*which no input determines",
        ),
        (
            sym.arange(0, infer_range=True, name="a"),
            None,
            r"node 'a' \(_arange\): attribute 'infer_range'.*inferred from other nodes",
        ),
    ],
)
def test_a_size_that_must_be_known_is_named(
    symbol: Symbol, shape: Shape | None, message: str
) -> None:
    specs = {} if shape is None else {"x": TypeSpec(F32, shape)}
    names = symbol.list_arguments()
    weights = {
        name: np.zeros(24 if name == "w" else 2, np.float32) for name in names if name != "x"
    }
    with pytest.raises(UnsupportedError, match=message):
        lower(symbol, specs, weights)


@pytest.mark.parametrize("opset", [13, 18, 22])
@pytest.mark.parametrize("case", ["lstm-True", "attention", "pool-avg", "nms", "prior", "l2"])
def test_other_operator_sets_compute_the_same(case: str, opset: int, tmp_path: Path) -> None:
    make, full, left_open = CASES[case]
    symbol = make()
    values = arrays(symbol, full)
    given = {name: values[name] for name in full}
    weights = {name: array for name, array in values.items() if name not in full}
    model = Model(symbol, weights)
    known = model.run(given)
    model.to_onnx(tmp_path / "m.onnx", left_open, opset=opset)
    saved = onnx.load(tmp_path / "m.onnx")
    assert [entry.version for entry in saved.opset_import] == [opset]
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    for array, found in zip(known.values(), session.run(None, given), strict=True):
        np.testing.assert_allclose(found, array, rtol=1e-5, atol=1e-5)


def test_an_operator_set_that_is_too_old_is_refused_by_name(tmp_path: Path) -> None:
    model = Model(sym.LayerNorm(X, name="norm"), {})
    shapes = {"x": (None, 3), "norm_gamma": (3,), "norm_beta": (3,)}
    message = r"node 'norm' \(LayerNorm\): needs LayerNormalization .* version 17 .*opset=17"
    with pytest.raises(UnsupportedError, match=message):
        model.to_onnx(tmp_path / "m.onnx", shapes, opset=16)
    assert list(tmp_path.iterdir()) == []
    for wrong, error in ((12, UnsupportedError), (1000, UnsupportedError), ("13", TypeError)):
        with pytest.raises(error, match="opset is"):
            model.to_onnx(tmp_path / "m.onnx", shapes, opset=wrong)  # type: ignore[arg-type]
