"""Reading of MXNet symbol files, and the upgrade of old ones."""
