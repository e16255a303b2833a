"""Gradients of graphs made of libraries' operators."""

from __future__ import annotations

import numpy as np
import pytest

from custom_graphs import partitioned
from passlib import executor, nd, sym
from passlib.errors import OperatorError, PasslibError, UnsupportedError

pytestmark = pytest.mark.usefixtures("graph_operators")

A = np.array([3, -4], np.float32)
B = np.array([0.5, 2], np.float32)
ONES = np.ones(2, np.float32)


def bind(symbol, values, grad_req="write", start=0.0):
    """Bind float32 arrays, with an array for each gradient that begins with ``start``."""
    gradients = {name: nd.array(np.full(v.shape, start, np.float32)) for name, v in values.items()}
    args = {name: nd.array(v) for name, v in values.items()}
    return executor.bind(symbol, None, args, args_grad=gradients, grad_req=grad_req)


def network():
    """An expression of a and b in which every output and both inputs are used more than once."""
    a, b = sym.var("a"), sym.var("b")
    above, below = sym.tp_halves(sym.tp_product(a, b), name="h")
    squared = sym.tp_product(above, above)
    mixed = sym.tp_product(sym.tp_scale(below, factor=-3), a)
    return sym.Group([sym.tp_product(squared, b, name="p"), mixed, below])


def value_of(a, b):
    product = a * b
    above, below = np.maximum(product, 0), np.minimum(product, 0)
    return [above * above * b, -3 * below * a, below]


class TestNumbers:
    @pytest.mark.parametrize(
        ("make", "values", "grads", "expected"),
        [
            (lambda a, b: sym.tp_scale(a, factor=3), {"a": A}, [[1, 5]], {"a": [3, 15]}),
            (lambda a, b: sym.tp_product(b, a), {"a": A, "b": B}, [ONES], {"a": B, "b": A}),
            (lambda a, b: sym.tp_product(a, a), {"a": A}, [ONES], {"a": 2 * A}),
            (lambda a, b: sym.tp_halves(a)[1], {"a": A}, [ONES], {"a": [0, 1]}),
            (lambda a, b: sym.tp_halves(a), {"a": A}, [2 * ONES, 7 * ONES], {"a": [2, 7]}),
            (lambda a, b: a, {"a": A}, [B], {"a": B}),
            (
                lambda a, b: sym.Group([a, sym.tp_scale(a), sym.tp_scale(a, factor=4)]),
                {"a": A},
                [ONES, ONES, ONES],
                {"a": 7 * ONES},
            ),
            (lambda a, b: sym.tp_counter(sym.tp_counter(a)), {"a": A}, [B], {"a": B}),
        ],
    )
    def test_by_hand(self, make, values, grads, expected):
        bound = bind(make(sym.var("a"), sym.var("b")), values)
        bound.forward(is_train=True)
        bound.backward([np.asarray(grad, np.float32) for grad in grads])
        for name, gradient in expected.items():
            np.testing.assert_allclose(bound.grad_dict[name], gradient, rtol=1e-6)

    def test_against_finite_differences(self):
        random = np.random.default_rng(3)
        values = {name: random.standard_normal(5).astype(np.float32) for name in "ab"}
        weights = [random.standard_normal(5).astype(np.float32) for _ in range(3)]
        bound = bind(network(), values)
        for actual, expected in zip(bound.forward(is_train=True), value_of(**values), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
        bound.backward(weights)

        def total(given):
            return sum(
                float((w * v).sum()) for w, v in zip(weights, value_of(**given), strict=True)
            )

        step = 1e-5
        exact = {name: value.astype(np.float64) for name, value in values.items()}
        for name in "ab":
            for i in range(5):
                shift = np.zeros(5)
                shift[i] = step
                slope = total({**exact, name: exact[name] + shift})
                slope = (slope - total({**exact, name: exact[name] - shift})) / (2 * step)
                assert bound.grad_dict[name][i] == pytest.approx(slope, rel=1e-3, abs=1e-3)

    def test_state_is_that_of_the_forward_computation(self):
        bound = bind(sym.tp_counter(sym.var("a")), {"a": A})
        for count in (1, 2, 3):
            bound.forward(is_train=True)
            bound.backward(ONES)
            np.testing.assert_allclose(bound.grad_arrays[0], count * ONES)

    def test_arrays_are_the_callers(self):
        gradient = np.zeros(2, np.float32)
        bound = executor.bind(sym.tp_scale(sym.var("a")), None, {"a": A}, args_grad={"a": gradient})
        bound.forward()
        bound.backward(nd.array(ONES))
        np.testing.assert_allclose(gradient, 2 * ONES)

    def test_beside_built_in_operators(self):
        # exp is between b and the output, but the gradient of b is not requested.
        symbol = sym.tp_product(sym.var("a"), sym.exp(sym.var("b")))
        gradient = nd.zeros(2)
        bound = executor.bind(symbol, None, {"a": A, "b": B}, args_grad={"a": gradient})
        bound.forward(is_train=True)
        bound.backward(ONES)
        np.testing.assert_allclose(gradient, np.exp(B), rtol=1e-6)
        assert bound.grad_dict["b"] is None

    def test_mutated_states_get_no_gradient(self):
        symbol = sym.tp_scale(sym.tp_accumulate(sym.var("x"), sym.var("total")))
        bound = executor.bind(
            symbol, None, {"x": A}, args_grad={}, aux_states={"total": nd.zeros(2)}
        )
        assert bound.grad_dict == {"x": None}


class TestRequests:
    @pytest.mark.parametrize(
        ("grad_req", "expected"),
        [
            ("write", (B, A)),
            ("add", (2 * B + 10, 2 * A + 10)),
            ("null", (10, 10)),
            ({"a": "add"}, (2 * B + 10, 10)),
            (["null", "write"], (10, A)),
        ],
    )
    def test_requests(self, grad_req, expected):
        bound = bind(
            sym.tp_product(sym.var("a"), sym.var("b")), {"a": A, "b": B}, grad_req, start=10
        )
        for _ in range(2):
            bound.forward(is_train=True)
            bound.backward(ONES)
        for actual, wanted in zip(bound.grad_arrays, expected, strict=True):
            np.testing.assert_allclose(actual, np.broadcast_to(wanted, (2,)))

    def test_argument_that_no_output_needs_on_the_way(self):
        symbol = sym.Group([sym.tp_scale(sym.var("a")), sym.var("b")])
        bound = bind(symbol, {"a": A, "b": B}, start=5)
        bound.forward(is_train=True)
        bound.backward([ONES, 3 * ONES])
        np.testing.assert_allclose(bound.grad_dict["a"], 2 * ONES)
        np.testing.assert_allclose(bound.grad_dict["b"], 3 * ONES)

    @pytest.mark.parametrize(
        ("args_grad", "grad_req", "error", "message"),
        [
            ({"a": nd.zeros(3)}, "write", ValueError, r"'a' has shape \(3,\), the argument \(2,\)"),
            ({"a": [0, 0]}, "write", TypeError, "args_grad: 'a' is of type list"),
            ([nd.zeros(2)] * 2, "write", ValueError, "args_grad has 2 arrays"),
            (None, ["write"] * 2, ValueError, "grad_req has 2 elements, the symbol 1"),
            (
                {"a": nd.zeros((2, 2)).tostype("csr")},
                "write",
                UnsupportedError,
                "'a' cannot be a sparse array",
            ),
        ],
    )
    def test_refused(self, args_grad, grad_req, error, message):
        with pytest.raises(error, match=message):
            executor.bind(sym.tp_scale(sym.var("a")), None, {"a": A}, args_grad, grad_req)


class TestOutGrads:
    @pytest.mark.parametrize(
        "out_grads",
        [nd.array(B), [nd.array(B)], (B,), {"s_output": B}, [B.astype(np.float64)],
         [nd.array(B.astype(np.int32) * 0 + B)]],
    )  # fmt: skip
    def test_ways_to_give_them(self, out_grads):
        bound = bind(sym.tp_scale(sym.var("a"), name="s"), {"a": A})
        bound.forward(is_train=True)
        bound.backward(out_grads)
        np.testing.assert_allclose(bound.grad_dict["a"], 2 * B)

    @pytest.mark.parametrize(
        ("out_grads", "error", "message"),
        [
            (None, ValueError, r"needs the gradient of each output \(s_output\)"),
            ([], ValueError, "needs the gradient of each output"),
            ({"other": B}, ValueError, "needs the gradient of each output"),
            ([B, B], ValueError, "needs the gradient of each output"),
            (
                [np.ones(3, np.float32)],
                ValueError,
                r"'s_output' has shape \(3,\), the output \(2,\)",
            ),
            ([[1, 1]], TypeError, "'s_output' is of type list"),
        ],
    )
    def test_refused(self, out_grads, error, message):
        bound = bind(sym.tp_scale(sym.var("a"), name="s"), {"a": A}, start=1)
        bound.forward(is_train=True)
        with pytest.raises(error, match=message):
            bound.backward(out_grads)
        np.testing.assert_array_equal(bound.grad_dict["a"], 1)

    def test_before_forward(self):
        bound = bind(sym.tp_scale(sym.var("a")), {"a": A})
        with pytest.raises(PasslibError, match=r"call forward\(\) first"):
            bound.backward(ONES)


class TestRefused:
    @pytest.mark.parametrize(
        "make",
        [
            lambda a: sym.exp(a, name="e"),
            lambda a: sym.tp_scale(sym.exp(a, name="e")),
            lambda a: sym.exp(sym.tp_scale(a), name="e"),
        ],
    )
    def test_built_in_operator_on_the_way(self, make):
        symbol = make(sym.var("a"))
        expected = executor.bind(symbol, None, {"a": A}).forward()[0]
        for bound in (bind(symbol, {"a": A}, start=1), executor.simple_bind(symbol, None, a=(2,))):
            before = bound.grad_arrays[0].copy()
            # As in scripts for MXNet, which bind gradients even if they need outputs only.
            np.testing.assert_array_equal(bound.forward(is_train=True, a=A)[0], expected)
            with pytest.raises(UnsupportedError, match=r"node 'e' \(exp\) stands between"):
                bound.backward(ONES)
            np.testing.assert_array_equal(bound.grad_arrays[0], before)

    def test_operator_without_backward(self):
        symbol = sym.tp_linear(sym.var("a"), sym.var("w"), num_hidden=1, name="l")
        bound = bind(symbol, {"a": A[None], "w": B[None]})
        bound.forward(is_train=True)
        with pytest.raises(UnsupportedError, match=r"'l' .tp_linear.*graph_operators.*no backward"):
            bound.backward(np.ones((1, 1), np.float32))

    def test_state_that_does_not_compute_it(self):
        symbol = sym.tp_scale(partitioned(sym.exp(sym.var("x0")), ["a"]))
        bound = bind(symbol, {"a": A}, start=1)
        bound.forward(is_train=True)
        with pytest.raises(OperatorError, match=r"(?s)_op0"):
            bound.backward(ONES)
        np.testing.assert_array_equal(bound.grad_dict["a"], 1)


def test_simple_bind_makes_the_arrays():
    symbol = sym.tp_product(sym.var("a"), sym.var("b"))
    bound = executor.simple_bind(symbol, None, a=(2,))
    assert [array.shape for array in bound.grad_arrays] == [(2,), (2,)]
    bound.forward(is_train=True, a=A, b=B)
    bound.backward(ONES)
    np.testing.assert_allclose(bound.grad_dict["a"], B)
    only = executor.simple_bind(symbol, None, {"a": "add"}, a=(2,))
    assert only.grad_dict["b"] is None
    assert only.grad_dict["a"].shape == (2,)


def test_reshape_takes_gradients_along():
    bound = bind(sym.tp_product(sym.var("a"), sym.var("b")), {"a": A, "b": B})
    wide = bound.reshape(partial_shaping=True, a=(5,))
    assert [array.shape for array in wide.grad_arrays] == [(5,), (5,)]
    wide.forward(a=np.ones(5, np.float32), b=np.full(5, 2, np.float32))
    wide.backward(np.ones(5, np.float32))
    np.testing.assert_allclose(wide.grad_dict["a"], 2)
    assert bound.reshape(a=(2,)).grad_arrays[0] is bound.grad_arrays[0]
