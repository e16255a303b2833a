"""Weight files and the names in them: .params, .npz and .safetensors."""
