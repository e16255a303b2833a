"""Operators that have no lowering on purpose, each with its reason in one line.

An operator of MXNet is lowered, serves training, or is refused: no name is in two of these
classes.
"""

from __future__ import annotations

import re

TRAINING = re.compile(
    r"_?(sparse_|multi_|mp_|preloaded_)*"
    r"(adagrad|adam|adamw|ftml|ftrl|lamb|nag_mom|rmsprop|rmspropalex|sgd|sgd_mom|signsgd|signum"
    r"|contrib_group_adagrad)_update(_phase[12])?"
    r"|multi_lars|reset_arrays|_NoGradient|_backward_.*"
    r"|_contrib_MultiBoxTarget|_sample_unique_zipfian|_image_random_.*"
)
"""Names of the operators that only training uses.

They are steps of optimizers, gradients, targets of anchors, sampled classes, changed images.
"""

_FACTORS = "ONNX has no operator for eigenvalues or singular values"

_ON_GPUS = "MXNet 1.9.1 has it for GPUs only, so there are no numbers to agree with"
_IN_PLACE = "it is a function of arrays in MXNet, which cannot run it as a node of a graph"
_GRAPHS = "it works on graphs as CSR matrices, and ONNX has no sparse matrices"
_FILES = "ONNX Runtime has no decoder of image files"

REFUSED: dict[str, str] = {
    "Custom": "its code is a Python class, which an ONNX file cannot hold",
    "_contrib_calibrate_entropy": "it calibrates a model that is being quantized, which has run",
    "_contrib_count_sketch": _ON_GPUS,
    "_contrib_dgl_adjacency": _GRAPHS,
    "_contrib_dgl_csr_neighbor_non_uniform_sample": _GRAPHS,
    "_contrib_dgl_csr_neighbor_uniform_sample": _GRAPHS,
    "_contrib_dgl_graph_compact": _GRAPHS,
    "_contrib_dgl_subgraph": _GRAPHS,
    "_contrib_edge_id": _GRAPHS,
    "_contrib_fft": _ON_GPUS,
    "_contrib_getnnz": _GRAPHS,
    "_contrib_ifft": _ON_GPUS,
    "_contrib_quantize_asym": "MXNet 1.9.1 runs it only inside its quantized recurrent layers",
    "_contrib_quantized_rnn": "ONNX has no recurrent layers on integers",
    "_cvimdecode": _FILES,
    "_cvimread": _FILES,
    "_imdecode": _FILES,
    "_linalg_syevd": _FACTORS,
    "_npi_eig": f"{_FACTORS}, and those of a general matrix are complex",
    "_npi_eigvals": f"{_FACTORS}, and those of a general matrix are complex",
    "_npi_eigh": _FACTORS,
    "_npi_eigvalsh": _FACTORS,
    "_npi_pinv": _FACTORS,
    "_npi_pinv_scalar_rcond": _FACTORS,
    "_npi_share_memory": "values of an ONNX graph have no addresses that could be compared",
    "_npi_svd": _FACTORS,
    "_onehot_encode": f"{_IN_PLACE}; one_hot can",
    "_scatter_set_nd": _IN_PLACE,
    "_set_value": _IN_PLACE,
    "_sparse_retain": "it works on row-sparse arrays, and ONNX has none",
    "fill_element_0index": _IN_PLACE,
}
"""Why no standard ONNX operators compute an operator's result, by the registered name."""


def reason(operator: str) -> str | None:
    """Return why an operator has no lowering; None for one that has, or is unknown."""
    if TRAINING.fullmatch(operator):
        return "it belongs to training, which ONNX does not describe"
    return REFUSED.get(operator)
