"""ONNX's checker over some nodes and a model, as a program: it may crash on a damaged file.

It runs by its path, without passlib. Standard input is a line of JSON and then the serialized
nodes; standard output is a line of JSON for each check: its name and message.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO


def main(stream: BinaryIO) -> None:
    """Run the checks that a stream describes, and print a line after each."""
    order: dict[str, Any] = json.loads(stream.readline())
    _limit(order["memory"], order["seconds"])
    sys.path[:] = order["sys_path"]
    from onnx import NodeProto, checker

    _report("started", "")
    context = checker.C.CheckerContext()
    context.ir_version = order["ir_version"]
    context.opset_imports = order["imports"]
    for number, size in enumerate(order["sizes"]):
        node = NodeProto.FromString(stream.read(size))
        _try(f"node {number}", partial(checker.check_node, node, context))
    if _try("model", lambda: checker.check_model(order["path"])):
        _try("types", lambda: checker.check_model(order["path"], full_check=True))


def _limit(memory: int, seconds: int) -> None:
    import resource

    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (bound, bound))


def _try(name: str, check: Callable[[], object]) -> bool:
    """Run a check, and return whether it found nothing."""
    try:
        check()
    except MemoryError:
        _report(name, "checking it needs more memory than passlib allows")
    except Exception as error:
        _report(name, str(error).strip().partition("\n")[0] or type(error).__name__)
    else:
        _report(name, "")
        return True
    return False


def _report(name: str, message: str) -> None:
    sys.stdout.write(json.dumps([name, message]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # The checker prints warnings to file 1, of experimental operators that ONNX removed.
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(sys.stdin.buffer)
