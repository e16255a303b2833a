"""Files of other programs, which are taken for models by mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from passlib.files.regular import open_regular

_HEAD = 4096

_TO_ONNX: Final = "export it to ONNX first"
_TORCH: Final = f"a PyTorch file; {_TO_ONNX}, with torch.onnx.export"
_TENSORFLOW: Final = f"{_TO_ONNX}, with tf2onnx"

_BEGINNINGS: Final = (
    (0, b"\x7fELF", "a compiled library or program; passlib.library.load loads libraries"),
    (4, b"TFL3", f"a TensorFlow Lite model; {_TENSORFLOW}"),
    (0, b"GGUF", f"a GGUF file of weights; {_TO_ONNX}"),
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
    (b"model.weights.h5", f"a Keras model; {_TENSORFLOW}"),
    (b"metadata.json", f"a Keras model; {_TENSORFLOW}"),
    (b".npy", "an .npz file of weights without a graph; give it as params= with the graph's file"),
    (b"", "a zip archive; unpack it first"),
)
"""The same for archives, by a name among the first members."""

_SUFFIXES: Final = {
    ".mlmodel": f"a Core ML model; {_TO_ONNX}",
    ".pb": f"a TensorFlow graph; {_TENSORFLOW}",
    ".safetensors": "a file of weights without a graph; give it as params= with the graph's file",
    ".params": "a file of weights without a graph next to it; load the graph's file",
    ".py": "Python source",
    ".cc": "C++ source",
}


def describe(path: Path) -> str:
    """Return what kind of file or folder this is, and the way out; empty if that is unknown.

    Parameters
    ----------
    path : Path
        No dialect recognises it.

    Returns
    -------
    str
        A clause without a subject, such as "a PyTorch file; export it ...".
    """
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            return f"a TensorFlow SavedModel; {_TENSORFLOW}"
        return "a folder; name the file of the model in it"
    with open_regular(path) as file:
        head = file.read(_HEAD)
    if not head:
        return "an empty file"
    if head.startswith(b"PK\x03\x04"):
        return next(what for name, what in _MEMBERS if name in head)
    for offset, mark, what in _BEGINNINGS:
        if head[offset : offset + len(mark)] == mark:
            return what
    return _SUFFIXES.get(path.suffix.lower(), "")
