"""How the attributes of an MXNet operator determine its inputs.

Most operators have fixed ones, which operators.json lists. The others are here, one line each, as
measured with MXNet 1.9.1 for each attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passlib.errors import UnsupportedError
from passlib.graph.node import MOST_OUTPUTS
from passlib.mxnet.schema.parameters import is_true

Get = Callable[[str], "str | None"]
"""Returns an attribute's value, its default, or None."""

Condition = Callable[[Get], bool]


def _flag(name: str) -> Condition:
    return lambda get: is_true(get(name))


def _unless(name: str) -> Condition:
    return lambda get: not is_true(get(name))


def _equal(name: str, value: str) -> Condition:
    return lambda get: get(name) == value


def _absent(*names: str) -> Condition:
    return lambda get: all(get(name) in (None, "None") for name in names)


def _any_absent(*names: str) -> Condition:
    return lambda get: any(get(name) in (None, "None") for name in names)


def _drawn(which: Callable[[Sequence[bool]], bool]) -> Condition:
    return lambda get: which([get("a") in (None, "None"), is_true(get("weighted"))])


def _both(get: Get) -> bool:
    return is_true(get("to_begin_arr_given")) and is_true(get("to_end_arr_given"))


def _either(get: Get) -> bool:
    return is_true(get("to_begin_arr_given")) or is_true(get("to_end_arr_given"))


_BIAS: dict[str, Condition] = {"bias": _unless("no_bias")}
_QUANTIZED_BIAS = {name: _unless("no_bias") for name in ("bias", "min_bias", "max_bias")}
_LENGTH: dict[str, Condition] = {"sequence_length": _flag("use_sequence_length")}
_INSERTED: dict[str, Condition] = {"values": _absent("val")}
_SAMPLED: dict[str, Condition] = {"input1": _absent("a")}

CONDITIONS: dict[str, dict[str, Condition]] = {
    "CTCLoss": {
        "data_lengths": _flag("use_data_lengths"),
        "label_lengths": _flag("use_label_lengths"),
    },
    "Convolution": _BIAS,
    "Convolution_v1": _BIAS,
    "Deconvolution": _BIAS,
    "FullyConnected": _BIAS,
    "LeakyReLU": {"gamma": _equal("act_type", "prelu")},
    "RNN": {"state_cell": _equal("mode", "lstm"), **_LENGTH},
    "SequenceLast": _LENGTH,
    "SequenceMask": _LENGTH,
    "SequenceReverse": _LENGTH,
    "_contrib_BilinearResize2D": {"like": _equal("mode", "like")},
    "_contrib_DeformableConvolution": _BIAS,
    "_contrib_DeformablePSROIPooling": {"trans": _unless("no_trans")},
    "_contrib_ModulatedDeformableConvolution": _BIAS,
    "_contrib_quantized_conv": _QUANTIZED_BIAS,
    "_contrib_quantized_fully_connected": _QUANTIZED_BIAS,
    "_histogram": {"bins": _absent("bin_cnt")},
    "_npi_bernoulli": {"input1": _absent("prob", "logit")},
    "_npi_choice": {"input1": _drawn(any), "input2": _drawn(all)},
    "_npi_exponential": {"input1": _absent("scale")},
    "_npi_multinomial": {"data": _absent("pvals")},
    **{
        name: {"input1": _any_absent(*given), "input2": _absent(*given)}
        for name, given in (
            ("_npi_gamma", ("shape", "scale")),
            ("_npi_gumbel", ("loc", "scale")),
            ("_npi_logistic", ("loc", "scale")),
            ("_npi_normal", ("loc", "scale")),
            ("_npi_normal_n", ("loc", "scale")),
            ("_npi_uniform", ("low", "high")),
            ("_npi_uniform_n", ("low", "high")),
        )
    },
    "_npi_rayleigh": {"input1": _absent("scale")},
    "_npi_average": {"weights": _flag("weighted")},
    "_npi_bincount": {"weights": _flag("has_weights")},
    "_npi_delete": {"obj": _absent("step", "int_ind")},
    "_npi_ediff1d": {"input2": _either, "input3": _both},
    "_npi_insert_scalar": _INSERTED,
    "_npi_insert_slice": _INSERTED,
    "_npi_insert_tensor": _INSERTED,
    "_npi_pareto": _SAMPLED,
    "_npi_percentile": {"q": _absent("q_scalar")},
    "_npi_powerd": _SAMPLED,
    "_npi_weibull": _SAMPLED,
    "_sg_mkldnn_selfatt_qk": dict.fromkeys(("min_qkv", "max_qkv"), _flag("quantized")),
    "_sg_mkldnn_selfatt_valatt": dict.fromkeys(
        ("min_qkv", "max_qkv", "min_attention", "max_attention"), _flag("quantized")
    ),
    "softmax": {"length": _flag("use_length")},
}
"""Inputs that exist only under a condition, by operator."""

SUBGRAPHS = {"_foreach": 1, "_while_loop": 2, "_cond": 3}
"""How many of ``num_args`` are nested graphs, which are not inputs of the node."""

_SGD = ("weight_{}", "grad_{}")
_MULTI = ("weight_{}", "grad_{}", "mean_{}", "var_{}")

REPEATED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "_multi_adamw_update": ("num_weights", _MULTI, ("rescale_grad",)),
    "_multi_lamb_update": ("num_tensors", _MULTI, ()),
    "_multi_mp_adamw_update": ("num_weights", (*_MULTI, "weight32_{}"), ("rescale_grad",)),
    "_multi_mp_lamb_update": ("num_tensors", (*_MULTI, "weight32_{}"), ()),
    "_np_atleast_1d": ("num_args", ("ary{}",), ()),
    "_np_atleast_2d": ("num_args", ("ary{}",), ()),
    "_np_atleast_3d": ("num_args", ("ary{}",), ()),
    "_npi_concatenate": ("num_args", ("data{}",), ()),
    "_npi_dstack": ("num_args", ("data{}",), ()),
    "_npi_hstack": ("num_args", ("data{}",), ()),
    "amp_multicast": ("num_outputs", ("data_{}",), ()),
    "multi_all_finite": ("num_arrays", ("array_{}",), ()),
    "multi_mp_sgd_mom_update": ("num_weights", (*_SGD, "mom_{}", "weight32_{}"), ()),
    "multi_mp_sgd_update": ("num_weights", (*_SGD, "weight32_{}"), ()),
    "multi_sgd_mom_update": ("num_weights", (*_SGD, "mom_{}"), ()),
    "multi_sgd_update": ("num_weights", _SGD, ()),
    "multi_sum_sq": ("num_arrays", ("array_{}",), ()),
    "preloaded_multi_mp_sgd_mom_update": (
        "num_weights",
        (*_SGD, "mom_{}", "weight32_{}"),
        ("lrs", "wds"),
    ),
    "preloaded_multi_mp_sgd_update": ("num_weights", (*_SGD, "weight32_{}"), ("lrs", "wds")),
    "preloaded_multi_sgd_mom_update": ("num_weights", (*_SGD, "mom_{}"), ("lrs", "wds")),
    "preloaded_multi_sgd_update": ("num_weights", _SGD, ("lrs", "wds")),
    "reset_arrays": ("num_arrays", ("array_{}",), ()),
}
"""By operator: the counting attribute, names repeated for each, names after them.

The inputs of other variadic operators are ``arg{}``.
"""


def count(get: Get, name: str) -> int:
    """Read an attribute that counts inputs or outputs; 0 for anything that is no number.

    Raises
    ------
    UnsupportedError
        The number is too large: a file must not cause an allocation that it merely claims.
    """
    text = (get(name) or "").strip().removeprefix("+")
    if not (text.isascii() and text.isdecimal()):
        return 0
    digits = text.lstrip("0")
    if len(digits) > len(str(MOST_OUTPUTS)) or int(digits or "0") > MOST_OUTPUTS:
        message = f"attribute {name!r} is {text[:20]}; at most {MOST_OUTPUTS} are supported"
        raise UnsupportedError(message)
    return int(digits or "0")
