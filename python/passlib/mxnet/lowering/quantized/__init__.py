"""Operators of quantized models, on 8-bit integers that stand for real numbers of a range."""
