"""Expressions on arrays, and what they give: run by MXNet to record it, and by the tests.

Usage: python array_cases.py {mxnet,passlib} FILE

Writes one JSON object: the result of each expression, by its text.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np

from array_functions import FUNCTIONS
from array_methods import ARITHMETIC, IN_PLACE, METHODS, UNARY, WITH_ARGUMENTS

EXPRESSIONS = {
    "arithmetic": ARITHMETIC,
    "in place": IN_PLACE,
    "methods": METHODS,
    "methods of other types": UNARY,
    "methods with arguments": WITH_ARGUMENTS,
    "functions": FUNCTIONS,
}
"""Expressions of the arrays in `names`, by kind."""

REFUSED = """
x[9]
x.reshape(())
x.reshape((4, 2))
x.reshape((0, -1, -1))
x.clip(a_min=2)
x.broadcast_to((3, 3))
x.asscalar()
bool(x)
x.exp(7)
x.sort(nonsense=1)
x.take(axis=0)
x.depth_to_space(2)
x.split_v2('3')
nd.elemwise_add(x, row)
nd.concatenate([])
nd.exp(x, out=nd.zeros((3, 2)))
nd.FullyConnected(x, num_hidden=3)
nd.FullyConnected(x, nd.ones((4, 3)), num_hidden=4)
nd.contrib.while_loop(lambda k: k < 3, lambda k: (k, k), nd.array([0]))
x.backward()
nd.nonsense(x)
nd.contrib.nonsense(x)
""".strip().splitlines()
"""Expressions that raise an error."""


def names(module):
    """Return the names that the expressions use, newly made."""
    nd = module.nd
    found = {
        "nd": nd,
        "np": np,
        "cpu": module.cpu,
        "x": nd.array([[1, -2.5, 3], [0.5, 5, -6]]),
        "y": nd.array([[2, 2, -3], [0.25, 5, 4]]),
        "row": nd.array([[1, 0.5, -2]]),
        "i": nd.array([[7, -7, 3], [0, 5, -1]], dtype="int32"),
        "j": nd.array([[2, 2, -3], [1, 4, 6]], dtype="int32"),
        "u": nd.array([1, 7, 200, 255], dtype="uint8"),
        "v": nd.array([1, 2, 3, 4]),
        "h": nd.array([1, 2.5, -3, 0.1], dtype="float16"),
        "d": nd.array([1, 2.5, -3, 0.1], dtype="float64"),
        "b": nd.array([True, False], dtype="bool"),
        "e": nd.array(np.zeros((0, 4))),
        "rows": nd.array([0, 1]),
        "cols": nd.array([2, 0]),
        "cube": nd.arange(12).reshape((2, 2, 3)),
        "ones": nd.ones((1, 2, 1)),
        "halves": nd.array([0.5, 1.5, 2.5, -0.5, -1.5]),
        "batch": nd.arange(36).reshape((1, 4, 3, 3)),
        "spd": nd.array([[4, 1], [1, 3]]),
        "boxes": nd.array([[0, 0, 2, 2], [1, 1, 3, 3]]),
        "image": nd.arange(12).reshape((2, 2, 3)).astype("uint8"),
    }

    def after(name, statement):
        exec(statement, found)
        return found[name]

    found["after"] = after
    return found


def evaluate(module, text):
    """Evaluate an expression with MXNet or passlib, and describe the result."""
    return describe(eval(text, names(module)))


def describe(value):
    """Return element type, shape and numbers of arrays, in lists as they are."""
    if isinstance(value, (list, tuple)):
        return [describe(each) for each in value]
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, np.ndarray):
        numbers = value.astype(np.float64) if value.dtype.kind == "f" else value
        return {
            "dtype": value.dtype.name,
            "shape": list(value.shape),
            "values": [str(n) for n in numbers.reshape(-1).tolist()],
        }
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def refuses(module, text):
    """Whether an expression raises an error."""
    try:
        eval(text, names(module))
    except Exception:
        return True
    return False


def main():
    """Evaluate all expressions, and write the results."""
    module = importlib.import_module(sys.argv[1])
    found = {text: evaluate(module, text) for group in EXPRESSIONS.values() for text in group}
    accepted = [text for text in REFUSED if not refuses(module, text)]
    if accepted:
        sys.exit(f"accepted: {accepted}")
    lines = [f"{json.dumps(text)}: {json.dumps(found[text])}" for text in sorted(found)]
    Path(sys.argv[2]).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
