"""Layers of neural networks: convolution, pooling, normalization, activations, attention."""
