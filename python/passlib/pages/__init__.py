"""Graphs as pages: one HTML file that needs no network, and what stands in it."""

from __future__ import annotations

from passlib.pages.changes import node_changes, weight_changes
from passlib.pages.content import MOST_IN_NOTEBOOKS, content_of
from passlib.pages.document import document, framed
from passlib.pages.graphs import Side, graphs_of
from passlib.pages.pairing import Pairing, origin_of, pair_nodes

__all__ = [
    "MOST_IN_NOTEBOOKS",
    "Pairing",
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
