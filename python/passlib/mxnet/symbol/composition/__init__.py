"""Composition: nodes of MXNet's operators, made by functions and by Python's operators."""
