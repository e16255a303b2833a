"""The MXNet dialect."""
