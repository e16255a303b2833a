"""Checks before ONNX's inference or ONNX Runtime get a model, and of models before they are saved.

Both are native code that trusts the numbers of inputs, outputs and attributes, and may end the
process where they are wrong.
"""
