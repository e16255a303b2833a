"""Passes that fail in both hosts, and the messages of their libraries."""

from __future__ import annotations

from typing import Any

import pytest

from corpus import FAILING, read_model
from mxnet_process import MXNet, MXNetError
from passlib import sym
from passlib.errors import PassError


def both_fail(mxnet: MXNet, case: str) -> tuple[str, str, list[str]]:
    """Run a pass of FAILING in both hosts, and check that they report the same messages.

    Returns
    -------
    theirs, ours : str
        Texts of the errors.
    messages : list of str
        Messages of the library.
    """
    text = read_model("resnet_v1_small")
    name, options = FAILING[case]
    earlier, theirs = (_failure(mxnet, text, name, options) for _ in range(2))
    with pytest.raises(PassError) as ours:
        sym.load_json(text).optimize_for(name, **options)
    # MXNet repeats the library's messages of earlier calls.
    messages = _messages(theirs)[len(_messages(earlier)) :]
    assert list(ours.value.messages) == messages
    return theirs, str(ours.value), messages


def _failure(mxnet: MXNet, text: str, name: str, options: dict[str, Any]) -> str:
    try:
        mxnet("optimize", text=text, backend=name, options=options)
    except MXNetError as error:
        return str(error)
    raise AssertionError(f"{name} succeeded in MXNet")


def _messages(text: str) -> list[str]:
    """List the library's messages in the text of an MXNetError, including earlier calls'."""
    return [line.split("] ", 1)[1] for line in text.splitlines() if line.startswith("\t[")]
