"""``passlib set-weight``: replaces weights of a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib.cli.options import add_output, pairs_of
from passlib.cli.outputs import save_edited
from passlib.cli.status import FINE
from passlib.errors import FormatError, GraphError, did_you_mean

if TYPE_CHECKING:
    from passlib.model import Model

DESCRIPTION = "Replace weights by arrays of .npy files, of the same type and shape."
EXAMPLE = "passlib set-weight model.onnx conv_1.weight=new.npy -o out.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("weights", nargs="+", metavar="NAME=FILE.npy")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the model with other weights."""
    given = pairs_of("NAME=FILE.npy", arguments.weights)

    def edit(model: Model) -> Model:
        arrays = {name: _array(path) for name, path in given.items()}
        unknown = [name for name in arrays if name not in model.args and name not in model.aux]
        if unknown:
            hint = did_you_mean(unknown[0], {**model.args, **model.aux})
            raise GraphError(f"the model has no weight {unknown[0]!r}{hint}")
        states = {name: array for name, array in arrays.items() if name in model.aux}
        return model.with_weights({n: a for n, a in arrays.items() if n not in states}, states)

    save_edited(arguments, edit)
    return FINE


def _array(path: str) -> np.ndarray[Any, Any]:
    try:
        found = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise FormatError(f"{path}: not an .npy file of numbers") from error
    if not isinstance(found, np.ndarray):
        raise FormatError(f"{path}: not an .npy file of one array")
    return found
