"""Files of the JSON dialects that are made to take time or memory: both grow with the file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from passlib.dialects.ark.reading.graph import read, read_plain
from sanitized import unless_sanitized

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
    ("make", "size", "reader"),
    [(wide_view, 8000, read_plain), (buffer_of_many_names, 1000, read)],
    ids=["a view of many tensors", "many names of one buffer"],
)
def test_time_of_an_ark_file_grows_with_it(
    make: Callable[[int], bytes], size: int, reader: Callable[[bytes], object]
) -> None:
    spent = []
    for factor in (1, 4):
        text = make(factor * size)
        start = time.process_time()
        assert reader(text) is not None
        spent.append(time.process_time() - start)
    assert spent[1] < 8 * spent[0], spent


MEMBERS = """
import sys
from pathlib import Path
import passlib._core as core
from passlib.dialects.ark.reading.graph import read_plain
from passlib.dialects.json_text import MAX_DEPTH
from passlib.dialects.nnvm.reading.graph_attributes import PER_ENTRY
def most():  # of this program: getrusage also counts what its parent had
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = most()
text = sys.argv[1].encode().replace(b"MANY", b"[" + b"0," * 1_000_000 + b"0]")
if b"nodes" in text:
    assert core.read_nnvm(text, "__id__", PER_ENTRY, MAX_DEPTH) is not None
else:
    assert read_plain(text) is not None
print((most() - before) >> 10)
"""
VARIABLE = '"op": "null", "name": "x", "inputs": []'
LISTS = '"arg_nodes": [0], "node_row_ptr": [0, 1], "heads": [[0, 0]]'
UNREAD = {
    "of NNVM's graph": f'{{"nodes": [{{{VARIABLE}}}], {LISTS}, "more": MANY}}',
    "of NNVM's attributes": (
        f'{{"nodes": [{{{VARIABLE}}}], {LISTS}, "attrs": {{"more": ["other", MANY]}}}}'
    ),
    "of a node of NNVM": f'{{"nodes": [{{{VARIABLE}, "backward_source_id": MANY}}], {LISTS}}}',
    "of an ARK model": model_of(("Tensor", [], [tensor(0, 0)])).decode()[:-1] + ', "more": MANY}',
}


@unless_sanitized("memory is the sanitizer's")
@pytest.mark.parametrize("text", UNREAD.values(), ids=list(UNREAD))
def test_members_that_nobody_reads_take_no_memory(text: str) -> None:
    """2 MB; a tree of them took 117 more."""
    run = subprocess.run(
        [sys.executable, "-c", MEMBERS, text],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 30
