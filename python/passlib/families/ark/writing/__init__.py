"""From a graph back to the text of an ARK file."""
