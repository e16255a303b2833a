"""Graphs as self-contained HTML pages."""

from __future__ import annotations

from passlib.pages.document import document, framed
from passlib.pages.graphs import MOST_IN_NOTEBOOKS, Side, content_of, graphs_of
from passlib.pages.pairing import node_changes, origin_of, pair_nodes, weight_changes

__all__ = [
    "MOST_IN_NOTEBOOKS",
    "Side",
    "content_of",
    "document",
    "framed",
    "graphs_of",
    "node_changes",
    "origin_of",
    "pair_nodes",
    "weight_changes",
]
