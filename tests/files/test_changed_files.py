"""Files that other programs change while a model that is mapped from them is in use."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib
from passlib.errors import FormatError
from passlib.workbench import compare

SIZE = 1 << 19  # of float32: files of this size are mapped by every reader
X = {"x": np.ones(SIZE, np.float32)}


def onnx_model(value: float, size: int = SIZE) -> Any:
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [size]) for n in "xy"]
    nodes = [
        helper.make_node("Identity", ["x"], ["t"]),
        helper.make_node("Mul", ["t", "w"], ["y"]),
    ]
    weight = numpy_helper.from_array(np.full(size, value, np.float32), "w")
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], [weight])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def onnx_inline(folder: Path, value: float, size: int = SIZE) -> tuple[Path, Path]:
    onnx.save(onnx_model(value, size), folder / "m.onnx")
    return folder / "m.onnx", folder / "m.onnx"


def onnx_external(folder: Path, value: float, size: int = SIZE) -> tuple[Path, Path]:
    (folder / "w.bin").unlink(missing_ok=True)
    onnx.save(
        onnx_model(value, size), folder / "m.onnx", save_as_external_data=True, location="w.bin"
    )
    return folder / "m.onnx", folder / "w.bin"


def mxnet(folder: Path, value: float, size: int = SIZE) -> tuple[Path, Path]:
    y = passlib.sym.identity(passlib.sym.var("x")) * passlib.sym.var("w")
    weights = {"w": passlib.nd.array(np.full(size, value, np.float32))}
    passlib.Model(y, weights).save(folder / "m")
    return folder / "m-symbol.json", folder / "m-0000.params"


MAKERS = {each.__name__: each for each in (onnx_inline, onnx_external, mxnet)}


def rewritten(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)


def with_old_times(path: Path, content: bytes) -> None:
    about = path.stat()
    rewritten(path, content)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


CHANGES: dict[str, Callable[[Path, bytes, bytes], None]] = {
    "other content of equal size": lambda path, new, _: rewritten(path, new),
    "the same with the old times": lambda path, new, _: with_old_times(path, new),
    "smaller": lambda path, new, _: rewritten(path, new[:5000]),
    "empty": lambda path, *_: rewritten(path, b""),
    "truncated": lambda path, *_: os.truncate(path, 4096),
    "longer": lambda path, new, _: rewritten(path, new + bytes(4096)),
    "in the middle": lambda path, _, small: (
        path.open("r+b").close() or os.pwrite(os.open(path, os.O_WRONLY), small, 1 << 20)
    ),
}

ACTIONS: dict[str, Callable[[passlib.Model, Path], Any]] = {
    "run": lambda model, _: model.run(X),
    "call": lambda model, _: model(X["x"]),
    "read": lambda model, _: model.args["w"],
    "read all": lambda model, _: dict(model.args),
    "pass": lambda model, _: model.optimize_for("removeDeadNodes"),
    "simplify": lambda model, _: passlib.simplify(model),
    "save": lambda model, folder: model.save(folder / "new"),
    "save over": lambda model, folder: model.save(folder / "m"),
    "to_onnx": lambda model, folder: model.to_onnx(folder / "new.onnx"),
    "compare": lambda model, _: compare(model, model),
    "save again": lambda model, folder: model.with_weights({"w": np.zeros_like(X["x"])}).save(
        folder / "new"
    ),
    "save with other weights": lambda model, folder: passlib.nd.save(
        str(folder / "w.params"), dict(model.args)
    ),
    "pickle": lambda model, _: pickle.dumps(model),
}


def loaded(kind: str, folder: Path) -> tuple[passlib.Model, Path, bytes]:
    """Return a model of ones, the mapped file, and its content in a model of twos."""
    (folder / "two").mkdir()
    new = MAKERS[kind](folder / "two", 2)[1].read_bytes()
    path, data = MAKERS[kind](folder, 1)
    return passlib.load(path), data, new


def target(kind: str, folder: Path) -> Any:
    return folder if kind == "mxnet" else _Suffixed(folder)


class _Suffixed:
    """A folder in which names of models have the suffix of ONNX."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __truediv__(self, name: str) -> Path:
        return self._folder / (name if "." in name else f"{name}.onnx")


@pytest.mark.parametrize("ran", [False, True])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_changed_file_is_an_error(kind: str, change: str, ran: bool, tmp_path: Path) -> None:
    passlib.library.load_standard()
    model, data, new = loaded(kind, tmp_path)
    if ran:
        model.run(X)
    CHANGES[change](data, new, b"changed!")
    before = {path: path.stat() for path in tmp_path.iterdir() if path.is_file()}
    for name, action in ACTIONS.items():
        if kind == "mxnet" and name == "save again":
            continue  # it needs nothing of the file
        with pytest.raises(FormatError, match=rf"/{data.name}: .*was changed.*load it again"):
            action(model, target(kind, tmp_path))
    assert {path: path.stat() for path in tmp_path.iterdir() if path.is_file()} == before


HARMLESS: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda _: None,
    "deleted": lambda path: path.unlink(),
    "renamed": lambda path: path.rename(path.with_name("elsewhere")),
    "replaced": lambda path: path.with_name("two").joinpath(path.name).replace(path),
    "linked": lambda path: os.link(path, path.with_name("link")),
    "other rights": lambda path: path.chmod(0o751),
    "read": lambda path: path.read_bytes(),
}


@pytest.mark.parametrize("event", HARMLESS)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_that_keeps_its_content_is_no_error(kind: str, event: str, tmp_path: Path) -> None:
    passlib.library.load_standard()
    model, data, _ = loaded(kind, tmp_path)
    HARMLESS[event](data)
    out = tmp_path / "out"
    out.mkdir()
    for name, action in ACTIONS.items():
        action(model, target(kind, out if "over" in name else tmp_path))
    for each in (model, passlib.load(target(kind, out) / "m")):
        assert set(np.asarray(each.args["w"])) == {1.0}
        assert set(each.run(X)[each.outputs[0]].asnumpy()) == {1.0}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_model_saved_over_itself_stays_in_use(kind: str, tmp_path: Path) -> None:
    model, _, _ = loaded(kind, tmp_path)
    for value in (3, 4):
        new = model.with_weights({"w": np.full(SIZE, value, np.float32)})
        new.save(target(kind, tmp_path) / "m")
        assert set(np.asarray(model.args["w"])) == {1.0}
        assert set(model.run(X)[model.outputs[0]].asnumpy()) == {1.0}
    model.save(target(kind, tmp_path) / "m")
    assert set(np.asarray(passlib.load(target(kind, tmp_path) / "m").args["w"])) == {1.0}


def test_data_of_another_save_is_not_taken_for_that_of_the_model(tmp_path: Path) -> None:
    model, data, _ = loaded("onnx_external", tmp_path)
    (tmp_path / "two" / "w.bin").replace(data)
    model.save(tmp_path / "m.onnx")
    assert set(np.asarray(passlib.load(tmp_path / "m.onnx").args["w"])) == {1.0}


def test_a_change_in_the_same_tick_of_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    contents = [onnx_model(value, 4).SerializeToString() for value in (1, 2)]
    for _ in range(50):
        path.write_bytes(contents[0])
        model = passlib.load(path)
        path.write_bytes(contents[1])
        with pytest.raises(FormatError, match="load it again"):
            model.args["w"]


def test_a_change_while_a_model_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data, new = loaded("onnx_inline", tmp_path)
    sync = os.fsync
    real = os.open

    def change(*arguments: Any, **options: Any) -> int:
        if ".tmp" in str(arguments[0]) and arguments[1] & os.O_CREAT:
            rewritten(data, new)
        return real(*arguments, **options)

    monkeypatch.setattr(os, "open", change)
    with pytest.raises(FormatError, match="load it again"):
        model.save(tmp_path / "new.onnx")
    assert sync is os.fsync
    assert not (tmp_path / "new.onnx").exists()


def node_with_text(value: float) -> tuple[list[Any], list[Any]]:
    tensor = numpy_helper.from_array(np.full(4, value, np.float32), "w")
    constant = helper.make_node("Constant", [], ["w"], value=tensor)
    return [constant, helper.make_node("Mul", ["t", "w"], ["y"])], []


def number_in_node(value: float) -> tuple[list[Any], list[Any]]:
    return [helper.make_node("LeakyRelu", ["t"], ["y"], alpha=float(value))], []


def list_of_numbers(value: float) -> tuple[list[Any], list[Any]]:
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [4], [value] * 4)
    return [helper.make_node("Mul", ["t", "w"], ["y"])], [tensor]


def branches(value: float) -> tuple[list[Any], list[Any]]:
    info = helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])
    tensor = numpy_helper.from_array(np.full(4, value, np.float32), "w")
    branch = helper.make_graph([helper.make_node("Mul", ["t", "w"], ["b"])], "b", [], [info])
    branch.initializer.append(tensor)
    yes = numpy_helper.from_array(np.array(True), "yes")
    return [helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)], [yes]


WITHOUT_MAPPED_ARRAYS = (node_with_text, number_in_node, list_of_numbers, branches)


@pytest.mark.parametrize("content", ["new", "zeros", "empty"])
@pytest.mark.parametrize("make", WITHOUT_MAPPED_ARRAYS, ids=lambda make: make.__name__)
def test_a_changed_file_whose_arrays_are_copies(make: Any, content: str, tmp_path: Path) -> None:
    def written(value: float) -> bytes:
        info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
        nodes, tensors = make(value)
        identity = helper.make_node("Identity", ["x"], ["t"])
        graph = helper.make_graph([identity, *nodes], "g", info[:1], info[1:], tensors)
        imports = [helper.make_opsetid("", 17)]
        return bytes(
            helper.make_model(graph, ir_version=8, opset_imports=imports).SerializeToString()
        )

    path = tmp_path / "m.onnx"
    path.write_bytes(written(1))
    model = passlib.load(path)
    model.run({"x": np.ones(4, np.float32)})
    new = written(2)
    with_old_times(path, {"new": new, "zeros": bytes(len(new)), "empty": b""}[content])
    uses: list[Callable[[], Any]] = [
        lambda: model.run({"x": np.ones(4, np.float32)}),
        lambda: passlib.simplify(model),
        lambda: passlib.simplify(model, exact=True),
        lambda: model.optimize_for("foldConstants"),
        lambda: model.optimize_for(["removeDeadNodes", "foldShapes"]),
        lambda: model.symbol.optimize_for("foldShapes"),
        lambda: model.save(tmp_path / "new.onnx"),
        lambda: model.to_onnx(tmp_path / "new.onnx"),
    ]
    for use in uses:
        with pytest.raises(FormatError, match=r"^\S+/m.onnx: .*was changed.*load it again$"):
            use()
    assert not (tmp_path / "new.onnx").exists()


def test_arrays_and_symbols_by_themselves(tmp_path: Path) -> None:
    passlib.library.load_standard()
    _, data, new = loaded("mxnet", tmp_path)
    symbol, args, aux = passlib.model.load_checkpoint(tmp_path / "m", 0)
    model = passlib.load(tmp_path / "m")
    weight = args["w"]
    rewritten(data, new)
    uses: list[Callable[[], Any]] = [
        model.to_html,
        weight.asnumpy,
        lambda: weight + 1,
        lambda: 1 - weight,
        lambda: -weight,
        lambda: weight[:3],
        weight.copy,
        lambda: weight.astype("float16"),
        weight.sum,
        lambda: np.sort(weight),
        lambda: np.add(weight, 1),
        lambda: repr(weight),
        lambda: pickle.dumps(weight),
        lambda: symbol.optimize_for("removeDeadNodes", args, aux),
        lambda: passlib.model.save_checkpoint(tmp_path / "new", 0, symbol, args, aux),
        lambda: passlib.nd.save(str(tmp_path / "new.params"), args),
        lambda: passlib.nd.save(str(tmp_path / "new.npz"), args),
        lambda: symbol.bind(passlib.cpu(), {**args, "x": passlib.nd.array(X["x"])}).forward(),
    ]
    for use in uses:
        with pytest.raises(FormatError, match="load it again"):
            use()
    assert not list(tmp_path.glob("new*"))


def test_sparse_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.params"
    rows = passlib.nd.sparse.row_sparse_array(
        (np.ones((SIZE, 2), np.float32), np.arange(SIZE)), shape=(SIZE, 2)
    )
    passlib.nd.save(str(path), {"w": rows})
    array = passlib.nd.load(str(path))["w"]
    os.truncate(path, 0)
    for use in (array.asnumpy, array.copy, lambda: array * 2, array.data.asnumpy):
        with pytest.raises(FormatError, match="load it again"):
            use()
