"""Files of the JSON dialects that are made to take time: it grows with the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from passlib.families.ark.reading import read
from steps import counted_steps

Tensor = dict[str, Any]


def tensor(number: int, buffer: int) -> Tensor:
    return {
        "Id": number,
        "DataType": "FP32",
        "Shape": [1],
        "Strides": [1],
        "Offsets": [0],
        "PaddedShape": [1],
        "Buffer": {"Id": buffer, "Rank": -1},
    }


def model_of(*ops: tuple[str, list[Tensor], list[Tensor]]) -> bytes:
    """Give an ARK file with ops of a type, with tensors that they read and return."""
    nodes = [
        {
            "Id": number,
            "ProducerNodeIds": [],
            "ConsumerNodeIds": [],
            "Op": {
                "Type": kind,
                "Name": "",
                "IsVirtual": kind == "Tensor",
                "ReadTensors": reads,
                "WriteTensors": [],
                "ResultTensors": results,
                "Args": {},
            },
        }
        for number, (kind, reads, results) in enumerate(ops)
    ]
    return json.dumps({"Rank": 0, "WorldSize": 1, "Nodes": nodes}).encode()


def wide_view(size: int) -> bytes:
    """A view of many computed tensors, none of which lies in the memory of its many results."""
    made = [tensor(i, i) for i in range(size)]
    views = [tensor(size + i, size + i) for i in range(size)]
    return model_of(("Noop", [], made), ("Tensor", made, views))


def buffer_of_many_names(size: int) -> bytes:
    """Unnamed declarations of one buffer, all of which would be named after it."""
    return model_of(*(("Tensor", [], [tensor(i, 0)]) for i in range(size)))


@pytest.mark.parametrize(
    ("make", "size"),
    [(wide_view, 200), (buffer_of_many_names, 200)],
    ids=["a view of many tensors", "many names of one buffer"],
)
def test_time_of_an_ark_file_grows_with_it(make: Callable[[int], bytes], size: int) -> None:
    texts = [make(factor * size) for factor in (1, 4)]
    steps = [counted_steps(lambda text=text: read(text))[1] for text in texts]
    assert steps[1] < 5 * steps[0], steps
