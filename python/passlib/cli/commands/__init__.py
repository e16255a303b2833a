"""The commands of ``passlib``, one module each, which are imported when they run."""
