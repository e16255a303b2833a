"""Facts of the standard passes about ONNX graphs: nodes, constants, symbolic shapes and values."""
