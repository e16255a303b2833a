"""The first chapter of the tutorial: its text runs as printed, and its passes do their work."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import passlib
from example_build import build_example
from places import ROOT
from plugin_build import INCLUDE, compile_to
from printed_blocks import Block, blocks_of, same_output, shell

TUTORIAL = ROOT / "example" / "lib_pass"

# Every fragment of the tutorial runs in a pass whose variables have these names.
FRAGMENTS = """
#include "lib_api.h"
using namespace mxnet::ext;
%s
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""
FRAGMENT = """
namespace %s {
static MXReturnValue fragment(Graph* g, Node* n1, Node* n2, Node* node, const std::string& json,
                              int version) {
  (void)g, (void)n1, (void)n2, (void)node, (void)json, (void)version;
%s
  return MX_SUCCESS;
}
static MXReturnValue body(Graph* g, const std::unordered_map<std::string, std::string>&) {
  return fragment(g, g->getNode(0), g->getNode(2), g->getNode(1), "[1, 2]", 10901);
}
REGISTER_PASS(%s).setBody(body);
}
"""

DECLARATIONS = """
#include "lib_api.h"
using namespace mxnet::ext;
%s
MXReturnValue graphPass(Graph*, const std::unordered_map<std::string, std::string>&) {
  return MX_SUCCESS;
}
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""


BLOCKS = blocks_of(TUTORIAL / "README.md")


def block_ids(kind: str) -> list[object]:
    chosen = [block for block in BLOCKS if block.language == "c++" and block.info == kind]
    return [pytest.param(block, id=f"line {block.line}") for block in chosen]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy the example to its place in an otherwise empty repository."""
    (tmp_path / "include").symlink_to(INCLUDE)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    folder = tmp_path / "example" / "lib_pass"
    folder.mkdir(parents=True)
    for name in ("pass_lib.cc", "test_pass.py", "Makefile"):
        shutil.copy(TUTORIAL / name, folder)
    return folder


def sections() -> Iterator[tuple[Block, str | None]]:
    """Yield the blocks that run, each with the output shown after it."""
    for i, block in enumerate(BLOCKS):
        if block.language in ("bash", "python"):
            follows = BLOCKS[i + 1] if i + 1 < len(BLOCKS) else None
            yield block, follows.text if follows and follows.language == "text" else None


def test_every_block_is_tested() -> None:
    kinds = {(block.language, block.info) for block in BLOCKS}
    assert kinds == {
        ("bash", ""),
        ("python", ""),
        ("text", ""),
        ("c++", "file=mypass_lib.cc"),
        ("c++", "declarations"),
        ("c++", "statements"),
    }
    printed = sum(block.language == "text" for block in BLOCKS)
    assert printed == sum(output is not None for _, output in sections())


def test_tutorial_runs_as_printed(tree: Path) -> None:
    """Run the commands, then the Python in one session."""
    for block in BLOCKS:
        if block.info.startswith("file="):
            (tree / block.info.removeprefix("file=")).write_text(block.text, "utf-8")
    script = []
    wanted = []
    for block, output in sections():
        if block.language == "python":
            script.append(block.text)
            wanted.append(output or "")
            continue
        printed = shell(tree, ["bash", "-e", "-c", block.text])
        if output is not None:
            printed = printed[printed.index("libpass_lib.so has") :]  # after the output of make
            assert same_output(output, printed), f"line {block.line}:\n{printed}"
    mark = "----"
    code = f"print({mark!r}, flush=True)\n".join(script)
    printed = shell(tree, [sys.executable, "-c", code])
    for expected, got in zip(wanted, printed.split(mark + "\n"), strict=True):
        assert same_output(expected, got), got


@pytest.fixture(scope="module")
def fragments(tmp_path_factory: pytest.TempPathFactory) -> passlib.library.Library:
    """A library with a pass for each fragment."""
    blocks = [block for block in BLOCKS if block.info == "statements"]
    names = [f"tutorial_line_{block.line}" for block in blocks]
    folder = tmp_path_factory.mktemp("fragments")
    source, path = folder / "fragments.cc", folder / "fragments.so"
    passes = [
        FRAGMENT % (name, block.text, name) for name, block in zip(names, blocks, strict=True)
    ]
    source.write_text(FRAGMENTS % "".join(passes), "utf-8")
    compile_to(
        path,
        ("g++", "-shared", "-fPIC", "-fvisibility=hidden", "-std=c++11", "-I", str(INCLUDE)),
        [source],
    )
    return passlib.library.load(path, verbose=False)


@pytest.mark.usefixtures("fragments")
@pytest.mark.parametrize("block", block_ids("statements"))
def test_statements(block: Block) -> None:
    name = f"tutorial_line_{block.line}"
    x = passlib.sym.var("x")
    middle = passlib.sym.relu(x, name="middle")
    graph = passlib.sym.broadcast_add(middle, x, name="sum")
    if "alloc_" in block.text:
        with pytest.raises(passlib.PassError, match="middle"):
            graph.optimize_for(name)
        return
    if "{n2, 2}" in block.text:
        graph = passlib.sym.concat(middle, x, dim=0, name="joined")
    assert graph.optimize_for(name).list_arguments() == ["x"]


def test_declarations(tmp_path: Path) -> None:
    text = "\n".join(block.text for block in BLOCKS if block.info == "declarations")
    source = tmp_path / "declarations.cc"
    source.write_text(DECLARATIONS % text, "utf-8")
    path = tmp_path / "declarations.so"
    compile_to(
        path,
        ("g++", "-shared", "-fPIC", "-fvisibility=hidden", "-std=c++11", "-I", str(INCLUDE)),
        [source],
    )
    assert passlib.library.load(path, verbose=False).passes == ("my_pass_name",)


@pytest.fixture(scope="module")
def example() -> passlib.library.Library:
    return passlib.library.load(build_example("lib_pass", "pass_lib.cc"), verbose=False)


@pytest.mark.usefixtures("example", "handover")
class TestRemoveNoOps:
    @pytest.fixture
    def model(self) -> passlib.symbol.Symbol:
        x = passlib.sym.var("x")
        y = passlib.sym.Dropout(x, name="first", p=0.5)
        z = passlib.sym.relu(passlib.sym.identity(y, name="second"), name="relu")
        w = passlib.sym.Dropout(z, name="always", mode="always")
        return passlib.sym.Group([passlib.sym.BlockGrad(w, name="third"), y])

    def names(self, symbol: passlib.symbol.Symbol) -> list[str]:
        return [node.name for node in symbol.nodes()]

    def test_removes_what_does_nothing(self, model: passlib.symbol.Symbol) -> None:
        result = model.optimize_for("dropNoOps")
        assert self.names(result) == ["x", "relu", "always"]
        assert result.list_outputs() == ["always_output", "x"]

    def test_keeps_what_is_named(self, model: passlib.symbol.Symbol) -> None:
        result = model.optimize_for("dropNoOps", keep="first,third")
        assert self.names(result) == ["x", "first", "relu", "always", "third"]


@pytest.mark.usefixtures("example", "handover")
class TestFuseBatchNormRelu:
    def norm(self) -> passlib.symbol.Symbol:
        x = passlib.sym.var("x")
        norm: passlib.symbol.Symbol = passlib.sym.BatchNorm(
            x, name="norm", fix_gamma=False, eps=1e-5
        )
        return norm

    def test_fuses(self) -> None:
        relu = passlib.sym.Activation(self.norm(), act_type="relu", name="relu")
        fused = relu.optimize_for("fuseBatchNormRelu")
        node = fused.nodes()[-1]
        assert (node.op, node.name) == ("_contrib_BatchNormWithReLU", "relu")
        assert dict(node.attrs) == {
            "fix_gamma": "False",
            "eps": "1e-05",
            "__origin__": '["relu","norm"]',
        }
        assert [entry.version for entry in node.inputs] == [0, 0, 0, 1, 1]
        assert fused.list_arguments() == relu.list_arguments()
        assert fused.list_auxiliary_states() == relu.list_auxiliary_states()

    @pytest.mark.parametrize("case", ["two users", "also an output", "not a relu"])
    def test_leaves_alone_what_does_not_fit(self, case: str) -> None:
        norm = self.norm()
        kind = "tanh" if case == "not a relu" else "relu"
        relu = passlib.sym.Activation(norm, act_type=kind, name="relu")
        outputs = {
            "two users": [relu, passlib.sym.exp(norm, name="exp")],
            "also an output": [relu, norm],
            "not a relu": [relu],
        }
        graph = passlib.sym.Group(outputs[case])
        assert graph.optimize_for("fuseBatchNormRelu").tojson() == graph.tojson()

    def test_resnet(self) -> None:
        symbol = passlib.sym.load(ROOT / "tests/data/mxnet/models/resnet152_v1-symbol.json")
        fused = symbol.optimize_for("fuseBatchNormRelu")
        ops = [node.op for node in fused.nodes()]
        assert ops.count("_contrib_BatchNormWithReLU") == 101
        assert len(ops) == 1392 - 101
        assert fused.list_arguments() == symbol.list_arguments()
        assert fused.list_auxiliary_states() == symbol.list_auxiliary_states()
