"""Ask a running MXNet 1.9.1 for its operators, and write the answers.

Run inside the environment that has MXNet::

    python make_operators.py <operators.json> <probes.json>

The first file is the table that ``passlib.mxnet.schema`` reads. The second has the inputs,
mutated inputs, outputs and initialisers of each operator under many attribute values;
tests/mxnet/test_schema.py checks the schema against it.

Every question runs in a forked child, since some operators crash the process that composes them
with odd attributes.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mxnet as mx
from mxnet.base import (
    _LIB,
    OpHandle,
    SymbolHandle,
    c_array,
    c_str,
    c_str_array,
    check_call,
    mx_uint,
    py_str,
)

from operator_bounds import bounds_of

# Operators that exist only inside a running process (they hold pointers), and gradient nodes, which
# are tied to their forward node: no symbol file can contain them.
EXCLUDED = ("backward", "_CachedOp", "_CustomFunction", "_NDArray", "_Native")

# Attributes that an operator requires without declaring them as required.
NEEDED: dict[str, dict[str, str]] = {
    "Pooling": {"kernel": "(2,2)"},
    "Pooling_v1": {"kernel": "(2,2)"},
    "_contrib_quantized_pooling": {"kernel": "(2,2)"},
    "_contrib_quantized_rnn": {"mode": "lstm"},
    "_linspace": {"stop": "2", "num": "2"},
    "_npi_choice": {"a": "2", "size": "(2,)"},
}
# Operators that cannot be composed, because the list of input names fails on a wrong cast, or that
# write to inputs that their composition does not show. Found by trial.
CORRECTIONS: dict[str, dict[str, Any]] = {
    "multi_sgd_mom_update": {"mutated": [2]},
    "preloaded_multi_sgd_mom_update": {"mutated": [2]},
    "reset_arrays": {"mutated": [0], "total": 0, "outputs": []},
}
# Attributes that act together; single ones are probed automatically.
TOGETHER: dict[str, list[dict[str, str]]] = {
    "Pooling": [
        {"kernel": kernel, "pool_type": pool, **more}
        for kernel in ("(2,)", "(2,2)", "(2,2,2)")
        for pool in ("max", "avg", "sum", "lp")
        for more in ({"pooling_convention": "same"}, {"global_pool": "True"}, {"stride": "(2,2)"})
    ]
    + [{"kernel": "(2,2)", "layout": layout} for layout in ("NHWC", "NCHW", "NWC", "NDHWC")]
    + [{"kernel": "(2,2)", "stride": "(3,3)"}, {"kernel": "(2,2)", "pad": "(1,1)"}]
    + [{"kernel": "()", "global_pool": "True", "pool_type": pool} for pool in ("max", "avg")],
    "RNN": [
        {"mode": "lstm", "state_outputs": "True"},
        {"mode": "lstm", "state_outputs": "True", "use_sequence_length": "True"},
        {"mode": "lstm", "projection_size": "3", "state_outputs": "True"},
        {"mode": "gru", "use_sequence_length": "True", "state_outputs": "True"},
    ],
    "_contrib_quantized_rnn": [{"state_outputs": "True"}],
    "CTCLoss": [{"use_data_lengths": "True", "use_label_lengths": "True"}],
    "_split_v2": [{"indices": "(0,2,3)", "sections": "0"}],
    "_npi_unique": [{"return_index": "True", "return_inverse": "1", "return_counts": "true"}],
    "_npi_ediff1d": [{"to_begin_arr_given": "True", "to_end_arr_given": "True"}],
    "_npi_average": [{"returned": "True", "weighted": "False"}],
    "UpSampling": [
        {"sample_type": "nearest", "num_args": "1"},
        {"sample_type": "nearest", "num_args": "3"},
    ],
    "_contrib_dgl_subgraph": [{"num_args": "3", "return_mapping": "True"}],
    "_contrib_dgl_graph_compact": [{"num_args": "4", "return_mapping": "True"}],
}
for _name, _given in {
    "_npi_bernoulli": ("prob", "logit"),
    "_npi_exponential": ("scale",),
    "_npi_gamma": ("shape", "scale"),
    "_npi_gumbel": ("loc", "scale"),
    "_npi_logistic": ("loc", "scale"),
    "_npi_normal": ("loc", "scale"),
    "_npi_normal_n": ("loc", "scale"),
    "_npi_rayleigh": ("scale",),
    "_npi_uniform": ("low", "high"),
    "_npi_uniform_n": ("low", "high"),
}.items():
    TOGETHER[_name] = [dict.fromkeys(_given, "None"), *({p: "None"} for p in _given)]


def is_array(type_text: str) -> bool:
    """Whether a declared argument is an input rather than a parameter."""
    return type_text.startswith(("NDArray", "Symbol"))


def registry() -> dict[str, dict[str, Any]]:
    """Read the declared arguments of every registered name."""
    names, size = ctypes.POINTER(ctypes.c_char_p)(), ctypes.c_uint()
    check_call(_LIB.MXListAllOpNames(ctypes.byref(size), ctypes.byref(names)))
    table = {}
    for name in sorted(py_str(names[i]) for i in range(size.value)):
        handle = OpHandle()
        check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
        texts = [ctypes.c_char_p() for _ in range(4)]
        lists = [ctypes.POINTER(ctypes.c_char_p)() for _ in range(3)]
        count = mx_uint()
        real, description, key, returns = texts
        check_call(
            _LIB.MXSymbolGetAtomicSymbolInfo(
                handle,
                *map(ctypes.byref, (real, description, count, *lists, key, returns)),
            )
        )
        arguments = [(py_str(lists[0][i]), py_str(lists[1][i])) for i in range(count.value)]
        table[name] = {"handle": handle.value, "real": py_str(real.value), "key": py_str(key.value)}
        table[name]["arguments"] = arguments
    return table


def accepted(name: str) -> dict[str, str] | None:
    """Return the attributes that an operator reads; None if it does not say.

    The declaration that the registry prints is written by hand, and wrong for some operators. The
    reader of the attributes lists its own in the error about an unknown one.
    """

    def refused() -> str:
        handle, symbol = OpHandle(), SymbolHandle()
        check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
        given = c_str_array(["no_such_attribute"]), c_str_array(["1"])
        try:
            check_call(
                _LIB.MXSymbolCreateAtomicSymbol(handle, mx_uint(1), *given, ctypes.byref(symbol))
            )
        except mx.MXNetError as error:
            return str(error)
        return ""

    _, found, listed = (in_child(refused) or "").partition("Possible Arguments:\n")
    return dict(re.findall(r"^(\w+) : (.*)$", listed, re.MULTILINE)) if found else None


def compose(op: str, attrs: dict[str, str], inputs: int) -> dict[str, Any]:
    """Make one node named ``n`` and describe it; without inputs MXNet makes the variables."""
    handle, symbol = OpHandle(), SymbolHandle()
    check_call(_LIB.NNGetOpHandle(c_str(op), ctypes.byref(handle)))
    keys, values = c_str_array(list(attrs)), c_str_array(list(attrs.values()))
    check_call(
        _LIB.MXSymbolCreateAtomicSymbol(
            handle, mx_uint(len(attrs)), keys, values, ctypes.byref(symbol)
        )
    )
    result = mx.sym.Symbol(symbol)
    variables = [mx.sym.var(f"n_{i}") for i in range(inputs)]
    handles = c_array(SymbolHandle, [v.handle for v in variables])
    check_call(_LIB.NNSymbolCompose(symbol, c_str("n"), mx_uint(inputs), None, handles))
    graph = json.loads(result.tojson(remove_amp_cast=False))
    nodes, rows = graph["nodes"], graph["node_row_ptr"]
    entries = nodes[-1]["inputs"]
    initial = {
        nodes[i]["name"][2:]: nodes[i]["attrs"]["__init__"]
        for i, _, _ in entries
        if "__init__" in nodes[i].get("attrs", {})
    }
    return {
        "inputs": [nodes[i]["name"][2:] for i, _, _ in entries],
        "mutated": [k for k, (_, _, version) in enumerate(entries) if version],
        "outputs": [name[2:] for name in result.list_outputs()],
        "total": rows[-1] - rows[-2],
        "init": initial,
    }


def node_of(op: str, attrs: dict[str, str], inputs: int) -> Any:
    """Make one node, with variables ``n_0``, ``n_1``, ...; return its first output."""
    handle, symbol = OpHandle(), SymbolHandle()
    check_call(_LIB.NNGetOpHandle(c_str(op), ctypes.byref(handle)))
    keys, values = c_str_array(list(attrs)), c_str_array(list(attrs.values()))
    check_call(
        _LIB.MXSymbolCreateAtomicSymbol(
            handle, mx_uint(len(attrs)), keys, values, ctypes.byref(symbol)
        )
    )
    result = mx.sym.Symbol(symbol)
    variables = [mx.sym.var(f"n_{i}") for i in range(inputs)]
    handles = c_array(SymbolHandle, [v.handle for v in variables])
    check_call(_LIB.NNSymbolCompose(symbol, c_str("n"), mx_uint(inputs), None, handles))
    return result[0]


def shared(op: str, attrs: dict[str, str], inputs: int) -> dict[str, bool]:
    """Tell whether MXNet infers all inputs from the result, and all types from the first input."""

    def shapes() -> bool:
        total = mx.sym.elemwise_add(node_of(op, attrs, inputs), mx.sym.var("z"))
        names, found = total.list_arguments(), total.infer_shape_partial(z=(2, 3))[0]
        return all(found[names.index(f"n_{i}")] == (2, 3) for i in range(inputs))

    def types() -> bool:
        node = node_of(op, attrs, inputs)
        found, results, _ = node.infer_type_partial(n_0="float16")
        return {value.__name__ for value in (*found, results[0])} == {"float16"}

    asked = {"same_shape": shapes, "same_type": types}
    return {key: True for key, ask in asked.items() if 0 < inputs < 5 and in_child(ask)}


def in_child(work: Callable[[], Any]) -> Any:
    """Return the result of ``work``, or None if it raised or killed the child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            payload = pickle.dumps(work())
        except Exception:
            payload = pickle.dumps(None)
        with os.fdopen(writer, "wb") as stream:
            stream.write(payload)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        payload = stream.read()
    os.waitpid(pid, 0)
    return pickle.loads(payload) if payload else None


def samples(type_text: str) -> list[str]:
    """Return sample values of a parameter of this type."""
    if type_text.startswith("{"):
        body = type_text[1 : type_text.index("}")]
        return [value.strip().strip("'") for value in body.split(",")]
    table = {
        "boolean": ["False", "True"],
        "Shape": ["(1,1)", "(2,)"],
        "int": ["2", "1", "3"],
        "long": ["2", "1", "3"],
        "tuple of <Shape": ["[(1,),(1,)]"],
        "tuple": ["(1,)", "(1,2)"],
        "string": ["a"],
    }
    for prefix in ("float", "double", "real_t"):
        table[prefix] = ["0.5"]
    for prefix, values in table.items():
        if type_text.startswith(prefix):
            return values
    return []


def probe(name: str, facts: dict[str, Any]) -> tuple[list[dict[str, Any]], bool, bool]:
    """Probe an operator: cases, whether inputs must be given, whether any attribute is accepted."""
    parameters = [(p, t) for p, t in facts["arguments"] if not is_array(t)]
    base = {p: samples(t)[0] for p, t in parameters if "required" in t and samples(t)}
    base.update(NEEDED.get(name, {}))
    if facts["key"] and facts["key"] in dict(parameters):
        base[facts["key"]] = "2"
    elif name in ("add_n", "khatri_rao"):
        base["num_args"] = "2"
    arrays = [p for p, t in facts["arguments"] if is_array(t) and not t.endswith("[]")]

    def ask(attrs: dict[str, str], inputs: int) -> Any:
        return in_child(lambda: compose(name, attrs, inputs))

    first = ask(base, 0)
    explicit = first is None
    inputs = len(arrays) if explicit else 0
    if explicit:
        first = ask(base, inputs)
    if first is None:
        return [], explicit, False
    cases = [{"attrs": base, **first}]
    variants = [({p: v}, p) for p, t in parameters for v in samples(t)]
    variants += [(together, "") for together in TOGETHER.get(name, [])]
    answers = [(v, p, ask({**base, **v}, inputs)) for v, p in variants]
    matters = {p for _, p, answer in answers if answer not in (None, first)} | {""}
    cases += [
        {"attrs": {**base, **v}, **answer}
        for v, p, answer in answers
        if p in matters and answer is not None
    ]
    takes_any = ask({**base, "no_such_attribute": "1"}, inputs) is not None
    if explicit:
        for case in cases:
            case["inputs"] = arrays[: len(case["inputs"])]
    return cases, explicit, takes_any


def main(table_path: str, probes_path: str) -> None:
    """Write both files."""
    names = {n: f for n, f in registry().items() if not any(word in n for word in EXCLUDED)}
    groups: dict[int, list[str]] = {}
    for name, facts in names.items():
        groups.setdefault(facts["handle"], []).append(name)
    table: dict[str, Any] = {}
    probes: dict[str, Any] = {}
    for aliases in groups.values():
        name = names[aliases[0]]["real"]
        facts = names[name]
        cases, explicit, takes_any = probe(name, facts)
        entry: dict[str, Any] = {
            "inputs": [p for p, t in facts["arguments"] if is_array(t)],
            "parameters": {p: t for p, t in facts["arguments"] if not is_array(t)},
        }
        read = accepted(name)
        if read is not None:
            entry["parameters"] = read
        bounds = bounds_of(name, entry["parameters"], in_child)
        if bounds:
            entry["bounds"] = bounds
        if any(t.endswith("[]") for _, t in facts["arguments"] if is_array(t)):
            entry["variadic"] = facts["key"]
        if cases:
            first = cases[0]
            longest = max((case["inputs"] for case in cases), key=len)
            if "variadic" not in entry and set(longest) - set(entry["inputs"]):
                entry["inputs"] = longest
            if first["mutated"]:
                entry["mutated"] = first["mutated"]
            if first["outputs"] != ["output"]:
                entry["outputs"] = first["outputs"]
            if first["total"] != len(first["outputs"]):
                entry["total"] = first["total"]
            initial = {k: v for case in cases for k, v in case["init"].items()}
            if initial:
                entry["init"] = initial
            probes[name] = cases
            entry.update(shared(name, first["attrs"], len(first["inputs"])))
        else:
            entry.update(outputs=[], total=0)
        entry.update(CORRECTIONS.get(name, {}))
        if explicit:
            entry["explicit"] = True
        if takes_any:
            entry["open"] = True
        others = sorted(set(aliases) - {name})
        if others:
            entry["aliases"] = others
        table[name] = entry
    for path, content in ((table_path, table), (probes_path, probes)):
        rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(content.items()))
        Path(path).write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
