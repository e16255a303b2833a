"""Models read from files and written back."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import passlib
from dense_layer import X, Y, layer, weights
from failing_saves import MAKERS
from passlib import model, nd, sym
from passlib.errors import FormatError, UnsupportedError
from recorded_models import MODELS, WITH_WEIGHTS

SYMBOLS_ONLY = ("inceptionv3", "resnet152_v1", "resnet50_v2")


@pytest.mark.parametrize("name", WITH_WEIGHTS)
@pytest.mark.parametrize("ending", ["", "-symbol.json", "-0000.params"])
def test_files_come_back_byte_for_byte(name, ending, tmp_path):
    loaded = model.load(f"{MODELS / name}{ending}")
    assert loaded.dialect == "mxnet"
    written = loaded.save(tmp_path / "copy")
    originals = (f"{name}-symbol.json", f"{name}-0000.params")
    for path, original in zip(written, originals, strict=True):
        assert Path(path).read_bytes() == (MODELS / original).read_bytes()


@pytest.mark.parametrize("name", SYMBOLS_ONLY)
def test_without_weights(name, tmp_path):
    loaded = model.load(MODELS / name)
    assert dict(loaded.args) == {}
    assert dict(loaded.aux) == {}
    assert loaded.inputs == loaded.symbol.list_inputs()
    (symbol_file,) = loaded.save(tmp_path / "copy-symbol.json")
    assert [path.name for path in tmp_path.iterdir()] == ["copy-symbol.json"]
    assert Path(symbol_file).read_bytes() == (MODELS / f"{name}-symbol.json").read_bytes()


@pytest.mark.parametrize("dialect", ["mxnet", "nnvm"])
def test_weights_of_the_model_before_are_gone(dialect, tmp_path):
    path = MAKERS[dialect](tmp_path)
    saved = model.load(path, dialect=dialect)
    assert saved.args
    model.Model(saved.symbol, dialect=dialect).save(path)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    assert not model.load(path, dialect=dialect).args


def test_epoch_is_kept(small, tmp_path):
    small.save(tmp_path / "x", epoch=4)
    small.save(tmp_path / "x", epoch=2)
    loaded = model.load(tmp_path / "x")
    assert Path(loaded.save(tmp_path / "y")[1]).name == "y-0004.params"
    loaded = model.load(tmp_path / "x", epoch=2)
    assert Path(loaded.save(tmp_path / "y")[1]).name == "y-0002.params"


def test_archive_of_mxnet_2_is_kept(small, tmp_path):
    small.symbol.save(tmp_path / "x-symbol.json")
    with (tmp_path / "x-0000.params").open("wb") as file:
        np.savez(file, **{f"arg:{name}": array for name, array in weights().items()})
    loaded = model.load(tmp_path / "x")
    np.testing.assert_allclose(loaded(X), Y)
    with np.load(loaded.save(tmp_path / "y")[1]) as archive:
        assert sorted(archive) == ["arg:fc_bias", "arg:fc_weight"]


def test_names_without_prefix_are_sorted_by_the_symbol(tmp_path):
    symbol = sym.BatchNorm(sym.var("data"), name="bn")
    symbol.save(tmp_path / "x-symbol.json")
    names = symbol.list_inputs()[1:]
    nd.save(tmp_path / "x-0000.params", {name: nd.ones((3,)) for name in names})
    loaded = model.load(tmp_path / "x")
    assert list(loaded.args) == ["bn_gamma", "bn_beta"]
    assert list(loaded.aux) == ["bn_moving_mean", "bn_moving_var"]


def test_name_with_and_without_prefix(small, tmp_path):
    small.symbol.save(tmp_path / "x-symbol.json")
    nd.save(tmp_path / "x-0000.params", {"arg:w": nd.ones((1,)), "w": nd.ones((1,))})
    with pytest.raises(FormatError, match=r"x-0000\.params: 'w' is in the file twice"):
        model.load(tmp_path / "x")


@pytest.mark.parametrize("suffix", ["params", "npz", "safetensors"])
def test_weights_of_another_file(suffix, small, tmp_path):
    if suffix == "safetensors":
        pytest.importorskip("safetensors", reason="needs the package safetensors")
    from passlib.mxnet.nd.files import save_weights

    small.symbol.save(tmp_path / "x-symbol.json")
    save_weights(tmp_path / f"other.{suffix}", weights())
    loaded = model.load(tmp_path / "x", params=tmp_path / f"other.{suffix}")
    np.testing.assert_allclose(loaded(X), Y)


def test_saved_over_itself(small, tmp_path):
    small.save(tmp_path / "x")
    loaded = model.load(tmp_path / "x")
    loaded.save(tmp_path / "x")
    np.testing.assert_allclose(model.load(tmp_path / "x")(X), Y)


def test_failure_leaves_both_files(small, tmp_path):
    small.save(tmp_path / "x")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    bad = model.Model(layer(4), {"fc_weight": np.ones((4, 2), np.complex64)})
    with pytest.raises(UnsupportedError, match="complex64"):
        bad.save(tmp_path / "x")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_damaged_symbol_is_named(tmp_path):
    shutil.copy(MODELS / "lstm_lm-0000.params", tmp_path / "x-0000.params")
    (tmp_path / "x-symbol.json").write_text("{")
    with pytest.raises(FormatError, match=r"x-symbol\.json"):
        model.load(tmp_path / "x")


def test_an_onnx_model_passes_through_few_modules(tmp_path: Path) -> None:
    """A reader follows each call from the public function to its last line through eight files."""
    onnx_models = pytest.importorskip("onnx_models", reason="needs the package onnx")
    path = onnx_models.save(onnx_models.CHAIN, tmp_path / "m.onnx")
    passlib.load(path).save(tmp_path / "first.onnx")  # imports what is imported lazily
    folder = str(Path(passlib.__file__).parent)

    def files_of(work: Callable[[], object]) -> set[str]:
        seen: set[str] = set()
        sys.setprofile(lambda frame, event, argument: seen.add(frame.f_code.co_filename))
        try:
            work()
        finally:
            sys.setprofile(None)
        return {name for name in seen if name.startswith(folder)}

    loaded = passlib.load(path)
    assert len(files_of(lambda: passlib.load(path))) <= 8
    assert len(files_of(lambda: loaded.save(tmp_path / "again.onnx"))) <= 8

    @passlib.graph_pass
    def leave_identity_out(graph: passlib.Graph) -> None:
        for node in graph.sorted():
            if node.op == "Identity" and not node.output(0).is_output:
                graph.replace(node.output(0), node.inputs[0])
                graph.remove(node)

    passlib.library.load_standard()
    for name in ("leave_identity_out", "removeDeadNodes"):
        loaded.optimize_for(name)
        assert len(files_of(lambda name=name: loaded.optimize_for(name))) <= 8, name
