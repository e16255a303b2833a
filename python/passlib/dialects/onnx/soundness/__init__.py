"""Checks before ONNX's inference or ONNX Runtime get a model, and of models before they are saved.

Both are native code that takes the numbers of inputs, outputs and attributes for right, and may
end the process where they are not.
"""
