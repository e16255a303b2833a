"""Weights in fewer bits."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from passlib.library.declared import names_of
from passlib.model import Model
from passlib.model.loading import AnyModel, as_model


def quantize_weights(
    model: AnyModel,
    *,
    bits: Literal[8, 4] = 8,
    block: int = 32,
    symmetric: bool = True,
    target: Literal["onnx", "onnxruntime"] = "onnx",
    keep_ops: Collection[str] = (),
    keep_nodes: Collection[str] = (),
    least: int = 1024,
) -> Model:
    """Return an ONNX model with the weights of MatMul, Gemm, Gather and Conv in 8 or 4 bits.

    It is the pass ``quantizeWeights``. Inputs, outputs and all computations keep their types.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    bits : {8, 4}
        Bits of an element.
    block : int
        Elements along the summed axis that share a scale; 0 for one scale for each column. Weights
        of Conv have one for each output channel.
    symmetric : bool
        Without zero points. Otherwise the range of a block need not be centred on 0.
    target : {"onnx", "onnxruntime"}
        Make ONNX's operators only, or MatMulNBits of com.microsoft where it fits.
    keep_ops, keep_nodes : collection of str
        Operators, and names of nodes, whose weights stay.
    least : int
        Weights with fewer elements stay.

    Raises
    ------
    PasslibError
        The model cannot be loaded, or its operator set lacks DequantizeLinear with blocks (21) or
        with an axis (13): raise it with `Model.with_opset`.

    Examples
    --------
    >>> import passlib
    >>> model = passlib.load("model.onnx").with_opset(21)  # doctest: +SKIP
    >>> passlib.quantize_weights(model, bits=4).save("small.onnx")  # doctest: +SKIP
    """
    found = as_model(model)
    return found.optimize_for(
        "quantizeWeights",
        bits=bits,
        block=block,
        symmetric=symmetric,
        target=target,
        keep_ops=sorted(names_of("keep_ops", keep_ops)),
        keep_nodes=sorted(names_of("keep_nodes", keep_nodes)),
        least=least,
    )
