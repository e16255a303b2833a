"""The DLPrimitives dialect: network JSON with .dlp or .h5 weights beside it."""
