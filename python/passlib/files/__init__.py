"""Files and optional packages: checked access to bytes, atomic replacement, lazy imports."""
