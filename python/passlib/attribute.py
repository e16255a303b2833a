"""Attribute scopes, under MXNet's name of the module."""

from __future__ import annotations

from passlib.graph.scope import AttrScope, current

__all__ = ["AttrScope", "current"]
