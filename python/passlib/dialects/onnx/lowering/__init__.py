"""Models and types for running ONNX graphs: both come from writing them, so writing is below."""
