"""From the text of an ARK file to a graph."""
