"""Ask a real MXNet 1.9.1 for the results of the tensor operators, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_tensor.py tests/data/mxnet

writes ``tensor_cases.jsonl.gz`` and ``tensor_cases.npz``: one graph of one operator per line, and
its tensors under ``<name>/in/<input>`` and ``<name>/out/<index>``. The specifications are in
``cases_tensor_<family>.py``.
"""

from __future__ import annotations

import os

import cases_tensor_elementwise
import cases_tensor_index
import cases_tensor_matrix
import cases_tensor_reduce
import cases_tensor_shape
import cases_tensor_types
import frozen_cases

# oneDNN refuses element types that MXNet's own code computes.
os.environ["MXNET_MKLDNN_ENABLED"] = "0"

FAMILIES = (
    cases_tensor_elementwise,
    cases_tensor_reduce,
    cases_tensor_shape,
    cases_tensor_index,
    cases_tensor_matrix,
    cases_tensor_types,
)

if __name__ == "__main__":
    frozen_cases.main(__doc__, "tensor_cases", FAMILIES, default=1e-5, narrow=min)
