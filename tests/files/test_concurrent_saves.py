"""Saves of several processes into one folder, and reads meanwhile."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import passlib
from passlib.files.regular import Save, read_together

SAVES = 12
X = np.ones((1, 2), np.float32)


def model(size: int) -> passlib.Model:
    """Return a model whose outputs are as many as their values, twice."""
    dense = passlib.sym.FullyConnected(
        passlib.sym.Variable("x"), num_hidden=size, no_bias=True, name="fc"
    )
    weight = passlib.nd.array(np.full((size, 2), size, np.float32))
    return passlib.Model(dense, {"fc_weight": weight})


def save_mxnet(folder: Path, size: int, name: str) -> None:
    model(size).save(folder / name)


def save_onnx(folder: Path, size: int, name: str) -> None:
    small = folder.parent / f"{size}.onnx"
    model(size).to_onnx(small, {"x": (1, 2)})
    with suppress(FileExistsError):  # another process chose the same name for its data
        passlib.load(small).save(folder / f"{name}.onnx", external_data=True, size_threshold=0)


SAVERS = {"mxnet": save_mxnet, "onnx": save_onnx}


def keep_saving(kind: str, folder: Path, size: int, name: str) -> None:
    gc.freeze()  # sessions of ONNX Runtime cannot end in a forked process
    for _ in range(SAVES):
        SAVERS[kind](folder, size, name)


def check(place: Path) -> None:
    (values,) = passlib.load(place).run({"x": X}).values()
    assert values.asnumpy().tolist() == [[2 * values.shape[1]] * values.shape[1]]


@pytest.mark.parametrize("kind", SAVERS)
@pytest.mark.parametrize("same", [True, False])
def test_processes_that_save_into_one_folder(kind: str, same: bool, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    places = {size: "m" if same else f"m{size}" for size in (2, 3, 4)}
    suffix = ".onnx" if kind == "onnx" else ""
    SAVERS[kind](folder, 5, "m")
    fork = multiprocessing.get_context("fork")
    processes = [
        fork.Process(target=keep_saving, args=(kind, folder, size, name))
        for size, name in places.items()
    ]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        check(folder / f"m{suffix}")
        time.sleep(0.005)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for name in places.values():
        check(folder / f"{name}{suffix}")
    assert not list(folder.glob(".passlib-*"))


def test_a_file_that_gets_the_inode_of_the_one_that_it_replaces(tmp_path: Path) -> None:
    """Replaced twice within a tick of the file system's clock, it looks like the same file."""
    place = tmp_path / "a"
    place.write_text("first")
    about = place.stat()
    seen = []

    def read() -> str:
        seen.append(place.read_text())
        if len(seen) == 1:
            for other in ("other", "third"):
                (tmp_path / "new").write_text(other)
                (tmp_path / "new").replace(place)
            os.utime(place, ns=(about.st_atime_ns, about.st_mtime_ns))
        return seen[-1]

    assert read_together(place, read) == "third"


def test_two_saves_that_chose_one_name_for_their_data(tmp_path: Path) -> None:
    def saved() -> None:
        with Save(tmp_path / "a.onnx") as save:
            save.replace(tmp_path / "a.data", free=True).write_text("mine")
            save.replace(tmp_path / "a.onnx").write_text("mine")
            (tmp_path / "a.data").write_text("theirs")

    with pytest.raises(FileExistsError, match=r"save again.*a\.data"):
        saved()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.data": "theirs"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_reported_with_the_file(code: int, tmp_path: Path) -> None:
    def saved() -> None:
        with Save(tmp_path / "a") as save:
            save.replace(tmp_path / "a")
            raise OSError(code, os.strerror(code))

    with pytest.raises(OSError, match=os.strerror(code)) as caught:
        saved()
    assert caught.value.filename == str(tmp_path / "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o440])
def test_the_owner_of_a_replaced_file_stays(mode: int, tmp_path: Path) -> None:
    for path in model(2).save(tmp_path / "m"):
        os.chown(path, 1234, 4321)
        Path(path).chmod(mode)
    model(3).save(tmp_path / "m")
    for path in tmp_path.iterdir():
        found = path.stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, mode)


def test_a_file_that_cannot_be_given_away_is_saved_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    (tmp_path / "m-symbol.json").write_text("{}")
    (tmp_path / "m-symbol.json").chmod(0o640)
    real = os.fstat

    def of_another(file: int) -> os.stat_result:
        found = list(real(file))
        found[4] += 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr("passlib.files.regular.os.fstat", of_another)
    model(2).save(tmp_path / "m")
    assert stat.S_IMODE((tmp_path / "m-symbol.json").stat().st_mode) == 0o640


def test_a_folder_on_the_way_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match=r"the folder does not exist: .*file'"):
        model(2).save(tmp_path / "file" / "m")
