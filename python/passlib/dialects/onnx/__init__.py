"""The ONNX dialect."""
