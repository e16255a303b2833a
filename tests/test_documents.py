"""The commands, C++ and Python of the documents run, and print the output shown."""

from __future__ import annotations

import doctest
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import passlib
from places import ROOT
from plugin_build import INCLUDE, compile_to
from printed_blocks import blocks_of, same_output, shell
from sanitized import unless_sanitized

DOCUMENTS = (
    "README.md",
    "example/lib_fold/README.md",
    "example/lib_custom_op/README.md",
    "example/lib_subgraph/README.md",
    "example/lib_pattern/README.md",
    "docs/cookbook.md",
    "docs/deployment.md",
    "docs/environment.md",
    "docs/functions.md",
    "docs/half.md",
    "docs/models.md",
    "docs/onnxruntime.md",
    "docs/mxnet-users.md",
    "docs/patterns.md",
    "docs/pipelines.md",
    "docs/proof.md",
    "docs/python-passes.md",
    "docs/quantize.md",
    "docs/rules.md",
    "docs/start.md",
    "docs/targets.md",
    "docs/versions.md",
    "docs/workbench.md",
    "docs/writing-passes.md",
)
# Languages that are run, and "text", the output of the block before it.
LANGUAGES = {"bash", "python", "c++", "text"}
NOT_RUN = {"json", "sh"}
MODELS = ROOT / "build" / "models"
SPACES = doctest.NORMALIZE_WHITESPACE
COMPILE = (
    "g++",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-std=c++11",
    "-Wall",
    "-I",
    str(INCLUDE),
)

# Fragments run in a pass on this graph: fc = FullyConnected(data, weight), of shape (2, 3).
FRAGMENTS = """
#include "lib_api.h"
using namespace mxnet::ext;
typedef std::unordered_map<std::string, std::string> Options;
%s
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""
FRAGMENT = """
static MXReturnValue %(name)s(Graph* graph, const Options& options) {
  Node* layer = graph->outputs[0].node;
  Node* node = layer;
  (void)layer, (void)node, (void)options;
%(body)s
  return MX_SUCCESS;
}
REGISTER_PASS(%(name)s).setBody(%(name)s);
"""


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Copy the folder of a document to its place in an otherwise empty repository.

    README has no place in it: whoever reads it on a package index has no clone.
    """
    document = ROOT / request.param
    if document == ROOT / "README.md":
        if not MODELS.is_dir():
            pytest.skip("the model that README downloads is missing: make models")
        (tmp_path / "models").symlink_to(MODELS)
    if document.parent != ROOT:
        for name in ("include", "tests"):
            (tmp_path / name).symlink_to(ROOT / name)
    target = tmp_path / document.parent.relative_to(ROOT)
    target.mkdir(parents=True, exist_ok=True)
    if document.parent != ROOT:
        for path in document.parent.iterdir():
            if path.suffix in (".cc", ".h", ".py") or path.name == "Makefile":
                shutil.copy(path, target)
    return target


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_block_is_known(document: str) -> None:
    blocks = blocks_of(ROOT / document)
    assert {block.language for block in blocks} <= LANGUAGES | NOT_RUN
    for before, block in zip([None, *blocks], blocks, strict=False):
        if block.language == "text":
            assert before is not None
            assert before.language in ("bash", "python"), block
        if block.language == "c++":
            assert re.match("(statements|declarations)$|file=|excerpt=", block.info), block
        if block.info.startswith("excerpt="):
            source = ROOT / Path(document).parent / block.info.removeprefix("excerpt=")
            assert " ".join(block.text.split()) in " ".join(source.read_text("utf-8").split())


MARKS = {"docs/deployment.md": unless_sanitized("its own memory is beyond the limit shown there")}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("folder", "document"),
    [pytest.param(each, each, marks=MARKS.get(each, ())) for each in DOCUMENTS],
    indirect=["folder"],
)
def test_runs_as_printed(folder: Path, document: str) -> None:
    """Write the files, run the commands, then the Python in one session."""
    blocks = blocks_of(ROOT / document)
    script, wanted = [], []
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        expected = after.text if after is not None and after.language == "text" else ""
        if block.info.startswith("file="):
            (folder / block.info.removeprefix("file=")).write_text(block.text, "utf-8")
        elif block.language == "bash":
            printed = shell(folder, ["bash", "-e", "-c", block.text])
            # The output of make comes first.
            start = printed.find(expected.partition("\n")[0].partition("...")[0])
            assert start >= 0, printed
            if expected:
                assert same_output(expected, printed[start:], SPACES), (
                    f"line {block.line}:\n{printed}"
                )
        elif block.language == "python":
            script.append(block.text)
            wanted.append((block.line, expected))
    if not script:
        return
    mark = "----"
    printed = shell(folder, [sys.executable, "-c", f"print({mark!r})\n".join(script)])
    for (line, expected), got in zip(wanted, printed.split(mark + "\n"), strict=True):
        assert same_output(expected, got, SPACES), f"line {line}:\n{got}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("document", ["example/lib_fold/README.md", "docs/writing-passes.md"])
def test_fragments(document: str, tmp_path: Path) -> None:
    every = blocks_of(ROOT / document)
    blocks = [block for block in every if block.info == "statements"]
    assert blocks
    declarations = "\n".join(block.text for block in every if block.info == "declarations")
    declared = re.findall(r"REGISTER_PASS\((\w+)\)", declarations)
    # The library stays loaded, so its passes need unique names.
    stem = re.sub(r"\W", "_", document)
    names = [f"{stem}_{block.line}" for block in blocks]
    bodies = [
        FRAGMENT % {"name": name, "body": block.text}
        for name, block in zip(names, blocks, strict=True)
    ]
    source, library = tmp_path / "fragments.cc", tmp_path / "fragments.so"
    source.write_text(FRAGMENTS % "\n".join([declarations, *bodies]), "utf-8")
    compile_to(library, COMPILE, [source])
    loaded = passlib.library.load(library, verbose=False)
    for name in declared:
        assert loaded.passes[name].options is not None
    for name in [*declared, *names]:
        symbol = passlib.sym.FullyConnected(
            passlib.sym.var("data"), num_hidden=3, no_bias=True, name="fc"
        )
        args = {"fc_weight": np.ones((3, 4), np.float32)}
        result = symbol.optimize_for(name, args, {}, shape_dict={"data": (2, 4)})
        assert result.list_arguments()[:2] == ["data", "fc_weight"]
        assert args["fc_weight"].shape == (3, 4)
        assert {*args} == {*result.list_arguments()} - {"data"}
