"""Data files of replaced models: those that passlib wrote go, and no others."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib

SIZE = 2048


def write(path: Path, location: str | None = None, unused: str | None = None) -> Path:
    """Write a model with onnx; an unused initializer may name any file as its data."""
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [SIZE]) for n in "xy"]
    tensors = [numpy_helper.from_array(np.ones(SIZE, np.float32), "w")]
    nodes = [
        helper.make_node("Identity", ["x"], ["t"]),
        helper.make_node("Add", ["t", "w"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], tensors)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, path, save_as_external_data=location is not None, location=location)
    if unused is not None:
        model = onnx.load(path, load_external_data=False)
        tensor = model.graph.initializer.add(name="k", data_type=1, dims=[4], data_location=1)
        for key, value in (("location", unused), ("offset", "0"), ("length", "16")):
            tensor.external_data.add(key=key, value=value)
        path.write_bytes(model.SerializeToString())
    return path


def filled(path: Path, value: int) -> passlib.Model:
    return passlib.load(path).with_weights({"w": np.full(SIZE, value, np.float32)})


def value_in(path: Path) -> float:
    seen = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    np.testing.assert_array_equal(seen, np.asarray(passlib.load(path).args["w"]))
    return float(seen[0])


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def damaged(folder: Path) -> None:
    (folder / "other.onnx").write_bytes(b"\x08\x08junk" * 99)


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "other.onnx")


BESIDE: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda _: None,
    "one without data files": lambda folder: write(folder / "other.onnx"),
    "one with its own": lambda folder: write(folder / "other.onnx", "other.bin"),
    "one that cannot be read": damaged,
    "one without bytes": lambda folder: (folder / "other.onnx").touch(),
    "a folder": lambda folder: (folder / "other.onnx").mkdir(),
    "a broken link": lambda folder: (folder / "other.onnx").symlink_to("absent"),
    "no model": lambda folder: (folder / "notes.txt").write_text("m.onnx.data m.onnx.1.data"),
}


@pytest.mark.parametrize("options", [{}, {"location": "w.bin"}, {"location": "deep/er/w.bin"}])
@pytest.mark.parametrize("beside", BESIDE)
def test_old_weights_do_not_pile_up(beside: str, options: dict[str, str], tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    BESIDE[beside](tmp_path)
    before = names(tmp_path)
    for value in range(1, 9):
        written = filled(path, value).save(path, external_data=True, **options)
        assert {*map(Path, written)} == {path, *map(tmp_path.joinpath, names(tmp_path) - before)}
        assert value_in(path) == value
    assert options.get("location", written[1]) in written[1]
    for value in range(1, 5):  # where they were
        filled(path, value).save(path)
        assert len(names(tmp_path) - before) == 1
        assert value_in(path) == value
    passlib.load(path).save(path, external_data=False)
    assert names(tmp_path) == before


def test_without_extended_attributes_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "setxattr", refuse)
    monkeypatch.setattr(os, "getxattr", refuse)
    path = write(tmp_path / "m.onnx")
    for value in (1, 2, 3):
        written = filled(path, value).save(path, external_data=True)
        assert value_in(path) == value
        assert f"{written[1]} cannot be marked as data of m.onnx" in caplog.text
    assert len([name for name in names(tmp_path) if name.endswith(".data")]) == 3


def another(folder: Path) -> None:
    write(folder / "n.onnx", unused="m.onnx.data")


NEEDED: dict[str, Callable[[Path], Any]] = {
    "another model": another,
    "a copy": lambda folder: (folder / "n.onnx").write_bytes((folder / "m.onnx").read_bytes()),
    "a copy of another suffix": lambda folder: (folder / "n.model").write_bytes(
        (folder / "m.onnx").read_bytes()
    ),
    "a second name": lambda folder: os.link(folder / "m.onnx", folder / "n.onnx"),
    "a damaged model": lambda folder: (folder / "n.onnx").write_bytes(
        (folder / "m.onnx").read_bytes()[:-1]
    ),
    "a model above": lambda folder: write(folder.parent / "n.onnx", unused="f/m.onnx.data"),
    "a link": lambda folder: (folder / "n.bin").symlink_to("m.onnx.data"),
    "the user, who made it longer": lambda folder: os.truncate(folder / "m.onnx.data", 1 << 20),
    "the user, who wrote as much": lambda folder: (folder / "m.onnx.data").write_bytes(
        bytes((folder / "m.onnx.data").stat().st_size)
    ),
    "the user, who took it from the model": lambda folder: os.removexattr(
        folder / "m.onnx.data", "user.passlib.data-of"
    ),
}


@pytest.mark.parametrize("who", NEEDED)
def test_a_data_file_that_somebody_needs_stays(who: str, tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    path = write(folder / "m.onnx")
    passlib.load(path).save(path, external_data=True)
    NEEDED[who](folder)
    model = passlib.load(path)
    content = (folder / "m.onnx.data").read_bytes()
    for value in (3, 4):
        model.with_weights({"w": np.full(SIZE, value, np.float32)}).save(path, external_data=True)
        assert (folder / "m.onnx.data").read_bytes() == content
    assert value_in(path) == 4
    assert len([name for name in names(folder) if name.endswith(".data")]) == 2


@pytest.mark.parametrize("above", ["", "a", "a/b", "a/b/c"])
def test_a_data_file_of_a_model_in_any_folder_above(above: str, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    path = write(folder / "m.onnx")
    data = Path(passlib.load(path).save(path, external_data=True, location="d/e/w.bin")[1])
    write(tmp_path / above / "n.onnx", unused=data.relative_to(tmp_path / above).as_posix())
    for value in (3, 4):
        filled(path, value).save(path, external_data=True)
    assert data.exists()
    assert value_in(path) == 4


def test_data_that_another_save_deletes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "m.onnx")
    passlib.load(path).save(path, external_data=True)
    model, other = passlib.load(path), filled(path, 3)
    sync = os.fsync

    def save(file: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        other.save(path)
        sync(file)

    monkeypatch.setattr(os, "fsync", save)
    with pytest.raises(FileNotFoundError, match="save again"):
        model.save(tmp_path / "n.onnx")
    assert not (tmp_path / "n.onnx").exists()
    model.save(tmp_path / "n.onnx")
    assert (value_in(tmp_path / "n.onnx"), value_in(path)) == (1, 3)


FOREIGN = ["thesis.docx", "m.onnx.data", "m.onnx.1.data", "n.onnx", "n.onnx.data"]


@pytest.mark.parametrize(
    "options", [{}, {"external_data": False}, {"external_data": True}], ids=str
)
@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_others_stay(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path / "n.onnx")
    other = passlib.load(tmp_path / "n.onnx")
    if name == "n.onnx.data":
        other.save(tmp_path / "n.onnx", external_data=True)
    elif name != "n.onnx":
        (tmp_path / name).write_bytes(b"thirty years of work" * 10)
    path = write(tmp_path / "m.onnx", unused=name)
    content = (tmp_path / name).read_bytes()
    passlib.library.load_standard()
    model = passlib.load(path)
    for made in (model.optimize_for("removeDeadNodes"), passlib.simplify(model)):
        made.save(path, **options)
        assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("name", ["other.onnx", "junk.onnx", "OTHER.ONNX", "other.model", "notes"])
def test_a_location_never_overwrites_what_is_no_data_file(name: str, tmp_path: Path) -> None:
    for other in ("other.onnx", "OTHER.ONNX", "other.model"):
        write(tmp_path / other)
    for other in ("junk.onnx", "notes"):
        (tmp_path / other).write_bytes(b"text of the user")
    for unused in (None, name):  # the model may claim it
        path = write(tmp_path / "m.onnx", unused=unused)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        model = passlib.load(path)
        if name != "notes" or unused is None:
            with pytest.raises(FileExistsError, match=f"choose another location: .*{name}"):
                model.save(path, external_data=True, location=name)
            assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("location", [None, "w.bin"])
def test_data_of_a_killed_save_is_deleted_by_the_next(location: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx")
    child = os.fork()
    if child == 0:
        gc.freeze()  # sessions of ONNX Runtime cannot end in a forked process
        rename = os.rename

        def stop(source: Path, target: Path) -> None:
            if target == path:
                os._exit(0)
            rename(source, target)

        os.replace = stop  # type: ignore[assignment]
        passlib.load(path).save(path, external_data=True, location=location)
    os.waitpid(child, 0)
    assert len(names(tmp_path)) == 3  # the data, and the model under a hidden name
    passlib.load(path).save(path)
    assert names(tmp_path) == {"m.onnx"}


def test_a_location_that_leads_to_the_model(tmp_path: Path) -> None:
    path = write(tmp_path / "real.onnx")
    (tmp_path / "m.onnx").symlink_to("real.onnx")
    content = path.read_bytes()
    with pytest.raises(FileExistsError, match="it is a model"):
        passlib.load(path).save(tmp_path / "m.onnx", external_data=True, location="real.onnx")
    path.unlink()
    (tmp_path / "n.onnx").write_bytes(content)
    with pytest.raises(FileExistsError, match="two files of one name"):
        passlib.load(tmp_path / "n.onnx").save(
            tmp_path / "m.onnx", external_data=True, location="real.onnx"
        )
