"""A model without inputs on ONNX Runtime, as a program: it may end its process.

It runs by its path. Standard input is a line of JSON, the paths of modules, and then the model;
standard output is a line of JSON, type and shape of each result, and then their elements.
"""

from __future__ import annotations

import json
import sys
from typing import BinaryIO


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Run the model that a stream holds, and write its results to another one."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path[:] = json.loads(source.readline())
    import numpy as np
    import onnx

    from passlib.lowering import Lowered
    from passlib.runtime.session import Session
    from passlib.runtime.settings import Settings

    model = onnx.ModelProto.FromString(source.read())
    outputs = tuple(value.name for value in model.graph.output)
    lowered = Lowered(model, {}, (), outputs, {}, {})
    results = Session(lowered, Settings(optimization="none")).run({})
    if not all(isinstance(each, np.ndarray) and each.dtype.kind not in "OSU" for each in results):
        sys.exit("a result is no tensor of numbers")
    arrays = [np.ascontiguousarray(each).reshape(each.shape) for each in results]
    facts = [(array.dtype.name, array.shape) for array in arrays]
    target.write(json.dumps(facts).encode() + b"\n")
    for array in arrays:
        target.write(array.tobytes())


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
