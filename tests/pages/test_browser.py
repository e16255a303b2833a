"""Pages in a real browser: they load, find nodes, and step through changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
    assert "attribute axis: -1 1" in small.run("at('right').textContent")


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


def test_a_narrow_window_shows_lists_and_nodes_below_the_graph(
    browser: Browser, folder: Path
) -> None:
    browser.open(page_of(folder, 21), size=(480, 800))
    browser.wait_for(LAID)
    browser.press("/")
    browser.type("layer.17/extra")
    rectangle = "(({left, top, right, bottom}) => [left, top, right, bottom])"
    rectangle += "(at('NAME').getBoundingClientRect())"
    left, right, stage = (
        browser.run(rectangle.replace("NAME", name)) for name in ("left", "right", "stage")
    )
    assert (stage[0], stage[2]) == (0, 480)
    assert stage[3] - stage[1] > 300
    assert left[1] == right[1] == stage[3]
    assert (left[0], right[2], right[3]) == (0, 480, 800)
    assert browser.run("document.querySelector('#found li').getBoundingClientRect().top") < 800
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
