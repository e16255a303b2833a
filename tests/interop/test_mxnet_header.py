"""Passes built with MXNet's own lib_api return the same graph in passlib as in MXNet."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from corpus import DIALECT_LINE, ESCAPED, FAILING, MODELS, PORTABLE, read_model
from failures import both_fail
from mxnet_process import MXNet, MXNetError
from passlib import sym
from passlib.errors import PassResultError

LIBRARY = "built_with_mxnet"
pytestmark = pytest.mark.filterwarnings("ignore:the pass removed parameters")

# Such a pass must itself escape quotes and other special characters.
CASES = {
    **PORTABLE,
    **{
        case: (name, {**options, "value": json.dumps(options["value"])[1:-1]})
        for case, (name, options) in ESCAPED.items()
    },
}
del CASES["set_spaces"]  # MXNet's reader does not support \uXXXX
CASES["set_tab"] = ("interop_setAttribute", {"value": "a\\tb\\nc\\\\d"})

# MXNet's lib_api visits nodes without a path from an input in the order of their addresses, so the
# order of printed nodes may differ between runs.
BLOCK = re.compile(r"^(?=\s*Node: |\s*#+$)", re.MULTILINE)
ENTRY = re.compile(r"\[(\d+), (\d+), \d+\]")


def without_versions(text: str) -> str:
    return ENTRY.sub(r"[\1, \2, 0]", text)


def edges(text: str) -> dict[tuple[str, int, str], int]:
    """Return the entry versions of a graph, by consumer, its input and producer."""
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

    # The one difference: passlib keeps the versions of entries on edges that remain.
    before, after = edges(symbol.tojson()), edges(ours)
    kept = {edge: version for edge, version in before.items() if edge in after}
    assert {edge: after[edge] for edge in kept} == kept
    assert not any(edges(theirs.value).values())


@pytest.mark.parametrize("case", ESCAPED)
def test_text_that_breaks_mxnets_writer_is_refused(mxnet: MXNet, case: str) -> None:
    text = read_model("resnet_v1_small")
    name, options = ESCAPED[case]
    with pytest.raises(MXNetError):
        mxnet("optimize", text=text, backend=name, options=options)
    with pytest.raises(PassResultError, match="line"):
        sym.load_json(text).optimize_for(name, **options)


@pytest.mark.parametrize("case", FAILING)
def test_same_messages(mxnet: MXNet, case: str) -> None:
    theirs, ours, messages = both_fail(mxnet, case)
    assert bool(messages) == (case == "with_messages")
    _, options = FAILING[case]
    for word in options.values():
        assert word in theirs
        assert word in ours
