"""The operator table against the answers of MXNet 1.9.1 (tests/data/schema/probes.json)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import places
from passlib import sym
from passlib.errors import GraphError, UnsupportedError
from passlib.mxnet import schema
from passlib.mxnet.schema import operator as parameters

PROBES = json.loads((places.DATA / "schema/probes.json").read_text("utf-8"))
# MXNet 1.9.1 gives all inputs of one tensor the same name here, which no graph can use.
REPEATED_NAMES = {
    "_multi_adamw_update",
    "_multi_lamb_update",
    "_multi_mp_adamw_update",
    "_multi_mp_lamb_update",
}
# num_args also counts the nested graphs; MXNet has no names for the inputs themselves.
NESTED = {"_foreach": 1, "_while_loop": 2}


@pytest.mark.parametrize("name", sorted(PROBES))
def test_operator_is_as_mxnet_has_it(name: str) -> None:
    operator = schema.find(name)
    assert operator is not None
    assert operator.name == name
    for case in PROBES[name]:
        attrs = case["attrs"]
        inputs = list(operator.input_names(attrs))
        if name in REPEATED_NAMES:
            assert len(inputs) == len(set(inputs)) == len(case["inputs"]), attrs
        elif name in NESTED:
            assert len(inputs) == int(attrs["num_args"]) - NESTED[name], attrs
        else:
            assert inputs == case["inputs"], attrs
        assert sorted(operator.mutable_inputs(attrs)) == case["mutated"], attrs
        assert operator.auxiliary(attrs) == operator.mutable_inputs(attrs)
        assert list(operator.output_names(attrs)) == case["outputs"], attrs
        assert operator.num_visible_outputs(attrs) == len(case["outputs"]), attrs
        assert operator.num_outputs(attrs) == case["total"], attrs
        initial = {k: v for k, v in operator.initial.items() if k in inputs}
        assert initial == case["init"], attrs


@pytest.mark.parametrize(
    ("operator", "parameter", "accepted", "refused"),
    [
        ("Dropout", "p", "0 1 0.5 1.0f nan", "-0.5 1.5 2 inf -inf 1.1f"),
        ("Convolution", "num_filter", "1 +7", "0"),
        ("FullyConnected", "num_hidden", "1", "0 -1"),
        ("Crop", "num_args", "1 3", "0 4"),
        ("_contrib_ROIAlign", "spatial_scale", "0 1 0.0625", "-0.5 16"),
        ("_contrib_BilinearResize2D", "height", "1", "0"),
        ("UpSampling", "scale", "1", "0"),
        ("_while_loop", "max_iterations", "1", "0"),
    ],
)
def test_numbers_have_bounds(operator: str, parameter: str, accepted: str, refused: str) -> None:
    found = schema.find(operator)
    assert found is not None
    for value in accepted.split():
        assert found.parameters[parameter].accepts(value), value
    for value in refused.split():
        assert not found.parameters[parameter].accepts(value), value


def test_a_number_out_of_bounds_is_refused() -> None:
    data = sym.var("data")
    with pytest.raises(GraphError, match=r"'p' .*cannot be '1.5'.*, from 0 to 1$"):
        sym.Dropout(data, p=1.5)
    text = sym.Dropout(data, p=0.5).tojson().replace('"0.5"', '"-2"')
    loaded = sym.load_json(text)
    with pytest.raises(GraphError, match=r"'p' .*cannot be '-2'"):
        loaded.infer_shape(data=(2,))
    with pytest.raises(GraphError, match=r"'num_hidden' .*cannot be '0'.*, at least 1$"):
        sym.FullyConnected(data, num_hidden=0)


SHARED = places.SHARED
FILES = sorted(
    path
    for pattern in (
        "mxnet/models/*-symbol.json",
        "nnvm/mxnet_zoo/*.json",
        "nnvm/mxnet_custom/*.json",
    )
    for path in SHARED.glob(pattern)
    if not path.stem.endswith(".golden")
)


@pytest.mark.skipif(not FILES, reason="the shared test data is not here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_schema_agrees_with_saved_models(path: Path) -> None:
    graph = json.loads(path.read_text("utf-8"))
    rows = graph["node_row_ptr"]
    for number, node in enumerate(graph["nodes"]):
        if node["op"] == "null":
            continue
        operator = schema.find(node["op"])
        assert operator is not None, node
        attrs = node.get("attrs", {})
        for key in attrs.keys() & operator.parameters.keys():
            assert operator.parameters[key].accepts(attrs[key]), (node, key)
        assert len(operator.input_names(attrs)) == len(node["inputs"]), node
        assert operator.num_outputs(attrs) == rows[number + 1] - rows[number], node
        written = {k for k, entry in enumerate(node["inputs"]) if entry[2]}
        assert operator.mutable_inputs(attrs) == written, node


@pytest.mark.skipif(not FILES, reason="the shared test data is not here")
def test_schema_agrees_with_saved_operators() -> None:
    lines = (SHARED / "mxnet/op_cases/cases.jsonl").read_text("utf-8").splitlines()
    for line in lines:
        case = json.loads(line)
        graph = json.loads(case["symbol"])
        for number, node in enumerate(graph["nodes"]):
            operator = schema.find(node["op"])
            if operator is not None:
                attrs, rows = node.get("attrs", {}), graph["node_row_ptr"]
                assert len(operator.input_names(attrs)) == len(node["inputs"]), node
                assert operator.num_outputs(attrs) == rows[number + 1] - rows[number], node
            else:
                assert node["op"] == "null"


@pytest.mark.parametrize(
    ("op", "name", "default"),
    [
        ("Convolution", "no_bias", "0"),
        ("Convolution", "stride", "[]"),
        ("Convolution", "kernel", None),
        ("Convolution", "nothing", None),
        ("Convolution", "layout", "None"),
        ("LeakyReLU", "act_type", "leaky"),
        ("BatchNorm", "axis", "1"),
        ("Deconvolution", "no_bias", "1"),
        ("_linspace", "endpoint", "1"),
    ],
)
def test_default(op: str, name: str, default: str | None) -> None:
    operator = schema.find(op)
    assert operator is not None
    assert operator.default(name) == default


def test_aliases_share_the_operator() -> None:
    assert schema.find("_Plus") is schema.find("elemwise_add") is schema.find("_add")
    assert schema.find("nothing_like_it") is None
    for name in schema.names():
        operator = schema.find(name)
        assert operator is not None
        assert name == operator.name or name in operator.aliases


@pytest.mark.parametrize(
    ("type_text", "good", "bad"),
    [
        ("int (non-negative), required", "0 7 +3 4294967295", "-1 a 1.5 None 12L 4294967296"),
        ("int or None, optional, default='None'", "-3 None 12L", "x True 2147483648"),
        ("double, optional, default=1", "1 -2.5 1e-7 inf nan .5 2.", "True one None"),
        ("boolean, optional, default=0", "True false 1 0", "yes None 2"),
        ("Shape(tuple), required", "(1,2) [3] () (1,) 5 None (1,None)", "abc (1 (a,) 1,2"),
        ("{'relu', 'tanh'}, required", "relu tanh", "Relu None"),
        ("{None, 'NCHW'},optional, default='None'", "None NCHW", "NHCW"),
        ("string, required", "anything", ""),
    ],
)
def test_values_are_read_by_type(type_text: str, good: str, bad: str) -> None:
    parameter = parameters.declared("x", type_text)
    assert all(parameter.accepts(value) for value in good.split())
    assert not any(parameter.accepts(value) for value in bad.split())


@pytest.mark.parametrize("text", ["True", "true", "1"])
def test_true_is_spelled_in_several_ways(text: str) -> None:
    operator = schema.find("FullyConnected")
    assert operator is not None
    assert operator.input_names({"no_bias": text}) == ("data", "weight")


@pytest.mark.parametrize("number", ["1000001", "9" * 30, "9" * 5000])
@pytest.mark.parametrize("op", ["Concat", "SliceChannel", "_split_v2", "amp_multicast", "_foreach"])
def test_claimed_counts_are_not_believed(op: str, number: str) -> None:
    operator = schema.find(op)
    assert operator is not None
    attrs = dict.fromkeys(("num_args", "num_outputs", "sections"), number)
    with pytest.raises(UnsupportedError, match=rf"'{op}'.*(num_|sections).*{number[:20]}"):
        operator.input_names(attrs), operator.num_outputs(attrs)


@given(st.sampled_from(sorted(PROBES)), st.dictionaries(st.text(), st.text()), st.text())
@example("_npi_hsplit", {}, "65537")
def test_no_attribute_breaks_the_schema(name: str, attrs: dict[str, str], anything: str) -> None:
    operator = schema.find(name)
    assert operator is not None
    for attributes in (attrs, dict.fromkeys(operator.parameters, anything)):
        with suppress(UnsupportedError):  # of too many inputs or outputs
            names = operator.input_names(attributes)
            assert all(i < max(len(names), 1) for i in operator.mutable_inputs(attributes))
            assert operator.num_visible_outputs(attributes) <= operator.num_outputs(attributes)
        for parameter in operator.parameters.values():
            assert parameter.accepts(anything) in (True, False)


def test_loading_is_quick() -> None:
    """Of the operators, the table in JSON is read, and the one that is asked for is made."""
    code = (
        "from steps import counted_steps; from passlib.mxnet import schema; "
        "print(counted_steps(lambda: schema.find('Convolution').input_names({}))[1])"
    )
    environment = {**os.environ, "PYTHONPATH": str(places.TESTS / "support")}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True
    )
    assert int(run.stdout) < 10_000
