"""Graphs without the knowledge of any dialect: nodes, orders, names, attributes, substitution."""
