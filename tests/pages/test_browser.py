"""Pages in a real browser: they load, find nodes, and step through changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from browser import Browser
from browser import browser as started
from onnx_models import NESTED, save
from page_models import encoder
from passlib.workbench import diff

SELECTED = "document.querySelector('#right h3')?.textContent"
LAID = "state.layout.complete"
SCHEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def page_of(folder: Path, layers: int) -> Path:
    """Write the page of a difference, once."""
    path = folder / f"diff{layers}.html"
    if not path.exists():
        before = encoder(folder / f"before{layers}.onnx", layers)
        after = encoder(folder / f"after{layers}.onnx", layers, edited=True)
        path.write_text(diff(before, after).to_html(), "utf-8")
    return path


@pytest.fixture
def small(browser: Browser, folder: Path) -> Iterator[Browser]:
    """Open the difference of two models of 400 nodes."""
    browser.open(page_of(folder, 21))
    browser.wait_for(LAID)
    yield browser
    assert browser.errors == []


@SCHEMES
def test_loads_alone_in_both_schemes(browser: Browser, folder: Path, dark: bool) -> None:
    browser.open(page_of(folder, 21), dark=dark)
    browser.wait_for(LAID)
    assert browser.errors == []
    assert [url[:5] for url in browser.requests] == ["file:"]
    assert browser.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    # The stage has its colour, boxes and text: more than a few colours.
    browser.wait_for(
        "(() => { const c = at('canvas0'), d = c.getContext('2d').getImageData(0, 0, c.width,"
        " c.height).data; const seen = new Set(); for (let i = 0; i < d.length; i += 4)"
        " seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size > 20; })()"
    )
    assert browser.picture()[:4] == b"\x89PNG"


def test_finds_a_node_by_name(small: Browser) -> None:
    small.press("/")
    small.type("layer.17/extra")
    assert small.run("document.querySelectorAll('#found li').length") == 1
    small.press("Enter")
    assert small.run(SELECTED) == "layer.17/extra"
    x, y = small.run("[drawing.view.x + drawing.selected.x, drawing.view.y + drawing.selected.y]")
    assert (x, y) == (0, 0), "the node stands in the middle"


def test_finds_nodes_by_operator(small: Browser) -> None:
    small.run("at('search').focus()")
    small.type("softmax")
    assert small.run("document.querySelectorAll('#found li').length") == 21


def test_steps_through_the_changes(small: Browser) -> None:
    expected = small.run("state.changes.map((n) => state.graph.nodes[n].name)")
    assert len(expected) == 14
    seen = []
    for _ in expected:
        small.press("n")
        seen.append(small.run(SELECTED))
    assert seen == expected
    assert small.run("at('place').textContent") == "14 / 14"
    small.press("p")
    assert small.run(SELECTED) == expected[-2]
    small.press("n")
    small.press("n")
    assert small.run(SELECTED) == expected[0], "after the last comes the first"


def test_a_click_shows_what_a_node_is(small: Browser) -> None:
    small.press("n")
    place = small.run(
        "(() => { const r = at('canvas0').getBoundingClientRect();"
        " return [r.left + r.width / 2, r.top + r.height / 2]; })()"
    )
    small.press("Escape")
    assert small.run(SELECTED) is None
    small.click(*place)
    assert small.run(SELECTED) == "layer.2/dropout"
    assert "removed" in small.run("at('right').textContent")
    small.run("actions.choose(state.graph.nodes.findIndex((n) => n.name === 'layer.0/q/MatMul'))")
    text = small.run("at('right').textContent")
    assert "float32 (1, 4, 8)" in text
    assert "mean, deviation" in text
    assert small.run("document.querySelectorAll('#right svg rect').length") == 24
    small.run("actions.choose(state.graph.nodes.findIndex((n) => n.name === 'layer.5/softmax'))")
    changed = "document.querySelector('#right .change .{}').textContent"
    assert [small.run(changed.format(side)) for side in ("was", "now")] == ["-1", "1"]


def test_sides(small: Browser) -> None:
    small.press("s")
    assert small.run("at('second').hidden") is False
    stands = "['before', 'after'].map((side) => ['-', '+', '='].map((s) => stands(s, side)))"
    assert small.run(stands) == [[True, False, True], [False, True, True]]
    small.press("s")
    assert small.run("at('second').hidden") is True


def test_folding(small: Browser) -> None:
    folded = small.run("state.layout.boxes.length")
    blocks = small.run("state.layout.boxes.filter((b) => b.block).length")
    assert blocks > 4
    small.press("f")
    operators = small.run("state.graph.nodes.filter((n) => n.op).length")
    assert small.run("state.layout.boxes.length") == operators + 1 > folded
    small.press("c")
    assert small.run("state.layout.boxes.length") == small.run("state.graph.nodes.length")
    small.press("c")
    small.press("f")
    assert small.run("state.layout.boxes.length") == folded
    small.run("actions.unfold(state.layout.boxes.find((b) => b.block))")
    assert small.run("state.layout.boxes.filter((b) => b.block).length") == blocks - 1


def test_a_changed_weight_marks_the_node_that_uses_it(small: Browser) -> None:
    place = "state.graph.nodes.findIndex((n) => n.name === 'layer.6/m/MatMul')"
    assert small.run(f"state.layout.boxOf.get({place}).status") == "~"


def test_5000_nodes(browser: Browser, folder: Path) -> None:
    browser.open(page_of(folder, 265), dark=True)
    assert browser.run("state.graph.nodes.filter((n) => n.op).length") > 5000
    browser.press("f")
    # The page answers while it is laid out.
    browser.press("n")
    assert browser.run(SELECTED) == "layer.2/dropout"
    assert browser.run("state.layout.done") < browser.run("state.layout.boxes.length")
    assert browser.run("state.layout.boxes.length") > 5000
    browser.wait_for(LAID, 120)
    browser.press("0")
    # Only boxes in view are drawn.
    shown = browser.run("drawing.boxesBetween(drawing.placeAt(0, 0).y, drawing.placeAt(0, 900).y)")
    assert 0 < len(shown) < 60
    took = browser.run(
        "(() => { const t = performance.now(); drawing.draw(); return performance.now() - t; })()"
    )
    assert took < 500
    assert browser.errors == []


def test_boxes_do_not_overlap(small: Browser) -> None:
    small.press("f")
    small.wait_for(LAID)
    overlaps = small.run(
        "(() => { let n = 0; const all = state.layout.boxes; for (const a of all) for (const b of"
        " all) if (a.at < b.at && Math.abs(a.x - b.x) < (a.width + b.width) / 2 - 1 &&"
        " Math.abs(a.y - b.y) < (a.height + b.height) / 2 - 1) n += 1; return n; })()"
    )
    assert overlaps == 0


def test_lineage(browser: Browser, tmp_path: Path) -> None:
    """A node that a pass made says what it stands for."""

    @pl.rewrite("c = negative(x)\n y = relu(c)", dialects=["mxnet"])
    def paged_lineage(m: pl.Match) -> object:
        """Makes one node of two."""
        return m.op("square", m.x)

    value = pl.sym.negative(pl.sym.var("x", shape=(2,)), name="neg3")
    model = pl.Model(pl.sym.relu(value, name="relu3"))
    path = tmp_path / "fused.html"
    path.write_text(pl.Pipeline("paged_lineage").run(model).to_html(), "utf-8")
    browser.open(path)
    browser.run("actions.choose(state.graph.nodes.findIndex((n) => n.origin))")
    assert "stands for neg3, relu3" in browser.run("at('right').textContent")
    assert browser.errors == []


def test_keys_for_the_scheme_and_for_help(small: Browser) -> None:
    theme = small.run("document.documentElement.dataset.theme")
    small.press("d")
    assert small.run("document.documentElement.dataset.theme") != theme
    small.press("?")
    assert small.run("at('keys').open")
    keys = small.run("[...document.querySelectorAll('#keys kbd')].map((key) => key.textContent)")
    assert {"/", "n", "p", "s", "f", "c", "d", "?"} <= {*keys}
    small.run("at('keys').click()")
    assert not small.run("at('keys').open")


def test_a_window_of_middle_width_shows_lists_and_nodes_below_the_graph(
    browser: Browser, folder: Path
) -> None:
    browser.open(page_of(folder, 21), size=(800, 800))
    browser.wait_for(LAID)
    browser.press("/")
    browser.type("layer.17/extra")
    rectangle = "(({left, top, right, bottom}) => [left, top, right, bottom])"
    rectangle += "(at('NAME').getBoundingClientRect())"
    left, right, stage = (
        browser.run(rectangle.replace("NAME", name)) for name in ("left", "right", "stage")
    )
    assert (stage[0], stage[2]) == (0, 800)
    assert stage[3] - stage[1] > 300
    assert left[1] == right[1] == stage[3]
    assert (left[0], right[2], right[3]) == (0, 800, 800)
    assert browser.run("document.querySelector('#found li').getBoundingClientRect().top") < 800
    assert browser.errors == []


WIDER = (
    "[...document.querySelectorAll('nav, aside, header, body')].filter((e) => e.scrollWidth >"
    " e.clientWidth).map((e) => e.tagName)"
)


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)], ids=["desktop", "phone"])
@SCHEMES
def test_nothing_is_wider_than_its_column(
    browser: Browser, folder: Path, size: tuple[int, int], dark: bool
) -> None:
    browser.open(page_of(folder, 265), dark=dark, size=size)
    browser.press("n")
    assert browser.run(WIDER) == []
    broken = browser.run(
        # The words of a text that stand on two lines.
        "[...document.querySelectorAll('nav *, aside *')].flatMap((e) => [...e.childNodes]).filter("
        "(n) => n.nodeType === 3 && !/\\s/.test(n.data.trim())).filter((n) => { const r ="
        " document.createRange(); r.selectNodeContents(n); return r.getClientRects().length > 1;"
        " }).map((n) => n.data)"
    )
    assert broken == []
    assert browser.errors == []


def test_a_phone_shows_the_node_and_the_lists_below_the_graph(
    browser: Browser, folder: Path
) -> None:
    browser.open(page_of(folder, 21), size=(390, 844))
    browser.run("document.querySelector('#changes').scrollIntoView()")
    browser.press("n")
    tops = browser.run("['stage', 'right', 'left'].map((id) => at(id).getBoundingClientRect().top)")
    assert tops == sorted(tops)
    assert tops[1] < 600, "the selected node is in view"
    assert browser.run("at('right').clientWidth") > 350


def test_the_numbers_come_before_the_changes(small: Browser) -> None:
    titles = small.run("[...document.querySelectorAll('nav h2')].map((h) => h.textContent)")
    assert [title for title in titles if title] == ["Summary", "Operators", "Changes"]
    assert small.run("at('summary').textContent") == "399 → 399 operators"
    rows = "[...document.querySelectorAll('#changes tr')].map((r) => r.innerText.split('\\t'))"
    assert small.run(rows) == [
        ["", "removed", "added", "changed"],
        ["operators", "3", "3", "7"],
        ["weights", "0", "0", "1"],
    ]


def test_filter_of_changes(small: Browser) -> None:
    groups = (
        "[...document.querySelectorAll('#groups summary')].map((s) => s.innerText.split('\\n'))"
    )
    assert small.run(groups) == [["changed", "8"], ["removed", "3"], ["added", "3"]]
    small.run("at('filter').focus()")
    small.type("dropout")
    assert small.run(groups) == [["removed", "3"]]
    small.run("at('filter').blur()")
    small.press("n")
    assert small.run(SELECTED) == "layer.2/dropout"
    assert small.run("at('place').textContent") == "1 / 3"
    small.run("actions.narrow({ text: '', status: '+' })")
    assert small.run(groups) == [["added", "3"]]


def test_old_and_new_inputs_stand_apart(small: Browser) -> None:
    small.run("actions.choose(state.graph.nodes.findIndex((n) => n.name === 'layer.2/o/MatMul'))")
    names = "[...document.querySelectorAll('#{} a')].map((a) => a.textContent)"
    assert small.run(names.format("inputs-before")) == ["layer.2/dropout"]
    assert small.run(names.format("inputs")) == ["layer.2/context", "layer.2/o.w"]
    line = "getComputedStyle(document.querySelector('#{} a')).textDecorationLine"
    assert small.run(line.format("inputs-before")) == "line-through"
    assert small.run(line.format("inputs")) == "none"


def test_shapes_are_those_of_the_side(browser: Browser, tmp_path: Path) -> None:
    x = pl.sym.var("x", shape=(2, 6), dtype="float32")
    one = pl.sym.relu(pl.sym.transpose(x, axes=(0, 1), name="r"), name="y")
    two = pl.sym.relu(pl.sym.transpose(x, axes=(1, 0), name="r"), name="y")
    path = tmp_path / "shapes.html"
    path.write_text(diff(pl.Model(one), pl.Model(two)).to_html(), "utf-8")
    browser.open(path)
    browser.press("s")
    shapes = "[...document.querySelectorAll('#right div.code')].map((d) => d.innerText)"
    for side, canvas, expected in [
        ("before", 0, ["float32 (2, 6)"]),
        ("after", 1, ["float32 (6, 2)"]),
        ("both", None, ["float32 (2, 6)", "float32 (6, 2)"]),
    ]:
        browser.run("actions.choose(state.graph.nodes.findIndex((n) => n.name === 'y'))")
        if canvas is not None:
            place = browser.run(
                f"(() => {{ const r = at('canvas{canvas}').getBoundingClientRect();"
                " return [r.left + r.width / 2, r.top + r.height / 2]; })()"
            )
            browser.click(*place)
        assert browser.run(SELECTED) == "y"
        assert browser.run("state.side") == side
        assert browser.run(shapes) == expected
        inputs = "document.querySelector('#inputs li .op').textContent"
        assert browser.run(inputs) == expected[-1]
    assert browser.errors == []


def test_legend(browser: Browser, folder: Path, tmp_path: Path) -> None:
    legend = "[...document.querySelectorAll('#legend li')].map((l) => l.textContent)"
    browser.open(page_of(folder, 21))
    assert browser.run(legend)[-3:] == ["removed", "added", "changed"]
    path = tmp_path / "view.html"
    path.write_text(encoder(tmp_path / "model.onnx", 2).to_html(), "utf-8")
    browser.open(path)
    assert browser.run(legend) == ["input", "operator", "repeated block"]


def test_the_address_names_the_node(small: Browser, browser: Browser) -> None:
    small.press("n")
    assert small.run("location.hash") == "#node=layer.2%2Fdropout"
    link = "document.querySelector('#groups li:nth-child(2) a').href.split('#')[1]"
    named = small.run(link)
    small.run(f"location.hash = '{named}'")
    browser.wait_for(f"new URLSearchParams('{named}').get('node') === {SELECTED}")
    # As a link from elsewhere does.
    small.run("history.replaceState(null, '', '#node=layer.3%2Fextra'); actions.open(0)")
    small.run("actions.follow()")
    assert small.run(SELECTED) == "layer.3/extra"


def test_the_address_names_a_node_of_a_nested_graph(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "nested.html"
    path.write_text(pl.load(save(NESTED, tmp_path / "nested.onnx")).to_html(), "utf-8")
    browser.open(path)
    browser.run("actions.open(1)")
    browser.run("actions.choose(state.graph.nodes.findIndex((n) => n.op))")
    address, name = browser.run("location.hash"), browser.run(SELECTED)
    browser.run("actions.open(0)")
    browser.run("actions.follow()")
    assert "graph=" in address
    assert browser.run("state.graph === state.graphs[1]")
    assert browser.run(SELECTED) == name
    assert browser.errors == []


def test_printing(browser: Browser, folder: Path) -> None:
    browser.open(page_of(folder, 21), dark=True)
    browser.wait_for(LAID)
    browser.run(
        "window.seen = []; addEventListener('beforeprint', () =>"
        " seen.push(document.documentElement.dataset.theme))"
    )
    assert browser.print()[:5] == b"%PDF-"
    assert browser.run("seen") == ["light"]
    assert browser.run("document.documentElement.dataset.theme") == "dark"
    shown = "['search', 'left', 'stage'].map((id) => getComputedStyle(at(id)).display !== 'none')"
    with browser.printed():
        assert browser.run(shown) == [False, True, True]
        assert browser.run("getComputedStyle(at('left')).overflow") == "visible"
    assert browser.errors == []


def test_a_wide_table_of_small_numbers(browser: Browser, tmp_path: Path) -> None:
    """It scrolls by itself, and its numbers are not rounded to zero."""
    model = encoder(tmp_path / "model.onnx", 1)
    other = model.optimize_for(pl.Pipeline("simplify"))
    inputs = {"x": np.full((1, 4, 8), 0.3, np.float32)}
    found = pl.compare(model, other, inputs, per_node=True)
    small = dataclasses.replace(
        found.values[0],
        difference=dataclasses.replace(found.values[0].difference, absolute=1.19e-07, share=2.5e-4),
    )
    path = tmp_path / "comparison.html"
    path.write_text(dataclasses.replace(found, values=(small,)).to_html(other), "utf-8")
    browser.open(path)
    cells = browser.run("[...document.querySelectorAll('nav td.number')].map((c) => c.innerText)")
    assert cells[:2] == ["1.19e-7", "0.000250"]
    assert browser.run(WIDER) == []
    assert browser.errors == []


def test_nested_graphs_open(browser: Browser, tmp_path: Path) -> None:
    model = pl.load(save(NESTED, tmp_path / "nested.onnx"))
    path = tmp_path / "nested.html"
    path.write_text(model.to_html(), "utf-8")
    browser.open(path)
    browser.run("actions.choose(state.graph.nodes.findIndex((n) => n.graphs))")
    browser.run("document.querySelector('#right button').click()")
    assert browser.run("state.graph !== state.graphs[0]")
    assert browser.run("document.querySelectorAll('#graphs li').length") > 1
    assert browser.errors == []


def test_a_notebook_shows_the_frame(browser: Browser, folder: Path, tmp_path: Path) -> None:
    model = encoder(tmp_path / "model.onnx", 2)
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html>{model._repr_html_()}", "utf-8")
    browser.open(path)
    browser.wait_for("frames[0].document.querySelector('#facts') !== null")
    assert browser.errors == []
