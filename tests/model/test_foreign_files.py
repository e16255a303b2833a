"""Files of other programs, given as models: the error says what they are."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import passlib

CONTENTS = [
    ("net.tflite", b"\x1c\0\0\0TFL3" + bytes(40), "TensorFlow Lite.*tf2onnx"),
    ("net.pt", b"\x80\x02}q\x00.", "pickle, such as an old PyTorch file.*torch.onnx"),
    ("net.bin", b"\x80\x04}\x94.", "a pickle, which passlib never reads"),
    ("net.gguf", b"GGUF\3\0\0\0" + bytes(20), "GGUF"),
    ("net.h5", b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    ("net.so", b"\x7fELF\2\1\1" + bytes(60), "compiled library.*passlib.library.load"),
    ("net.gz", b"\x1f\x8b\x08" + bytes(20), "gzip"),
    ("net.pb", b"\x0a\x05hello", "TensorFlow graph"),
    ("net.safetensors", b"\x08\0\0\0\0\0\0\0{}      ", "weights without a graph"),
    ("net.py", b"import torch\n", "Python source"),
    ("net.onnx", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ("net.onnx", b"<!DOCTYPE html>\n<html>", "a web page"),
    ("net.onnx", "Gr\u00fc\u00dfe\n".encode(), "a text file"),
    ("net.xml", b'<?xml version="1.0"?>\n<net name="n"/>', "OpenVINO model; take the ONNX model"),
    ("net.bin", bytes(64), "a file of weights"),
    ("net.engine", b"ftrt" + bytes(60), "TensorRT engine; take the ONNX model"),
    ("net.plan", bytes(64), "TensorRT engine"),
    ("net.pt2", bytes(64), "PyTorch file.*torch.onnx"),
    ("net.tflite", bytes(64), "TensorFlow Lite.*tf2onnx"),
    ("net.keras", bytes(64), "Keras model.*ONNX"),
    ("empty.bin", b"", "an empty file"),
]
ARCHIVES = [
    ("net.pt", "archive/data.pkl", "PyTorch.*torch.onnx"),
    ("net.keras", "metadata.json", "Keras"),
    ("net.npz", "arr_0.npy", "npz file of weights"),
    ("net.zip", "readme", "zip archive"),
]


@pytest.mark.parametrize("read", [passlib.load, passlib.validate], ids=["load", "validate"])
@pytest.mark.parametrize(("name", "content", "words"), CONTENTS)
def test_files(
    read: Callable[[Path], object], name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(
        passlib.FormatError, match=f"not a model that passlib reads, but.*{words}"
    ) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("name", "member", "words"), ARCHIVES)
def test_archives(name: str, member: str, words: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr(member, b"content")
    with pytest.raises(passlib.FormatError, match=words):
        passlib.load(tmp_path / name)


@pytest.mark.parametrize("path", ["https://example.com/net.onnx", "s3://models/net.onnx"])
def test_addresses(path: str) -> None:
    for given in (path, Path(path)):
        with pytest.raises(passlib.FormatError, match=f"{path}: this is a URL; download the file"):
            passlib.load(given)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(passlib.FormatError, match=r"a folder; name the file"):
        passlib.load(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01")
    with pytest.raises(passlib.FormatError, match=r"SavedModel.*tf2onnx"):
        passlib.load(tmp_path)
