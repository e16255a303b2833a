"""Errors of MXNet's inference of shapes and types, and inference from the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mxnet_graph import graph_of
from passlib import sym, util
from passlib.errors import GraphError
from passlib.mxnet import schema

Shape = tuple[int, ...]

REFUSED: list[tuple[str, list[Shape], dict[str, str], str]] = [
    ("sum", [(2, 3)], {"axis": "2"}, "axis 2 is outside"),
    ("softmax", [(2, 3)], {"axis": "-3"}, "axis -3 is outside"),
    ("Reshape", [(2, 3)], {"shape": "(4, 2)"}, "6 elements do not make the shape"),
    ("Reshape", [(2, 3)], {"shape": "(0, 0, 0)"}, "refers to axis 2"),
    ("_np_reshape", [(2, 3)], {"newshape": "(5,)"}, "6 elements do not make the shape"),
    ("_np_reshape", [(2, 3)], {"newshape": "(4, -1)"}, "6 elements do not make the shape"),
    ("_npx_reshape", [(2, 3)], {"newshape": "(-5, -5)"}, "'newshape'"),
    ("_npi_broadcast_to", [(2, 3)], {"shape": "(4, 3)"}, "broadcasts no axis of 2 to 4"),
    ("_npi_broadcast_to", [(2, 3)], {"shape": "(3,)"}, "fewer axes"),
    ("_np_transpose", [(2, 3)], {"axes": "(0, 0)"}, "no order of 2 axes"),
    ("_np_moveaxis", [(2, 3)], {"source": "(0, 0)", "destination": "(0, 1)"}, "'source'"),
    ("_npi_diag_indices_from", [(2, 3)], {}, "one size"),
    ("_npi_einsum", [(2,), (3,)], {"subscripts": "i,i->", "num_args": "2"}, "sizes"),
    ("_npi_einsum", [(2,)], {"subscripts": "ij->i", "num_args": "1"}, "'subscripts'"),
    ("_npi_hsplit", [(2, 4)], {"axis": "1", "indices": "(3, 1)", "sections": "0"}, "falls"),
    ("_npi_hsplit", [(2, 4)], {"axis": "1", "indices": "(0, 5)", "sections": "0"}, "beyond axis 1"),
    ("_npi_split", [(2, 4)], {"axis": "1", "indices": "(1, 2)", "sections": "0"}, "begin with 0"),
    ("_np_max", [(0, 3)], {"axis": "0", "initial": "2"}, "size 0 has no extremum"),
    ("_image_resize", [(4, 4, 3)], {"size": "(3, 2, 2)"}, "one or two numbers"),
    ("_npi_bitwise_or", [(2, 3), (2, 2)], {}, "do not fit together"),
    (
        "_npi_tensordot",
        [(2, 3), (3, 2)],
        {"a_axes_summed": "(1,)", "b_axes_summed": "()"},
        "1 axes",
    ),
    ("_npi_blackman", [], {}, "'M' .absent.*is required"),
    ("_npi_boolean_mask_assign_scalar", [(2,), (2, 2)], {"value": "1"}, "too few axes"),
    ("Pad", [(1, 1, 2, 2)], {"mode": "edge", "pad_width": "(0, 0, 0, 0, -1, 0, 0, 0)"}, "negative"),
    ("one_hot", [(2,)], {"depth": "-1"}, "'depth'"),
    ("_eye", [], {"N": "-2"}, "'N'"),
    ("Dropout", [(2, 3)], {"axes": "(2,)"}, "'axes'"),
    ("Dropout", [(2, 3)], {"axes": "(-1,)"}, "'axes'"),
    ("LRN", [(1, 2, 3, 3)], {"nsize": "0"}, "'nsize'"),
    *(
        ("RNN", [(3, 2, 4), (30,), (1, 2, 2)], {"mode": "gru", "state_size": state,
         "num_layers": layers}, name)
        for state, layers, name in (("0", "1", "'state_size'"), ("2", "0", "'num_layers'"))
    ),
    ("BatchNorm", [(1, 2, 8, 8), (3,), (2,), (2,), (2,)], {}, r"require \(2\)"),
    ("ROIPooling", [(1, 2, 8, 8), (3, 4)], {"pooled_size": "(2, 2)", "spatial_scale": "1"}, "5"),
    (
        "_contrib_RROIAlign",
        [(1, 2, 8, 8), (3, 5)],
        {"pooled_size": "(2, 2)", "spatial_scale": "1"},
        r"\?, 6",
    ),
    (
        "_contrib_DeformablePSROIPooling", [(1, 4, 4, 4), (2, 5)],
        {"pooled_size": "0", "group_size": "1", "output_dim": "4", "spatial_scale": "1",
         "no_trans": "True"}, "'pooled_size'",
    ),
    ("_contrib_box_decode", [(2, 3, 5), (1, 3, 4)], {}, "4"),
    ("pick", [(3, 4), (3,)], {"axis": "0"}, r"\(4\)"),
    ("SoftmaxOutput", [(2, 3), (3,)], {}, r"require \(2\)"),
    ("LinearRegressionOutput", [(4, 2), (4,)], {}, r"require \(4, 2\)"),
    ("_contrib_dequantize", [(2, 3), (2,), (2,)], {}, r"require \(1\)"),
]  # fmt: skip


def symbol(op: str, count: int, attrs: dict[str, str]) -> Any:
    """Make the symbol of one operator of the variables x0, x1, ..."""
    operator = schema.find(op)
    assert operator is not None
    outputs = operator.num_outputs(attrs)
    return sym.Symbol(graph_of(op, [f"x{i}" for i in range(count)], attrs, outputs).entries)


@pytest.mark.parametrize(("op", "shapes", "attrs", "message"), REFUSED)
def test_shapes_that_do_not_fit_are_refused(
    op: str, shapes: list[Shape], attrs: dict[str, str], message: str
) -> None:
    given = {f"x{i}": shape for i, shape in enumerate(shapes)}
    with util.np_shape(op.startswith("_np")), pytest.raises(GraphError, match=message) as caught:
        symbol(op, len(shapes), attrs).infer_shape(**given)
    assert str(caught.value).startswith(f"node 'op' ({op})")


WINDOW = {"kernel": "(3, 3)", "num_filter": "4"}
FROM_DATA: list[tuple[str, int, dict[str, str], list[Shape], list[Shape], list[Shape]]] = [
    (
        "_contrib_DeformableConvolution", 4, WINDOW, [(2, 6, 8, 8), (2, 18, 6, 6)],
        [(4, 6, 3, 3), (4,)], [(2, 4, 6, 6)],
    ),
    (
        "_contrib_Proposal", 3, {"scales": "(2, 4)", "ratios": "(1,)", "rpn_post_nms_top_n": "9"},
        [(1, 4, 5, 6)], [(1, 8, 5, 6), (1, 3)], [(9, 5), (9, 1)],
    ),
    ("_contrib_dequantize", 3, {}, [(2, 3)], [(1,), (1,)], [(2, 3)]),
    (
        "_contrib_quantized_conv", 9, WINDOW, [(2, 6, 8, 8)],
        [(4, 6, 3, 3), (4,), *[(1,)] * 6], [(2, 4, 6, 6), (1,), (1,)],
    ),
    (
        "_contrib_quantized_fully_connected", 9, {"num_hidden": "5"}, [(2, 6)],
        [(5, 6), (5,), *[(1,)] * 6], [(2, 5), (1,), (1,)],
    ),
    ("_contrib_quantized_pooling", 3, {"kernel": "(2, 2)"}, [(1, 2, 4, 4)], [(1,)] * 2, [
        (1, 2, 3, 3), (1,), (1,),
    ]),
    ("stack", 2, {"num_args": "2", "axis": "1"}, [(3, 4)], [(3, 4)], [(3, 2, 4)]),
]  # fmt: skip
"""Operator, number of inputs, attributes, shapes of the first; shapes of the others and outputs."""


@pytest.mark.parametrize(("op", "count", "attrs", "data", "others", "outputs"), FROM_DATA)
def test_shapes_follow_from_the_data(
    op: str, count: int, attrs: dict[str, str], data: list[Shape], others: list[Shape],
    outputs: list[Shape],
) -> None:  # fmt: skip
    inputs, found, _ = symbol(op, count, attrs).infer_shape_partial(*data)
    assert inputs == [*data, *others]
    assert found == outputs


TYPED: list[tuple[str, list[str], dict[str, str], str]] = [
    ("softmax", ["float32"], {"dtype": "float16"}, "float16"),
    ("log_softmax", ["int32"], {"dtype": "float16"}, "float16"),
    ("softmin", ["float64"], {}, "float64"),
    ("where", ["int32", "float64", "float64"], {}, "float64"),
    ("batch_take", ["float16", "int32"], {}, "float16"),
    ("_contrib_index_array", ["float32"], {}, "int64"),
    ("_contrib_box_encode", ["float64"] * 6, {}, "float64"),
    ("_contrib_quantized_conv", ["uint8", "int8", *["float32"] * 4],
     {**WINDOW, "no_bias": "True"}, "int32"),
    ("_contrib_quantized_concat", ["uint8", "int8", *["float32"] * 4], {"num_args": "2"}, "int8"),
    ("_image_to_tensor", ["uint8"], {}, "float32"),
    ("_npi_indices", [], {"dimensions": "(2,)"}, "int32"),
    ("_npi_hanning", [], {"M": "3", "dtype": "float64"}, "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "types", "attrs", "wanted"), TYPED)
def test_types_follow_without_shapes(
    op: str, types: list[str], attrs: dict[str, str], wanted: str
) -> None:
    given = {f"x{i}": dtype for i, dtype in enumerate(types)}
    inputs, outputs, _ = symbol(op, len(types), attrs).infer_type(**given)
    assert [np.dtype(dtype) for dtype in inputs] == [np.dtype(name) for name in types]
    assert np.dtype(outputs[0]) == wanted


@pytest.mark.parametrize(
    "op", ["elemwise_add", "broadcast_hypot", "batch_dot", "_npi_hypot", "dot"]
)
def test_two_element_types_are_refused(op: str) -> None:
    with pytest.raises(GraphError, match=rf"node 'op' \({op}\): input 1 .*float16.*float32.*Cast"):
        symbol(op, 2, {}).infer_type(x0="float32", x1="float16")


TYPES_REFUSED = [
    ("_npi_arctan2", ("int8", "int8"), {}, "input 0 .*is int8.* floating-point numbers"),
    ("_npi_hypot", ("uint8", "uint8"), {}, "is uint8"),
    ("_npi_bitwise_and", ("float32", "float32"), {}, "integers and truth values"),
    ("_npi_bitwise_xor_scalar", ("float16",), {"scalar": "3"}, "is float16"),
    ("_npi_bitwise_or", ("int32", "uint8"), {}, "input 1 .*is uint8.* here int32"),
    ("_npi_lcm", ("int32", "float64"), {}, "is float64"),
    ("_npi_solve", ("float16", "float32"), {}, "any type but float16"),
    ("_npx_constraint_check", ("float32",), {}, "truth values"),
    ("_npi_insert_tensor", ("float32", "float32", "int32"), {}, "input 2 .*is int32.* int64"),
    ("_npi_boolean_mask_assign_tensor", ("int64", "bool", "float64"), {}, "input 2 .*is float64"),
    *(
        (op, ("float32", "float64"), {}, "input 1 .*is float64.* here float32")
        for op in ("_np_dot", "_npi_greater", "_npi_less_equal", "_npi_ldexp", "_npi_matmul")
    ),
    ("_npi_stack", ("float32", "float64"), {"num_args": "2"}, "input 1 .*is float64"),
    ("_npi_hstack", ("float32", "float64"), {"num_args": "2"}, "input 1 .*is float64"),
    ("elemwise_add", ("float32", "float64"), {}, "input 1 .*is float64"),
]


@pytest.mark.parametrize(("op", "dtypes", "attrs", "message"), TYPES_REFUSED)
def test_element_types_that_operators_do_not_take_are_refused(
    op: str, dtypes: tuple[str, ...], attrs: dict[str, str], message: str
) -> None:
    given = {f"x{i}": np.dtype(dtype) for i, dtype in enumerate(dtypes)}
    with pytest.raises(GraphError, match=rf"node 'op' \({op}\): .*{message}.*insert Cast"):
        symbol(op, len(dtypes), attrs).infer_type(**given)


@pytest.mark.parametrize("op", ["_npi_bitwise_and", "_npi_lcm", "_npi_bitwise_xor"])
def test_shapes_of_operators_of_integers_follow(op: str) -> None:
    with util.np_shape():
        found = symbol(op, 2, {}).infer_shape(x0=(2, 1), x1=(3,))
    assert found == ([(2, 1), (3,)], [(2, 3)], [])


def test_a_range_has_its_stop_although_the_length_may_be_inferred() -> None:
    attrs = {"start": "1", "stop": "4", "infer_range": "True"}
    (values,) = symbol("_arange", 0, attrs).eval()
    np.testing.assert_array_equal(values, np.array([1, 2, 3], np.float32))


@pytest.mark.parametrize("op", ["_npi_blackman", "_npi_hamming", "_npi_hanning"])
@pytest.mark.parametrize(("count", "wanted"), [(0, []), (1, [1]), (5, [0] * 5)])
def test_windows_of_integers_have_weights_of_integers(
    op: str, count: int, wanted: list[int]
) -> None:
    with util.np_shape():
        (values,) = symbol(op, 0, {"M": str(count), "dtype": "int32"}).eval()
    assert (values.dtype, values.tolist()) == (np.int32, wanted)


def test_a_matrix_of_ones_is_square_where_its_columns_are_negative() -> None:
    assert symbol("_eye", 0, {"N": "2", "M": "-2"}).infer_shape() == ([], [(2, 2)], [])


def test_reflecting_takes_the_default_as_none() -> None:
    attrs = {"mode": "reflect", "pad_width": "((1, 0),)", "reflect_type": "None"}
    (values,) = symbol("_npi_pad", 1, attrs).eval(x0=np.array([3, 5], np.float32))
    assert values.tolist() == [5, 3, 5]


def test_positions_along_no_axis_have_no_elements() -> None:
    (values,) = symbol("_contrib_index_array", 1, {"axes": "()"}).eval(x0=np.zeros((3, 2)))
    assert (values.dtype, values.shape) == (np.int64, (3, 2, 0))


@pytest.mark.parametrize("shape", [(0,), (0, 0, 0), (2, 0, 3)])
def test_positions_of_no_elements(shape: tuple[int, ...]) -> None:
    with util.np_shape():
        (values,) = symbol("_contrib_index_array", 1, {}).eval(x0=np.zeros(shape))
    assert (values.dtype, values.shape) == (np.int64, (*shape, len(shape)))


@pytest.mark.parametrize(
    ("axes", "shape"), [("(1, 1)", (4, 3, 6)), ("(1, -2)", (4, 3, 6)), ("(-2, 0, 1)", (2, 3, 6))]
)
def test_an_axis_that_slice_like_is_given_twice(axes: str, shape: tuple[int, ...]) -> None:
    inputs = {"x0": np.zeros((4, 5, 6)), "x1": np.zeros((2, 3, 4))}
    (values,) = symbol("slice_like", 2, {"axes": axes}).eval(**inputs)
    assert values.shape == shape


def parts(value: Any) -> Any:
    """Return the second of two equal parts of the last axis."""
    return sym.SliceChannel(value, num_outputs=2, axis=1, name="parts")[1]


BACKWARD: list[tuple[Any, list[str]]] = [
    (lambda x: sym.LeakyReLU(x, act_type="prelu", name="l"), ["float16", "float16"]),
    (lambda x: sym.LayerNorm(x, name="l"), ["float16"] * 3),
    (lambda x: sym.FullyConnected(parts(x), num_hidden=3, name="l"), ["float16"] * 3),
    (lambda x: sym.Deconvolution(x, kernel=(2,), num_filter=2, name="l"), ["float16"] * 2),
    (lambda x: sym.BatchNorm(x, name="l"), ["float16", "float32", "float32"]),
]
"""A layer of x, and the types of x and its parameters where the result is float16."""


@pytest.mark.parametrize(("layer", "wanted"), BACKWARD)
def test_types_of_inputs_follow_from_the_output(layer: Any, wanted: list[str]) -> None:
    total = sym.broadcast_add(sym.var("half"), layer(sym.var("x")), name="total")
    inputs, outputs, _ = total.infer_type(half="float16")
    assert [np.dtype(dtype).name for dtype in inputs] == ["float16", *wanted]
    assert outputs == [np.float16]


def test_the_shape_of_the_input_follows_from_any_part() -> None:
    total = sym.elemwise_add(parts(sym.var("x")), sym.var("y"))
    assert total.infer_shape(x=(0, 6), y=(4, 3)) == ([(4, 6), (4, 3)], [(4, 3)], [])


def test_slopes_follow_where_the_channels_are_found_later() -> None:
    layer = sym.LeakyReLU(parts(sym.LayerNorm(sym.var("x"), name="n")), act_type="prelu", name="l")
    assert layer.infer_shape(x=(2, 8))[0] == [(2, 8), (8,), (8,), (4,)]
