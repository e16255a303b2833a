"""Devices, in MXNet's module of this name."""

from __future__ import annotations

from passlib.arrays.context import (
    DEVICE_TYPES,
    Context,
    cpu,
    cpu_pinned,
    current_context,
    gpu,
    gpu_memory_info,
    num_gpus,
)

__all__ = [
    "DEVICE_TYPES",
    "Context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "gpu",
    "gpu_memory_info",
    "num_gpus",
]
