"""The tensor operators of MXNet beyond frozen numbers: refusals, unknown sizes, random draws."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import places
from case_files import case_lines, case_tensors
from mxnet_graph import graph_of, read_graph
from passlib import runtime
from passlib.errors import GraphError, UnsupportedError
from passlib.lowering import TypeSpec
from passlib.mxnet.lower import lower
from passlib.mxnet.lowering import load_table
from passlib.mxnet.lowering.tensors.shape import decode, decode_reversed

CASES = places.DATA / "mxnet" / "tensor_cases.jsonl"
UNKNOWN_SIZES = (
    "Concat Flatten Pad Reshape SliceChannel SwapAxis _arange _contrib_arange_like "
    "_contrib_boolean_mask argmax argmin argsort batch_dot batch_take broadcast_add "
    "broadcast_like broadcast_to clip expand_dims gather_nd max nansum norm one_hot ones_like "
    "pick prod repeat reshape_like reverse scatter_nd shape_array size_array slice slice_axis "
    "slice_like sort stack sum take tile topk transpose where zeros_like"
)


@functools.cache
def cases() -> dict[str, list[dict[str, Any]]]:
    """Return all frozen cases, by operator."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in case_lines(CASES):
        case = json.loads(line)
        operator = json.loads(case["symbol"])["nodes"][-1]["op"]
        found.setdefault(operator, []).append(case)
    return found


@functools.cache
def tensors() -> dict[str, np.ndarray]:
    return case_tensors(CASES)


def inputs_of(case: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: tensors()[f"{case['name']}/in/{name}"] for name in case["args"]}


@pytest.mark.parametrize("operator", sorted(cases()))
def test_model_is_valid_and_its_types_are_inferred(operator: str) -> None:
    for case in cases()[operator]:
        graph = read_graph(case["symbol"])
        specs = {name: TypeSpec(a.dtype, a.shape) for name, a in inputs_of(case).items()}
        lowered = lower(graph, specs, {})
        onnx.checker.check_model(lowered.model, full_check=True)
        for index in range(case["outputs"]):
            value = lowered.value_of[graph.nodes()[-1], index]
            expected = tensors()[f"{case['name']}/out/{index}"]
            assert value.dtype == expected.dtype
            if operator != "_contrib_boolean_mask":
                assert value.shape == expected.shape


def follows_from_sizes(operator: str, case: dict[str, Any]) -> bool:
    """Whether what the operator selects depends on the sizes of its inputs."""
    if operator == "transpose":
        axes = json.loads(case["symbol"])["nodes"][-1].get("attrs", {}).get("axes", "()")
        numbers = axes.strip("()").replace(" ", "").split(",")
        return len(set(numbers)) < len(numbers)
    shapes = [array.shape for array in inputs_of(case).values()]
    return operator == "where" and shapes[0] not in (shapes[1], shapes[1][:1])


@pytest.mark.parametrize("operator", UNKNOWN_SIZES.split())
def test_sizes_may_be_unknown(operator: str) -> None:
    for case in cases()[operator]:
        if follows_from_sizes(operator, case):
            continue
        inputs = inputs_of(case)
        specs = {name: TypeSpec(a.dtype, (None,) * a.ndim) for name, a in inputs.items()}
        lowered = lower(read_graph(case["symbol"]), specs, {})
        outputs = runtime.Session(lowered).run(inputs)
        for index, actual in enumerate(outputs):
            expected = tensors()[f"{case['name']}/out/{index}"]
            assert actual.shape == expected.shape
            np.testing.assert_allclose(actual, expected, rtol=case["tol"], atol=case["tol"])


CROP = {"height": "2", "width": "2"}
REFUSALS = [
    ("Reshape", [(2, 3)], {"shape": "(-1, -1)"}, "leaves more than one size open"),
    ("Reshape", [(2, 3)], {"shape": "(0, 0, 0)"}, "refers to axis 2 of an input with 2 axes"),
    ("Reshape", [(2, 3)], {"shape": "(-4, 3, 3, 0)"}, "cannot split 2 into 3 and 3"),
    ("Reshape", [(2, 3)], {"shape": "(-4, 2)"}, "must be followed by two numbers"),
    ("Reshape", [(2, 3)], {}, "specifies no shape"),
    ("sum", [(2, 3)], {"axis": "2"}, r"axis 2 is outside float32 \(2, 3\)"),
    ("sum", [(2, 3)], {"axis": "(0, -2)"}, "lists an axis twice"),
    ("sum", [(2, 3)], {"axis": "one"}, "attribute 'axis'.*'one'"),
    ("norm", [(2, 3)], {"ord": "3"}, "must be 1 or 2"),
    ("pick", [(2, 3), (2,)], {"axis": "None"}, "does not define pick without an axis"),
    ("take", [(2, 3), (2,)], {"mode": "bounce"}, "attribute 'mode'.*'bounce'.*'wrap'"),
    ("topk", [(2, 3)], {"ret_typ": "all"}, "attribute 'ret_typ'.*'all'.*'mask'"),
    ("Pad", [(1, 1, 2, 2)], {"mode": "edge", "pad_width": "(0, 0, 1, 1)"}, "two numbers for each"),
    ("Pad", [(2,)], {"mode": "edge", "pad_width": "(-1, 0)"}, "is negative"),
    ("slice", [(4,)], {"begin": "(0,)", "end": "(4,)", "step": "(0,)"}, "contains 0"),
    ("slice", [(4,)], {"begin": "(0, 0)", "end": "(4,)"}, "differs in length"),
    ("slice_axis", [(2, 3)], {"axis": "0", "begin": "0", "end": "3"}, "is beyond axis 0 of 2"),
    ("SequenceMask", [(2, 3)], {"axis": "2"}, "must be one of"),
    ("batch_take", [(2, 3), (3,)], {}, "3 indices do not fit 2 rows"),
    ("reverse", [(2, 3)], {"axis": "-1"}, "has a negative axis"),
    ("moments", [(2, 3)], {}, "must list the axes"),
    ("slice_like", [(4,), (2, 2)], {}, "is required for inputs of different ranks"),
    ("SliceChannel", [(2, 5)], {"num_outputs": "2"}, "does not divide axis 1"),
    ("SliceChannel", [(2, 5)], {"num_outputs": "0"}, "at least 1"),
    ("broadcast_to", [(3,)], {"shape": "(2, 3)"}, "differs in rank"),
    ("broadcast_axis", [(1, 3)], {"axis": "(0,)", "size": "(2, 3)"}, "1 axes for 2 sizes"),
    ("diag", [(2, 2)], {"axis2": "0"}, "is the same axis"),
    ("diag", [(2, 2)], {"k": "5"}, "has no diagonal 5"),
    ("dot", [(3,), (3,)], {"transpose_a": "True"}, "a vector has no transpose"),
    ("_zeros", [], {"shape": "(0, 3)"}, "leaves a size to be inferred"),
    ("_arange", [], {"start": "3", "stop": "1"}, "results in an empty range"),
    ("_arange", [], {"start": "3", "infer_range": "True"}, "to be inferred from other nodes"),
    ("Cast", [(2,)], {"dtype": "complex"}, "attribute 'dtype'.*'complex'"),
    ("_linalg_det", [(2, 3)], {}, "requires square matrices"),
    ("_linalg_inverse", [(65, 65)], {}, "for at most 64 rows, not 65"),
    ("_linalg_maketrian", [(5,)], {}, "fill no triangle"),
    ("_random_uniform", [], {"shape": "(0,)"}, "leaves a size to be inferred"),
    ("cast_storage", [(2,)], {"stype": "csr"}, "must have 2 dimensions"),
    ("where", [(1,), (4, 3), (4, 3)], {}, "the condition has 1 elements for 4 rows"),
    ("where", [(2, 4), (4, 3), (4, 3)], {}, "has 8 elements, which do not divide 12"),
    ("where", [(4, 4), (4, 3), (4, 3)], {}, "has 16 elements, which do not divide 12"),
    ("transpose", [(2, 3)], {"axes": "(0, 0)"}, "'axes'.*a matrix that is not square"),
    ("transpose", [(2, 3, 4)], {"axes": "(0, 1, 1)"}, "'axes'.*leads beyond the array"),
    ("transpose", [(2, 3)], {"axes": "(0, -1)"}, "'axes'.*counted from the front"),
    ("_image_crop", [(4, 5, 3)], {**CROP, "x": "-1", "y": "0"}, "begins before the first pixel"),
    ("_image_crop", [(4, 5, 3)], {**CROP, "x": "-6", "y": "1"}, "begins before the first pixel"),
    ("_image_crop", [(4, 5, 3)], {**CROP, "width": "0", "x": "0", "y": "0"}, "is not within"),
    ("IdentityAttachKLSparseReg", [(3,), (3,)], {}, "must have at least 2 dimensions"),
    ("Dropout", [(2, 3)], {"p": "1", "mode": "always"}, "'p'.*leaves no element"),
    ("_contrib_MultiBoxPrior", [(1, 3, 4)], {}, "must have at least 4 dimensions"),
    ("_npi_percentile", [(0, 3)], {"axis": "(0,)", "q_scalar": "5"}, "has no percentiles"),
    ("_np_moveaxis", [(2, 3, 4)], {"source": "(0,)", "destination": "(2, -1)"}, "as many"),
    ("_npi_hsplit", [()], {"indices": "None", "sections": "3"}, "must have at least 1 dim"),
    ("_npi_insert_slice", [(3,), ()], {"start": "1", "step": "0"}, "'step'.*must not be 0"),
    ("_npi_delete", [(3,)], {"start": "1", "step": "0"}, "'step'.*must not be 0"),
]


@pytest.mark.parametrize(("operator", "shapes", "attributes", "reason"), REFUSALS)
def test_refusal_names_node_and_reason(
    operator: str, shapes: list[tuple[int, ...]], attributes: dict[str, str], reason: str
) -> None:
    names = [f"x{index}" for index in range(len(shapes))]
    graph = graph_of(operator, names, attributes)
    specs = {
        name: TypeSpec(np.dtype(np.float32), shape)
        for name, shape in zip(names, shapes, strict=True)
    }
    with pytest.raises((GraphError, UnsupportedError), match=reason) as caught:
        lower(graph, specs, {})
    assert str(caught.value).startswith(f"node 'op' ({operator})")


def test_truth_values_have_no_tens() -> None:
    truth = {"x": TypeSpec(np.dtype(np.bool_), (2,))}
    lower(graph_of("_npi_around", ["x"], {"decimals": "2"}), truth, {})
    with pytest.raises(GraphError, match=r"_npi_around.*truth values have no decimals"):
        lower(graph_of("_npi_around", ["x"], {"decimals": "-2"}), truth, {})


def test_whole_numbers_are_not_divided_by_zero() -> None:
    graph = graph_of("_div_scalar", ["x"], {"scalar": "0"})
    with pytest.raises(UnsupportedError, match="division of integers by zero"):
        lower(graph, {"x": TypeSpec(np.dtype(np.int32), (2,))}, {})


@pytest.mark.parametrize("operator", ["elemwise_add", "_mod", "_greater", "_logical_xor"])
def test_elementwise_operators_want_one_shape(operator: str) -> None:
    specs = {name: TypeSpec(np.dtype(np.float32), (n, 2)) for name, n in (("a", 2), ("b", 1))}
    with pytest.raises(GraphError, match=rf"'op' \({operator}\).*\(1, 2\).*\(2, 2\)"):
        lower(graph_of(operator, ["a", "b"]), specs, {})
    lower(graph_of("broadcast_add", ["a", "b"]), specs, {})


BRAIN_FLOATS = [
    ("clip", {"a_min": "-1", "a_max": "1"}),
    ("cbrt", {}),
    ("sum", {"axis": "1"}),
    ("topk", {"ret_typ": "value"}),
    ("round", {}),
    ("repeat", {"repeats": "2"}),
]


@pytest.mark.parametrize(("operator", "attributes"), BRAIN_FLOATS)
def test_brain_floats_are_computed_and_kept(operator: str, attributes: dict[str, str]) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    data = np.array([[0.5, -1, 2.25], [3, 0.25, -4]], np.float32)
    (expected,) = draw(operator, attributes, data)
    (actual,) = draw(operator, attributes, data.astype(bfloat16))
    assert actual.dtype == bfloat16
    np.testing.assert_array_equal(actual, expected.astype(bfloat16))


def draw(
    operator: str, attributes: dict[str, str], *inputs: np.ndarray, outputs: int = 1
) -> list[np.ndarray]:
    names = [f"x{index}" for index in range(len(inputs))]
    graph = graph_of(operator, names, attributes, outputs)
    return runtime.run(graph, dict(zip(names, inputs, strict=True)), {})


DRAWS = [
    ("_random_uniform", {"low": "-1", "high": "3"}, 1.0, 4 / math.sqrt(12)),
    ("_random_uniform", {"dtype": "float64"}, 0.5, 1 / math.sqrt(12)),
    ("_random_normal", {"loc": "2", "scale": "3"}, 2.0, 3.0),
    ("_random_normal", {"dtype": "float16"}, 0.0, 1.0),
    ("_random_exponential", {"lam": "4"}, 0.25, 0.25),
    ("_random_randint", {"low": "-2", "high": "4"}, 0.5, math.sqrt(35 / 12)),
    ("_random_gamma", {"alpha": "3", "beta": "0.5"}, 1.5, math.sqrt(3) / 2),
    ("_random_gamma", {"alpha": "0.5", "dtype": "float64"}, 0.5, math.sqrt(0.5)),
    ("_random_poisson", {"lam": "4"}, 4.0, 2.0),
    ("_random_negative_binomial", {"k": "3", "p": "0.4"}, 4.5, math.sqrt(11.25)),
    ("_random_generalized_negative_binomial", {"mu": "2", "alpha": "0.5"}, 2.0, 2.0),
]


@pytest.mark.parametrize(("operator", "attributes", "mean", "deviation"), DRAWS)
def test_draws_have_the_right_distribution(
    operator: str, attributes: dict[str, str], mean: float, deviation: float
) -> None:
    count = 200_000
    (values,) = draw(operator, {"shape": f"({count // 2}, 2)", **attributes})
    default = "int32" if operator.endswith("randint") else "float32"
    assert values.dtype == attributes.get("dtype", default)
    assert values.shape == (count // 2, 2)
    wide = values.astype(np.float64)
    # Six standard errors: a correct generator fails this once in 10**9 runs.
    assert abs(wide.mean() - mean) < 6 * deviation / math.sqrt(count) + 1e-3
    assert wide.std() == pytest.approx(deviation, rel=0.03)


def test_whole_numbers_are_drawn_from_the_whole_range() -> None:
    (values,) = draw("_random_randint", {"low": "-2", "high": "4", "shape": "(1000,)"})
    assert set(np.unique(values)) == {-2, -1, 0, 1, 2, 3}


def test_draws_like_an_input() -> None:
    data = np.zeros((300, 200), np.float64)
    (values,) = draw("_random_normal_like", {"loc": "5"}, data)
    assert values.dtype == np.float64
    assert values.shape == data.shape
    assert values.mean() == pytest.approx(5, abs=0.05)


def test_draws_with_a_distribution_for_each_element() -> None:
    low, high = np.array([0, 10], np.float32), np.array([1, 20], np.float32)
    (values,) = draw("_sample_uniform", {"shape": "(5000,)"}, low, high)
    assert values.shape == (2, 5000)
    assert values.min(axis=1) == pytest.approx([0, 10], abs=0.1)
    assert values.max(axis=1) == pytest.approx([1, 20], abs=0.1)


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_counts_and_sums_are_drawn_for_each_element(name: str) -> None:
    first = np.array([[1, 30]], np.float32)
    given = [first] if name == "poisson" else [first, np.array([[2, 0.5]], np.float32)]
    (values,) = draw(f"_sample_{name}", {"shape": "(4000,)"}, *given)
    assert values.shape == (1, 2, 4000)
    expected = [1, 30] if name == "poisson" else [2, 15]
    assert values.mean(axis=2)[0] == pytest.approx(expected, rel=0.1)
    (values,) = draw(f"_random_{name}_like", {}, np.zeros((50, 80), np.float16))
    assert values.dtype == np.float16
    assert values.mean() == pytest.approx(1, abs=0.1)


def test_rows_are_shuffled_as_a_whole() -> None:
    rows = np.arange(60, dtype=np.float32).reshape(20, 3)
    (values,) = draw("_shuffle", {}, rows)
    assert not np.array_equal(values, rows)
    np.testing.assert_array_equal(values[np.argsort(values[:, 0])], rows)


def test_categories_are_drawn_with_their_probabilities() -> None:
    chances = np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]], np.float32)
    attributes = {"shape": "(20000,)", "get_prob": "True"}
    places, logarithms = draw("_sample_multinomial", attributes, chances, outputs=2)
    assert places.dtype == np.int32
    assert places.shape == (2, 20000)
    shares = np.bincount(places[0], minlength=3) / 20000
    assert shares == pytest.approx([0.1, 0.2, 0.7], abs=0.03)
    assert not places[1].any()
    np.testing.assert_allclose(
        logarithms, np.log(np.take_along_axis(chances, places.astype(int), 1)), rtol=1e-5
    )


@st.composite
def reshapes(drawn: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Draw codes, the input shape and the resulting shape; -1 at most once."""
    codes: list[int] = []
    shape: list[int] = []
    result: list[int] = []
    size = st.integers(1, 6)
    for kind in drawn(st.lists(st.sampled_from(["copy", "join", "split"]), max_size=5)):
        if kind == "copy":
            n = drawn(size)
            codes.append(0)
            shape.append(n)
            result.append(n)
        elif kind == "join":
            a, b = drawn(size), drawn(size)
            codes.append(-3)
            shape += [a, b]
            result.append(a * b)
        else:
            a, b = drawn(size), drawn(size)
            codes += [-4, *drawn(st.sampled_from([(a, b), (-1, b), (a, -1)]))]
            shape.append(a * b)
            result += [a, b]
    rest = drawn(st.lists(size, max_size=3))
    if rest and drawn(st.booleans()):
        codes.append(-1)
        result.append(math.prod(rest))
    else:
        codes.append(-2)
        result += rest
    return codes, shape + rest, result


@given(reshapes())
def test_reshape_codes_say_where_sizes_come_from(
    reshape: tuple[list[int], list[int], list[int]],
) -> None:
    codes, shape, result = reshape

    def evaluate(dims: list[Any]) -> list[int]:
        sizes = [d if isinstance(d, int) else math.prod(shape[axis] for axis in d) for d in dims]
        known = math.prod(size for size in sizes if size >= 0)
        return [math.prod(shape) // known if size < 0 else size for size in sizes]

    assert evaluate(decode(codes, shape, len(shape))) == result
    backward = decode_reversed(codes[::-1], shape[::-1], len(shape))
    shape.reverse()
    assert evaluate(backward) == result[::-1]


def test_every_operator_of_the_cases_is_in_the_table() -> None:
    assert set(cases()) <= set(load_table().operators())
