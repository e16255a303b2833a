"""MXNet's NumPy operators (``_np_*``, ``_npi_*``, ``_npx_*``) where they differ from the others."""
