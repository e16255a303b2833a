"""Models pickled and copied: they save the same bytes and compute the same."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onnx_models
import passlib
from dense_layer import X, Y, layer, weights
from dlprim_files import with_weights
from nnvm_files import NESTED
from passlib import nd
from passlib.model import Model
from places import DATA

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra run")

SHAPES = {"mxnet": (5, 2), "nnvm": (2, 64)}
"""Shapes of inputs that a model does not declare."""

WAYS: dict[str, Callable[[Model], Model]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "pickle protocol 2": lambda model: pickle.loads(pickle.dumps(model, 2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def mxnet(folder: Path) -> Model:
    return passlib.load(DATA / "mxnet" / "models" / "lstm_lm")


def sparse(folder: Path) -> Model:
    arrays = weights()
    arrays["fc_weight"] = arrays["fc_weight"].tostype("row_sparse")
    Model(layer(), arrays).save(folder / "sparse")
    return passlib.load(folder / "sparse")


def nnvm(folder: Path) -> Model:
    path = folder / "graph.json"
    path.write_bytes((DATA / "nnvm" / "custom_mlp.json").read_bytes())
    symbol = passlib.sym.load(path)
    shapes = symbol.infer_shape(data=(2, 64))[0]
    random = np.random.default_rng(0)
    arrays = {
        f"arg:{name}": nd.array(random.standard_normal(shape))
        for name, shape in zip(symbol.list_arguments(), shapes, strict=True)
        if name.startswith("fc")
    }
    nd.save(folder / "graph.params", arrays)
    return passlib.load(path, "nnvm")


def nested_nnvm(folder: Path) -> Model:
    (folder / "nested.json").write_text(json.dumps(NESTED, indent=3))
    return passlib.load(folder / "nested.json", "nnvm")


def ark(folder: Path) -> Model:
    return passlib.load(DATA / "ark" / "gen_seed-mlp_softmax.compressed.json")


def ark_plan(folder: Path) -> Model:
    return passlib.load(DATA / "ark" / "gen_head-residual_dag.plan.json")


def dlprim(folder: Path) -> Model:
    return passlib.load(DATA / "dlprim" / "onnx2dp_lenet.json")


def dlprim_h5(folder: Path) -> Model:
    pytest.importorskip("h5py", reason="needs the extra h5")
    return passlib.load(DATA / "dlprim" / "onnx2dp_lenet.h5")


def onnx_chain(folder: Path) -> Model:
    return passlib.load(onnx_models.save(onnx_models.CHAIN, folder / "chain.onnx"))


def onnx_nested(folder: Path) -> Model:
    return passlib.load(onnx_models.save(onnx_models.LOOP, folder / "loop.onnx"))


def onnx_everything(folder: Path) -> Model:
    onnx.save(onnx_models.every_attribute(), folder / "everything.onnx")
    return passlib.load(folder / "everything.onnx")


def large_onnx(folder: Path, *, external: bool = False) -> Model:
    """A model whose weights are views of a mapped file."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        large (float[N, 600] x, float[600, 600] w) => (float[N, 600] y) { y = MatMul(x, w) }"""
    )
    weight = np.random.default_rng(1).standard_normal((600, 600), np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = folder / "large.onnx"
    onnx.save(made, path, save_as_external_data=external, location="large.bin")
    return passlib.load(path)


def external_onnx(folder: Path) -> Model:
    return large_onnx(folder, external=True)


RUNNING = (
    *(mxnet, sparse, nnvm, ark, dlprim, dlprim_h5),
    *(onnx_chain, onnx_nested, large_onnx, external_onnx),
)
MODELS = (*RUNNING, nested_nnvm, ark_plan, onnx_everything)


def feeds(model: Model) -> dict[str, np.ndarray]:
    """Return values for the inputs of a model, of the types that it declares."""
    declared = model._format.input_types(model.data())
    random = np.random.default_rng(2)
    values = {}
    for name in model.inputs:
        dtype, shape = declared.get(name, (None, None))
        sizes = [size or 2 for size in (SHAPES[model.dialect] if shape is None else shape)]
        numbers = np.asarray(random.uniform(0, 3, sizes))
        values[name] = numbers.astype(dtype or np.float32)
    return values


def saved(model: Model, folder: Path) -> dict[str, bytes]:
    """Return the files of a model, by name."""
    folder.mkdir()
    model.save(folder / "model")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", MODELS, ids=lambda made: made.__name__)
def test_saves_the_same(made: Callable[[Path], Model], way: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    model = made(source)
    before = saved(model, tmp_path / "before")
    again = WAYS[way](model)
    if "copy" not in way and made is not external_onnx:  # data files are copied as a whole
        del model
        shutil.rmtree(source)
    assert saved(again, tmp_path / "after") == before
    assert again.symbol.dialect == again.dialect
    dense = [array for array in again.args.values() if array.stype == "default"]
    assert not any(array.flags.writeable for array in dense)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", RUNNING, ids=lambda made: made.__name__)
def test_computes_the_same_after_a_run(
    made: Callable[[Path], Model], way: str, tmp_path: Path
) -> None:
    model = made(tmp_path)
    inputs = feeds(model)
    before = model.run(inputs)
    again = WAYS[way](model)
    after = again.run(inputs)
    assert list(after) == list(before)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    assert repr(again) == repr(model)


@pytest.mark.parametrize("made", RUNNING, ids=lambda made: made.__name__)
def test_passes_work_on_unpickled_models(made: Callable[[Path], Model], tmp_path: Path) -> None:
    passlib.library.load_standard()
    model = made(tmp_path)
    again = pickle.loads(pickle.dumps(model)).optimize_for("mergeEqualNodes")
    expected = saved(model.optimize_for("mergeEqualNodes"), tmp_path / "before")
    assert saved(pickle.loads(pickle.dumps(again)), tmp_path / "after") == expected


@pytest.mark.parametrize("made", MODELS, ids=lambda made: made.__name__)
def test_symbols_keep_dialect_and_attributes(made: Callable[[Path], Model], tmp_path: Path) -> None:
    model = made(tmp_path)
    symbol, aside = pickle.loads(pickle.dumps((model.symbol, model._template)))
    assert symbol.dialect == model.dialect
    assert dict(symbol.attributes) == dict(model.symbol.attributes)
    assert symbol.graph.equals(model.symbol.graph)
    again = Model(symbol, model.args, model.aux, model.dialect, template=aside)
    assert saved(again, tmp_path / "after") == saved(model, tmp_path / "before")


def test_weights_are_pickled_once(tmp_path: Path) -> None:
    model = large_onnx(tmp_path)
    size = sum(array.nbytes for array in model.args.values())
    assert len(pickle.dumps(model)) < 1.1 * size


def test_deepcopy_copies_weights_and_copy_shares_them() -> None:
    arrays = weights()
    model = Model(layer(), arrays)
    shared, own = copy.copy(model), copy.deepcopy(model)
    assert np.shares_memory(shared.args["fc_bias"], arrays["fc_bias"])
    arrays["fc_bias"][:] = 0
    np.testing.assert_allclose(own(X), Y)


@pytest.mark.parametrize("way", WAYS)
def test_states_of_copies_are_their_own(way: str) -> None:
    model = with_weights(passlib.load(DATA / "dlprim" / "bn_train.json"))
    inputs = feeds(model)
    before = {name: np.array(array) for name, array in model.aux.items()}
    again = WAYS[way](model)
    again.run(inputs, train=True)
    assert not np.array_equal(again.aux["bn1.0"], before["bn1.0"])
    for name, array in before.items():
        np.testing.assert_array_equal(model.aux[name], array)


def test_context_of_weights_stays() -> None:
    model = Model(layer(), {name: nd.array(a, passlib.cpu(3)) for name, a in weights().items()})
    for way in WAYS.values():
        assert way(model).args["fc_bias"].context == passlib.cpu(3)
