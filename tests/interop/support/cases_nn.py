"""Ask a real MXNet 1.9.1 for the results of the neural-network operators, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_nn.py tests/data/mxnet

writes ``nn_cases.jsonl.gz`` and ``nn_cases.npz`` in the form that cases_tensor.py describes, with
``"train": true`` in a case that ran as in training.
"""

from __future__ import annotations

import cases_nn_layers
import cases_nn_recurrent
import cases_nn_vision
import frozen_cases

FAMILIES = (cases_nn_layers, cases_nn_recurrent, cases_nn_vision)

if __name__ == "__main__":
    frozen_cases.main(__doc__, "nn_cases", FAMILIES, default=2e-5, narrow=max)
