"""Passes with weights: their input, and the contents of args and aux afterwards, on both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus import MODELS, WEIGHTED, read_model
from mxnet_process import MXNet
from passlib import library, model, nd, nn, sym
from passlib.errors import PassError

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "inferred": ("interop_printAttributes", {}),
    "tensors": ("interop_printTensors", {}),
    "scaled": ("interop_scaleWeights", {"factor": 0.25}),
    "added": ("interop_addWeights", {"state": False}),
    "added_state": ("interop_addWeights", {"state": True}),
    "dropped": ("interop_dropBias", {}),
    "renamed": ("interop_rename", {"prefix": "r_"}),
    "replaced": ("interop_replacePattern", {}),
}


def load_weights(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read args and aux of a model into memory that a pass may write to."""
    symbol_file = str(MODELS[name])
    _, args, aux = model.load_checkpoint(symbol_file.removesuffix("-symbol.json"), 0)
    return args, aux


def io(name: str) -> tuple[dict[str, Any], list[Any]]:
    with np.load(MODELS[name].with_name(f"{name}-io.npz")) as file:
        inputs = {key[3:]: file[key] for key in file.files if key.startswith("in/")}
        outputs = [file[key] for key in sorted(file.files) if key.startswith("out/")]
    return inputs, outputs


@pytest.fixture(scope="module", params=["passlib", "mxnet"])
def side(request: pytest.FixtureRequest, mxnet_environment: Any) -> Any:
    """Run MXNet with a library built with either header."""
    built = request.getfixturevalue(f"built_with_{request.param}")
    library.load(built, replace=True)
    process = MXNet(mxnet_environment, [built])
    yield process, request.param
    process.close()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", WEIGHTED)
def test_same_weights(
    side: Any, name: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mxnet, header = side
    backend, options = CASES[case]
    shapes = {key: array.shape for key, array in io(name)[0].items()}
    result = tmp_path / "result.params"
    theirs = mxnet.observe(
        "optimize_weights",
        text=read_model(name),
        backend=backend,
        options=options,
        params=str(WEIGHTED[name]),
        shapes=shapes,
        result=str(result),
    )
    args, aux = load_weights(name)
    symbol = sym.load(MODELS[name])
    ours = symbol.optimize_for(
        backend, args, aux, shape_dict=shapes, keep_inferred=True, **options
    ).tojson()
    assert capsys.readouterr().out == theirs.printed
    if header == "passlib":
        assert ours == theirs.value["value"]
    expected = nd.load(result)
    assert isinstance(expected, dict)
    found = {f"arg:{key}": array for key, array in args.items()}
    found |= {f"aux:{key}": array for key, array in aux.items()}
    # MXNet keeps arrays whose variables no output needs; here they leave with their nodes.
    stray = {"aux:state"} if case == "added_state" else set()
    assert found.keys() == expected.keys() - stray
    for key, array in found.items():
        assert array.dtype == expected[key].dtype
        assert array.shape == expected[key].shape
        assert array.tobytes() == expected[key].asnumpy().tobytes()


@pytest.mark.parametrize("known", ["nothing", "all but the batch"])
@pytest.mark.parametrize("name", WEIGHTED)
def test_partly_known_shapes(
    side: Any,
    name: str,
    known: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without the batch size, or any size of the data, neither side contradicts the other."""
    mxnet, _ = side
    inputs = io(name)[0].items()
    shapes = {key: [0, *array.shape[1:]] for key, array in inputs} if known != "nothing" else {}
    theirs = mxnet.observe(
        "optimize_weights",
        text=read_model(name),
        backend="interop_printAttributes",
        options={},
        params=str(WEIGHTED[name]),
        shapes=shapes,
        result=str(tmp_path / "result.params"),
    )
    assert "value" in theirs.value
    args, aux = load_weights(name)
    sym.load(MODELS[name]).optimize_for("interop_printAttributes", args, aux, shape_dict=shapes)
    lines = zip(capsys.readouterr().out.splitlines(), theirs.printed.splitlines(), strict=True)
    for ours, expected in lines:
        if ours != expected:
            assert compatible(ours, expected), (ours, expected)


def compatible(ours: str, theirs: str) -> bool:
    """Whether two lines have equal shapes where both are known."""
    key = "  __ext_shape__="
    if not (ours.startswith(key) and theirs.startswith(key)):
        return False
    one, other = (
        json.loads(text.removeprefix(key).replace("None", "null")) for text in (ours, theirs)
    )
    return len(one) == len(other) and all(
        a is None
        or b is None
        or (len(a) == len(b) and all(x == y or -1 in (x, y) for x, y in zip(a, b, strict=True)))
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", WEIGHTED)
def test_failure_adds_nothing(side: Any, name: str, tmp_path: Path) -> None:
    mxnet, _ = side
    result = tmp_path / "result.params"
    theirs = mxnet(
        "optimize_weights",
        text=read_model(name),
        backend="interop_addAndFail",
        options={},
        params=str(WEIGHTED[name]),
        shapes={},
        result=str(result),
    )
    assert "changed its mind" in theirs["message"]
    args, aux = load_weights(name)
    before = set(args)
    with pytest.raises(PassError, match="changed its mind"):
        sym.load(MODELS[name]).optimize_for("interop_addAndFail", args, aux)
    assert set(args) == before
    assert {f"arg:{key}" for key in args} | {f"aux:{key}" for key in aux} == set(nd.load(result))


@pytest.mark.parametrize("case", ["as_it_is", "added", "replaced", "renamed"])
@pytest.mark.parametrize("name", WEIGHTED)
def test_mxnet_runs_what_passlib_saved(side: Any, name: str, case: str, tmp_path: Path) -> None:
    mxnet, _ = side
    args, aux = load_weights(name)
    symbol = sym.load(MODELS[name])
    if case != "as_it_is":
        backend, options = CASES[case]
        symbol = symbol.optimize_for(backend, args, aux, **options)
    prefix = tmp_path / "saved"
    model.save_checkpoint(prefix, 3, symbol, args, aux)
    inputs, outputs = io(name)
    source, target = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(source, **inputs)
    text = Path(f"{prefix}-symbol.json").read_text("utf-8")
    files = {"params": f"{prefix}-0003.params", "inputs": str(source), "outputs": str(target)}
    mxnet("forward", text=text, **files)
    with np.load(target) as computed:
        assert len(computed.files) == len(outputs)
        for i, expected in enumerate(outputs):
            shift = 0.5 if case == "added" else 0.0
            np.testing.assert_allclose(computed[str(i)], expected + shift, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", WEIGHTED)
def test_mxnet_runs_what_a_block_exported(side: Any, name: str, tmp_path: Path) -> None:
    mxnet, _ = side
    inputs, outputs = io(name)
    block = nn.SymbolBlock.imports(MODELS[name], list(inputs), WEIGHTED[name])
    arrays = [nd.array(array) for array in inputs.values()]
    block.optimize_for(*arrays, backend="interop_replacePattern")
    symbol_file, params_file = block.export(tmp_path / "exported")
    assert params_file is not None
    source, target = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(source, **inputs)
    text = Path(symbol_file).read_text("utf-8")
    files = {"params": params_file, "inputs": str(source), "outputs": str(target)}
    mxnet("forward", text=text, **files)
    with np.load(target) as computed:
        np.testing.assert_allclose(computed["0"], outputs[0], rtol=1e-4, atol=1e-5)
