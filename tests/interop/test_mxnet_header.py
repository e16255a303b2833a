"""Passes built with MXNet's own lib_api: in passlib they give the same graph as in MXNet."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from corpus import DIALECT_LINE, ESCAPED, FAILING, MODELS, PORTABLE, read_model
from mxnet_process import MXNet, MXNetError, failure, messages
from passlib import sym
from passlib.errors import PassError, PassResultError

LIBRARY = "built_with_mxnet"
pytestmark = pytest.mark.filterwarnings("ignore:the pass removed parameters")

# What such a pass wants in quotes and the like, it has to escape itself.
CASES = {
    **PORTABLE,
    **{
        case: (name, {**options, "value": json.dumps(options["value"])[1:-1]})
        for case, (name, options) in ESCAPED.items()
    },
}
del CASES["set_spaces"]  # MXNet's reader knows no \uXXXX, nor is it written by hand what a tab is
CASES["set_tab"] = ("interop_setAttribute", {"value": "a\\tb\\nc\\\\d"})

# MXNet's lib_api visits nodes that no input leads to in the order of their addresses, so where a
# printed node stands may differ from run to run.
BLOCK = re.compile(r"^(?=\s*Node: |\s*#+$)", re.MULTILINE)
ENTRY = re.compile(r"\[(\d+), (\d+), \d+\]")


def without_versions(text: str) -> str:
    return ENTRY.sub(r"[\1, \2, 0]", text)


def edges(text: str) -> dict[tuple[str, int, str], int]:
    """Give the entry versions of a graph, by consumer, its input and producer."""
    nodes = json.loads(text)["nodes"]
    return {
        (node["name"], slot, nodes[producer]["name"]): version
        for node in nodes
        for slot, (producer, _, version) in enumerate(node["inputs"])
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("model", MODELS)
def test_same_graph(
    mxnet: MXNet,
    model: str,
    case: str,
    capsys: pytest.CaptureFixture[str],
    count_pair: Callable[[str, str, str], None],
) -> None:
    text = read_model(model)
    name, options = CASES[case]
    theirs = mxnet.observe("optimize", text=text, backend=name, options=options)
    symbol = sym.load_json(text)
    ours = symbol.optimize_for(name, **options).tojson()
    assert without_versions(ours) == without_versions(theirs.value)
    printed = capsys.readouterr().out
    assert printed.count(DIALECT_LINE) == (case == "print")
    ours_printed = BLOCK.split(printed.replace(DIALECT_LINE, ""))
    assert sorted(ours_printed) == sorted(BLOCK.split(theirs.printed))
    assert mxnet("rewrite", texts=[ours]) == [{"value": ours}]
    count_pair("MXNet", model, case)

    # The one difference: versions of entries are not lost where the edge is still there.
    before, after = edges(symbol.tojson()), edges(ours)
    kept = {edge: version for edge, version in before.items() if edge in after}
    assert {edge: after[edge] for edge in kept} == kept
    assert not any(edges(theirs.value).values())


@pytest.mark.parametrize("case", ESCAPED)
def test_text_that_breaks_their_writer_is_refused(mxnet: MXNet, case: str) -> None:
    text = read_model("resnet_v1_small")
    name, options = ESCAPED[case]
    with pytest.raises(MXNetError):
        mxnet("optimize", text=text, backend=name, options=options)
    with pytest.raises(PassResultError, match="line"):
        sym.load_json(text).optimize_for(name, **options)


@pytest.mark.parametrize("case", FAILING)
def test_same_messages(mxnet: MXNet, case: str) -> None:
    text = read_model("resnet_v1_small")
    name, options = FAILING[case]
    earlier, told = (failure(mxnet, text, name, options) for _ in range(2))
    with pytest.raises(PassError) as ours:
        sym.load_json(text).optimize_for(name, **options)
    # MXNet repeats what the library said in earlier calls.
    new = messages(told)[len(messages(earlier)) :]
    assert list(ours.value.messages) == new
    assert bool(new) == (case == "with_messages")
    for word in options.values():
        assert word in told
        assert word in str(ours.value)
