"""Reading changes no folder; a save deletes only what an earlier one of its model left."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import passlib
from failing_saves import MAKERS, changed
from passlib.errors import FormatError
from passlib.files.regular import Save, mark, own_prefix


def contents(folder: Path) -> dict[str, Any]:
    return {
        path.name: (path.lstat().st_ino, path.read_bytes() if path.is_file() else None)
        for path in folder.iterdir()
    }


STAMPS: dict[str, bytes] = {
    "empty": b"",
    "a list": b"[]",
    "null": b"null",
    "no files": b"{}",
    "deep": b"[" * 100_000,
    "no text": b"\xff\xfe",
    "a NUL": b'{"a\\u0000b": [null, null]}',
    "half of a surrogate": b'{"\\ud800": [null, null]}',
    "no pair": b'{"victim": [1]}',
    "huge": b'{"victim": [' + b"1," * 200_000 + b"1]}",
    "of two saves": json.dumps(
        {"victim": [0, None], "../bashrc": [1, None], "/etc": [2, None]}
    ).encode(),
    "journal": json.dumps(
        {"renames": [[".passlib-0123456789abcdef.tmp", ".bashrc"]], "gone": ["victim"]}
    ).encode(),
}


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("kind", MAKERS)
def test_reading_changes_nothing(kind: str, stamp: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path = MAKERS[kind](folder)
    model = passlib.load(path)
    (folder / "victim").write_text("of the user")
    (folder / ".bashrc").write_text("of the user")
    (tmp_path / "bashrc").write_text("of the user")
    own = own_prefix(path)
    for name in (
        f".passlib-{path.name}.journal",
        f"{own}.journal",
        f"{own}.stamp",
        f"{own}-0123456789abcdef.tmp",
        ".passlib-0123456789abcdef.tmp",
    ):
        (folder / name).write_bytes(STAMPS[stamp])
    before = contents(folder)
    told = suppress(FormatError) if stamp == "of two saves" else nullcontext()
    with told:
        passlib.load(path)
    passlib.validate(path)
    passlib.dialects.recognise(path)
    if kind == "mxnet":
        with told:
            passlib.model.load_checkpoint(folder / "m", 0)
    assert contents(folder) == before
    model.save(path)
    after = contents(folder)
    for name in ("victim", ".bashrc", f".passlib-{path.name}.journal"):
        assert after[name] == before[name]
    assert f"{own}-0123456789abcdef.tmp" not in after


@pytest.mark.parametrize("kind", sorted({*MAKERS} - {"ark", "onnx_external", "onnx_location"}))
def test_files_of_two_saves_are_told(kind: str, tmp_path: Path) -> None:
    path = MAKERS[kind](tmp_path)
    model = passlib.load(path)
    weights = next(p for p in tmp_path.iterdir() if p.suffix in (".params", ".dlp"))
    states = {
        each: [[1, 1, 1], [state.st_ino, state.st_size, state.st_mtime_ns]]
        for each, state in ((weights.name, weights.stat()), (path.name, path.stat()))
    }
    states[path.name].reverse()
    stamp = tmp_path / f"{own_prefix(path)}.stamp"
    stamp.write_text(json.dumps(states))
    with pytest.raises(FormatError, match=rf"{path.name}: a save was interrupted.*two saves; save"):
        passlib.load(path)
    assert any("a save was interrupted" in problem.message for problem in passlib.validate(path))
    if kind == "mxnet":
        for read in (passlib.model.load_checkpoint, passlib.model.load_params):
            with pytest.raises(FormatError, match="a save was interrupted"):
                read(tmp_path / "m", 0)
    changed(model).save(path)
    passlib.load(path)
    assert not stamp.exists()


def test_an_exception_leaves_the_old_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")

    def saved() -> None:
        with Save(tmp_path / "a") as save:
            save.replace(tmp_path / "b").write_text("new")
            save.replace(tmp_path / "a").write_text("new")
            raise KeyError

    with pytest.raises(KeyError):
        saved()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old", "b": "old"}


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("old", [("a", "b", "c"), ("a", "b"), ("a",)])
def test_a_rename_that_fails_leaves_the_old_files(
    links: bool, old: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in old:
        (tmp_path / name).write_text(f"old {name}")
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target == tmp_path / "a":
            raise OSError(16, "Device or resource busy", str(target))
        return real(self, target)

    def link(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    def saved() -> None:
        with Save(tmp_path / "a", bound=True) as save:
            save.replace(tmp_path / "b").write_text("new")
            save.replace(tmp_path / "a").write_text("new")
            save.remove(tmp_path / "c")

    if "c" in old:
        mark(tmp_path / "c", tmp_path / "c", tmp_path / "a")
    monkeypatch.setattr(Path, "replace", replace)
    if not links:
        monkeypatch.setattr(os, "link", link)
    with pytest.raises(OSError, match="busy"):
        saved()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


WEIGHTS = {"mxnet": "m-0000.params", "nnvm": "net.params"}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_beside_a_model_without_any(kind: str, own: bool, tmp_path: Path) -> None:
    path = MAKERS[kind](tmp_path)
    weights = tmp_path / WEIGHTS[kind]
    if not own:
        weights.write_bytes(weights.read_bytes())
    before = weights.read_bytes()
    symbol = passlib.load(path).symbol
    told = nullcontext() if own else pytest.warns(match=f"those of {weights.name}; delete")
    with told:
        passlib.Model(symbol, dialect=kind).save(path)
    assert weights.exists() is not own
    if not own:
        assert weights.read_bytes() == before


def network(folder: Path) -> tuple[passlib.Model, Path]:
    """Return a network with weights, and where it can be saved."""
    path = MAKERS["dlprim"](folder)
    model = passlib.load(path)
    for each in folder.iterdir():
        each.unlink()
    return model, folder / "results.json"


@pytest.mark.parametrize("suffix", [".dlp", ".h5", ".hdf5"])
def test_files_named_as_weights_of_a_network(suffix: str, tmp_path: Path) -> None:
    model, path = network(tmp_path)
    other = path.with_suffix(suffix)
    bare = passlib.Model(model.symbol, dialect="dlprim", template=model._template)
    other.write_bytes(b"measurements")
    with pytest.warns(match=f"those of results{suffix}; delete"):
        bare.save(path)
    if suffix != ".dlp":
        model.save(path, weights="dlp")
        assert other.read_bytes() == b"measurements"
        model.save(path, weights="dlp")
        if suffix == ".hdf5":
            model.save(path, weights="h5")
            assert not path.with_suffix(".dlp").exists()  # which passlib wrote
    else:
        before = contents(tmp_path)
        with pytest.raises(FileExistsError, match="loading would take its weights; delete it"):
            model.save(path, weights="h5")
        assert contents(tmp_path) == before
    assert other.read_bytes() == b"measurements"


def test_a_huge_stamp_is_not_read(tmp_path: Path) -> None:
    path = MAKERS["mxnet"](tmp_path)
    stamp = tmp_path / f"{own_prefix(path)}.stamp"
    stamp.touch()
    os.truncate(stamp, 1 << 40)
    assert passlib.load(path).args


def test_new_files_of_killed_saves_are_deleted_by_their_model(tmp_path: Path) -> None:
    killed = {n: tmp_path / f"{own_prefix(tmp_path / n)}-0123456789abcdef.tmp" for n in "abc"}
    for path in killed.values():
        path.write_text("half")
    killed["a"].chmod(0o400)
    with Save(tmp_path / "a") as first:
        living = first.replace(tmp_path / "a")
        with Save(tmp_path / "a") as second:
            second.replace(tmp_path / "a").write_text("second")
        assert living.exists()
        living.write_text("first")
    with Save(tmp_path / "b") as third:
        third.replace(tmp_path / "b").write_text("new")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {killed["c"].name: "half", "a": "first", "b": "new"}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(kind: str, tmp_path: Path) -> None:
    path = MAKERS[kind](tmp_path)
    model, before = passlib.load(path), contents(tmp_path)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=str(tmp_path)):
            model.save(path)
        passlib.load(path)
        assert contents(tmp_path) == before
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("length", [238, 239, 245, 255])
@pytest.mark.parametrize("kind", MAKERS)
def test_long_names(kind: str, length: int, tmp_path: Path) -> None:
    path = MAKERS[kind](tmp_path)
    model = passlib.load(path)
    suffix = {"mxnet": "-symbol.json", "dlprim": ".json", "ark": ".json", "nnvm": ".json"}
    end = suffix.get(kind, ".onnx")
    longest = {"nnvm": len(".params")}.get(kind, len(end))  # of the names of its files
    target = tmp_path / ("é" * ((length - longest) // 2) + end)
    options = {"external_data": True, "size_threshold": 0} if kind.startswith("onnx") else {}
    for _ in range(3):
        model.save(target, **options)
        again = passlib.load(target)
        assert again.args.keys() == model.args.keys()
    passlib.validate(target)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
