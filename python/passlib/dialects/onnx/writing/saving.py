"""Storing an ONNX model with the files that belong to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.reading import (
    Content,
    Document,
    document_of,
    map_file,
)
from passlib.dialects.onnx.soundness.acceptance import (
    MOST_KINDS,
    are_accepted,
    check_accepted,
    loses_captured_casts,
)
from passlib.dialects.onnx.writing.assembly import (
    Assembled,
    Placement,
    as_in_file,
    assemble_for_file,
    check_replaceable,
    data_left_behind,
    folders_of,
)
from passlib.dialects.onnx.writing.options import converted, hold
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.files.regular import Save

INLINE_LIMIT = (1 << 31) - (1 << 24)
"""The weights of models of more bytes than this move to a separate file.

A protobuf message is limited to 2 GiB.
"""


def _store(
    path: Path, assembled: Assembled | None, document: Document, placement: Placement | None = None
) -> tuple[str, ...]:
    """Write a model; external data that it was read with is written next to it.

    Result: the files written, the model first. ``assembled``: its model is consumed; None stands
    for that of the file. ``placement``: where the weights go, by default where they were, as far as
    possible. Raises `FormatError` if a data file is missing, or outside the folder;
    `UnsupportedError` if the placement needs a file that it cannot have, or puts too much into the
    model; `OSError` if a file cannot be written.
    """
    unchanged = assembled is None
    if assembled is None:
        if placement is None and not document.has_external and len(document.data) <= INLINE_LIMIT:
            with _saving(path, document) as save, save.replace(path).open("wb") as file:
                file.write(memoryview(document.data))
            return (str(path),)
        assembled = as_in_file(document)
    as_written = placement is None and not document.has_external and not assembled.edited
    if as_written and assembled.writer.size <= INLINE_LIMIT:
        with _saving(path, document) as save, save.replace(path).open("wb") as file:
            assembled.writer.write_to(file.fileno())
        return (str(path),)
    target = placement.target(path) if placement is not None else None
    if target is not None:
        check_replaceable(path, target)
    needed: set[Path] = set()
    made: list[Path] = []
    with _saving(path, document, needed) as save:
        partial = save.replace(path)
        placed = _placed(path, assembled, document, placement, target)
        for location in placed.elsewhere:
            with suppress(FormatError):
                needed.add(document.folder.file(location, str(path))[0])
        for number, name in enumerate(placed.files):
            final = Path(os.fsdecode(name))
            final.parent.mkdir(parents=True, exist_ok=True)
            made.append(final)
            with save.replace(final, free=not final.exists()).open("wb") as file:
                placed.write_file(number, file.fileno())
        for name in placed.kept:
            save.keep(Path(os.fsdecode(name)))
        as_read = unchanged and placement is None and not document.is_apart
        with partial.open("wb") as file:
            if as_read and not placed.moved:
                file.write(document.data)
            else:
                placed.write_to(file.fileno())
    if made and target is not None and target != made[0]:
        _rename(path, made[0], target)
        made = [target]
    return (str(path), *map(str, made))


def _placed(
    path: Path,
    assembled: Assembled,
    document: Document,
    placement: Placement | None,
    target: Path | None,
) -> _core.PlacedModel:
    """Place the data of a model, and give it the places.

    Parameters are those of `_store`; ``target``: the data file, if its name was chosen.
    """
    folder = document.folder

    def file(location: str, needed: bool) -> _core.FileMapping | bytes | None:
        try:
            return folder.file(location, str(path))[1]
        except FormatError:
            if needed:
                raise
            return None  # all its data is mapped

    message = (
        assembled.model.SerializeToString()
        if assembled.edited
        else assembled.writer.message(outline=False)
    )
    external = assembled.external
    weights = [
        (number, np.ascontiguousarray(array, array.dtype.newbyteorder("<")), external.get(number))
        for number, array in assembled.arrays.items()
    ]
    asked = None
    if placement is not None:
        name = target.relative_to(path.parent).as_posix() if target is not None else ""
        asked = (placement.external, os.fsencode(name), placement.size_threshold)
    return _core.place_data(
        message,
        weights,
        file,
        folder.arrays.__getitem__ if document.is_apart else None,
        document.file.users,
        os.fsencode(path),
        INLINE_LIMIT,
        asked,
    )


@contextmanager
def _saving(
    path: Path, document: Document | None = None, needed: Set[Path] = frozenset()
) -> Iterator[Save]:
    """Save a model, and delete the data files that only the replaced one needed."""
    folders = folders_of(path)
    with Save(path, left=lambda: data_left_behind(path, folders) - needed) as save:
        yield save
        if document is not None:
            document.check()


def _rename(path: Path, data: Path, target: Path) -> None:
    """Rename the data file of a model over an older one, which the model does not use."""
    before, after = (each.relative_to(path.parent).as_posix() for each in (data, target))
    renamed = _core.with_data_files(map_file(path), {before: after})
    with _saving(path) as save:
        made = save.replace(target)
        shutil.copyfile(data, made)  # the package onnx refuses a file of two names
        with save.replace(path).open("wb") as file:
            renamed.write_to(file.fileno())


def save(
    path: Path, model: ModelData, placement: Placement | None, opset: int | None
) -> tuple[str, ...]:
    """Write a model and its external data as a whole, or not at all.

    ``placement``: where weights lie; None for where the model had them. ``opset``: the operator set
    to convert to. Raises `GraphError` or `UnsupportedError` if ONNX's checker would refuse the
    file, or the model has no form as ONNX.
    """
    document, assembled = _checked(model, opset)
    return _store(path, assembled, document, placement)


def apart(model: ModelData, opset: int | None) -> Content:
    """Serialize a model without its large weights, as `save` writes it."""
    document, assembled = _checked(model, opset)
    assembled = assembled or as_in_file(document)
    weights = hold(assembled, document.folder)
    return Content.of(assembled.model.SerializeToString(), weights)


def is_refused(model: ModelData) -> bool:
    """Whether a change should not be written.

    ONNX's checker would refuse the file, ONNX Runtime lose a value, or training information or an
    annotation refer to a value that is gone or another one.
    """
    try:
        document, assembled = _assembled(model)
        if assembled is not None:
            _check(assembled, document)
    except (GraphError, UnsupportedError):
        return True
    if assembled is None:
        return False
    return assembled.writer.alters or loses_captured_casts(assembled.outline)


def _assembled(model: ModelData) -> tuple[Document, Assembled | None]:
    document = model.template
    if not isinstance(document, Document):
        document = document_of(model.attributes)
    args = model.args
    params = args if isinstance(args, dict) and not model.aux else {**args, **model.aux}
    return document, assemble_for_file(
        model.graph, model.attributes, document, params, model.omitted
    )


def _checked(model: ModelData, opset: int | None) -> tuple[Document, Assembled | None]:
    document, assembled = _assembled(model)
    made = None
    if opset is not None:
        made = converted(assembled or as_in_file(document), opset, lambda: document.outline)
    if made is not None:
        return document, made
    if assembled is not None:
        _check(assembled, document)
    return document, assembled


def _check(assembled: Assembled, document: Document) -> None:
    writer = assembled.writer
    kinds = None if assembled.edited else writer.kinds(MOST_KINDS)
    if kinds is None or not are_accepted(kinds, writer.changed_outputs()):
        shown = assembled.model if assembled.edited else assembled.outline
        check_accepted(shown, assembled.held, lambda: document.outline)
