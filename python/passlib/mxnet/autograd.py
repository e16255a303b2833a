"""MXNet's ``autograd`` without gradients: functions for inference work, others raise an error."""

from __future__ import annotations

import contextlib

from passlib.mxnet.training import refuse

Function = refuse("autograd.Function")
backward = refuse("autograd.backward")
get_symbol = refuse("autograd.get_symbol")
grad = refuse("autograd.grad")
mark_variables = refuse("autograd.mark_variables")
record = refuse("autograd.record")
train_mode = refuse("autograd.train_mode")


def is_recording() -> bool:
    """Return False: nothing is recorded for gradients."""
    return False


def is_training() -> bool:
    """Return False: arrays are computed as in prediction."""
    return False


def set_recording(is_recording: bool) -> bool:
    """Return False, the state before.

    Raises
    ------
    UnsupportedError
        ``is_recording`` is true.
    """
    if is_recording:
        refuse("autograd.set_recording")()
    return False


def set_training(train_mode: bool) -> bool:
    """Return False, the state before.

    Raises
    ------
    UnsupportedError
        ``train_mode`` is true.
    """
    if train_mode:
        refuse("autograd.set_training")()
    return False


def pause(train_mode: bool = False) -> contextlib.AbstractContextManager[None]:
    """Return a context without effect, since nothing is recorded.

    Raises
    ------
    UnsupportedError
        ``train_mode`` is true.
    """
    set_training(train_mode)
    return contextlib.nullcontext()


def predict_mode() -> contextlib.AbstractContextManager[None]:
    """Return a context without effect: arrays are computed as in prediction."""
    return contextlib.nullcontext()
