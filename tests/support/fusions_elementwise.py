"""Fusions of activations and normalizations."""

from __future__ import annotations

import itertools

import numpy as np

from fusion_drawing import IMAGE, SEQUENCE, Drawing, fusion


def _gelu(drawing: Drawing, x: str, root: str, order: str, swapped: bool) -> str:
    def two(op: str, left: str, right: str) -> str:
        return str(drawing(op, right, left) if swapped else drawing(op, left, right))

    half = drawing.of(0.5)
    inner = (
        drawing("Div", x, drawing.of(2**0.5))
        if root == "Div"
        else two("Mul", x, drawing.of(0.5**0.5))
    )
    added = two("Add", drawing("Erf", inner), drawing.of(1))
    if order == "last":
        return two("Mul", two("Mul", x, added), half)
    if order == "first":
        return two("Mul", two("Mul", x, half), added)
    return two("Mul", x, two("Mul", added, half))


for _root, _order, _swapped in itertools.product(
    ("Div", "Mul"), ("last", "first", "middle"), (False, True)
):
    # The common runtime does not fuse other spellings, but they must not become more operators.
    _fused = "Gelu" if _root == "Div" and _order != "middle" else "Erf"
    for _shape, _place in ((SEQUENCE, ""), (IMAGE, " of images")):

        @fusion(f"Gelu, {_root}, half {_order}{', swapped' * _swapped}{_place}", _fused, _shape)
        def _spelled_gelu(
            drawing: Drawing,
            x: str,
            root: str = _root,
            order: str = _order,
            swapped: bool = _swapped,
        ) -> str:
            return _gelu(drawing, x, root, order, swapped)


@fusion("Gelu of operator set 20", "Gelu", opset=20)
def _gelu20(drawing: Drawing, x: str) -> str:
    return str(drawing("Gelu", x))


@fusion("BiasGelu", "BiasGelu Gelu")
def _bias_gelu(drawing: Drawing, x: str) -> str:
    return _gelu(drawing, drawing("Add", x, drawing.random(16)), "Div", "last", False)


@fusion("BiasGelu after MatMul", "BiasGelu Gelu", sizes=("N", "S", 16))
def _bias_gelu_matmul(drawing: Drawing, x: str) -> str:
    product = drawing("MatMul", x, drawing.random(16, 16))
    return _gelu(drawing, drawing("Add", product, drawing.random(16)), "Div", "last", False)


@fusion("FastGelu, cube", "FastGelu")
def _fast_gelu(drawing: Drawing, x: str) -> str:
    cube = drawing("Pow", x, drawing.of(3))
    inner = drawing("Add", x, drawing("Mul", cube, drawing.of(0.044715)))
    bent = drawing("Tanh", drawing("Mul", inner, drawing.of((2 / np.pi) ** 0.5)))
    added = drawing("Add", bent, drawing.of(1))
    return str(drawing("Mul", drawing("Mul", x, drawing.of(0.5)), added))


@fusion("FastGelu, products", "FastGelu")
def _fast_gelu_products(drawing: Drawing, x: str) -> str:
    first = drawing("Mul", drawing("Mul", x, drawing.of(0.044715)), x)
    factor = drawing("Add", first, drawing.of(1))
    inner = drawing("Mul", drawing("Mul", x, drawing.of(0.7978845608)), factor)
    added = drawing("Add", drawing("Tanh", inner), drawing.of(1))
    return str(drawing("Mul", drawing("Mul", x, drawing.of(0.5)), added))


@fusion("FastGelu, bias", "FastGelu")
def _fast_gelu_bias(drawing: Drawing, x: str) -> str:
    product = drawing("MatMul", x, drawing.random(16, 16))
    return _fast_gelu(drawing, drawing("Add", product, drawing.random(16)))


@fusion("QuickGelu", "QuickGelu")
def _quick_gelu(drawing: Drawing, x: str) -> str:
    bent = drawing("Sigmoid", drawing("Mul", x, drawing.of(1.702)))
    return str(drawing("Mul", x, bent))


@fusion("QuickGelu of images", "QuickGelu", IMAGE)
def _quick_gelu_images(drawing: Drawing, x: str) -> str:
    return _quick_gelu(drawing, x)


@fusion("SiLU", "QuickGelu")
def silu(drawing: Drawing, x: str) -> str:
    return str(drawing("Mul", x, drawing("Sigmoid", x)))


def layer_norm(
    drawing: Drawing, x: str, *, square: str = "Pow", twice: bool = False, axis: int = -1
) -> str:
    less = drawing("Sub", x, drawing.mean(x, axis))
    again = drawing("Sub", x, drawing.mean(x, axis)) if twice else less
    squared = (
        drawing("Pow", again, drawing.of(2)) if square == "Pow" else drawing("Mul", again, again)
    )
    spread = drawing("Add", drawing.mean(squared, axis), drawing.of(1e-5))
    normal = drawing("Div", less, drawing("Sqrt", spread))
    scaled = drawing("Mul", normal, drawing.random(drawing.shape[-1]))
    return str(drawing("Add", scaled, drawing.random(drawing.shape[-1])))


@fusion("LayerNormalization", "LayerNormalization")
def _norm(drawing: Drawing, x: str) -> str:
    return layer_norm(drawing, x)


@fusion("LayerNormalization, two Sub", "LayerNormalization")
def _norm_twice(drawing: Drawing, x: str) -> str:
    return layer_norm(drawing, x, twice=True)


@fusion("LayerNormalization of operator set 18", "LayerNormalization", opset=18)
def _norm18(drawing: Drawing, x: str) -> str:
    return layer_norm(drawing, x)


@fusion("LayerNormalization, one operator", "LayerNormalization")
def _norm_single(drawing: Drawing, x: str) -> str:
    return str(drawing("LayerNormalization", x, drawing.random(16), drawing.random(16)))


@fusion("LayerNormalization, product", "LayerNormalization SkipLayerNormalization Sqrt")
def _norm_product(drawing: Drawing, x: str) -> str:
    return layer_norm(drawing, x, square="Mul")


@fusion("SimplifiedLayerNormalization", "SimplifiedLayerNormalization")
def _rms_norm(drawing: Drawing, x: str) -> str:
    squared = drawing("Pow", x, drawing.of(2))
    root = drawing("Sqrt", drawing("Add", drawing.mean(squared), drawing.of(1e-6)))
    return str(drawing("Mul", drawing("Div", x, root), drawing.random(16)))


@fusion("SkipLayerNormalization", "SkipLayerNormalization")
def _skip_norm(drawing: Drawing, x: str) -> str:
    bent = drawing("Relu", x)
    return layer_norm(drawing, drawing("Add", bent, x))


@fusion("SkipLayerNormalization, bias", "SkipLayerNormalization")
def _skip_norm_bias(drawing: Drawing, x: str) -> str:
    product = drawing("MatMul", drawing("Relu", x), drawing.random(16, 16))
    biased = drawing("Add", product, drawing.random(16))
    return layer_norm(drawing, drawing("Add", biased, x))


@fusion("SimplifiedLayerNormalization of a sum", "SimplifiedLayerNormalization")
def _skip_rms_norm(drawing: Drawing, x: str) -> str:
    product = drawing("MatMul", drawing("Relu", x), drawing.random(16, 16))
    return _rms_norm(drawing, drawing("Add", product, x))
