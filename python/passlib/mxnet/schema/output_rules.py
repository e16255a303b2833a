"""How the attributes of an MXNet operator determine its outputs.

Operators with fixed outputs are listed in operators.json alone. The others are here, as measured
with MXNet 1.9.1 for each attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passlib.mxnet.schema.input_rules import Get, count
from passlib.mxnet.schema.parameters import is_true

Outputs = Callable[[Get], "tuple[Sequence[str], int]"]
"""Returns the names of the visible outputs, and the number of all."""


def _parts(text: str | None) -> int:
    return sum(1 for part in (text or "").strip("()[] ").split(",") if part.strip())


def numbered(number: int) -> tuple[Sequence[str], int]:
    """Return MXNet's names of outputs without names of their own, and their number."""
    names = ["output"] if number == 1 else [f"output{i}" for i in range(number)]
    return names, number


def _pooling(get: Get) -> tuple[Sequence[str], int]:
    # oneDNN's maximum pooling, used for channels first and one to three spatial axes, keeps the
    # position of each maximum for the gradient.
    axes = _parts(get("kernel"))
    first = get("layout") in (None, "None", "NCW", "NCHW", "NCDHW")
    kept = get("pool_type") == "max" and first and 1 <= axes <= 3
    return ("output",), 2 if kept else 1


def _by(name: str) -> Outputs:
    return lambda get: numbered(count(get, name))


def _more(flag: str, extra: tuple[str, ...], total: int) -> Outputs:
    """Return the rule of outputs that are always computed, but visible only with ``flag``."""
    return lambda get: (("output", *(extra if is_true(get(flag)) else ())), total)


def _split(get: Get) -> tuple[Sequence[str], int]:
    return numbered(count(get, "sections") or _parts(get("indices")))


def _slice_channel(get: Get) -> tuple[Sequence[str], int]:
    number = count(get, "num_outputs")
    return [f"output{i}" for i in range(number)], number


def _recurrent(cell: str) -> Outputs:
    def outputs(get: Get) -> tuple[Sequence[str], int]:
        names = ["output"]
        if is_true(get("state_outputs")):
            names.append("state_output")
            if get("mode") == "lstm":
                names.append(cell)
        return names, len(names)

    return outputs


def _topk(get: Get) -> tuple[Sequence[str], int]:
    chosen = get("ret_typ")
    if chosen == "both":
        return ("output0", "output1"), 2
    return (("output0",), 2) if chosen == "value" else (("output",), 1)


def _leaky(get: Get) -> tuple[Sequence[str], int]:
    return (("output", "mask"), 2) if get("act_type") == "rrelu" else (("output",), 1)


def _unique(get: Get) -> tuple[Sequence[str], int]:
    flags = ("return_index", "return_inverse", "return_counts")
    return numbered(1 + sum(is_true(get(flag)) for flag in flags))


def _ranged(flag: str, when: bool) -> Outputs:
    """Return the rule of an output that is quantized, with its range in two more, or real."""
    names = ("output", "min_output", "max_output")
    return lambda get: (names, 3) if is_true(get(flag)) is when else (("output",), 1)


def _quantized(get: Get) -> tuple[Sequence[str], int]:
    kept = is_true(get("quantized")) and not is_true(get("enable_float_output"))
    return (("output", "min_output", "max_output"), 3) if kept else (("output",), 1)


def _average(get: Get) -> tuple[Sequence[str], int]:
    return ("output0", "output1") if is_true(get("returned")) else ("output0",), 2


def _sampled(get: Get) -> tuple[Sequence[str], int]:
    return numbered(2 if is_true(get("get_prob")) else 1)


def _subgraphs(others: int, mapped: int) -> Outputs:
    def outputs(get: Get) -> tuple[Sequence[str], int]:
        graphs = max(count(get, "num_args") - others, 0) // mapped
        return numbered(graphs * (2 if is_true(get("return_mapping")) else 1))

    return outputs


_MEAN_VAR = ("mean", "var")

OUTPUTS: dict[str, Outputs] = {
    "BatchNorm": _more("output_mean_var", _MEAN_VAR, 3),
    "BatchNorm_v1": _more("output_mean_var", _MEAN_VAR, 3),
    "GroupNorm": _more("output_mean_var", ("mean", "std"), 3),
    "LayerNorm": _more("output_mean_var", ("mean", "std"), 3),
    "LeakyReLU": _leaky,
    "Pooling": _pooling,
    "RNN": _recurrent("statecell_output"),
    "SliceChannel": _slice_channel,
    "_cond": _by("num_outputs"),
    "_contrib_BatchNormWithReLU": _more("output_mean_var", _MEAN_VAR, 4),
    "_contrib_MultiProposal": _more("output_score", ("score",), 2),
    "_contrib_Proposal": _more("output_score", ("score",), 2),
    "_contrib_SyncBatchNorm": _more("output_mean_var", _MEAN_VAR, 3),
    "_contrib_dgl_graph_compact": _subgraphs(0, 2),
    "_contrib_dgl_subgraph": _subgraphs(1, 1),
    # The missing letter is MXNet's.
    "_contrib_quantized_rnn": _recurrent("statecell_ouput"),
    "_contrib_quantized_elemwise_mul": _ranged("enable_float_output", when=False),
    "_foreach": _by("num_outputs"),
    "_multi_adamw_update": _by("num_weights"),
    "_multi_lamb_update": _by("num_tensors"),
    "_multi_mp_adamw_update": _by("num_weights"),
    "_multi_mp_lamb_update": _by("num_tensors"),
    "_np_atleast_1d": _by("num_args"),
    "_np_atleast_2d": _by("num_args"),
    "_np_atleast_3d": _by("num_args"),
    "_npi_average": _average,
    "_npi_dsplit": _split,
    "_npi_hsplit": _split,
    "_npi_unique": _unique,
    "_sample_multinomial": _sampled,
    "_sg_mkldnn_selfatt_qk": _quantized,
    "_sg_mkldnn_selfatt_valatt": _quantized,
    "_split_v2": _split,
    "_while_loop": _by("num_outputs"),
    "amp_multicast": _by("num_outputs"),
    "multi_mp_sgd_mom_update": _by("num_weights"),
    "multi_mp_sgd_update": _by("num_weights"),
    "multi_sgd_mom_update": _by("num_weights"),
    "multi_sgd_update": _by("num_weights"),
    "preloaded_multi_mp_sgd_mom_update": _by("num_weights"),
    "preloaded_multi_mp_sgd_update": _by("num_weights"),
    "preloaded_multi_sgd_mom_update": _by("num_weights"),
    "preloaded_multi_sgd_update": _by("num_weights"),
    "topk": _topk,
}
"""Names of the visible outputs, and the number of all, by operator."""
