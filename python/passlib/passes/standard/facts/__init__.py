"""What the standard passes know of ONNX graphs: nodes, constants, symbolic shapes and values."""
