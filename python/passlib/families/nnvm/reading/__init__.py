"""Reading of graph JSON: from text to a checked graph and a template for writing it back."""
