"""Files and optional packages: checked access to bytes, whole-file replacement, lazy imports."""
