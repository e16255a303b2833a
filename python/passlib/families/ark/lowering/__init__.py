"""Lowering of ARK models to ONNX."""
