"""A writer of ARK model files for the tests, independent of the reader."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Ints = Sequence[int]


@dataclass(frozen=True)
class Handle:
    """A tensor as the file describes it."""

    value: dict[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value["Shape"])


@dataclass
class Builder:
    """Collects ops; each call returns the handle of the result."""

    rank: int = 0
    world: int = 1
    nodes: list[dict[str, Any]] = field(default_factory=list)
    _tensors: int = 0
    _buffers: int = 0
    _made: dict[int, int] = field(default_factory=dict)

    def tensor(
        self,
        dtype: str,
        shape: Ints,
        strides: Ints | None = None,
        offsets: Ints | None = None,
        padded: Ints | None = None,
        name: str = "",
        **buffer: Any,
    ) -> Handle:
        """Declare a buffer."""
        described = {"Id": self._buffers, "Rank": -1, "SendTags": [], "RecvTags": [], **buffer}
        self._buffers += 1
        return self._op(
            "Tensor", name, [], [], [self._new(dtype, shape, strides, offsets, padded, described)]
        )

    def view(
        self,
        source: Handle,
        shape: Ints,
        strides: Ints | None = None,
        offsets: Ints | None = None,
        after: Sequence[Handle] = (),
        dtype: str | None = None,
    ) -> Handle:
        """Add a view of a part of a buffer."""
        kind = dtype or source.value["DataType"]
        result = self._new(kind, shape, strides, offsets, None, source.value["Buffer"])
        return self._op("Tensor", "", [source, *after], [], [result])

    def op(
        self, kind: str, reads: Sequence[Handle], out: Handle, name: str = "", **args: Any
    ) -> Handle:
        """Add an op that computes; it writes to ``out``."""
        result = {**out.value, "Id": self._next()}
        return self._op(kind, name or kind.lower(), reads, [out], [result], args)

    def write(self, path: Path) -> Path:
        """Write the file."""
        consumers: dict[int, list[int]] = {node["Id"]: [] for node in self.nodes}
        for node in self.nodes:
            for producer in node["ProducerNodeIds"]:
                consumers[producer].append(node["Id"])
        for node in self.nodes:
            node["ConsumerNodeIds"] = consumers[node["Id"]]
        root = {"Rank": self.rank, "WorldSize": self.world, "Nodes": self.nodes}
        path.write_text(json.dumps(root))
        return path

    def raw(
        self,
        kind: str,
        reads: Sequence[Handle],
        writes: Sequence[Handle],
        results: int,
        **args: Any,
    ) -> list[Handle]:
        """Add an op with any number of tensors; results are the written ones under new Ids."""
        sources = writes or reads
        made = [{**sources[i].value, "Id": self._next()} for i in range(results)]
        self._op(kind, kind.lower(), reads, writes, made, args)
        return [Handle(value) for value in made]

    def _op(
        self,
        kind: str,
        name: str,
        reads: Sequence[Handle],
        writes: Sequence[Handle],
        results: list[dict[str, Any]],
        args: dict[str, Any] | None = None,
    ) -> Handle:
        number = len(self.nodes)
        used = [handle.value["Id"] for handle in (*reads, *writes)]
        producers = sorted({self._made[i] for i in used if i in self._made})
        for result in results:
            self._made[result["Id"]] = number
        op = {
            "Type": kind,
            "Name": name,
            "IsVirtual": kind == "Tensor",
            "ReadTensors": [handle.value for handle in reads],
            "WriteTensors": [handle.value for handle in writes],
            "ResultTensors": results,
            "Args": {key: {_tag(key, value): value} for key, value in sorted((args or {}).items())},
        }
        self.nodes.append(
            {"Id": number, "ProducerNodeIds": producers, "ConsumerNodeIds": [], "Op": op}
        )
        return Handle(results[0]) if results else Handle({})

    def _new(
        self,
        dtype: str,
        shape: Ints,
        strides: Ints | None,
        offsets: Ints | None,
        padded: Ints | None,
        buffer: dict[str, Any],
    ) -> dict[str, Any]:
        return {
            "Id": self._next(),
            "DataType": dtype,
            "Shape": list(shape),
            "Strides": list(strides or shape),
            "Offsets": list(offsets or [0] * len(shape)),
            "PaddedShape": list(padded or shape),
            "Buffer": buffer,
        }

    def _next(self) -> int:
        self._tensors += 1
        return self._tensors - 1


def _tag(key: str, value: Any) -> str:
    if key in ("Flag", "NPeers"):
        return "UINT32"
    if isinstance(value, bool):
        return "BOOL"
    if isinstance(value, int):
        return "INT"
    return "FLOAT" if isinstance(value, float) else "DIMS"
