"""The MXNet side of random_operators.py: answers one JSON line for each line of a case.

Runs in the environment that has MXNet 1.9.1. A case is ``{"symbol", "inputs", "aux", "numpy",
"train", "op", "attrs", "outputs"}``; the answer holds inferred shapes and types and the results,
or errors.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import sys
from typing import Any

# oneDNN refuses element types that MXNet's own code computes.
os.environ["MXNET_MKLDNN_ENABLED"] = "0"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MXNET_ENGINE_TYPE"] = "NaiveEngine"
os.environ["DMLC_LOG_STACK_TRACE_DEPTH"] = "0"

import mxnet as mx
import numpy as np
from mxnet._ctypes.ndarray import _imperative_invoke
from mxnet.base import _LIB, OpHandle, c_str, check_call

IN_PLACE = ("_npi_boolean_mask_assign_scalar", "_npi_boolean_mask_assign_tensor")


def decoded(record: dict[str, Any]) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(record["data"]), record["dtype"])
    return data.reshape(record["shape"]).copy()


def encoded(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def refuse_brain_floats(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the arrays, none of which may hold bfloat16, which NumPy does not have."""
    for array in arrays:
        if array.dtype.kind == "V":
            raise NotImplementedError("bfloat16")
    return arrays


def attempt(function: Any, case: dict[str, Any], inputs: list[np.ndarray]) -> dict[str, Any]:
    try:
        return {"value": function(case, inputs)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def run_once(case: dict[str, Any], inputs: list[np.ndarray]) -> list[dict[str, Any]]:
    if case["numpy"]:
        handle = OpHandle()
        check_call(_LIB.NNGetOpHandle(c_str(case["op"]), ctypes.byref(handle)))
        arrays = [mx.np.array(array, dtype=array.dtype) for array in inputs]
        out = arrays[:1] if case["op"] in IN_PLACE else None
        keys, values = list(case["attrs"]), list(case["attrs"].values())
        outputs = _imperative_invoke(handle.value, arrays, keys, values, out, True, True)
    else:
        symbol = mx.sym.load_json(case["symbol"])
        given = {f"x{i}": mx.nd.array(a, dtype=a.dtype) for i, a in enumerate(inputs)}
        executor = symbol.bind(
            mx.cpu(),
            {key: given[key] for key in symbol.list_arguments()},
            aux_states={key: given[key] for key in symbol.list_auxiliary_states()},
            grad_req="null",
        )
        outputs = executor.forward(is_train=case["train"])
    mx.nd.waitall()
    found = refuse_brain_floats([output.asnumpy() for output in outputs])
    return [encoded(array) for array in found]


def run(case: dict[str, Any], inputs: list[np.ndarray]) -> Any:
    first = run_once(case, inputs)
    # Memory of other contents for what an operator does not write.
    for fill in (1.5, -7.25):
        scratch = [mx.nd.full((max(1, int(np.prod(o["shape"]))),), fill) for o in first]
        mx.nd.waitall()
        del scratch
    again = run_once(case, inputs)
    return {"outputs": first, "stable": first == again}


def shapes(case: dict[str, Any], inputs: list[np.ndarray]) -> Any:
    symbol = mx.sym.load_json(case["symbol"])
    return symbol.infer_shape(**{f"x{i}": a.shape for i, a in enumerate(inputs)})


def partial(case: dict[str, Any], inputs: list[np.ndarray]) -> Any:
    symbol = mx.sym.load_json(case["symbol"])
    return symbol.infer_shape_partial(x0=inputs[0].shape) if inputs else None


def types(case: dict[str, Any], inputs: list[np.ndarray]) -> Any:
    symbol = mx.sym.load_json(case["symbol"])
    found = symbol.infer_type(**{f"x{i}": a.dtype for i, a in enumerate(inputs)})
    return [None if g is None else [np.dtype(t).name for t in g] for g in found]


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        case = json.loads(line)
        inputs = [decoded(record) for record in case["inputs"]]
        mx.util.set_np(shape=True, array=True) if case["numpy"] else mx.util.reset_np()
        answer = {
            "shapes": attempt(shapes, case, inputs),
            "partial": attempt(partial, case, inputs),
            "types": attempt(types, case, inputs),
        }
        if case["runs"]:
            answer["run"] = attempt(run, case, inputs)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
