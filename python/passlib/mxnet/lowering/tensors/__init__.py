"""Tensors created, reshaped, indexed, ordered and reduced."""
