"""Loops and branches, whose bodies are graphs nested in the node."""
