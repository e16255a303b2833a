"""Random numbers of NumPy mode: from another generator, with MXNet's distributions."""
