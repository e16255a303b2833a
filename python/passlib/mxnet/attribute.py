"""Attribute scopes, in MXNet's module of this name."""

from __future__ import annotations

from passlib.graph.scope import AttrScope, current

__all__ = ["AttrScope", "current"]
