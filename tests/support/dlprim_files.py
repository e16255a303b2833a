"""Networks of DLPrimitives for the tests: genuine files, and helpers for small ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import passlib
import places
from passlib import dialects
from passlib.families.dlprim.network import NAMES
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.runtime.session import Session

DATA = places.DATA / "dlprim"
SHARED = places.SHARED / "dlprim"
NEGATIVE = "test_net_aa6e096.json"

dialect = dialects.find("dlprim")


def is_network(path: Path) -> bool:
    return path.suffix == ".json" and not path.name.endswith(".golden.json")


COPIED = sorted(path for path in DATA.glob("*.json") if is_network(path))
REPOSITORY = sorted((SHARED / "repo").glob("*.json"))
NETWORKS = [*COPIED, *(path for path in REPOSITORY if path.name != NEGATIVE)]


def operator(
    name: str, kind: str, inputs: str | list[str] = "data", output: str = "", /, **more: Any
) -> dict[str, Any]:
    """Describe an operator; arguments that are not fields are options."""
    fields = {key: more.pop(key) for key in ("params", "frozen") if key in more}
    return {
        "name": name,
        "type": kind,
        "inputs": [inputs] if isinstance(inputs, str) else inputs,
        "outputs": [output or name],
        **({"options": more} if more else {}),
        **fields,
    }


def relu(name: str, tensor: str) -> dict[str, Any]:
    """Describe a ReLU in place."""
    return operator(name, "Activation", tensor, tensor, activation="relu")


def network(
    *operators: dict[str, Any],
    shape: tuple[int, ...] = (2, 3, 4, 4),
    outputs: list[Any] | None = None,
    inputs: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Describe a network, by default with one input ``data`` and the last tensor as output."""
    last = [operators[-1]["outputs"][0]] if operators else []
    return {
        "inputs": [{"name": "data", "shape": list(shape)}] if inputs is None else inputs,
        "operators": list(operators),
        "outputs": last if outputs is None else outputs,
    }


def write(folder: Path, description: Any, name: str = "net.json") -> Path:
    path = folder / name
    text = description if isinstance(description, str) else json.dumps(description, indent=2)
    path.write_text(text)
    return path


def load(folder: Path, description: Any, **options: Any) -> Model:
    return passlib.load(write(folder, description), **options)


def saved(model: Model, folder: Path) -> tuple[Model, dict[str, Any]]:
    """Save a model; return it as read again, and the written JSON."""
    files = model.save(folder / "saved")
    return passlib.load(files[0]), json.loads(Path(files[0]).read_text())


def by_name(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the operators of a network by name."""
    return {layer["name"]: layer for layer in description["operators"]}


def shapes_of_parameters(model: Model) -> dict[str, tuple[int, ...]]:
    return {name: spec.shape for name, spec in model._template.document.network.parameters.items()}


def with_weights(model: Model, seed: int = 0) -> Model:
    """Return a model with random parameters."""
    random = np.random.default_rng(seed)
    states = set(model.symbol.list_auxiliary_states())
    args, aux = {}, {}
    for name, shape in shapes_of_parameters(model).items():
        array = random.uniform(0.5, 1.5, shape).astype(np.float32)
        (aux if name in states else args)[name] = array
    return Model(model.symbol, args, aux, "dlprim", template=model._template)


def random_inputs(model: Model, seed: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    types = dialect.input_types(model.data())
    return {
        name: random.standard_normal(spec.shape).astype(spec.dtype)
        if spec.dtype.kind == "f"
        else random.integers(0, 2, spec.shape).astype(spec.dtype)
        for name, spec in types.items()
    }


def run_all(
    model: Model,
    inputs: Mapping[str, np.ndarray[Any, Any]],
    *,
    train: bool = False,
    optimization: str = "all",
) -> tuple[list[np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]:
    """Run a model; unused inputs may be given too."""
    present = set(model.symbol.list_inputs())
    feeds = {name: array for name, array in inputs.items() if name in present}
    specs = {name: TypeSpec(array.dtype, array.shape) for name, array in feeds.items()}
    weights = {**model.args, **model.aux}
    lowered = dialect.lower(model.symbol, specs, weights, train=train)
    return Session(lowered, optimization=optimization).run_updating(feeds)


def same_results(before: Model, after: Model) -> None:
    """Check that two models compute the same outputs, by name."""
    inputs = random_inputs(before)
    wanted, found = run_all(before, inputs)[0], run_all(after, inputs)[0]
    assert after.outputs == before.outputs
    for name, left, right in zip(before.outputs, wanted, found, strict=True):
        np.testing.assert_allclose(right, left, rtol=1e-4, atol=1e-5, err_msg=name)


def golden_array(tensor: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    return np.array(tensor["data"], NAMES[tensor["dtype"]]).reshape(tensor["shape"])
