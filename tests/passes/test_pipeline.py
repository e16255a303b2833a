"""Pipelines: their text, their checks, what they return, and who looks on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import passlib
from passlib import Graph, Pipeline, PipelineError, graph_pass
from passlib.errors import FormatError, PasslibError, PassResultError, UnsupportedError
from passlib.library.pipeline import Repeat, Step
from passlib.passes import Dump, Instrument, Log, StepResult, Timing, Verify

SYM = passlib.sym


def model(count: int = 4) -> passlib.Model:
    """Return ``count`` relu after x * w."""
    symbol = SYM.broadcast_mul(SYM.var("x"), SYM.var("w"), name="m")
    for i in range(count):
        symbol = SYM.relu(symbol, name=f"relu{i}")
    return passlib.Model(symbol, {"w": np.ones((1, 3), "float32")})


@graph_pass
def drop_one(graph: Graph, *, op: str = "relu") -> None:
    """Takes out the first node of an operator."""
    for node in graph.sorted():
        if node.op == op:
            graph.replace(node.outputs[0], node.inputs[0])
            graph.remove(node)
            return


@graph_pass
def double(graph: Graph) -> None:
    """Doubles w."""
    graph.args["w"] = graph.args["w"] * 2


@graph_pass
def fails(graph: Graph) -> None:
    """Fails."""
    raise ValueError("on purpose")


@graph_pass
def misspells(graph: Graph) -> None:
    """Makes a graph that no program runs."""
    graph.nodes[-1].op = "reluu"


@graph_pass(dialects=["onnx"])
def only_onnx(graph: Graph) -> None:
    """Does nothing."""


class TestText:
    @pytest.mark.parametrize(
        ("text", "again"),
        [
            ("a", "a"),
            (" a ,b", "a, b"),
            ("a{}", "a"),
            ("a{x=1}", "a{x=1}"),
            ("a{x=1 y=two}", "a{x=1, y=two}"),
            ("a { x = -1.5e-3 , y = [ 1,2 , 3 ] }", None),
            ('"my pass"{"my option"="a, b", z=""}', '"my pass"{"my option"="a, b", z=""}'),
            ("repeat<4>(a, b{x=1})", "repeat<4>(a, b{x=1})"),
            ("a,repeat<2>(b,repeat<3>(c)),d", "a, repeat<2>(b, repeat<3>(c)), d"),
            ("repeat", "repeat"),
            ('"\\u0061\\/\\b\\u001F"', '"a/\\b\\u001f"'),
            ('"\\ud83d\\ude00\\u00E9\x7f"', '"😀é\x7f"'),
            ('"😀é\x7f\\ude00"', '"\\ud83d\\ude00\\u00e9\\u007f\\ude00"'),
            ('p{v=["\ud83d",b]}', 'p{v=["\\ud83d", b]}'),
            ("", ""),
        ],
    )
    def test_reads_and_prints(self, text: str, again: str | None) -> None:
        pipeline = Pipeline(text)
        if again is not None:
            assert str(pipeline) == again
        assert Pipeline(str(pipeline)) == pipeline

    @pytest.mark.parametrize(
        ("text", "place", "expected"),
        [
            ("a,", 2, "the name of a pass, but the text ends"),
            ("a b", 2, "',' or the end, not 'b'"),
            ("a{x}", 3, "'=', not '}'"),
            ("a{x=}", 4, "a value, not '}'"),
            ("a{x=1, x=2}", 7, "another option, since 'x' is given already"),
            ("a{x=[1 2]}", 7, "',' or ']', not '2]}'"),
            ("a{x=1", 5, "the name of an option, but the text ends"),
            ("repeat<0>(a)", 7, "a number of times from 1 to 1000000"),
            ("repeat<x>(a)", 7, "a number of times, not 'x>(a)'"),
            ("repeat<2>(a", 11, "',' or ')', but the text ends"),
            ("repeat<2>()", 10, "the name of a pass, not ')'"),
            ("a)", 1, "',' or the end, not ')'"),
            ('"a', 0, "the name of a pass as a JSON string"),
            ('"\n"', 0, "the name of a pass as a JSON string, not '\"\\n\"'"),
            ('"\\u12é4"', 0, "the name of a pass as a JSON string"),
            ('repeat<"">(a)', 7, "a number of times, not"),
            ("é{x='y'}", 0, "the name of a pass, not \"é{x='y'}\""),
            ('a{"é\ud800"=1 "é\\uD800"=2}', 9, "since 'é\\ud800' is given already, not"),
            ("repeat<2>(" * 200 + "a" + ")" * 200, 1010, "repeats nested at most 100 deep"),
        ],
    )
    def test_mistakes_have_a_place(self, text: str, place: int, expected: str) -> None:
        with pytest.raises(FormatError, match=f"character {place + 1}: expected") as caught:
            Pipeline(text)
        assert expected in str(caught.value)
        assert caught.value.offset == place

    WORDS = st.text(max_size=8)
    STEPS = st.recursive(
        st.builds(
            lambda name, options: Step(name, tuple(options.items())),
            WORDS,
            st.dictionaries(WORDS, WORDS, max_size=3),
        ),
        lambda inner: st.builds(
            lambda times, steps: Repeat(times, tuple(steps)),
            st.integers(1, 1_000_000),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=6,
    )

    @given(st.lists(STEPS, max_size=4))
    def test_prints_what_it_reads(self, steps: list[Any]) -> None:
        pipeline = Pipeline(steps)
        assert Pipeline(str(pipeline)) == pipeline

    @given(st.text(alphabet='ab,{}[]<>()="\\ =repeat1', max_size=30))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        try:
            pipeline = Pipeline(text)
        except FormatError:
            return
        assert Pipeline(str(pipeline)) == pipeline

    def test_of_a_list(self) -> None:
        pipeline = Pipeline(["a", drop_one, (drop_one, {"op": "x y"}), Pipeline("repeat<2>(b)")])
        assert str(pipeline) == 'a, drop_one, drop_one{op="x y"}, repeat<2>(b)'
        assert pipeline + Pipeline("c") == Pipeline([pipeline, "c"])
        assert hash(pipeline) == hash(Pipeline(str(pipeline)))

    @pytest.mark.parametrize(
        ("item", "kind", "message"),
        [
            (3, TypeError, "a step is the name of a pass"),
            (("drop_one", "op"), TypeError, "a step is the name of a pass"),
            ((drop_one, {"op": "x"}, 1), TypeError, "a step is the name of a pass"),
            (len, PasslibError, "'len' is not registered as a pass; decorate it"),
        ],
    )
    def test_of_other_things(self, item: Any, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            Pipeline([item])


class TestChecks:
    @pytest.mark.parametrize(
        ("text", "kind", "message"),
        [
            (
                "drop_one, nothing",
                PasslibError,
                "character 11: there is no pass or partit",
            ),
            ("drop_one{opp=x}", PasslibError, "character 10: pass 'drop_one' has no option 'opp'"),
            (
                "drop_one{op=relu, opp=x}",
                PasslibError,
                "character 19: pass 'drop_one' has no option",
            ),
            ("repeat<2>(drop_oen)", PasslibError, "character 11: .*did you mean 'drop_one'"),
            (
                "drop_one, only_onnx",
                UnsupportedError,
                "character 11: pass 'only_onnx' is for",
            ),
        ],
    )
    def test_before_anything_runs(self, text: str, kind: type[Exception], message: str) -> None:
        seen: list[str] = []

        class Look(Instrument):
            def before_pass(self, step: Step, model: passlib.Model) -> None:
                seen.append(step.name)

        with pytest.raises(kind, match=message):
            Pipeline(text).run(model(), [Look()])
        with pytest.raises(kind, match=message):
            model().optimize_for(text)
        assert seen == []

    def test_by_hand(self) -> None:
        pipeline = Pipeline("only_onnx")
        pipeline.check()
        pipeline.check("onnx")
        with pytest.raises(UnsupportedError):
            pipeline.check("ark")


class TestRuns:
    def test_a_result_says_what_each_step_did(self) -> None:
        before = model()
        result = Pipeline("drop_one, double, drop_one{op=tanh}").run(before)
        assert [(s.name, s.nodes_before, s.nodes_after, s.modified) for s in result.steps] == [
            ("drop_one", 5, 4, True),
            ("double", 4, 4, True),
            ("drop_one", 4, 4, False),
        ]
        assert [step.changed_nodes for step in result.steps] == [2, 0, 0]
        assert all(step.seconds > 0 for step in result.steps)
        assert result.modified
        assert float(result.model.args["w"][0, 0]) == 2
        assert len(before.symbol.nodes()) == 7
        assert float(before.args["w"][0, 0]) == 1
        lines = str(result).splitlines()
        assert lines[1].startswith("double: 4 -> 4 operators, weights changed, ")
        assert lines[2].startswith("drop_one{op=tanh}: 4 -> 4 operators, nothing changed, ")

    def test_weights_are_not_among_the_changed_operators(self) -> None:
        @graph_pass
        def drops_a_product(graph: Graph) -> None:
            (node,) = (node for node in graph.nodes if node.name == "m")
            graph.replace(node.outputs[0], node.inputs[0])
            graph.remove(node)

        (step,) = Pipeline([drops_a_product]).run(model()).steps
        # The product is gone and its reader has another input; the weight does not count.
        assert (step.nodes_before, step.nodes_after, step.changed_nodes) == (5, 4, 2)

    def test_nothing_is_modified(self) -> None:
        assert not Pipeline("drop_one{op=tanh}").run(model()).modified
        assert not Pipeline("").run(model()).modified

    def test_repeat_ends_when_nothing_changes(self) -> None:
        result = Pipeline("repeat<100>(drop_one)").run(model(3))
        assert [step.modified for step in result.steps] == [True, True, True, False]
        assert len(Pipeline("repeat<2>(drop_one)").run(model(3)).steps) == 2
        assert len(Pipeline("repeat<2>(repeat<9>(drop_one))").run(model(2)).steps) == 4

    def test_repeat_sees_weights(self) -> None:
        result = Pipeline("repeat<5>(double)").run(model())
        assert float(result.model.args["w"][0, 0]) == 32

    def test_messages_are_what_a_library_printed(
        self, load_plugin: Callable[[str], passlib.library.Library], capsys: Any
    ) -> None:
        load_plugin("good")
        result = Pipeline("echoOptions{b=2, a=[x, y]}, drop_one").run(model())
        assert [step.messages for step in result.steps] == [("a=[x, y]", "b=2"), ()]
        assert capsys.readouterr().out == "a=[x, y]\nb=2\n"

    def test_a_failing_step_has_the_model_before_it(self) -> None:
        with pytest.raises(PipelineError, match="step 2 of the pipeline, fails, failed") as e:
            Pipeline("drop_one, fails, drop_one").run(model())
        assert e.value.step == "fails"
        assert len(e.value.model.symbol.nodes()) == 6
        assert isinstance(e.value.__cause__, passlib.PassError)

    def test_inference_is_passed_on(self) -> None:
        seen: list[Any] = []

        @graph_pass(shapes=True, replace=True)
        def look(graph: Graph) -> None:
            seen.append(graph.outputs[0].shape)

        Pipeline([look]).run(model(), shapes={"x": (5, 3)})
        assert seen == [(5, 3)]


class TestOptimizeFor:
    def test_a_model_takes_text_lists_and_pipelines(self) -> None:
        for pipeline in (
            "drop_one, drop_one",
            ["drop_one", drop_one],
            Pipeline("repeat<2>(drop_one)"),
            [Pipeline("drop_one"), "drop_one{op=relu}"],
        ):
            assert len(model().optimize_for(pipeline).symbol.nodes()) == 5

    def test_a_symbol_too_and_its_dictionaries_change_at_the_end(self) -> None:
        weights = {"w": np.ones((1, 3), "float32")}
        symbol = model().symbol
        result = symbol.optimize_for("double, drop_one, double", args=weights)
        assert float(weights["w"][0, 0]) == 4
        assert len(result.nodes()) == 6
        with pytest.raises(passlib.PassError):
            symbol.optimize_for("double, fails", args=weights)
        assert float(weights["w"][0, 0]) == 4

    def test_options_stand_in_the_text(self) -> None:
        with pytest.raises(PasslibError, match=r"option 'op' was given next to a pipeline"):
            model().optimize_for("drop_one, drop_one", op="relu")

    def test_a_pass_of_that_name_comes_first(self) -> None:
        @graph_pass(name="a, b", replace=True)
        def strange(graph: Graph) -> None:
            """Does nothing."""

        assert len(model().optimize_for("a, b").symbol.nodes()) == 7


class TestInstruments:
    def test_they_see_every_step(self) -> None:
        seen: list[tuple[str, str, int]] = []

        class Look(Instrument):
            def before_pass(self, step: Step, model: passlib.Model) -> None:
                seen.append(("before", step.name, len(model.symbol.nodes())))

            def after_pass(self, step: Step, model: passlib.Model, result: StepResult) -> None:
                seen.append(("after", result.text, len(model.symbol.nodes())))

            def failed(self, step: Step, model: passlib.Model, error: Exception) -> None:
                seen.append(("failed", str(error.__cause__), len(model.symbol.nodes())))

        with pytest.raises(PipelineError):
            Pipeline("drop_one, fails").run(model(), [Look()])
        assert seen == [
            ("before", "drop_one", 7),
            ("after", "drop_one", 6),
            ("before", "fails", 6),
            ("failed", "on purpose", 6),
        ]

    def test_timing(self) -> None:
        timing = Timing()
        result = Pipeline("drop_one, double, drop_one").run(model(), [timing])
        assert timing.seconds.keys() == {"drop_one", "double"}
        total = sum(step.seconds for step in result.steps)
        assert sum(timing.seconds.values()) == pytest.approx(total)
        assert str(timing).splitlines()[-1].startswith("total")

    @pytest.mark.parametrize(("changed_only", "count"), [(False, 3), (True, 2)])
    def test_dump(self, tmp_path: Path, changed_only: bool, count: int) -> None:
        dump = Dump(tmp_path / "steps", changed_only=changed_only)
        with pytest.raises(PipelineError):
            Pipeline("drop_one, drop_one{op=tanh}, fails").run(model(), [dump])
        names = ["001-drop_one", "002-drop_one", "002-before-fails"]
        expected = names if not changed_only else [names[0], names[2]]
        assert sorted(p.name for p in (tmp_path / "steps").iterdir()) == sorted(expected)
        assert len(expected) == count
        saved = passlib.load(tmp_path / "steps" / "001-drop_one" / "model.json")
        assert len(saved.symbol.nodes()) == 6
        assert list(saved.args) == ["w"]

    def test_log(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "passlib.passes"), pytest.raises(PipelineError):
            Pipeline("drop_one, fails").run(model(), [Log()])
        assert [record.levelname for record in caplog.records] == ["INFO", "ERROR"]
        assert "drop_one: 5 -> 4 operators, 2 operators changed" in caplog.text
        assert "on purpose" in caplog.text

    def test_verify(self) -> None:
        assert Pipeline("drop_one").run(model(), [Verify()]).modified
        with pytest.raises(PipelineError, match=r"the model after misspells is invalid") as e:
            Pipeline("drop_one, misspells").run(model(), [Verify()])
        assert isinstance(e.value.__cause__, PassResultError)
        assert "reluu" in str(e.value)
