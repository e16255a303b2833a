"""passlib."""
