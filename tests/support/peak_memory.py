"""The peak memory of a process that a test starts."""

from __future__ import annotations

PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) >> 10
"""
"""Source of a function that returns megabytes. ``ru_maxrss`` has those of the parent, too."""
