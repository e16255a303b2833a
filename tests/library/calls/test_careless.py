"""Mistakes that only the standard library reports: the error says what its text means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import passlib
from passlib.errors import OperatorError, PassError, UnsupportedError

LoadPlugin = Callable[[str], passlib.library.Library]

MISTAKES = [
    ("no attribute", "at", "key that the map does not have.*find"),
    ("no input", "_M_range_check", "beyond the end.*size"),
    ("no number", "stoi", "no number.*check the text"),
    ("no text", "substr", "beyond the end"),
    ("no memory", "std::vector|alloc|length", "impossible size|more memory"),
    ("no function", "bad_function_call", "empty std::function"),
]


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize(("mistake", "text", "meaning"), MISTAKES)
def test_mistakes_of_a_pass(load_plugin: LoadPlugin, mistake: str, text: str, meaning: str) -> None:
    library = load_plugin("careless")
    symbol = passlib.sym.exp(passlib.sym.var("x"), name="y")
    with pytest.raises(PassError, match=rf"(?s){text}.*That text means: .*{meaning}") as caught:
        symbol.optimize_for("careless", mistake=mistake)
    assert "'careless'" in str(caught.value)
    assert library.path in str(caught.value)


OTHER_TEXTS = [
    ("stoi: no conversion", "no number"),
    ("stod: out of range", "no number"),
    ("vector", "beyond the end"),
    ("deque", "beyond the end"),
    ("basic_string", "beyond the end"),
    ("vector<bool>::_M_range_check: __n (which is 3)", "beyond the end"),
    ("basic_string::erase: __pos (which is 9)", "beyond the end"),
    ("it has no vector", ""),
    ("the axis: out of range", ""),
]


@pytest.mark.parametrize(("text", "meaning"), OTHER_TEXTS)
def test_texts_of_other_standard_libraries(
    load_plugin: LoadPlugin, text: str, meaning: str
) -> None:
    load_plugin("careless")
    symbol = passlib.sym.exp(passlib.sym.var("x"), name="y")
    with pytest.raises(PassError) as caught:
        symbol.optimize_for("careless", mistake="other text", text=text)
    assert text in str(caught.value)
    assert ("That text means" in str(caught.value)) == bool(meaning)
    assert meaning in str(caught.value)


def test_mistakes_of_others(load_plugin: LoadPlugin) -> None:
    load_plugin("careless")
    x = passlib.sym.var("x")
    with pytest.raises(PassError, match=r"(?s)failed in supportedOps.*means: .*find\(\)"):
        passlib.sym.exp(x).optimize_for("carelessParts")
    with pytest.raises(OperatorError, match=r"(?s)parse its attributes.*stoi.*means: .*no number"):
        passlib.sym.careless_op(x, size="(1, 1)")


SHAPES = [
    ("1 " * 100, "100 dimensions; 0 to 32"),
    ("4611686018427387904 4 0", "more elements than fit in memory"),
    ("4611686018427387904 4", "more elements than fit in memory"),
    ("2 -1", "negative extent -1"),
]


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize(("shape", "words"), SHAPES)
def test_impossible_parameters(load_plugin: LoadPlugin, shape: str, words: str) -> None:
    load_plugin("careless")
    args: dict[str, object] = {}
    with pytest.raises(PassError, match=f"'allocates'.*allocates arg 'x' with.*{words}"):
        passlib.sym.exp(passlib.sym.var("x")).optimize_for("allocates", args, {}, shape=shape)
    assert args == {}


def test_empty_parameters(load_plugin: LoadPlugin) -> None:
    load_plugin("careless")
    args: dict[str, object] = {}
    passlib.sym.exp(passlib.sym.var("x")).optimize_for("allocates", args, {}, shape="3 0 2")
    assert [(name, getattr(array, "shape", None)) for name, array in args.items()] == [
        ("x", (3, 0, 2))
    ]


TEXTS = [
    ({"key": "a\0b"}, "'key' has a NUL byte"),
    ({"a\0b": "value"}, "name.*'a' has a NUL byte"),
    ({"key": "\ud800"}, "'key' has half of a surrogate pair"),
]


@pytest.mark.usefixtures("handover", "partitioners")
@pytest.mark.parametrize(("options", "words"), TEXTS)
def test_options_that_cannot_be_passed(
    load_plugin: LoadPlugin, options: dict[str, str], words: str
) -> None:
    load_plugin("good")
    symbol = passlib.sym.exp(passlib.sym.var("x"))
    for backend in ("identity", "partitionSelected"):
        with pytest.raises(UnsupportedError, match=words):
            symbol.optimize_for(backend, **options)
