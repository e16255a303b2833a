"""Pipelines in odd hands: other types, options that text must carry, instruments that raise."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import passlib
from passlib import Graph, Pipeline, PipelineError, graph_pass
from passlib.errors import PasslibError
from passlib.passes import Instrument, Timing

SEEN: list[dict[str, Any]] = []


def model() -> passlib.Model:
    x, w = passlib.sym.var("x"), passlib.sym.var("w")
    return passlib.Model(passlib.sym.broadcast_mul(x, w), {"w": np.ones(3, "float32")})


@graph_pass
def odd_options(
    graph: Graph,
    *,
    text: str = "a",
    words: Sequence[str] = (),
    numbers: Sequence[int] = (),
    limit: int | None = None,
    name: str | None = None,
) -> None:
    """Notes its options."""
    given = {"text": text, "words": words, "numbers": numbers, "limit": limit, "name": name}
    SEEN.append({key: value for key, value in given.items() if value not in ("a", (), None)})


@graph_pass
def double_twice(graph: Graph) -> None:
    """Doubles w up to 4."""
    if graph.args["w"][0] < 4:
        graph.args["w"] = graph.args["w"] * 2


@graph_pass
def breaks(graph: Graph) -> None:
    """Fails."""
    raise ValueError("on purpose")


@pytest.mark.parametrize(
    ("options", "text", "wanted"),
    [
        ({"limit": None, "name": None}, "limit=None, name=None", {}),
        ({"numbers": np.array([-1, 2])}, "numbers=[-1, 2]", {"numbers": (-1, 2)}),
        ({"numbers": range(2)}, "numbers=[0, 1]", {"numbers": (0, 1)}),
        ({"words": ["[x]", 'q"']}, 'words=["[x]", "q\\""]', {"words": ("[x]", 'q"')}),
        ({"text": '["a"]'}, 'text="[\\"a\\"]"', {"text": '["a"]'}),
        ({"text": '["\\q"]'}, 'text="[\\"\\\\q\\"]"', {"text": '["\\q"]'}),
        ({"text": "[a, b]"}, "text=[a, b]", {"text": "[a, b]"}),
        ({"text": "\ud800é"}, 'text="\\ud800\\u00e9"', {"text": "\ud800é"}),
    ],
)
def test_options_survive_the_text(
    options: dict[str, Any], text: str, wanted: dict[str, Any]
) -> None:
    pipeline = Pipeline((odd_options, options))
    assert str(pipeline) == f"odd_options{{{text}}}"
    assert str(pipeline).encode()
    assert Pipeline(str(pipeline)) == pipeline
    SEEN.clear()
    pipeline.run(model())
    model().optimize_for(odd_options, **options)
    Pipeline(str(pipeline)).run(model())
    assert [wanted] * 3 == SEEN


def test_lists_are_spelled_one_way() -> None:
    assert Pipeline("p{a=[ 1,\n2 , ]}") == Pipeline("p{a=[1, 2]}")
    assert str(Pipeline("p{a=[1,]}")) == "p{a=[1]}"


@pytest.mark.parametrize("text", ['["\\q"]', '"', '["a" b]', '["a", "b]'])
def test_lists_with_broken_quotes_are_refused(text: str) -> None:
    with pytest.raises(PasslibError, match="option 'words' takes a list, each item text, not"):
        model().optimize_for("odd_options", words=text)


@pytest.mark.parametrize(
    "steps", [odd_options, Pipeline("odd_options"), ("odd_options", {}), ["odd_options"]]
)
def test_one_step_may_stand_alone(steps: Any) -> None:
    assert str(Pipeline(steps)) == "odd_options"


@pytest.mark.parametrize("steps", [None, 3, b"a", {"a": 1}, [["a"]], [("a", "x=1")]])
def test_what_is_no_pipeline(steps: Any) -> None:
    with pytest.raises(TypeError, match="a step is the name of a pass"):
        Pipeline(steps)


@pytest.mark.parametrize("text", ["repeat<9>(double_twice)", "repeat<9>(double_twice, clean)"])
def test_repeats_see_weights_wherever_they_run(text: str) -> None:
    assert float(Pipeline(text).run(model()).model.args["w"][0]) == 4
    assert float(model().optimize_for(text).args["w"][0]) == 4


def test_repeats_see_weights_of_a_symbol() -> None:
    mine = np.ones(3, "float32")
    kept = np.ones(2, "float32")
    weights = {"w": mine, "other": kept}
    model().symbol.optimize_for("repeat<9>(double_twice)", args=weights)
    assert mine.tolist() == [4, 4, 4]
    assert weights["w"] is mine
    assert weights["other"] is kept
    with pytest.raises(passlib.PassError):
        model().symbol.optimize_for("repeat<9>(double_twice, breaks)", args={"w": kept})
    assert kept.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("subject", "arguments", "message"),
    [
        (model().symbol, {}, r"runs on a Model, not Symbol: make one with passlib.Model\("),
        (model(), {"instruments": Timing()}, r"a list, such as \[Timing\(\)\]"),
        (model(), {"instruments": [Timing]}, "an instrument needs the methods"),
        (model(), {"instruments": [object()]}, "an instrument needs the methods"),
        (model(), {"limit": 3}, "no parameter 'limit'; write the options of a pass after its name"),
    ],
)
def test_wrong_arguments_of_run(subject: Any, arguments: dict[str, Any], message: str) -> None:
    SEEN.clear()
    with pytest.raises(TypeError, match=message):
        Pipeline("odd_options").run(subject, **arguments)
    assert SEEN == []


class Raises(Instrument):
    """Raises in some of its methods, and counts the errors that it is told of."""

    def __init__(self, *places: str) -> None:
        self.places = places
        self.told = 0

    def before_pass(self, step: Any, model: Any) -> None:
        self._raise("before")

    def after_pass(self, step: Any, model: Any, result: Any) -> None:
        self._raise("after")

    def failed(self, step: Any, model: Any, error: Any) -> None:
        self.told += 1
        self._raise("failed")

    def _raise(self, place: str) -> None:
        if place in self.places:
            raise RuntimeError(f"in {place}")


@pytest.mark.parametrize(
    ("places", "text", "message", "cause"),
    [
        (("before",), "odd_options", "failed: Raises raised RuntimeError: in before", RuntimeError),
        (("after",), "odd_options", "failed: Raises raised RuntimeError: in after", RuntimeError),
        (("failed",), "breaks", "ValueError: on purpose", passlib.PassError),
        (("after", "failed"), "odd_options", "RuntimeError: in after", RuntimeError),
    ],
)
def test_instruments_that_raise(
    places: tuple[str, ...],
    text: str,
    message: str,
    cause: type[Exception],
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = Raises()
    with (
        caplog.at_level(logging.ERROR, "passlib.passes"),
        pytest.raises(PipelineError, match=message) as caught,
    ):
        Pipeline(text).run(model(), [Raises(*places), other])
    assert isinstance(caught.value.__cause__, cause)
    assert other.told == 1
    # An instrument that raised is not told of its own error.
    assert ("Raises failed while handling an error" in caplog.text) == (places == ("failed",))
