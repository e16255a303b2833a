"""How operators compute shapes and small tensors from those of their inputs."""
