"""Dialects that packages register by an entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import passlib
from passlib.dialects import find, names

MODULE = """
from passlib.dialects import Dialect, ModelData
from passlib import _core


class Lines(Dialect):
    name = "lines"
    title = "Lines"
    suffixes = (".lines",)

    def parameters_among(self, graph, names):
        return set()

    def output_name(self, node, index):
        return node.name

    def recognises(self, path):
        return path.suffix == ".lines"

    def load(self, path, **options):
        self.refuse(options)
        text = '{"nodes":[{"op":"null","name":"x","inputs":[]}],"heads":[[0,0,0]],"arg_nodes":[0]}'
        return ModelData(_core.Graph.parse(text, False, False), {})

    def save(self, path, model, **options):
        path.write_text("saved", "utf-8")
        return (str(path),)

    def validate(self, path):
        return []

    def lower(self, graph, inputs, params, *, train=False):
        raise NotImplementedError


dialect = Lines()
"""


def run(folder: Path, code: str) -> str:
    """Run code where a package with a dialect is installed, and return what it prints."""
    metadata = folder / "aaa_lines-1.0.dist-info"
    metadata.mkdir()
    (folder / "lines_dialect.py").write_text(MODULE, "utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: aaa-lines\nVersion: 1.0\n")
    points = "[passlib.dialects]\nlines = lines_dialect:dialect\nonnx = nowhere:dialect\n"
    (metadata / "entry_points.txt").write_text(f"{points}mxnet = nowhere:dialect\n")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", code, str(folder)]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_a_package_adds_a_dialect(tmp_path: Path) -> None:
    """It cannot take the place of passlib's own, whose names it registers too."""
    code = (
        "import sys, passlib\n"
        "from passlib.dialects import names\n"
        "folder = sys.argv[1]\n"
        "open(f'{folder}/a.lines', 'w').write('a')\n"
        "model = passlib.load(f'{folder}/a.lines')\n"
        "print(model.dialect, type(model.symbol).__name__, model.inputs)\n"
        "print(model.save(f'{folder}/b.lines') == (f'{folder}/b.lines',))\n"
        "print(*names(), type(passlib.sym.var('x')).__module__)\n"
    )
    assert run(tmp_path, code).splitlines() == [
        "lines ModelGraph ['x']",
        "True",
        "mxnet ark dlprim nnvm lines onnx passlib.mxnet.symbol.symbol",
    ]


def test_own_dialects_are_registered_but_onnx() -> None:
    assert names() == ("mxnet", "ark", "dlprim", "nnvm", "onnx")
    assert find("mxnet").graph_class is passlib.Symbol
    assert {find(name).graph_class for name in names()} == {None, passlib.Symbol}


@pytest.mark.parametrize("use", ["import passlib", "import passlib.model", "passlib.load(path)"])
def test_metadata_is_read_when_a_dialect_is_looked_up(use: str, tmp_path: Path) -> None:
    """But not for an ONNX file: reading the metadata of all packages takes longer than the file."""
    onnx_models = pytest.importorskip("onnx_models", reason="needs the package onnx")
    path = onnx_models.save(onnx_models.CHAIN, tmp_path / "m.onnx")
    code = f"import passlib\npath = {str(path)!r}\n{use}\nimport sys\n"
    code += "print('importlib.metadata' in sys.modules, 'passlib.mxnet' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False False\n"
