"""Functions of each element alone or of pairs of elements."""
