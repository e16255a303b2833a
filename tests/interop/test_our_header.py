"""Passes built with passlib's header return the same graph in MXNet and in passlib."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from corpus import DIALECT_LINE, EDITING, ESCAPED, FAILING, MODELS, PORTABLE, read_model
from failures import both_fail
from mxnet_process import DiedError, MXNet, MXNetError
from passlib import sym

LIBRARY = "built_with_passlib"
pytestmark = pytest.mark.filterwarnings("ignore:the pass removed parameters")
CASES = {**PORTABLE, **ESCAPED, **EDITING}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("model", MODELS)
def test_same_graph(
    mxnet: MXNet,
    model: str,
    case: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    count_pair: Callable[[str, str, str], None],
) -> None:
    text = read_model(model)
    name, options = CASES[case]
    theirs = mxnet.observe("optimize", text=text, backend=name, options=options)
    for json_only in ("0", "1"):
        monkeypatch.setenv("PASSLIB_FORCE_JSON", json_only)
        ours = sym.load_json(text).optimize_for(name, **options).tojson()
        assert ours == theirs.value
        printed = capsys.readouterr().out
        assert printed.count(DIALECT_LINE) == (case == "print")
        assert printed.replace(DIALECT_LINE, "") == theirs.printed
    mxnet("accept", text=ours)
    count_pair("passlib", model, case)


def test_most_pairs_change_something(mxnet: MXNet) -> None:
    """Guard against passes that change nothing in these models."""
    idle = {"identity", "print", "print_attributes"}
    for case in CASES.keys() - idle:
        name, options = CASES[case]
        symbols = {model: sym.load_json(read_model(model)) for model in MODELS}
        changed = [
            model
            for model, symbol in symbols.items()
            if symbol.optimize_for(name, **options).tojson() != symbol.tojson()
        ]
        assert len(changed) >= 3, (case, changed)


@pytest.mark.parametrize("case", FAILING)
def test_same_messages(mxnet: MXNet, case: str) -> None:
    theirs, ours, messages = both_fail(mxnet, case)
    assert bool(messages) == (case != "without_message")
    name, options = FAILING[case]
    for word in (name, *options.values()):
        assert word in theirs
        assert word in ours


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 4}, "option 'level' takes integer in the range [1,3], not '4'"),
        ({"levle": 1}, "there is no option 'levle' (there are: op, users, kernel, level)"),
        ({"users": "maybe"}, "option 'users' takes boolean, not 'maybe'"),
    ],
)
def test_declared_options_hold_in_mxnet(
    mxnet: MXNet, options: dict[str, object], message: str
) -> None:
    """MXNet ignores declarations, so the library checks them itself."""
    with pytest.raises(MXNetError, match=re.escape(message)):
        mxnet("optimize", text=read_model("lstm_lm"), backend="interop_declared", options=options)


def test_a_dead_process_is_replaced(mxnet: MXNet) -> None:
    with pytest.raises(DiedError):
        mxnet("die")
    assert mxnet("version") == "1.9.1"
    text = read_model("resnet_v1_small")
    again = mxnet("optimize", text=text, backend="interop_identity", options={})
    assert again == sym.load_json(text).tojson()
