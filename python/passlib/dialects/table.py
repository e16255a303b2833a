"""The table of dialects; which one a file belongs to, and which names files may have.

Packages add dialects by an entry point of the group ``passlib.dialects`` whose object is a
`passlib.dialects.Dialect`: this distribution all but that of ONNX, which the core has itself.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from passlib.dialects.protocol import Dialect
from passlib.errors import FormatError, UnsupportedError, did_you_mean
from passlib.files.optional import extensions
from passlib.files.regular import check_path, open_regular

_HEAD = 4096

_TO_ONNX: Final = "export it to ONNX first"
_TORCH: Final = f"a PyTorch file; {_TO_ONNX}, with torch.onnx.export"
_TENSORFLOW: Final = f"{_TO_ONNX}, with tf2onnx"
_KERAS: Final = f"a Keras model; {_TO_ONNX}, with its export(format='onnx') or tf2onnx"
_LITE: Final = f"a TensorFlow Lite model; {_TENSORFLOW}"
_GGUF: Final = f"a GGUF file of weights; {_TO_ONNX} from the model that it was made of"
_MADE_OF_ONNX: Final = "take the ONNX model that it was made of"
_OPENVINO: Final = f"an OpenVINO model; {_MADE_OF_ONNX}"
_TENSORRT: Final = f"a TensorRT engine; {_MADE_OF_ONNX}"

_BEGINNINGS: Final = (
    (0, b"\x7fELF", "a compiled library or program; passlib.library.load loads libraries"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; fetch the file with git lfs pull"),
    (0, b"<!DOCTYPE", "a web page; download the file itself"),
    (0, b"<html", "a web page; download the file itself"),
    (0, b"<?xml", f"an XML file, such as {_OPENVINO}"),
    (4, b"TFL3", _LITE),
    (0, b"GGUF", _GGUF),
    (0, b"\x89HDF\r\n\x1a\n", f"an HDF5 file; if it is a Keras model, {_TENSORFLOW}"),
    (0, b"\x80\x02", _TORCH.replace("PyTorch file", "pickle, such as an old PyTorch file")),
    (0, b"\x80\x04", "a pickle, which passlib never reads, because reading one runs code"),
    (0, b"\x1f\x8b", "a gzip archive; unpack it first"),
    (0, b"BZh", "a bzip2 archive; unpack it first"),
    (0, b"\xfd7zXZ", "an xz archive; unpack it first"),
    (257, b"ustar", "a tar archive; unpack it first"),
)
"""Offset and bytes by which a file is known, and what it is."""

_MEMBERS: Final = (
    (b"/data.pkl", _TORCH),
    (b"constants.pkl", _TORCH),
    (b"model.weights.h5", _KERAS),
    (b"metadata.json", _KERAS),
    (b".npy", "an .npz file of weights without a graph; give it as params= with the graph's file"),
    (b"", "a zip archive; unpack it first"),
)
"""The same for archives, by a name among the first members."""

_SUFFIXES: Final = {
    ".bin": "a file of weights, such as that of an OpenVINO or PyTorch model, without a graph",
    ".ckpt": _TORCH,
    ".engine": _TENSORRT,
    ".gguf": _GGUF,
    ".h5": _KERAS,
    ".keras": _KERAS,
    ".mlmodel": f"a Core ML model; {_TO_ONNX}",
    ".plan": _TENSORRT,
    ".pt": _TORCH,
    ".pt2": _TORCH,
    ".pth": _TORCH,
    ".tflite": _LITE,
    ".trt": _TENSORRT,
    ".xml": _OPENVINO,
    ".pb": f"a TensorFlow graph; {_TENSORFLOW}",
    ".safetensors": "a file of weights without a graph; give it as params= with the graph's file",
    ".params": "a file of weights without a graph next to it; load the graph's file",
    ".py": "Python source",
    ".cc": "C++ source",
}


_TEXTS: Final = (".onnx", ".txt", ".md", ".csv", ".yaml", ".yml", ".log")
"""Suffixes of files that are no models of a dialect if they are text."""


def describe(path: Path) -> str:
    """Return what kind of file or folder this is, and the way out; empty if that is unknown.

    ``path``: no dialect recognises it. Result: a clause without a subject, such as "a PyTorch file;
    export it ...".
    """
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            return f"a TensorFlow SavedModel; {_TENSORFLOW}"
        return "a folder; name the file of the model in it"
    with open_regular(path) as file:
        head = file.read(_HEAD)
    if not head:
        return "an empty file"
    suffix = path.suffix.lower()
    if head.startswith(b"PK\x03\x04"):
        found, what = next(each for each in _MEMBERS if each[0] in head)
        return what if found else _SUFFIXES.get(suffix, what)
    for offset, mark, what in _BEGINNINGS:
        if head[offset : offset + len(mark)] == mark:
            return what
    if suffix in _TEXTS and _is_text(head):
        return "a text file"
    return _SUFFIXES.get(suffix, "")


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not in the middle of the last character
            return False
        text = head[: error.start].decode("utf-8")
    return all(c.isprintable() or c.isspace() for c in text)


if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_OWN = "onnx"
"""The dialect of the core. The others register, those of this distribution too."""


def _registered() -> Mapping[str, EntryPoint]:
    return extensions("passlib.dialects")


def names() -> tuple[str, ...]:
    """Return the names of all dialects, in the order in which files are tried.

    Examples
    --------
    >>> from passlib.dialects import names
    >>> sorted(names())
    ['ark', 'dlprim', 'mxnet', 'nnvm', 'onnx']
    """
    return (*(name for name in _registered() if name != _OWN), _OWN)


def check_known(name: str) -> None:
    """Check that there is a dialect of a name, without importing it.

    Raises `UnsupportedError` if there is none; the message lists the known ones.
    """
    if name != _OWN and name not in _registered():
        near = did_you_mean(name, names())
        message = f"there is no dialect {name!r}{near} (there are {', '.join(names())})"
        raise UnsupportedError(message)


@cache
def find(name: str) -> Dialect:
    """Look a dialect up by name.

    Raises
    ------
    UnsupportedError
        There is no such dialect; the message lists the known ones.

    Examples
    --------
    >>> from passlib.dialects import find
    >>> find("mxnet").title
    'MXNet'
    """
    check_known(name)
    if name == _OWN:
        from passlib.dialects.onnx.dialect import dialect

        return dialect
    found: Dialect = _registered()[name].load()
    return found


def recognise(path: str | os.PathLike[str]) -> Dialect:
    """Return the dialect of a model.

    Raises
    ------
    FormatError
        No dialect recognises the file, or it is something other than a file.
    OSError
        There is nothing at this path.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as pl
    >>> from passlib.dialects import recognise
    >>> with tempfile.NamedTemporaryFile(suffix="-symbol.json") as file:
    ...     pl.sym.relu(pl.sym.var("x")).save(file.name)
    ...     print(recognise(file.name).name)
    mxnet
    """
    # A folder may share the prefix of an MXNet model.
    place = check_path(path, folders=True)
    # A dialect is imported when its turn comes; the suffix of a file is mostly right.
    if place.suffix == ".onnx" and find(_OWN).recognises(place):
        return find(_OWN)
    known = []
    for name in names():
        known.append(dialect := find(name))
        if dialect.recognises(place):
            return dialect
    if not place.exists():
        scheme, mark, rest = os.fspath(place).partition(":/")  # a Path has one slash of two
        if mark and scheme.isalnum():
            raise FormatError(
                f"{scheme}://{rest}: this is a URL; download the file first (passlib opt of "
                "several models, and passlib.batch, read URLs with fsspec)"
            )
        raise FileNotFoundError(2, "there is no such model", os.fspath(place))
    what = describe(place)
    if what:
        raise FormatError(f"{place}: this is not a model that passlib reads, but {what}")
    check_path(place)
    # The reader of the only format with this suffix reports the damage.
    named = [dialect for dialect in known if place.suffix.lower() in dialect.suffixes]
    if len(named) == 1:
        return named[0]
    message = (
        f"{place}: this is not a model of any known dialect ({', '.join(names())}); "
        "if it is one, name it with dialect=..."
    )
    raise FormatError(message)


_MXNET: Final = "-symbol.json"
"""The end of names by which MXNet's models are recognised before their content is looked at."""


def check_target(path: str | os.PathLike[str], dialect: Dialect) -> Path:
    """Refuse a name for a model that is a folder's, or has another format's suffix.

    A suffix that no format has, as in ``resnet.v1``, is part of the name. ``dialect``: the family
    of the model that is to be written. Raises `IsADirectoryError` if the name is empty, ``.`` or
    ``..``, ends in a slash, or is that of a folder; `UnsupportedError` if the suffix is that of
    another format, or of a weight file.
    """
    text = os.fspath(path)
    if isinstance(text, bytes):
        raise TypeError(
            f"a model is saved under a path of str, not bytes; use os.fsdecode({text!r})"
        )
    ends = text.endswith((os.sep, f"{os.sep}.")) or Path(text).name in ("", os.pardir)
    if ends or (not dialect.appends_suffixes and Path(text).is_dir()):
        example = Path(text) / "model"
        what = f"this is a folder; add the name of a file in it, such as {example}"
        raise IsADirectoryError(errno.EISDIR, what, text)
    place = Path(text)
    suffix = place.suffix.lower()
    reserved = place.name.endswith(_MXNET) and not dialect.appends_suffixes
    if reserved and suffix in dialect.suffixes:
        better = place.with_name(f"{place.name.removesuffix(_MXNET)}.json")
        raise UnsupportedError(
            f"{place}: models with names in {_MXNET} are read as MXNet's, and this one would be "
            f"written as {dialect.title}; name it {better}"
        )
    if not suffix or suffix in dialect.suffixes:
        return place
    if suffix in dialect.weight_suffixes:
        raise UnsupportedError(
            f"{place}: {suffix} is the suffix of a weight file; the graph gets the name, and the "
            f"weights go next to it: {place.with_suffix(dialect.suffixes[0])}"
        )
    others = [d for d in map(find, names()) if suffix in (*d.suffixes, *d.weight_suffixes)]
    if others:
        titles = ", ".join(other.title for other in others)
        if dialect.name == "onnx":
            raise UnsupportedError(
                f"{place}: {suffix} is a suffix of {titles}, and this is written as ONNX; name it "
                f"{place.with_suffix('.onnx')}, or use Model.save for the form that was read"
            )
        raise UnsupportedError(
            f"{place}: {suffix} is a suffix of {titles}, and the model would be written as "
            f"{dialect.title}; passlib.convert(source, target) and Model.to_onnx(target) write "
            "ONNX files, and Model.save the form that was read"
        )
    return place
