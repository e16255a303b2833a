"""Checks of tensors and buffers."""

from __future__ import annotations

from typing import Any

from passlib.errors import FormatError
from passlib.families.ark.json_values import compact_json
from passlib.families.ark.tensors import ITEM_SIZES, Tensor, read_tensor, same_memory
from passlib.families.ark.validation.report import Report


class TensorChecker:
    """Checks the tensors of one file, each by itself and against its other mentions.

    Parameters
    ----------
    report : Report
    rank, world : int or None
        Of the file; None if damaged.
    plan : bool
        Whether it is a plan, in which one Id may stand for several boxes.
    """

    def __init__(
        self, report: Report, rank: int | None, world: int | None, *, plan: bool = False
    ) -> None:
        self._report = report
        self._rank = rank
        self._world = world
        self._plan = plan
        self._tensors: dict[int, tuple[Tensor, str]] = {}
        self._boxes: dict[int, set[tuple[Any, ...]]] = {}
        self._shared: set[int] = set()
        self._buffers: dict[int, tuple[Tensor, str]] = {}
        self._makers: dict[int, str] = {}

    def check(self, value: Any, path: str) -> Tensor | None:
        """Check one mention; return the tensor, or None if it cannot be read."""
        try:
            tensor = read_tensor(value, path)
        except FormatError as error:
            self._report.error(path, str(error).removeprefix(f"{path}: "))
            return None
        first = self._tensors.setdefault(tensor.id, (tensor, path))
        boxes = self._boxes.setdefault(tensor.id, set())
        if tensor.identity not in boxes:
            boxes.add(tensor.identity)
            self._alone(tensor, path)
            if len(boxes) > 1:
                self._differs(tensor, *first, path)
        self._buffer(tensor, path)
        return tensor

    def produced(self, results: tuple[Tensor, ...], path: str) -> None:
        """Record the results of an op, which no other op may return."""
        for i, tensor in enumerate(results):
            place = f"{path}.ResultTensors[{i}]"
            first = self._makers.setdefault(tensor.id, place)
            if first != place and tensor.id not in self._shared:
                add = self._report.warning if self._plan else self._report.error
                add(place, f"tensor {tensor.id} is already a result of {first}")

    def _differs(self, tensor: Tensor, first: Tensor, where: str, path: str) -> None:
        """Report a further description of a tensor, once for each tensor if it may differ."""
        if not (self._plan and same_memory(tensor, first)):
            self._report.error(path, f"tensor {tensor.id} is described differently at {where}")
        elif tensor.id not in self._shared:
            self._shared.add(tensor.id)
            self._report.warning(
                path,
                f"tensor {tensor.id} is another box of buffer {tensor.buffer} at {where}; "
                "dependencies follow from the buffer",
            )

    def _alone(self, tensor: Tensor, path: str) -> None:
        report, box, padded = self._report, tensor.box, tensor.padded
        if tensor.dtype not in ITEM_SIZES:
            report.warning(f"{path}.DataType", f"unknown element type {tensor.dtype!r}")
        if "PaddedShape" in tensor.source:
            if any(s > p for s, p in zip(box.shape, padded, strict=True)):
                report.error(
                    f"{path}.PaddedShape",
                    f"{compact_json(padded)} is smaller than Shape {compact_json(box.shape)}",
                )
            elif any(o + p > t for o, p, t in zip(box.offsets, padded, box.strides, strict=True)):
                report.error(
                    f"{path}.PaddedShape",
                    f"{compact_json(padded)} at Offsets {compact_json(box.offsets)} does not lie "
                    f"within Strides {compact_json(box.strides)}",
                )
        elif any(p < 1 or t % p for p, t in zip(padded, box.strides, strict=True)):
            report.error(
                f"{path}.Pads",
                f"Strides {compact_json(box.strides)} are not multiples of {compact_json(padded)}",
            )

    def _buffer(self, tensor: Tensor, path: str) -> None:
        report, place = self._report, f"{path}.Buffer"
        first = self._buffers.setdefault(tensor.buffer, (tensor, place))
        if first[1] != place:
            if first[0].rank != tensor.rank:
                report.error(
                    f"{place}.Rank",
                    f"buffer {tensor.buffer} belongs to rank {tensor.rank} here and to rank "
                    f"{first[0].rank} at {first[1]}",
                )
            if first[0].source["Buffer"] == tensor.source["Buffer"]:
                return
            if first[0].rank == tensor.rank:
                report.warning(
                    place, f"buffer {tensor.buffer} is described differently at {first[1]}"
                )
        if tensor.rank < -1 or (self._world is not None and tensor.rank >= self._world):
            report.error(f"{place}.Rank", f"{tensor.rank} is not a rank of a job of {self._world}")
        for key in ("SendTags", "RecvTags"):
            if key not in tensor.source["Buffer"]:
                report.error(f"{place}.{key}", "the key is missing")
                continue
            for i, pair in enumerate(tensor.source["Buffer"][key]):
                self._tag(pair, f"{place}.{key}[{i}]", tensor.rank)

    def _tag(self, pair: Any, place: str, owner: int) -> None:
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or any(type(number) is not int for number in pair)
        ):
            self._report.error(place, "expected a rank and a tag")
            return
        remote = pair[0]
        if remote < -1 or (self._world is not None and remote >= self._world):
            self._report.error(place, f"{remote} is not a rank of a job of {self._world}")
        elif remote == owner or {remote, owner} == {-1, self._rank}:
            self._report.error(place, f"{remote} is the buffer's own rank")
