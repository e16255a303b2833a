"""Declarations of compiled passes, the checks of their options, and lent weights."""

from __future__ import annotations

import json
import pydoc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib.errors import LoadError, PassError, PasslibError, UnsupportedError
from places import DATA

Plugin = Callable[[str], passlib.library.Library]
PASS = {
    "name": "declaresText", "description": "", "dialects": [], "options": [],
    "any_options": False, "needs_weights": True, "needs_shapes": True,
}  # fmt: skip
OPTION = {
    "name": "level", "description": "", "kind": "integer", "list": False, "default": 1,
    "choices": [], "range": [],
}  # fmt: skip


@pytest.fixture
def declared(load_plugin: Plugin) -> passlib.library.Library:
    return load_plugin("declared")


@pytest.fixture
def symbol() -> passlib.Symbol:
    x = passlib.sym.var("x")
    return passlib.sym.FullyConnected(x, num_hidden=2, no_bias=True, name="fc")


def weights() -> dict[str, np.ndarray]:
    return {"fc_weight": np.ones((2, 3), np.float32)}


def test_what_a_pass_declares(declared: passlib.library.Library) -> None:
    assert declared.passes[0] == "declaredEcho"
    declaration = declared.passes["declaredEcho"]
    assert passlib.library.passes()["declaredEcho"] == declaration
    assert str(declaration).splitlines() == [
        "declaredEcho: Repeats its options.",
        "  dialects: mxnet",
        "  flag: true or false; default false",
        "      Whether it is set.",
        "  level: a whole number from 1 to 3; default 1",
        "      How far it goes.",
        "  rate: a number from 0.0 to 1.0; default 0.5",
        "      A share.",
        "  mode: one of fast, exact; default fast",
        "      How it works.",
        "  axes: a list, each item a whole number from -4 to 4; default [0, 1]",
        "      Some axes.",
        "  names: a list, each item text; default []",
        "      Some names.",
        "  rates: a list, each item a number; default [0.25]",
        "      Some rates.",
        "  flags: a list, each item true or false; default [true, false]",
        "      Some flags.",
        f"  from {declared.path}",
    ]
    assert "How far it goes." in pydoc.render_doc(declaration)


def test_a_pass_that_declares_nothing_takes_anything(
    declared: passlib.library.Library, symbol: passlib.Symbol
) -> None:
    assert declared.passes["declaredNothing"].options is None
    symbol.optimize_for("declaredNothing", whatever=object, level=7)
    symbol.optimize_for("declaredAny", whatever=3, level=2)
    with pytest.raises(PasslibError, match="option 'level' takes a whole number from 1 to 3"):
        symbol.optimize_for("declaredAny", level=7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levle": 1}, "has no option 'levle'; did you mean 'level'"),
        ({"level": 4}, "option 'level' takes a whole number from 1 to 3, not 4"),
        ({"level": 1.5}, "option 'level' takes a whole number"),
        ({"flag": "maybe"}, "option 'flag' takes true or false, not 'maybe'"),
        ({"rate": -0.1}, "option 'rate' takes a number from 0.0 to 1.0"),
        ({"mode": "slow"}, "option 'mode' takes one of fast, exact, not 'slow'"),
        ({"axes": [5]}, "option 'axes' takes a list, each item a whole number from -4 to 4"),
        ({"names": "a", "rates": {}}, "option 'rates' takes a list"),
    ],
)
def test_options_are_checked_before_the_call(
    declared: passlib.library.Library,
    symbol: passlib.Symbol,
    options: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(PasslibError, match=message):
        symbol.optimize_for(declared.passes[0], **options)
    text = ", ".join(f"{name}={json.dumps(value)}" for name, value in options.items())
    if options.keys() < {"levle", "level", "flag", "mode"}:
        with pytest.raises(PasslibError, match=f"character 14: .*{message.partition(', not')[0]}"):
            passlib.Pipeline(f"declaredEcho{{{text}}}").run(passlib.Model(symbol, {}, {}))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "false 1 0.5 fast [0;1;0.25;true;false;] false"),
        ({"level": 1}, "false 1 0.5 fast [0;1;0.25;true;false;] true"),
        (
            {"flag": True, "level": "3", "rate": 1, "mode": "exact"},
            "true 3 1 exact [0;1;0.25;true;false;] true",
        ),
        (
            {"axes": (), "names": ["a, b", "c'd\"e", "(f]", "\n\\ü", " g "], "rates": [1e-3, 2]},
            "false 1 0.5 fast [a, b;c'd\"e;(f];\n\\ü; g ;0.001;2;true;false;] false",
        ),
        ({"axes": [-4], "flags": np.array([False])}, "false 1 0.5 fast [-4;0.25;false;] false"),
        ({"axes": "[2, 3]", "rates": "()"}, "false 1 0.5 fast [2;3;true;false;] false"),
    ],
)
@pytest.mark.usefixtures("handover", "declared")
def test_options_arrive_typed(symbol: passlib.Symbol, options: dict[str, Any], wanted: str) -> None:
    result = symbol.optimize_for("declaredEcho", **options)
    assert json.loads(result.tojson())["echo"] == wanted


@pytest.mark.usefixtures("handover", "declared")
def test_a_body_that_takes_texts_gets_the_defaults_in_the_form_of_values(
    symbol: passlib.Symbol,
) -> None:
    presets: dict[str, Any] = {
        "flag": True,
        "level": 2,
        "rate": 0.5,
        "mode": "fast",
        "axes": [1, 2],
        "names": [],
    }

    def echo(**options: Any) -> str:
        text = json.loads(symbol.optimize_for("declaredTexts", **options).tojson())["echo"]
        return str(text)

    wanted = "axes=[1, 2];flag=True;level=2;mode=fast;names=[];rate=0.5;"
    assert echo() == wanted
    assert echo(**presets) == wanted
    for name, value in presets.items():
        assert echo(**{name: value}) == wanted
    assert echo(level=3, other="x") == wanted.replace("level=2", "level=3").replace(
        "rate", "other=x;rate"
    )


@pytest.mark.usefixtures("declared")
def test_wrong_use_of_declared_options_is_named(symbol: passlib.Symbol) -> None:
    with pytest.raises(PassError, match="option 'mode' is declared as text"):
        symbol.optimize_for("declaredConfused")
    with pytest.raises(PassError, match="the pass declares no option 'other'"):
        symbol.optimize_for("declaredWithout")


@pytest.mark.usefixtures("declared")
def test_other_dialects_are_refused() -> None:
    path = DATA / "dlprim" / "activations_inplace.json"
    with pytest.raises(UnsupportedError, match="is for models of mxnet, and this one is of dlprim"):
        passlib.load(path).optimize_for("declaredEcho")


def known(symbol: passlib.Symbol) -> dict[str, str]:
    attrs = symbol.attr_dict()
    return {name: attrs[name]["__known__"] for name in ("x", "fc_weight", "fc")}


@pytest.mark.parametrize(
    ("name", "x", "weight", "fc"),
    [
        ("declaredNothing", "value inferred", "parameter lent inferred", "value inferred"),
        ("declaredLook", "value inferred", "parameter lent inferred", "value inferred"),
        ("declaredGraphOnly", "value", "parameter", "value"),
        ("declaredNoWeights", "value inferred", "parameter inferred", "value inferred"),
    ],
)
@pytest.mark.usefixtures("handover", "declared")
def test_a_pass_gets_what_it_needs(
    symbol: passlib.Symbol, name: str, x: str, weight: str, fc: str
) -> None:
    result = symbol.optimize_for(name, weights())
    assert known(result) == {"x": x, "fc_weight": weight, "fc": fc}


@pytest.mark.usefixtures("handover", "declared")
def test_data_among_the_arrays_is_no_parameter(symbol: passlib.Symbol) -> None:
    args = {**weights(), "x": np.ones((1, 3), np.float32)}
    assert known(symbol.optimize_for("declaredLook", args)) == {
        "x": "value lent inferred",
        "fc_weight": "parameter lent inferred",
        "fc": "value inferred",
    }
    assert known(symbol.optimize_for("declaredGraphOnly", args))["x"] == "value"


@pytest.mark.usefixtures("declared")
def test_arrays_that_are_not_lent_are_not_touched(symbol: passlib.Symbol) -> None:
    """Neither copied, though a pass could not write to it in place, nor changed."""

    class Untouchable(np.ndarray):
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise AssertionError

    given = np.arange(6, dtype=">f4").reshape(3, 2).T.view(Untouchable)
    given.flags.writeable = False
    args = {"fc_weight": given}
    assert known(symbol.optimize_for("declaredGraphOnly", args))["fc_weight"] == "parameter"
    assert args["fc_weight"] is given


@pytest.mark.usefixtures("declared")
def test_inferred_attributes_that_the_caller_asks_for(symbol: passlib.Symbol) -> None:
    result = symbol.optimize_for(
        "declaredGraphOnly", weights(), shape_dict={"x": (1, 3)}, keep_inferred=True
    )
    assert result.attr_dict()["fc"]["__ext_shape__"] == "[[1,2]]"


@pytest.mark.usefixtures("handover", "declared")
def test_parameters_are_added(symbol: passlib.Symbol) -> None:
    args = {**weights(), "bias": np.zeros(1, np.float32)}
    result = symbol.optimize_for("declaredBias", args)
    again = result.optimize_for("declaredBias", args, name="fc_weight")
    assert result.list_arguments() == ["x", "fc_weight", "bias1"]
    assert again.list_arguments() == ["x", "fc_weight", "bias1", "fc_weight2"]
    values = {name: array for name, array in args.items() if name in again.list_arguments()}
    x = np.ones((1, 3), np.float32)
    (output,) = passlib.Model(again, values, {}).run({"x": x}).values()
    assert output.tolist() == [[7.0, 7.0]]


def declaration(
    text: str, load: Plugin, monkeypatch: pytest.MonkeyPatch
) -> passlib.library.Library:
    monkeypatch.setenv("DECLARATIONS", text)
    return load("declares_text")


def option(**changes: Any) -> str:
    members = {k: v for k, v in {**OPTION, **changes}.items() if v is not ...}
    return whole({**PASS, "options": [members]})


def joined(**changes: Any) -> str:
    joins = {"pipelines": ["clean"], "after": "", "options": {}, "rounding": {}, "cost": "nodes"}
    members = {k: v for k, v in {**joins, **changes}.items() if v is not ...}
    return whole({**PASS, "options": [OPTION], "joins": members})


def whole(*passes: Any, **changes: Any) -> str:
    return json.dumps({"version": 1, "passes": list(passes), **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FAIL", "its _passlibDeclarations failed"),
        ("LONG", "returned more than 16777216 bytes"),
        ("{", "ends"),
        ("[]", "the text must be an object"),
        ("[" * 100, "deep"),
        ('{"version": 1, "version": 1}', "occurs twice"),
        ('{"version": 1}', "has no 'passes'"),
        (whole(version=2), "of version 2, and passlib reads version 1"),
        (whole(more=1), "unknown member 'more'"),
        (whole(3), r"passes\[0\] must be an object, not 3"),
        (whole({**PASS, "name": 1}), "'name' must be a string, not 1"),
        (whole({**PASS, "needs_weights": 1}), "'needs_weights' must be true or false, not 1"),
        (whole({**PASS, "name": "other"}), "'other' is declared, but no pass has that name"),
        (whole(PASS, PASS), "the pass 'declaresText' is declared twice"),
        (whole({**PASS, "dialects": [1]}), "a dialect must be a name, not 1"),
        (whole({**PASS, "options": [OPTION, OPTION]}), "the option 'level' twice"),
        (option(name=""), "has no name"),
        (option(kind="number"), "unknown kind 'number'"),
        (option(kind=...), "has no 'kind'"),
        (option(default="1"), 'is of kind integer, but has the value "1"'),
        (option(default=True), "is of kind integer, but has the value true"),
        (option(default=1.5), "is of kind integer, but has the value 1.5"),
        (option(default=None), "is of kind integer, but has the value null"),
        (option(list=True), "is a list, but its default is 1"),
        (option(choices=[2]), "its default is not accepted"),
        (option(range=[2, 3]), "its default is not accepted"),
        (option(range=[1]), "which is none"),
        (option(range=[3, 1]), "which is none"),
        (option(kind="text", default="a", range=["a", "b"]), "which is none"),
        (option(range=["1", 2]), 'is of kind integer, but has the value "1"'),
        (option(choices=["1"]), 'is of kind integer, but has the value "1"'),
        (option(list=True, default=[1, 1.5]), "but has the value 1.5"),
        (option(default=10**30), "but has the value 1000"),
        (whole({**PASS, "triggers": [""]}), "a trigger must be a name"),
        (joined(pipelines=[1]), "a pipeline must be a name, not 1"),
        (joined(cost="time"), "cost is one of nodes, weights, runs, not 'time'"),
        (joined(options={"levle": 1}), "joins: pass 'declaresText' has no option 'levle'"),
        (joined(rounding={"level": True}), "option 'level' is of kind integer, but has the value"),
        (joined(options={"level": [1]}), "option 'level' is of kind integer, but has the value"),
        (option(choices=[0, 9], default=5), "its default is not accepted"),
        (option(kind="real", choices=[0.5], default=0.25), "its default is not accepted"),
        (joined(after=...), "joins has no 'after'"),
        (whole({**PASS, "x" * 100: 1}), "unknown member 'x{80}\\.\\.\\.'"),
    ],
)
def test_wrong_declarations(
    load_plugin: Plugin, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    with pytest.raises(LoadError, match=rf"cannot load library .*declares_text.*{message}"):
        declaration(text, load_plugin, monkeypatch)
    assert "declaresText" not in passlib.library.passes()


@pytest.mark.parametrize(
    ("changes", "accepted", "refused"),
    [
        ({"choices": [1, 20]}, ["20", 1, "+01"], [2, "0", "1x"]),
        ({"kind": "real", "choices": [0.10, 2], "default": 2}, [0.1, "2.0", "1e-1"], [3, "a"]),
        ({"kind": "text", "choices": ["a,b", '"q'], "default": "a,b"}, ['"q'], ["a", "b"]),
        (
            {"kind": "text", "choices": ["a,b", "c"], "default": ["a,b"], "list": True},
            [["a,b", "c"], '["a,b"]'],
            ["a,b", ["a"]],
        ),
    ],
)
def test_choices(
    plugin: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    accepted: list[Any],
    refused: list[Any],
) -> None:
    given = {**OPTION, **changes}
    joins = {"pipelines": [], "after": "", "rounding": {}, "cost": "nodes"}
    joins["options"] = {"level": given["default"]}
    monkeypatch.setenv("DECLARATIONS", whole({**PASS, "options": [given], "joins": joins}))
    path = tmp_path / "copy.so"
    path.write_bytes(plugin("declares_text").read_bytes())
    library = passlib.library.load(path, verbose=False, replace=True)
    (found,) = library.passes["declaresText"].options or ()
    for value in accepted:
        found.checked(value)
    for value in refused:
        with pytest.raises(PasslibError, match="option 'level' takes"):
            found.checked(value)


def test_declarations_of_a_library_without_the_header(
    plugin: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "copy.so"
    path.write_bytes(plugin("declares_text").read_bytes())
    monkeypatch.setenv("DECLARATIONS", option(default=2, range=[-1, 2]))
    library = passlib.library.load(path, verbose=False, replace=True)
    assert library.passes == ("declaresText", "declaresMore")
    assert [o.type_text for o in library.passes["declaresText"].options or ()] == [
        "a whole number from -1 to 2"
    ]
    assert library.passes["declaresMore"].options is None
    assert library.passes[:1] == ("declaresText",)
