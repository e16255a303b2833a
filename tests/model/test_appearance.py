"""Models as a line, a table and a page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import onnx_models
import passlib
from passlib import sym
from passlib.model import Model
from passlib.model.appearance import OperatorRow, Summary
from places import DATA


class Cells(HTMLParser):
    """Collects the rows of the tables of a page, and checks that tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def rows_of(page: str) -> list[list[str]]:
    parser = Cells()
    parser.feed(page)
    assert not parser.open
    return parser.rows


def test_inputs_with_types_of_mxnet() -> None:
    line = repr(Model(sym.relu(sym.var("data", shape=(0, 3), dtype="float16"), name="r")))
    assert line == (
        "<Model mxnet: inputs data float16 (?, 3); outputs r_output; 1 operator, 0 weights of 0 "
        "elements>"
    )


def test_inputs_with_types_of_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs the extra onnx")
    model = passlib.load(onnx_models.save(onnx_models.LOOP, tmp_path / "m.onnx"))
    assert "inputs x float32 (3), n int64 (), step float32 (3); outputs last, all;" in repr(model)


def test_inputs_with_types_of_dlprim() -> None:
    model = passlib.load(DATA / "dlprim" / "concat_slice.json")
    assert "inputs a float32 (2, 3, 4), b float32 (2, 5, 4), c float32 (2, 3, 2);" in repr(model)


def test_damaged_declarations_are_left_out() -> None:
    graph = sym.relu(sym.var("data", attr={"__shape__": "(2, q)", "__dtype__": "x"}), name="r")
    assert "inputs data; outputs r_output" in repr(Model(graph))


def test_summary(small: Model) -> None:
    summary = small.summary()
    (row,) = summary.rows
    assert (row.operator, row.count, row.parameters, row.nbytes) == ("FullyConnected", 1, 9, 36)
    assert str(summary) == (
        f"{repr(small)[1:-1]}\n\n"
        "operator        count  parameters  size\n"
        "FullyConnected      1           9  36 B\n"
        "total               1           9  36 B"
    )
    assert repr(summary) == str(summary)


def test_summary_counts_weights_once_and_nested_nodes(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs the extra onnx")
    model = passlib.load(onnx_models.save(onnx_models.NESTED, tmp_path / "m.onnx"))
    found = {row.operator: (row.count, row.parameters) for row in model.summary().rows}
    # The weight is used by Add, and captured by a branch of If.
    assert found == {
        "Add": (1, 4),
        "If": (2, 0),
        "Identity": (2, 0),
        "Relu": (1, 0),
        "Mul": (1, 0),
        "Sub": (1, 0),
    }
    assert model.summary().total.nbytes == 16


def test_summary_has_weights_that_nothing_uses_and_large_sizes() -> None:
    graph = sym.FullyConnected(sym.var("data"), num_hidden=1000, name="fc", no_bias=True)
    args = {"fc_weight": np.ones((1000, 2000), np.float32)}
    summary = Model.of_parts(graph, args, {"left": np.ones(3, np.float64)}, None).summary()
    lines = [line.split() for line in str(summary.table).splitlines()]
    assert lines[1] == ["FullyConnected", "1", "2,000,000", "8.0", "MB"]
    assert lines[2] == ["(no", "operator)", "0", "3", "24", "B"]


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(999, "999 B"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (10**12, "1000.0 GB")],
)
def test_sizes_are_spelled_in_the_next_unit(nbytes: int, text: str) -> None:
    row = OperatorRow("relu", 1, 1, nbytes)
    table = Summary("", (row,)).table
    assert str(table).splitlines()[1].endswith(f"  {text}")


def test_page_of_a_model(small: Model) -> None:
    rows = rows_of(small._repr_html_())
    assert ["input", "data", "", ""] in rows
    assert ["output", "fc_output", "", ""] in rows
    assert ["FullyConnected", "1", "9", "36 B"] in rows


def test_names_are_escaped() -> None:
    graph = sym.relu(sym.var("<b>&data"), name="<script>")
    for page in (Model(graph)._repr_html_(), graph._repr_html_()):
        assert "<script>" not in page
        assert "<b>" not in page
    assert ["input", "<b>&data", "", ""] in rows_of(Model(graph)._repr_html_())


def test_page_of_a_symbol() -> None:
    a = sym.relu(sym.var("x"), name="a")
    rows = rows_of(sym.Group([a + a, a * 2])._repr_html_())
    assert ["relu", "1"] in rows
    assert rows[0] == ["operator", "count"]
