"""Writing of graph JSON: unchanged parts are copied from the file that was read."""
