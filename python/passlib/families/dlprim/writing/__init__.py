"""Writing: from a graph to the text of a network file, and weights in their former format."""

from __future__ import annotations
