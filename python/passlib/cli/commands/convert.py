"""``passlib convert``: converts a model to ONNX."""

from __future__ import annotations

import argparse

from passlib.cli.options import add_shapes, shapes_of, whole
from passlib.cli.outputs import require_model
from passlib.cli.status import FINE

DESCRIPTION = "Convert a model to ONNX and check the result with package onnx."
EXAMPLE = "passlib convert model-symbol.json model.onnx --shape data:1,3,224,224"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN")
    parser.add_argument("target", metavar="OUT")
    add_shapes(parser)
    parser.add_argument("--opset", type=whole, metavar="N", help="opset of the ONNX file")
    parser.add_argument("--params", metavar="FILE", help="file of the weights")
    parser.add_argument("--epoch", type=whole, metavar="N", help="epoch of the weights (MXNet)")
    parser.add_argument("--no-weights", action="store_true", help="make inputs of the weights")
    parser.add_argument("--dialect", metavar="NAME", help="dialect of the file (default: detected)")


def run(arguments: argparse.Namespace) -> int:
    """Convert one model."""
    from passlib.model.convert import convert

    require_model("OUT", arguments.target, "onnx")
    shapes = shapes_of(arguments.shape)
    given = {name: getattr(arguments, name) for name in ("opset", "params", "epoch")}
    options = {name: value for name, value in given.items() if value is not None}
    convert(
        arguments.source,
        arguments.target,
        arguments.dialect,
        shapes=shapes,
        weights=not arguments.no_weights,
        **options,
    )
    return FINE
