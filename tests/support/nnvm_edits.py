"""Shared parts of the tests of edited NNVM graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALL = "flatten_data=0;num_inputs=1;num_outputs=1;func_name="
Edit = Callable[..., dict[str, Any]]


def entries(graph: dict[str, Any], name: str) -> list[Any]:
    values: list[Any] = graph["attrs"][name][1]
    return values
