"""Tests that a build with sanitizers cannot run: see tests/sanitize.sh."""

from __future__ import annotations

import os
import resource

import pytest

SANITIZED = bool(os.environ.get("PASSLIB_SANITIZED"))


def unless_sanitized(reason: str) -> pytest.MarkDecorator:
    """Skip a test in a build with sanitizers, and say why."""
    return pytest.mark.skipif(SANITIZED, reason=f"a build with sanitizers: {reason}")


def limit_address_space(size: int) -> None:
    """Limit this process to `size` bytes; sanitizers map terabytes, and know no limit."""
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))


def without_sanitizer() -> dict[str, str]:
    """Return the environment for a child process that the runtime of a sanitizer would break."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def sanitizers() -> dict[str, str]:
    """Return the variables that a child process needs in a build with sanitizers."""
    names = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "PASSLIB_SANITIZED")
    return {name: os.environ[name] for name in names if SANITIZED and name in os.environ}
