"""Operators of libraries: asked, composed into symbols, and run on arrays."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib as pl
from passlib.errors import GraphError, LoadError, OperatorError, UnsupportedError
from passlib.library.arrays import ArrayType
from passlib.library.operator import Operator
from passlib.library.registry import find_operator

Plugin = Callable[[str], Path]

FLOAT = np.dtype(np.float32)
A = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
B = np.array([[1, -1], [0.5, 2], [3, 0]], np.float32)


@pytest.fixture(autouse=True)
def library(load_plugin: Callable[[str], pl.library.Library]) -> pl.library.Library:
    return load_plugin("operators")


def operator(name: str) -> Operator:
    found = find_operator(name)
    assert found is not None
    return found


def run(name: str, *arrays: Any, **kwargs: Any) -> Any:
    return getattr(pl.nd, name)(*arrays, **kwargs)


def alive() -> float:
    return float(run("plugin_alive").asscalar())


# Facts about an operator.


def test_what_a_library_holds(library: pl.library.Library) -> None:
    assert len(library.ops) == 11
    product = operator("plugin_product")
    assert product.library is library
    assert repr(product) == f"<Operator plugin_product of {library.path}>"
    assert (product.is_stateful, product.has_backward, product.is_subgraph) == (False, True, False)
    counter = operator("plugin_counter")
    assert (counter.is_stateful, counter.has_backward, counter.infers) == (True, True, True)
    assert not operator("plugin_abs").has_backward
    assert operator("_plugin_subgraph").is_subgraph
    assert not operator("_plugin_subgraph").infers
    assert find_operator("plugin_absent") is None


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 1), (0, 3), (7, 2)])
def test_arity_depends_on_attributes(inputs: int, outputs: int) -> None:
    attributes = {"inputs": str(inputs), "outputs": str(outputs)}
    assert operator("plugin_sums").arity(attributes) == (inputs, outputs)


def test_shapes_go_both_ways() -> None:
    accumulate, both = operator("plugin_accumulate"), (2, None, 3)
    assert accumulate.infer_shapes({}, [(2, 3), None], 1) == ([(2, 3), (2, 3)], [(2, 3)])
    assert accumulate.infer_shapes({}, [both, None], 1) == ([both, both], [both])
    assert accumulate.infer_shapes({}, [(None, 3), (2, None)], 1)[0] == [(None, 3), (2, None)]
    assert accumulate.infer_shapes({}, [None, None], 1) == ([None, None], [None])
    assert accumulate.infer_shapes({}, [(), ()], 1) == ([(), ()], [()])
    assert accumulate.infer_shapes({}, [(0, 2), None], 1)[1] == [(0, 2)]


def test_types_go_both_ways() -> None:
    half = np.dtype(np.float16)
    accumulate = operator("plugin_accumulate")
    assert accumulate.infer_types({}, [half, None], 1) == ([half, half], [half])
    assert accumulate.infer_types({}, [None, None], 1) == ([None, None], [None])


def test_size_beyond_the_abi() -> None:
    with pytest.raises(UnsupportedError, match=r"plugin_abs.*node 'n'.*32 bits.*4294967295"):
        operator("plugin_abs").infer_shapes({}, [(2**32 - 1,)], 1, "n")


@pytest.mark.parametrize("question", ["arity", "mutated_inputs"])
def test_subgraph_operator_says_nothing_of_itself(question: str) -> None:
    with pytest.raises(UnsupportedError, match="subgraph operator"):
        getattr(operator("_plugin_subgraph"), question)({}, "node")


# On arrays.


def test_product() -> None:
    result = run("plugin_product", pl.nd.array(A), pl.nd.array(B))
    assert type(result) is pl.nd.NDArray
    assert result.dtype == FLOAT
    np.testing.assert_array_equal(result, A @ B)


@pytest.mark.parametrize(
    "a",
    [np.asfortranarray(A), A.T.copy().T, np.repeat(A, 2, axis=0)[::2], A.astype(">f4")],
    ids=["Fortran", "transposed", "steps", "byte order"],
)
def test_inputs_of_any_layout(a: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(run("plugin_product", a, B), A @ B)


def test_gradients_of_product() -> None:
    gradient = np.array([[1, -1], [2, 0.5]], np.float32)
    found = operator("plugin_product").backward("n", {}, [gradient], [A, B], [A @ B])
    np.testing.assert_allclose(found[0], gradient @ B.T)
    np.testing.assert_allclose(found[1], A.T @ gradient)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    assert run("plugin_abs", np.zeros(shape, np.float32)).shape == shape


def test_several_outputs_and_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    results = run("plugin_sums", A, A, inputs=2, outputs=np.int64(3), note=(1, "x"))
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, 2 * A + k)
    assert capsys.readouterr().out == "sums inputs=2 outputs=3 note=(1, 'x')\n"


def test_operator_without_inputs() -> None:
    np.testing.assert_array_equal(run("plugin_sums", inputs=0, outputs=1), [0, 0])


def test_results_into_arrays() -> None:
    target = pl.nd.zeros((2, 2))
    assert run("plugin_product", A, B, out=target) is target
    np.testing.assert_array_equal(target, A @ B)
    with pytest.raises(TypeError, match="out needs a dense array like that"):
        run("plugin_product", A, B, out=pl.nd.zeros((3, 2)))
    with pytest.raises(TypeError, match="has 1 outputs, and out has 2"):
        run("plugin_product", A, B, out=[target, target])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [((A,), "takes 2 arrays, not 1"), ((A, 3), "input 1 is no array"), ((A, "x"), "no array")],
)
def test_wrong_arguments(arrays: tuple[Any, ...], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        run("plugin_product", *arrays)


def test_scratch_memory() -> None:
    values = np.arange(100_000, dtype=np.float32)
    np.testing.assert_array_equal(run("plugin_reverse", values), values[::-1])


def test_names_on_arrays() -> None:
    assert "plugin_product" in dir(pl.nd)
    assert "plugin_abs" in dir(pl.nd.contrib)
    np.testing.assert_array_equal(pl.nd.contrib.plugin_abs(-A), A)
    np.testing.assert_array_equal(pl.nd.op.plugin_abs(-A), A)
    assert pl.nd.plugin_abs.__name__ == "plugin_abs"
    with pytest.raises(AttributeError, match=r"plugin_prodct.*did you mean 'plugin_product'"):
        _ = pl.nd.plugin_prodct
    with pytest.raises(AttributeError, match=r"passlib\.sym"):
        _ = pl.nd.Convolution
    with pytest.raises(UnsupportedError, match="subgraph operator"):
        pl.nd._internal._plugin_subgraph(A)


# States.


def test_state_counts_and_is_destroyed(capsys: pytest.CaptureFixture[str]) -> None:
    before = alive()
    counter = operator("plugin_counter")
    state = counter.create_state("n", {"start": "10"}, [(2, 3)], [FLOAT])
    outputs = [ArrayType(FLOAT, (2, 3))]
    for number in (11, 12):
        np.testing.assert_array_equal(state.forward([A], outputs)[0], A + number)
    np.testing.assert_array_equal(state.backward([A], [A], [A])[0], 12 * A)
    assert alive() == before + 1
    assert capsys.readouterr().out == ""
    del state
    assert capsys.readouterr().out == "counter destroyed\n"
    assert alive() == before


def test_state_knows_shapes_and_types() -> None:
    state = operator("plugin_counter").create_state("n", {"from_shape": "1"}, [(7,)], [FLOAT])
    zeros = np.zeros(7, np.float32)
    assert state.forward([zeros], [ArrayType(FLOAT, (7,))])[0].tolist() == [71] * 7


def test_stateful_operator_on_arrays_starts_anew() -> None:
    before = alive()
    for _ in range(2):
        np.testing.assert_array_equal(run("plugin_counter", A, start=1), A + 2)
    assert alive() == before


def test_states_are_destroyed_in_any_thread() -> None:
    before = alive()
    states = [
        operator("plugin_counter").create_state("n", {}, [(2, 3)], [FLOAT]) for _ in range(40)
    ]
    threads = [threading.Thread(target=states.pop) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert alive() == before


# Inputs that are written to.


def test_mutated_input() -> None:
    total = pl.nd.array(A)
    assert operator("plugin_accumulate").mutated_inputs({}) == (1,)
    result = run("plugin_accumulate", A, total)
    np.testing.assert_array_equal(total, 2 * A)
    np.testing.assert_array_equal(result, 2 * A)


def test_mutated_input_that_is_not_contiguous() -> None:
    wide = np.repeat(A, 2, axis=1)
    run("plugin_accumulate", A, wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], 2 * A)
    np.testing.assert_array_equal(wide[:, 1::2], A)


def test_mutated_input_that_is_read_only() -> None:
    total = A.copy()
    total.flags.writeable = False
    with pytest.raises(ValueError, match="writes to its input 1, which is read-only"):
        run("plugin_accumulate", A, total)


# Sparse arrays.

SPARSE = np.array([[0, 0, -1, 0], [0, 0, 0, 0], [2, 0, 0, -3]], np.float32)


def test_csr() -> None:
    given = pl.nd.array(SPARSE).tostype("csr")
    result = run("plugin_transpose", given)
    assert isinstance(result, pl.nd.CSRNDArray)
    assert result.shape == (4, 3)
    np.testing.assert_array_equal(result.asnumpy(), SPARSE.T)
    np.testing.assert_array_equal(result.indptr, [0, 1, 1, 2, 3])


def test_row_sparse() -> None:
    result = run("plugin_abs", pl.nd.array(SPARSE).tostype("row_sparse"))
    assert isinstance(result, pl.nd.RowSparseNDArray)
    np.testing.assert_array_equal(result.indices, [0, 2])
    np.testing.assert_array_equal(result.asnumpy(), np.abs(SPARSE))
    np.testing.assert_array_equal(run("plugin_abs", SPARSE), np.abs(SPARSE))


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_sparse_array_without_values(stype: str) -> None:
    name = "plugin_transpose" if stype == "csr" else "plugin_abs"
    result = run(name, pl.nd.zeros((3, 2)).tostype(stype))
    assert result.stype == stype
    assert not result.asnumpy().any()


def test_storage_types() -> None:
    absolute = operator("plugin_abs")
    assert absolute.infer_storage({}, ["row_sparse"], 1) == (["row_sparse"], ["row_sparse"])
    assert operator("plugin_product").infer_storage({}, ["default"] * 2, 1)[1] == ["default"]
    with pytest.raises(OperatorError, match=r"dense inputs only.*setInferSType.*input 1 is sparse"):
        run("plugin_product", SPARSE.T.copy(), pl.nd.array(SPARSE).tostype("csr"))


# Random numbers. What MXNet 1.9.1 gave to the same operator.

DRAWN = {
    0: [[2357136044, 1791095845, 1872583848], [2546248239, 4282876139, 794921487]],
    42: [[3560930129, 546507123, 1769108979], [3211926476, 1104871518, 4181197626]],
}


@pytest.mark.parametrize("seed", DRAWN)
def test_random_numbers_are_those_of_mxnet(seed: int) -> None:
    pl.random.seed(seed)
    first = run("plugin_draw", np.zeros(3, np.float32))
    rest: list[Any] = []
    thread = threading.Thread(
        target=lambda: rest.append(run("plugin_draw", np.zeros(3, np.float32)))
    )
    thread.start()
    thread.join()
    assert [first.tolist(), rest[0].tolist()] == DRAWN[seed]


def test_all_generators_are_there_and_differ() -> None:
    pl.random.seed(2**32 + 5, ctx=pl.cpu())
    drawn = run("plugin_draw", np.zeros(1024, np.float32)).tolist()
    assert len(set(drawn)) == 1024
    pl.random.seed(5)
    assert run("plugin_draw", np.zeros(1024, np.float32)).tolist() == drawn
    with pytest.raises(UnsupportedError, match="random numbers"):
        pl.random.seed(1, pl.gpu())


# In symbols.


def var(*names: str) -> list[pl.sym.Symbol]:
    return [pl.sym.var(name) for name in names]


def test_composed_as_in_mxnet() -> None:
    a, b = var("a", "b")
    symbol = pl.sym.plugin_product(a, b, name="p", note=(1, 2), flag=True, none=None, lr_mult=2)
    node = json.loads(symbol.tojson())["nodes"][2]
    attrs = {"note": "(1, 2)", "flag": "True", "none": "None", "__lr_mult__": "2"}
    assert node == {"op": "plugin_product", "name": "p", "attrs": attrs,
                    "inputs": [[0, 0, 0], [1, 0, 0]]}  # fmt: skip
    assert symbol.list_outputs() == ["p_output"]
    assert pl.sym.load_json(symbol.tojson()).tojson() == symbol.tojson()


def test_names_of_outputs_and_nodes() -> None:
    with pl.name.NameManager():
        many = pl.sym.plugin_sums(*var("a", "b"), inputs=2, outputs=3)
    assert many.list_outputs() == [f"plugin_sums0_output{i}" for i in range(3)]
    assert len(many.get_internals()) == 5
    again = pl.sym.load_json(many[1].tojson())
    assert again.get_internals().list_outputs() == ["a", "b", *many.list_outputs()]
    assert pl.sym.contrib.plugin_abs(var("a")[0], name="c").list_outputs() == ["c_output"]
    assert "plugin_abs" in dir(pl.sym.contrib)
    assert "plugin_product" in dir(pl.sym)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (1, "operator 'plugin_product' needs the input 'arg1'"),
        (3, r"operator 'plugin_product' takes 2 inputs \(arg0, arg1\).*not 3"),
    ],
)
def test_wrong_number_of_inputs(inputs: int, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        pl.sym.plugin_product(*var(*"abc"[:inputs]))


def test_one_input_has_mxnets_name_for_it() -> None:
    assert pl.sym.plugin_abs(data=var("a")[0]).list_arguments() == ["a"]


def test_attribute_named_dtype_is_text() -> None:
    symbol = pl.sym.plugin_abs(var("a")[0], dtype="i8")
    assert symbol.attr("dtype") == "i8"


def test_mutated_inputs_are_auxiliary_states() -> None:
    x, total, other = var("x", "total", "other")
    symbol = pl.sym.plugin_accumulate(pl.sym.plugin_accumulate(x, total), other) + total
    for each in (symbol, pl.sym.load_json(symbol.tojson())):
        assert each.list_arguments() == ["x"]
        assert each.list_auxiliary_states() == ["total", "other"]
    nodes = json.loads(symbol.tojson())["nodes"]
    assert nodes[2]["inputs"] == [[0, 0, 0], [1, 0, 1]]
    with pytest.raises(GraphError, match="must be a variable and is the output of"):
        pl.sym.plugin_accumulate(x, pl.sym.plugin_abs(total))


SUBGRAPH = {
    "nodes": [
        {"op": "null", "name": "a0", "inputs": []},
        {"op": "null", "name": "state0", "inputs": []},
        {"op": "plugin_accumulate", "name": "acc", "inputs": [[0, 0, 0], [1, 0, 1]]},
    ],
    "arg_nodes": [0, 1],
    "node_row_ptr": [0, 1, 2, 3],
    "heads": [[2, 0, 0]],
}


def around(inner: dict[str, Any], depth: int) -> str:
    for level in range(depth):
        inner = {
            "nodes": [
                {"op": "null", "name": f"a{level}", "inputs": []},
                {"op": "null", "name": f"s{level}", "inputs": []},
                {"op": "_plugin_subgraph", "name": f"sub{level}",
                 "inputs": [[0, 0, 0], [1, 0, 0]], "subgraphs": [inner]},
            ],
            "arg_nodes": [0, 1],
            "node_row_ptr": [0, 1, 2, 3],
            "heads": [[2, 0, 0]],
        }  # fmt: skip
    return json.dumps({**inner, "attrs": {"mxnet_version": ["int", 10901]}})


@pytest.mark.parametrize("depth", [1, 3])
def test_states_within_subgraphs(depth: int) -> None:
    symbol = pl.sym.load_json(around(SUBGRAPH, depth))
    assert symbol.list_arguments() == [f"a{depth - 1}"]
    assert symbol.list_auxiliary_states() == [f"s{depth - 1}"]
    assert symbol.list_outputs() == [f"sub{depth - 1}_output"]


def test_subgraphs_nested_too_deeply() -> None:
    symbol = pl.sym.load_json(around(SUBGRAPH, 66))
    with pytest.raises(UnsupportedError, match="more than 64 levels"):
        symbol.list_arguments()


def test_subgraph_operator_is_not_composed() -> None:
    with pytest.raises(UnsupportedError, match=r"_plugin_subgraph.*cannot be composed"):
        pl.sym._internal._plugin_subgraph(*var("a"))


# Libraries in plain C, of every version.


@pytest.mark.parametrize("abi", [7, 8, 9, 10, 11])
def test_versions_of_the_abi(plugin: Plugin, abi: int, caplog: pytest.LogCaptureFixture) -> None:
    pl.library.load(plugin(f"plain_operator_{abi}"), verbose=False)
    values = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(run(f"plain_double{abi}", values), 2 * values)
    with caplog.at_level(logging.WARNING, "passlib.library.operators"):
        for number in (1, 2):
            # Before version 11 nobody destroys the states.
            states = number if abi < 11 else 1
            result = run(f"plain_double{abi}_counter", values)
            np.testing.assert_array_equal(result, values + 1 + 100 * states)
    assert len(caplog.records) == (2 if abi == 11 else 0)


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no parse": (("-DWITHOUT_PARSE",), "'plain_double11' is not complete: setParseAttrs was not"),
    "no types": (("-DWITHOUT_TYPE",), "is not complete: setInferType was not called"),
    "no shapes": (("-DWITHOUT_SHAPE",), "is not complete: setInferShape was not called"),
    "no forward": (("-DWITHOUT_FORWARD",), "setForward or setCreateOpState was not called"),
    "no state": (("-DWITHOUT_STATE",), "is not complete: setCreateOpState was not called"),
    "no entry point": (("-DWITHOUT_ENTRY",), "has no function _opCallFCompute"),
    "name of MXNet's": (("-DNAME=Convolution",), "'Convolution' is one that MXNet itself has"),
    "alias of MXNet's": (("-DNAME=relu",), r"'relu' is one that MXNet itself has; load with repl"),
    "name twice": (("-DTWICE",), "registers the operator 'plain_double11' twice"),
    "name of another's": (("-DNAME=plugin_abs",), r"already registered by '.*operators\.so'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(
    tmp_path: Path, compile_plain: Callable[..., Path], library: pl.library.Library, case: str
) -> None:
    flags, words = REFUSED[case]
    path = compile_plain(tmp_path, *flags)
    before = pl.library.loaded()
    for _ in range(2):
        with pytest.raises(LoadError, match=words) as caught:
            pl.library.load(path)
        assert repr(str(path)) in str(caught.value)
    assert pl.library.loaded() == before
    np.testing.assert_array_equal(run("plugin_abs", -A), A)


def test_taking_a_name_over(tmp_path: Path, compile_plain: Callable[..., Path]) -> None:
    first = pl.library.load(compile_plain(tmp_path, "-DNAME=contested_operator", "-DABI=8"))
    values = np.array([1, 2, 3], np.float32)
    symbol = pl.sym.contested_operator
    path = compile_plain(tmp_path, "-DNAME=contested_operator", "-DABI=9")
    with pytest.raises(LoadError, match="replace=True"):
        pl.library.load(path)
    assert operator("contested_operator").library is first
    second = pl.library.load(path, replace=True)
    assert operator("contested_operator").library is second
    np.testing.assert_array_equal(run("contested_operator", values), 2 * values)
    assert symbol(var("a")[0], name="x").list_outputs() == ["x_output"]


def test_loading_again_changes_nothing(plugin: Plugin) -> None:
    before = operator("plugin_abs")
    pl.library.load(plugin("operators"))
    assert operator("plugin_abs") is before
