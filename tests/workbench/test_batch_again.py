"""A batch that is started again does what changed, by content, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from commands import passlib_command
from onnx_models import CHAIN, save

PASSES = """
import passlib as pl
import again_helper

@pl.graph_pass
def again_pass(graph: pl.Graph) -> None:
    \"\"\"Does what its helper says.\"\"\"
    again_helper.work(graph)
"""


def replaced(path: Path, content: bytes) -> None:
    """Write a file over, which keeps its size and time."""
    stat = path.stat()
    assert len(content) == stat.st_size
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def flipped(path: Path) -> None:
    """Change the last byte of a file, which keeps its size and time."""
    content = path.read_bytes()
    replaced(path, content[:-1] + bytes([content[-1] ^ 1]))


CHANGES: dict[str, tuple[Callable[[Path], object], int]] = {
    "nothing": (lambda folder: None, 0),
    "a touched model": (lambda folder: os.utime(folder / "one.onnx"), 1),
    "a deleted result": (lambda folder: (folder / "out" / "one.onnx").unlink(), 1),
    "a damaged result": (lambda folder: flipped(folder / "out" / "two.onnx"), 1),
    "a deleted page": (lambda folder: (folder / "pages" / "one.onnx.html").unlink(), 1),
    "another model": (
        lambda folder: replaced(
            folder / "one.onnx",
            (folder / "one.onnx").read_bytes().replace(b"Add", b"Mul", 1),
        ),
        1,
    ),
    "other weights": (lambda folder: flipped(folder / "weights" / "two.bin"), 1),
    "another file with passes": (
        lambda folder: replaced(
            folder / "passes.py", PASSES.replace("Does what", "Did what.").encode()[: len(PASSES)]
        ),
        2,
    ),
    "another helper": (lambda folder: flipped(folder / "again_helper.py"), 2),
    "another helper of the helper": (lambda folder: flipped(folder / "again_deeper.py"), 2),
    "a byte that is not UTF-8": (
        lambda folder: (folder / "out" / "batch.jsonl").write_bytes(
            b'{"model": "\xff"}\n' + (folder / "out" / "batch.jsonl").read_bytes()
        ),
        0,
    ),
    "lines of other things": (
        lambda folder: (folder / "out" / "batch.jsonl").write_bytes(
            b"3\nnull\n[]\n" + b"[" * 100_000 + b'\n{"nodes": [], "key": []}\n'
            + (folder / "out" / "batch.jsonl").read_bytes()
        ),
        0,
    ),
    "a damaged line": (
        lambda folder: (folder / "out" / "batch.jsonl").write_bytes(
            (folder / "out" / "batch.jsonl").read_bytes().replace(b'"status"', b'"sta\xff', 1)
        ),
        1,
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(CHAIN, tmp_path / "one.onnx")
    (tmp_path / "weights").mkdir()
    model = onnx.load(save(CHAIN, tmp_path / "two.onnx"))
    for tensor in model.graph.initializer:  # external data are bytes
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    onnx.save(
        model,
        tmp_path / "two.onnx",
        save_as_external_data=True,
        location="weights/two.bin",
        size_threshold=0,
    )
    (tmp_path / "passes.py").write_text(PASSES, "utf-8")
    (tmp_path / "again_deeper.py").write_text("value = 1\n#0", "utf-8")
    (tmp_path / "again_helper.py").write_text(
        "from again_deeper import value\n\ndef work(graph):\n    pass\n#0", "utf-8"
    )
    return tmp_path


def run(folder: Path) -> int:
    """Run the batch, and return how many models it did now."""
    models = ("one.onnx", "two.onnx")
    found = passlib_command(
        *("opt", *models, "-o", "out", "-l", "passes.py", "--passes", "again_pass"),
        *("--report", "pages", "--json"),
        folder=folder,
    )
    outcomes = json.loads(found.stdout)
    assert [each["status"] for each in outcomes] == ["done"] * 2, found.stderr
    return sum(not each["earlier"] for each in outcomes)


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_done_again(
    what: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(folder))
    change, count = CHANGES[what]
    assert run(folder) == 2
    change(folder)
    assert run(folder) == count
    assert run(folder) == 0


def test_models_that_a_save_only_looks_into_are_no_inputs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save with data files looks for other users of them in the folders above."""
    monkeypatch.setenv("PYTHONPATH", str(folder))
    counts = [run(folder)]
    for what in ("a damaged result", "another model"):
        CHANGES[what][0](folder)
        counts.append(run(folder))
    assert counts == [2, 1, 1]
