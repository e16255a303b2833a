"""Inference of shapes and element types: the rules of MXNet's operators and their application."""
