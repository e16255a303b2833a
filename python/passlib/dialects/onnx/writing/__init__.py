"""Writing graphs as ONNX files: unchanged parts as they are in the file that was read."""
