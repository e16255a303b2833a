"""Models are saved over regular files only, and a pipe beside them hangs nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passlib
from failing_saves import MAKERS
from passlib.errors import FormatError
from passlib.files.regular import own_prefix
from waiting import within_seconds


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/null")


KINDS = {pipe: "a named pipe", device: "a device"}


def made(kind: str, folder: Path) -> tuple[passlib.Model, Path]:
    """Return a model and the file that it was loaded from."""
    folder.mkdir()
    path = MAKERS[kind](folder)
    return passlib.load(path), path


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", MAKERS)
def test_models_are_not_saved_over_what_is_no_file(
    kind: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    model, path = made(kind, tmp_path / "model")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / path.name
    expected = f"{target}: this is {KINDS[make]}, and only regular files are read and written; "
    make(target)
    saves: list[Callable[[], Any]] = [lambda: model.save(target)]
    if kind == "onnx_external":
        saves.append(lambda: model.to_onnx(target))
        saves.append(lambda: passlib.convert(path, target))
    for save in saves:
        error = within_seconds(save)
        assert isinstance(error, FormatError), error
        assert str(error) == expected + "save under another name"
    assert list((tmp_path / "out").iterdir()) == [target]


@pytest.mark.parametrize("kind", sorted(set(MAKERS) - {"ark"}))
def test_a_pipe_in_place_of_weights(kind: str, tmp_path: Path) -> None:
    model, path = made(kind, tmp_path / "model")
    assert model.args
    beside = [each for each in path.parent.iterdir() if each != path and each.suffix != ".h5"]
    (weights,) = [each for each in beside if not each.match("*.golden.json")]
    weights.unlink()
    pipe(weights)
    named = f"{weights.name}: this is a named pipe"
    error = within_seconds(lambda: passlib.load(path).args)
    assert isinstance(error, FormatError), error
    assert weights.name in str(error)
    problems = within_seconds(lambda: passlib.validate(path))
    assert any(p.severity == "error" and weights.name in str(p) for p in problems), problems
    again = within_seconds(lambda: passlib.Model(
        model.symbol, {name: array.copy() for name, array in model.args.items()},
        dialect=model.dialect, template=model._template,
    ).save(path))  # fmt: skip
    if not kind.startswith("onnx"):  # whose data go to a new name
        assert isinstance(again, FormatError), again
        assert named in str(again)


@pytest.mark.parametrize("kind", MAKERS)
def test_pipes_with_the_names_of_passlib(kind: str, tmp_path: Path) -> None:
    model, path = made(kind, tmp_path / "model")
    for name in (f"{own_prefix(path)}-0123456789abcdef.tmp", f"{own_prefix(path)}.stamp"):
        pipe(path.with_name(name))
    assert isinstance(within_seconds(lambda: passlib.load(path)), passlib.Model)
    files = within_seconds(lambda: model.save(path))
    assert isinstance(files, tuple), files
