"""Calls of passes: options, graphs, output, results."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
import places
from passlib.errors import PassError
from passlib.symbol import Symbol

LoadPlugin = Callable[[str], passlib.library.Library]
MODELS = sorted((places.DATA / "mxnet/models").glob("*-symbol.json"))

NESTED = json.dumps(
    {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {
                "op": "_holder",
                "name": "outer",
                "inputs": [[0, 0, 0]],
                "subgraphs": [
                    {
                        "nodes": [
                            {"op": "null", "name": "y", "inputs": []},
                            {"op": "relu", "name": "inner", "inputs": [[0, 0, 0]]},
                        ],
                        "arg_nodes": [0],
                        "heads": [[1, 0, 0]],
                    }
                ],
            },
            {"op": "relu", "name": "last", "inputs": [[1, 0, 0]], "control_deps": [0]},
        ],
        "arg_nodes": [0],
        "heads": [[2, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
)


def graph_of(symbol: Symbol) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in json.loads(symbol.tojson())["nodes"]}


def test_both_ways_are_tested(load_plugin: LoadPlugin) -> None:
    good = load_plugin("good").core
    assert good.handover == "flat"
    assert good.is_ours
    assert load_plugin("plain_c_11").handover == "json"


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize("path", MODELS, ids=[path.name for path in MODELS])
def test_identity_changes_nothing(load_plugin: LoadPlugin, path: Path) -> None:
    load_plugin("good")
    symbol = passlib.sym.load(path)
    again = symbol.optimize_for("identity")
    assert again is not symbol
    assert again.tojson() == path.read_text("utf-8")
    assert again.list_auxiliary_states() == symbol.list_auxiliary_states()


@pytest.mark.usefixtures("handover")
def test_everything_that_a_graph_holds_survives(load_plugin: LoadPlugin) -> None:
    load_plugin("good")
    symbol = passlib.sym.load_json(NESTED)
    assert symbol.optimize_for("identity").tojson() == symbol.tojson()


@pytest.mark.usefixtures("handover")
def test_options_are_text(
    load_plugin: LoadPlugin, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("good")
    resnet.optimize_for(
        "echoOptions", a=1, b=2.5, c=True, d=None, e=[1, 2], f="text", g=(3,), h="ä=\n"
    )
    assert capsys.readouterr().out == (
        "a=1\nb=2.5\nc=True\nd=None\ne=[1, 2]\nf=text\ng=(3,)\nh=ä=\n\n"
    )
    resnet.optimize_for("echoOptions")
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("handover")
def test_prints_the_graph_as_mxnet_does(
    load_plugin: LoadPlugin, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("good")
    data = passlib.sym.var("data")
    symbol = passlib.sym.Activation(data, act_type="relu", name="relu")
    symbol.optimize_for("showGraph")
    assert capsys.readouterr().out == (
        "########### Graph #############\n"
        "attributes: \n"
        "\tdialect : mxnet\n"
        "inputs: 1\n"
        "outputs: 1\n"
        "nodes: 2\n"
        "Node: data\n"
        "\tOutput: relu 0\n"
        "Node: relu\n"
        "\tInput: data 0\n"
        "###############################\n"
    )


@pytest.mark.usefixtures("handover")
def test_the_version_of_the_file_is_not_shown(
    load_plugin: LoadPlugin, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("good")
    result = resnet.optimize_for("showJson")
    seen = json.loads(capsys.readouterr().out)
    assert set(seen) == {"nodes", "arg_nodes", "node_row_ptr", "heads", "dialect"}
    assert seen["dialect"] == "mxnet"
    assert "dialect" not in json.loads(result.tojson())
    assert json.loads(result.tojson())["attrs"] == {"mxnet_version": ["int", 10901]}


@pytest.mark.usefixtures("handover")
def test_long_output_arrives_in_order(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    load_plugin("good")
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        resnet.optimize_for("printMuch", lines=30000)
    assert stream.getvalue() == "".join(f"line {i} ä\n" for i in range(30000))


def test_error_of_the_stream_is_raised(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    load_plugin("good")

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            message = f"disk full after {len(text) and 0} bytes"
            raise OSError(message)

    with contextlib.redirect_stdout(Full()), pytest.raises(OSError, match="disk full after 0"):
        resnet.optimize_for("printMuch", lines=30000)
    assert resnet.optimize_for("identity").tojson() == resnet.tojson()


@pytest.mark.usefixtures("handover")
def test_output_of_a_failing_pass_is_not_lost(
    load_plugin: LoadPlugin, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("good")
    with pytest.raises(PassError, match="and then it failed"):
        resnet.optimize_for("printThenFail")
    assert capsys.readouterr().out == "said before the end"


@pytest.mark.usefixtures("handover")
def test_messages_of_success_are_not_errors(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    load_plugin("good")
    with pytest.warns(RuntimeWarning, match="succeeded, but reported by MX_ERROR_MSG: .*harmless"):
        assert resnet.optimize_for("catchesItself").tojson() == resnet.tojson()
    with pytest.raises(PassError) as caught:
        resnet.optimize_for("printThenFail")
    assert "harmless" not in str(caught.value)


@pytest.mark.usefixtures("handover")
def test_pass_sees_json_and_consumers(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    load_plugin("good")
    summary = json.loads(resnet.optimize_for("throughJson").attr("__summary__") or "")
    assert summary["count"] == 79
    assert summary["operators"]["Convolution"] == 9
    marked = graph_of(resnet.optimize_for("markConsumers"))
    for name, node in graph_of(resnet).items():
        used_by = [
            f"{user['name']}:{slot};"
            for user in graph_of(resnet).values()
            for slot, entry in enumerate(user["inputs"])
            if list(marked)[entry[0]] == name
        ]
        assert marked[name]["attrs"]["__consumers__"] == "".join(used_by), node


@pytest.mark.usefixtures("handover")
def test_every_public_function_of_the_header(
    load_plugin: LoadPlugin, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("every_api")
    with pytest.warns(RuntimeWarning, match="succeeded, but reported by MX_ERROR_MSG: "):
        assert resnet.optimize_for("everyApi").tojson() == resnet.tojson()
    assert "  Node: relu\n" in capsys.readouterr().out


@pytest.mark.usefixtures("handover")
def test_nested_graphs_are_within_reach(load_plugin: LoadPlugin) -> None:
    load_plugin("good")
    result = json.loads(passlib.sym.load_json(NESTED).optimize_for("markSubgraphs").tojson())
    assert [node["attrs"]["__level__"] for node in result["nodes"]] == ["0", "0", "0"]
    nested = result["nodes"][1]["subgraphs"][0]["nodes"]
    assert [node["attrs"]["__level__"] for node in nested] == ["1", "1"]


@pytest.mark.usefixtures("handover")
def test_control_dependency_orders_and_survives(load_plugin: LoadPlugin) -> None:
    load_plugin("good")
    x = passlib.sym.var("x")
    symbol = passlib.sym.Group([passlib.sym.relu(x, name="a"), passlib.sym.exp(x, name="b")])
    result = json.loads(symbol.optimize_for("addControl", before="b", after="a").tojson())
    assert [node["name"] for node in result["nodes"]] == ["x", "b", "a"]
    assert result["nodes"][2]["control_deps"] == [1]
    with pytest.raises(PassError, match="no such nodes"):
        symbol.optimize_for("addControl", before="b", after="z")


def test_initialize_prints_to_stdout(plugin: Callable[[str], Path]) -> None:
    # In a process of its own, because a library is initialized once a process.
    program = "import passlib, sys; passlib.library.load(sys.argv[1], verbose=False)"
    command = [sys.executable, "-c", program, plugin("mxnet_style")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed == "MXNet version 10901 supported\n"


def test_mxnet_style_passes(
    load_plugin: LoadPlugin, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("mxnet_style")
    capsys.readouterr()
    resnet.optimize_for("styledPrint", key="value")
    text = capsys.readouterr().out
    assert text.startswith("option: key ==> value\n########### Graph #############\n")
    assert text.count("Node: ") == 79
    added = resnet.optimize_for("styledAddInput")
    assert "resnetv10_conv0_fwd_input" in added.list_arguments()
    assert added.attr_dict()["resnetv10_conv0_fwd"]["__ext_extra_inputs__"] == "1"
    with pytest.raises(PassError, match="no operator nothing in a graph of 79 nodes"):
        resnet.optimize_for("styledAddInput", op="nothing")
    resnet.optimize_for("styledWalk")
    assert capsys.readouterr().out == "walked over 79 nodes\n"
    resnet.optimize_for("styledJson")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["MAP 5", "LIST 79", "STR data", "NUM 0"]
    assert lines[-1] == '{"answer" : 42,"list" : ["x"]}'
    resnet.optimize_for("styledShapes")
    assert capsys.readouterr().out.endswith("first [[1]]\n")


@pytest.mark.usefixtures("handover")
def test_allocating_without_a_dictionary(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    load_plugin("mxnet_style")
    with pytest.raises(PassError, match=r"styled_alloc.*args") as caught:
        resnet.optimize_for("styledAlloc")
    assert "styledAlloc" in str(caught.value)


def test_lists_of_arrays(load_plugin: LoadPlugin) -> None:
    """Scripts for MXNet 1.7 give arrays in the order of the variables."""
    load_plugin("mxnet_style")
    total = passlib.sym.exp(passlib.sym.var("x") + passlib.sym.var("y"))
    args: list[Any] = [passlib.nd.zeros((2, 3)), passlib.nd.zeros((2, 3))]
    aux: list[Any] = []
    first = args[0]
    changed = total.optimize_for("styledAlloc", args, aux)
    assert changed.list_arguments() == ["x", "y", "styled_alloc"]
    assert args[0] is first
    assert aux == []
    np.testing.assert_array_equal(changed.bind(passlib.cpu(), args).forward()[0], 2.5)
    new: list[Any] = []
    total.optimize_for("styledAlloc", new)
    assert [array.shape for array in new] == [(1,)]
    with pytest.raises(ValueError, match="args has 1 arrays, but the symbol wants 2: x, y"):
        total.optimize_for("styledWalk", new)
    with pytest.raises(ValueError, match="aux has 1 arrays, but the symbol wants 0: none"):
        total.optimize_for("styledWalk", aux=new)
    with pytest.raises(TypeError, match="args and aux of several passes must be dictionaries"):
        total.optimize_for(["styledWalk", "styledWalk"], args)


def test_threads(load_plugin: LoadPlugin, resnet: Symbol) -> None:
    """Four threads with different libraries and one symbol; each gets its own output."""
    for name in ("good", "edits", "mxnet_style", "plain_c_11"):
        load_plugin(name)
    wanted = {
        "identity": resnet.tojson(),
        "addBias": resnet.optimize_for("addBias").tojson(),
        "styledAddInput": resnet.optimize_for("styledAddInput").tojson(),
        "plainCopy11": resnet.tojson(),
    }
    different: list[str] = []

    def work(name: str) -> None:
        texts = {resnet.optimize_for(name).tojson() for _ in range(30)}
        if texts != {wanted[name]}:
            different.append(name)

    # Leaving the block waits; result() raises the exception of a thread.
    with ThreadPoolExecutor(len(wanted)) as pool:
        for future in [pool.submit(work, name) for name in wanted]:
            future.result()
    assert different == []


def test_other_threads_run_during_a_pass(
    load_plugin: LoadPlugin, resnet: Symbol, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("good")
    resnet.optimize_for("identity")
    thread = threading.Thread(
        target=resnet.optimize_for, args=("slow",), kwargs={"milliseconds": 600, "who": "a thread"}
    )
    thread.start()
    steps = 0
    while thread.is_alive():
        steps += 1
        time.sleep(0.001)
    thread.join()
    assert steps > 20
    assert capsys.readouterr().out == "slept for a thread\n"


def test_misaligned_arrays_are_lent_as_copies() -> None:
    library = passlib.library.load_standard()
    raw = np.zeros(13, "u1")[1:].view("f4")
    lent = passlib.library.compiled.Lent("args", {"w": raw}, ["w"])
    assert [array.flags.aligned for _, array, _ in lent.params] == [True]
    symbol = passlib.sym.broadcast_add(passlib.sym.var("x"), passlib.sym.var("w\0v"))
    with pytest.raises(passlib.GraphError, match="NUL byte"):
        symbol.optimize_for(library.passes[0], args={"w\0v": raw})


def test_weights_that_go_while_they_are_lent() -> None:
    """An array that is no array of NumPy is asked for one, which may run any code."""
    args: dict[str, Any] = {}

    class Clearing:
        def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray[Any, Any]:
            del dtype, copy
            args.clear()
            return np.ones(2, "f4")

    args.update(a=Clearing(), b=np.full(2, 3, "f4"))
    lent = passlib.library.compiled.Lent("args", args, ["a", "b"])
    assert [(name, array.tolist()) for name, array, _ in lent.params] == [
        ("a", [1.0, 1.0]),
        ("b", [3.0, 3.0]),
    ]
