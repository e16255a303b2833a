"""Nodes as NodeProtos, with their attributes."""

from __future__ import annotations

__all__: list[str] = []
