"""Settings of a computation that come from the environment."""

from __future__ import annotations

import os

import passlib._core as _core


def settings(node_name: str, *, is_forward: bool) -> _core.ComputeSettings:
    """Return the settings of a computation, including those of the environment."""
    check = os.environ.get("PASSLIB_CHECK_MEMORY", "") not in ("", "0")
    return _core.ComputeSettings(node=node_name, is_forward=is_forward, check_memory=check)
