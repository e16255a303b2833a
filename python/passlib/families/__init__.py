"""Families of models besides MXNet and ONNX, one folder each."""
