from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passlib
from ark_builder import Builder, Handle
from ark_cases import ARK, SMALL, agree, given_small, positive, small, values
from ark_files import FILES
from ark_reference import TYPES
from passlib.errors import GraphError, UnsupportedError


def test_how_many_files_run() -> None:
    assert len(SMALL) in (29, 34), "the files of tests/data, or all next to the project"


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_genuine_files(path: Path) -> None:
    agree(path, positive if "layernorm" in path.name or "broadcasts" in path.name else small)


def test_feed_forward_of_llama() -> None:
    """The layer as in its paper: w2 (silu(w1 x) * w3 x)."""
    path = FILES / "gen_py-llama_ffn_fp32.full.json"
    model = passlib.model.load(path)
    x, w1, w2, w3 = given_small(model, path)
    gate = x @ w1.T
    expected = (gate / (1 + np.exp(-gate)) * (x @ w3.T)) @ w2.T
    np.testing.assert_allclose(np.asarray(model(x, w1, w2, w3)), expected, 1e-5, 1e-5)


def test_attention_of_llama() -> None:
    """Heads of 16 channels, rotary positions, no mask."""
    path = FILES / "gen_py-llama_attention_fp32.full.json"
    model = passlib.model.load(path)
    x, angles, wq, wk, wv, wo = given_small(model, path)

    def heads(weight: np.ndarray, *, rotated: bool) -> np.ndarray:
        split = (x @ weight.T).reshape(1, 16, 4, 16)
        if rotated:
            pairs = split.view(np.complex64) * angles.view(np.complex64)
            split = pairs.view(np.float32)
        return split.transpose(0, 2, 1, 3)

    query, key, value = heads(wq, rotated=True), heads(wk, rotated=True), heads(wv, rotated=False)
    scores = query @ key.swapaxes(-1, -2) / 4
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    joined = (weights @ value).transpose(0, 2, 1, 3).reshape(1, 16, 64)
    output = model(x, angles, wq, wk, wv, wo)
    np.testing.assert_allclose(np.asarray(output), joined @ wo.T, 1e-5, 1e-5)


def test_bits_of_another_type_are_refused() -> None:
    (path,) = FILES.glob("*-casts.full.json")
    model = passlib.model.load(path)
    types = ARK.input_types(ARK.load(path))
    feeds = {name: values(t.dtype, t.shape, 0) for name, t in types.items()}
    with pytest.raises(UnsupportedError, match="holds FP32 and is used as FP16"):
        model.run(feeds)


FLOATS = ("FP32", "FP16", "BF16")
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def placed(draw: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """Draw a place in a larger array, with padding."""
    offsets = [draw(st.integers(0, 3)) for _ in shape]
    padded = [s + draw(st.integers(0, 2)) for s in shape]
    strides = [o + p + draw(st.integers(0, 2)) for o, p in zip(offsets, padded, strict=True)]
    return {"shape": shape, "strides": strides, "offsets": offsets, "padded": padded}


@st.composite
def broadcastable(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    kept = shape[draw(st.integers(0, len(shape) - 1)) :]
    return tuple(1 if draw(st.booleans()) else size for size in kept)


def place(builder: Builder, data: st.DataObject, dtype: str, shape: tuple[int, ...]) -> Handle:
    return builder.tensor(dtype, **data.draw(placed(shape)))


INTEGERS = ("BYTE", "INT32", "INT8", "UINT32", "UINT8")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", ["Exp", "Sqrt", "Rsqrt", "Relu", "Sigmoid"])
def test_functions_of_integers(kind: str, dtype: str, tmp_path: Path) -> None:
    """They are computed in floats and truncated as in C."""
    builder = Builder()
    out = builder.tensor(dtype, (2, 3))
    builder.op(kind, [builder.tensor(dtype, (2, 1))], out)
    limited = positive if "qrt" in kind else values
    agree(builder.write(tmp_path / "model.json"), limited)


BINARY = ("Add", "Sub", "Mul", "Div")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_binary(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, "INT32", "UINT32", "INT8", "UINT8"]))
    shape = data.draw(shapes)
    one, other = shape, data.draw(broadcastable(shape))
    if data.draw(st.booleans()):
        one, other = other, one
    builder = Builder()
    reads = [place(builder, data, dtype, one), place(builder, data, dtype, other)]
    kind = data.draw(st.sampled_from(BINARY))
    builder.op(kind, reads, place(builder, data, dtype, shape))
    path = builder.write(tmp_path_factory.mktemp("ark") / "model.json")
    agree(path, positive)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_operand(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kind = data.draw(
        st.sampled_from(
            ["Exp", "Sqrt", "Rsqrt", "Relu", "Sigmoid", "Gelu", "Copy", "ScalarAdd", "ScalarMul"]
        )
    )
    dtype = data.draw(st.sampled_from(FLOATS))
    shape = data.draw(shapes)
    builder = Builder()
    args = {"Factor": data.draw(st.sampled_from([0.5, -2.25, 1.1]))} if "Scalar" in kind else {}
    source = place(builder, data, dtype, data.draw(broadcastable(shape)))
    builder.op(kind, [source], place(builder, data, dtype, shape), **args)
    path = builder.write(tmp_path_factory.mktemp("ark") / "model.json")
    agree(path, positive if "qrt" in kind else values)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_cast(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    source, target = (data.draw(st.sampled_from(sorted(TYPES))) for _ in range(2))
    builder = Builder()
    read = place(builder, data, source, data.draw(broadcastable(shape)))
    builder.op("Cast", [read], place(builder, data, target, shape))
    agree(builder.write(tmp_path_factory.mktemp("ark") / "model.json"), positive)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_reduction(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    axis, keep = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.booleans())
    out = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :]) or (1,)
    dtype = data.draw(st.sampled_from(FLOATS))
    kind = data.draw(st.sampled_from(["ReduceSum", "ReduceMax", "ReduceMean"]))
    builder = Builder()
    read = place(builder, data, dtype, shape)
    builder.op(kind, [read], place(builder, data, dtype, out), Axis=axis, KeepDim=keep)
    agree(builder.write(tmp_path_factory.mktemp("ark") / "model.json"))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_transpose(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    order = data.draw(st.permutations(range(len(shape))))
    dtype = data.draw(st.sampled_from(sorted(TYPES)))
    builder = Builder()
    out = place(builder, data, dtype, tuple(shape[i] for i in order))
    builder.op("Transpose", [place(builder, data, dtype, shape)], out, Permutation=list(order))
    agree(builder.write(tmp_path_factory.mktemp("ark") / "model.json"), positive)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_matmul(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, 6)) for _ in range(3))
    leading = data.draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    left_leading = data.draw(broadcastable(leading)) if leading else ()
    flip_left, flip_right = data.draw(st.booleans()), data.draw(st.booleans())
    left = (*left_leading, *((k, m) if flip_left else (m, k)))
    right = (*leading, *((n, k) if flip_right else (k, n)))
    dtype = data.draw(st.sampled_from(FLOATS))
    builder = Builder()
    reads = [place(builder, data, dtype, left), place(builder, data, dtype, right)]
    out = place(builder, data, dtype, (*leading, m, n))
    builder.op("Matmul", reads, out, TransposeInput=flip_left, TransposeOther=flip_right)
    agree(builder.write(tmp_path_factory.mktemp("ark") / "model.json"))


@pytest.mark.parametrize(
    ("left", "right", "out"), [((4,), (4, 3), (1, 3)), ((2, 4), (4,), (2, 1)), ((4,), (4,), (1, 1))]
)
def test_matmul_of_vectors(
    left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...], tmp_path: Path
) -> None:
    builder = Builder()
    reads = [builder.tensor("FP32", left), builder.tensor("FP32", right)]
    target = builder.tensor("FP32", out)
    builder.op("Matmul", reads, target, TransposeInput=False, TransposeOther=False)
    agree(builder.write(tmp_path / "model.json"))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_rope(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shape = (*data.draw(shapes)[:3], 2 * data.draw(st.integers(1, 4)))
    other = (*data.draw(broadcastable(shape))[:-1], shape[-1])
    dtype = data.draw(st.sampled_from(FLOATS))
    builder = Builder()
    reads = [place(builder, data, dtype, shape), place(builder, data, dtype, other)]
    builder.op("Rope", reads, place(builder, data, dtype, shape))
    agree(builder.write(tmp_path_factory.mktemp("ark") / "model.json"))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_embedding(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    width = data.draw(st.integers(1, 6))
    dtype = data.draw(st.sampled_from(FLOATS))
    builder = Builder()
    indices = place(builder, data, "INT32", shape)
    weight = place(builder, data, dtype, (8, width))  # drawn indices are -5 to 5
    out = place(builder, data, dtype, (*((1,) * (3 - len(shape))), *shape, width))
    builder.op("Embedding", [indices, weight], out)
    agree(builder.write(tmp_path_factory.mktemp("ark") / "model.json"))


@pytest.mark.parametrize("dtype", sorted(TYPES))
def test_scalar_assign(dtype: str, tmp_path: Path) -> None:
    builder = Builder()
    out = builder.tensor(dtype, (2, 3), (4, 6), (1, 2))
    builder.op("ScalarAssign", [], out, Value=2.75)
    model = passlib.model.load(builder.write(tmp_path / "model.json"))
    assert model.inputs == []
    (value,) = model.run({}).values()
    assert value.tolist() == [[np.asarray(2.75).astype(TYPES[dtype]).item()] * 3] * 2


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_programs_on_shared_memory(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Boxes of a few buffers, read and written in every order: the last writer counts."""
    builder = Builder()
    extents = (data.draw(st.integers(4, 7)), data.draw(st.integers(4, 7)))
    buffers = [builder.tensor("FP32", extents) for _ in range(2)]
    latest = list(buffers)
    shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))

    def box(number: int) -> Handle:
        offsets = [data.draw(st.integers(0, t - s)) for t, s in zip(extents, shape, strict=True)]
        return builder.view(latest[number], shape, extents, offsets)

    copied = builder.op("Copy", [buffers[0]], builder.tensor("FP32", extents))
    for _ in range(data.draw(st.integers(1, 6))):
        sources = [box(data.draw(st.integers(0, 1))) for _ in range(2)]
        number = data.draw(st.integers(0, 1))
        result = builder.op("Add", sources, box(number))
        for i in range(2):  # all later ops wait for this one
            latest[i] = builder.view(latest[i], extents, after=[result, copied])
    for i in range(2):
        builder.op("Copy", [latest[i]], builder.tensor("FP32", extents))
    path = builder.write(tmp_path_factory.mktemp("ark") / "model.json")
    assert not [p for p in ARK.validate(path) if p.severity == "error"]
    agree(path)


def test_views_of_other_extents(tmp_path: Path) -> None:
    """A flat view of memory that is written as rows."""
    builder = Builder()
    source = builder.tensor("FP32", (4, 6))
    rows = builder.op("ScalarAdd", [source], builder.tensor("FP32", (4, 6)), Factor=1.0)
    flat = builder.view(rows, (2, 3, 4))
    second = builder.op("Relu", [flat], builder.tensor("FP32", (2, 3, 4)))
    head = builder.view(rows, (5,), (20,), (3,), after=[second])
    builder.op("Exp", [head], builder.tensor("FP32", (5,)))
    agree(builder.write(tmp_path / "model.json"))


def test_unknown_operator(tmp_path: Path) -> None:
    builder = Builder()
    source = builder.tensor("FP32", (4,))
    builder.op("Fancy", [source], builder.tensor("FP32", (4,)), Depth=3)
    path = builder.write(tmp_path / "model.json")
    model = passlib.model.load(path)
    model.save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()
    with pytest.raises(UnsupportedError, match=r"'fancy'.*'Fancy'"):
        model(np.zeros(4, np.float32))


def test_inputs_are_checked(tmp_path: Path) -> None:
    builder = Builder()
    builder.op("Exp", [builder.tensor("FP32", (4,), name="x")], builder.tensor("FP32", (4,)))
    model = passlib.model.load(builder.write(tmp_path / "model.json"))
    with pytest.raises(GraphError, match=r"'x' has shape \(3,\)"):
        model(np.zeros(3, np.float32))
    with pytest.raises(GraphError, match="'x' is float16"):
        model(np.zeros(4, np.float16))
    with pytest.raises(GraphError, match="'x'"):
        model()


def test_memory_is_zero_before_the_first_write(tmp_path: Path) -> None:
    builder = Builder()
    source = builder.tensor("FP32", (2,))
    buffer = builder.tensor("FP32", (4,))
    part = builder.op("Exp", [source], builder.view(buffer, (2,), (4,), (1,)))
    builder.op("Copy", [builder.view(buffer, (4,), after=[part])], builder.tensor("FP32", (4,)))
    model = passlib.model.load(builder.write(tmp_path / "model.json"))
    assert np.asarray(model(np.zeros(2, np.float32))).tolist() == [0, 1, 1, 0]
