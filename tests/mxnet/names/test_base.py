"""`passlib.base`, `passlib.util`, and modules that say what passlib does not do."""

from __future__ import annotations

import array
import ctypes
import importlib
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passlib as mx
from passlib import autograd, base, nd, util
from passlib.errors import PasslibError, UnsupportedError


def test_error_of_mxnet_is_that_of_passlib() -> None:
    assert base.MXNetError is mx.MXNetError is PasslibError
    with pytest.raises(base.MXNetError):
        mx.library.find_backend("nonsense")


@pytest.mark.parametrize("name", ["MXLoadLib", "MXSymbolCreateFromJSON", "NNSymbolFree"])
def test_functions_of_the_c_library_say_that_there_is_none(name: str) -> None:
    function = getattr(base._LIB, name)
    assert function.__name__ == name
    with pytest.raises(UnsupportedError, match=rf"{name}: .*library\.load"):
        base.check_call(function(base.c_str("x"), ctypes.byref(base.SymbolHandle())))


def test_other_names_of_the_c_library_do_not_exist() -> None:
    assert not hasattr(base._LIB, "nonsense")
    with pytest.raises(PasslibError, match="C interface"):
        base.check_call(1)
    base.check_call(0)


def test_conversions_for_c() -> None:
    assert base.c_str("Grüße").value == "Grüße".encode()
    assert base.py_str("Grüße".encode()) == "Grüße"
    assert list(base.c_str_array(["a", "ü"])) == [b"a", "ü".encode()]
    assert list(base.c_array(base.mx_uint, [1, 2])) == [1, 2]
    memory = array.array("i", [3, 4])
    view = base.c_array_buf(base.mx_int, memory)
    memory[0] = 7
    assert list(view) == [7, 4]
    numbers = (base.mx_float * 6)(*range(6))
    pointer = ctypes.cast(numbers, base.mx_float_p)
    assert base.ctypes2numpy_shared(pointer, (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    text = ctypes.cast(ctypes.c_char_p(b"abc"), ctypes.POINTER(ctypes.c_char))
    assert base.ctypes2buffer(text, 2) == b"ab"
    with pytest.raises(TypeError):
        base.ctypes2buffer(pointer, 2)


def test_registered_errors_are_chosen_by_name() -> None:
    @base.register_error
    class OfATestError(Exception):
        pass

    assert base.c2pyerror("OfATestError: too much") == ("OfATestError: too much", OfATestError)
    assert base.c2pyerror("other")[1] is PasslibError


def test_numpy_shapes() -> None:
    x = nd.array([1, 2])
    assert x[0].shape == (1,)
    with util.np_shape():
        assert util.is_np_shape()
        assert x[0].shape == ()
        with util.np_shape(False):
            assert x[0].shape == (1,)
    assert not mx.is_np_shape()

    @mx.use_np_shape
    def first(values: Any) -> Any:
        return values[0]

    assert first(x).shape == ()
    assert util.set_np_shape(True) is False
    util.reset_np()
    assert x[0].shape == (1,)


@pytest.mark.parametrize("call", [util.set_np, lambda: util.np_array().__enter__()])
def test_numpy_arrays_of_mxnet_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"no arrays of mx\.np"):
        call()


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSLIB_OF_A_TEST", raising=False)
    util.setenv("PASSLIB_OF_A_TEST", "1")
    assert util.getenv("PASSLIB_OF_A_TEST") == os.environ["PASSLIB_OF_A_TEST"] == "1"
    util.setenv("PASSLIB_OF_A_TEST", None)
    assert util.getenv("PASSLIB_OF_A_TEST") is None
    assert util.get_gpu_count() == 0


@pytest.mark.parametrize(
    "call",
    [
        autograd.record,
        lambda: autograd.backward([nd.ones(1)]),
        lambda: autograd.set_training(True),
        lambda: autograd.pause(train_mode=True),
        lambda: nd.ones(1).attach_grad(),
        lambda: nd.ones(1).backward(),
        lambda: mx.sym.var("x").gradient("x"),
        lambda: mx.gluon.Trainer({}, "sgd"),
        lambda: mx.mod.Module(mx.sym.var("x")),
        mx.module.BucketingModule,
        lambda: mx.optimizer.SGD(learning_rate=0.1),
        lambda: mx.lr_scheduler.FactorScheduler(1),
        lambda: mx.kvstore.create("local"),
        lambda: mx.test_utils.check_numeric_gradient(mx.sym.var("x"), [1]),
        lambda: nd.sgd_update(nd.ones(1), nd.ones(1), lr=0.1),
    ],
)
def test_what_trains_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"does not train|belongs to training"):
        call()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: mx.np.array([1]), r"np\.array: .*no arrays of mx\.np.*passlib\.nd"),
        (mx.npx.set_np, r"npx\.set_np: .*no arrays of mx\.np"),
        (lambda: mx.numpy_extension.relu(1), "numpy_extension.relu: .*no arrays"),
        (lambda: mx.sym.np.sum(mx.sym.var("x")), r"np\.sum: .*no arrays of mx\.np"),
        (lambda: nd.np.ones(1), r"np\.ones: .*no arrays of mx\.np"),
        (lambda: mx.rnn.LSTMCell(8), r"rnn\.LSTMCell: .*no cells.*sym\.RNN"),
        (lambda: mx.operator.register("mine"), r"operator\.register: .*in Python; .*C\+\+"),
        (lambda: types.new_class("Mine", (mx.optimizer.Optimizer,)), "does not train"),
        (lambda: types.new_class("Mine", (mx.operator.CustomOp,)), "written in Python"),
    ],
)
def test_what_is_absent_says_so(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        use()


def test_absent_modules_can_be_imported() -> None:
    for name in ("np", "npx", "numpy", "numpy_extension", "operator", "rnn"):
        assert importlib.import_module(f"passlib.{name}") is getattr(mx, name)


def test_contexts_for_prediction_have_no_effect() -> None:
    with autograd.predict_mode(), autograd.pause():
        assert nd.Dropout(nd.ones((2,)), p=0.9).asnumpy().tolist() == [1, 1]
    assert not autograd.is_recording()
    assert not autograd.is_training()
    assert autograd.set_recording(False) is False


def test_symbols_refuse_what_needs_elements() -> None:
    x = mx.sym.var("x")
    for name in ("asnumpy", "asscalar", "copy", "wait_to_read"):
        with pytest.raises(UnsupportedError, match=f"Symbol.{name}: .*eval"):
            getattr(x, name)()
    assert abs(x).eval(x=nd.array([-1, 2]))[0].asnumpy().tolist() == [1, 2]
    assert np.asarray(abs(-x).eval(x=nd.array([3]))[0]).tolist() == [3]


def test_memory_of_gpus_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="CPU only"):
        mx.context.gpu_memory_info()
