"""Lowered models as ONNX files, at any operator set."""
