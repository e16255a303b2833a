"""decompose: operators that a target lacks become others, with the same numbers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs, parser

import passlib as pl
from onnx_suite import Case, node_cases
from passlib.errors import PasslibError, UnsupportedError
from passlib.library.declared import OptionError
from passlib.proof.outcomes import shipped
from rewriting import results

DEFINED = {
    schema.name
    for schema in defs.get_all_schemas_with_history()
    if not schema.domain and (schema.has_function or schema.has_context_dependent_function)
}
"""Operators that ONNX defines by others."""

PRIMITIVE = {s.name for s in defs.get_all_schemas_with_history() if not s.domain} - DEFINED

LEFT = {
    "test_dynamicquantizelinear": "Clip",  # of operator set 11, which ONNX does not define
    "test_dynamicquantizelinear_max_adjusted": "Clip",
    "test_dynamicquantizelinear_min_adjusted": "Clip",
    "test_shrink_hard": "Shrink",
    "test_shrink_soft": "Shrink",
}
"""Cases of old operator sets, whose definitions have operators that these do not have."""


@cache
def cases() -> Mapping[str, list[Case]]:
    found = defaultdict(list)
    for case in node_cases():
        model = onnx.ModelProto.FromString(case.data)
        operators = {node.op_type for node in model.graph.node} & DEFINED
        if operators and "_expanded" not in case.name:
            found[min(operators)].append(case)
    return found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a table of the operators that ONNX does not define by others."""
    path = tmp_path_factory.mktemp("table") / "primitive.json"
    # Range of one-element tensors, as in the definition of AffineGrid, is no Loop.
    operators = {name: {} for name in (*PRIMITIVE, "Range")}
    path.write_text(json.dumps({"name": "primitive", "operators": operators}))
    return str(path)


def flat(values: Any) -> list[np.ndarray]:
    return [np.asarray(e) for v in values for e in (v if isinstance(v, list) else [v])]


def text_of(model: Any) -> list[str]:
    return [node.op for node in model.symbol.nodes() if node.op != "null"]


@pytest.mark.parametrize("op", sorted(DEFINED - {"FlexAttention"}))
def test_definitions_compute_the_same(op: str, table: str, tmp_path: Path) -> None:
    assert cases()[op]
    for case in cases()[op]:
        before = onnx.ModelProto.FromString(case.data)
        if op != "Range":
            assert pl.lint(case.data, table), case.name
        model = pl.load(case.data).optimize_for("decompose", target=table, quiet=True)
        left = [each.op for each in pl.lint(model, table)]
        name = case.name.removeprefix("node/")
        if left:
            # Inference does not know the type of what its Scan returns.
            assert name in LEFT or op == "LinearAttention", (name, left)
            continue
        model.save(tmp_path / "after.onnx")
        onnx.checker.check_model(str(tmp_path / "after.onnx"), full_check=True)
        inputs, wanted = case.data_sets[0]
        feeds = {
            value.name: array if array is None or isinstance(array, list) else np.asarray(array)
            for value, array in zip(before.graph.input, inputs, strict=False)
        }
        try:
            found = results((tmp_path / "after.onnx").read_bytes(), feeds)
        except Exception as error:
            # bfloat16 and float8: ONNX Runtime has few kernels, and its Python no arrays.
            if not any(text in str(error) for text in ("NOT_IMPLEMENTED", "Numpy_type")):
                raise
            continue
        if op == "Bernoulli":  # random
            continue
        for one, other in zip(flat(found), flat(wanted), strict=True):
            assert one.shape == other.shape, name
            assert one.dtype == other.dtype, name
            short = one.dtype.itemsize == 2
            near = {"rtol": 2e-3 if short else 1e-3, "atol": 2e-3 if short else 1e-5}
            if one.dtype.kind in "biu":
                near = {"rtol": 0, "atol": 0}
            pair = one.astype(np.float64), other.astype(np.float64)
            assert np.allclose(*pair, **near, equal_nan=True), name


def model_of(text: str, opset: int = 21, more: str = "") -> Any:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{more}]> {text}')


LACKING = {
    "LayerNormalization": """21 16
        g (float[N, 8] x, float[8] s) => (float[N, 8] y) { y = LayerNormalization(x, s) }""",
    "half precision by ONNX's definition": """21 16
        g (float16[N, 8] x, float16[8] s) => (float16[N, 8] y) { y = LayerNormalization(x, s) }""",
    "Gelu, then what it is made of": """21 13
        g (float[4] x) => (float[4] y) { h = Gelu<approximate = "tanh">(x) y = Mish(h) }""",
    "Trilu of open sizes": """21 13
        g (float[N, M] x) => (float[N, M] y) { y = Trilu<upper = 0>(x) }""",
    "RMSNormalization": """23 22
        g (float[N, 4, 8] x, float[4, 8] s) => (float[N, 4, 8] y)
        { y = RMSNormalization<axis = 1>(x, s) }""",
    "a branch": """21 13
        g (float[4] x, bool c) => (float[4] y) { y = If(c)<
        then_branch = t () => (float[4] a) { a = HardSwish(x) },
        else_branch = e () => (float[4] b) { b = Gelu(x) }> }""",
}


def fed(model: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    found = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value or 3 for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        array = rng.standard_normal(shape) > 0 if dtype == np.bool_ else rng.standard_normal(shape)
        found[value.name] = np.asarray(array).astype(dtype)
    return found


@pytest.mark.parametrize("case", LACKING)
def test_newer_operators(case: str, tmp_path: Path) -> None:
    opset, target, text = LACKING[case].split(maxsplit=2)
    model = model_of(text, int(opset))
    made = pl.decompose(model, f"opset={target}")
    assert not [each for each in pl.lint(made, f"opset={target}") if "new in" in each.reason]
    made.save(tmp_path / "after.onnx")
    feeds = fed(model)
    before = results(model.SerializeToString(), feeds)
    after = results((tmp_path / "after.onnx").read_bytes(), feeds)
    for one, other in zip(before, after, strict=True):
        near = 2e-3 if one.dtype == np.float16 else 1e-5
        assert np.allclose(one, other, rtol=near, atol=near)


def test_a_rule_comes_before_a_definition() -> None:
    model = model_of("g (float[2, 3] x) => (float[2, 3] y) { y = HardSwish(x) }")
    made = pl.decompose(model, "opset=13")
    assert text_of(made) == ["Div", "Add", "Min", "Max", "Mul"]


def test_new_nodes_have_the_metadata_of_the_old_one(tmp_path: Path) -> None:
    model = model_of(
        "g (float[2, 3] x) => (float[2, 3] y) { a = HardSwish(x) b = Gelu(a) y = Neg(b) }"
    )
    for node in model.graph.node:
        node.metadata_props.add(key="namespace", value=node.op_type)
    pl.decompose(model, "opset=13").save(tmp_path / "made.onnx")
    made = onnx.load(tmp_path / "made.onnx").graph.node
    found = [each.value for node in made for each in node.metadata_props]
    assert found == ["HardSwish"] * 5 + ["Gelu"] * 5 + ["Neg"]


def test_only_what_is_refused_changes(tmp_path: Path) -> None:
    table = tmp_path / "t.json"
    kinds = {"Gelu": {"kernels": [{"types": {"T": ["float16"]}}]}}
    others = {name: {} for name in ("Mul", "Add", "Div", "Erf", "Cast", "Constant")}
    table.write_text(json.dumps({"name": "t", "operators": {**kinds, **others}}))
    model = model_of(
        "g (float[2] x) => (float[2] y) { h = Gelu(x) c = Cast<to = 10>(h) "
        "g = Gelu(c) y = Cast<to = 1>(g) }"
    )
    made = pl.decompose(model, str(table))
    assert text_of(made) == ["Mul", "Div", "Erf", "Add", "Mul", "Cast", "Gelu", "Cast"]
    assert not pl.lint(made, str(table))


def test_functions_of_the_model(tmp_path: Path) -> None:
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2, 8] x) => (float[2, 8] y) { h = own.act(x) y = own.act(h) }
        <domain: "own", opset_import: ["" : 21]> act (a) => (b) { c = Gelu(a) b = Relu(c) }""")
    made = pl.decompose(model, "opset=19")
    assert not pl.lint(made, "opset=19")
    assert text_of(made) == ["act", "act"]
    made.save(tmp_path / "after.onnx")
    feeds = fed(model)
    before = results(model.SerializeToString(), feeds)
    after = results((tmp_path / "after.onnx").read_bytes(), feeds)
    assert np.allclose(before, after, atol=1e-6)


def test_microsoft_operators(tmp_path: Path) -> None:
    model = model_of(
        "g (float[2, 8] x, float[8] b) => (float[2, 8] y) { f = com.microsoft.FastGelu(x) "
        "g = com.microsoft.BiasGelu(f, b) q = com.microsoft.QuickGelu<alpha = 1.5>(g) "
        "y = com.microsoft.Gelu(q) }",
        more=', "com.microsoft" : 1',
    )
    table = tmp_path / "t.json"
    table.write_text(json.dumps({"name": "t", "operators": {name: {} for name in PRIMITIVE}}))
    made = pl.decompose(model, str(table))
    assert not pl.lint(made, str(table))
    made.save(tmp_path / "after.onnx")
    feeds = fed(model)
    before = results(model.SerializeToString(), feeds)
    after = results((tmp_path / "after.onnx").read_bytes(), feeds)
    assert np.allclose(before, after, atol=1e-5)


@pytest.mark.parametrize(
    ("rule", "opset", "kind", "node"),
    [
        # Before operator set 7, Add broadcasts only with an attribute.
        ("partsOfInstanceNormalization", 6, "float", "InstanceNormalization (x, s, s)"),
        # Before operator set 5, Reshape is of real numbers only.
        ("partsOfSpaceToDepth", 4, "int32", "SpaceToDepth <blocksize = 2> (x)"),
    ],
)
def test_old_operator_sets_lack_the_parts(rule: str, opset: int, kind: str, node: str) -> None:
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g ({kind}[1, 2, 2, 2] x) => ({kind}[a, c, d, e] y)
        <float[2] s = {{1, 2}}> {{ y = {node} }}"""
    )
    (found,) = (each for each in shipped() if each.name == rule)
    made = found.rules(pl.load(model), only=[rule])
    assert [each.op_type for each in made.to_onnx_proto().graph.node] == [node.split(maxsplit=1)[0]]


def test_what_is_left_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    model = model_of("g (int32[4] x) => (float[4] y) { h = BitwiseNot(x) c = Cast<to = 1>(h) "
                     "y = Gelu(c) }")  # fmt: skip
    made = pl.decompose(model, "opset=17")
    assert text_of(made)[:2] == ["BitwiseNot", "Cast"]
    assert capfd.readouterr().out == (
        "decompose: replaced 1 Gelu\n"
        "decompose: left h (BitwiseNot): not in operator set 17: BitwiseNot is new in 18\n"
    )


def test_nothing_to_do() -> None:
    model = pl.load(model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }"))
    assert model.optimize_for("decompose", target="opset=13").symbol.graph is model.symbol.graph


def test_mistakes() -> None:
    model = pl.load(model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }"))
    with pytest.raises(UnsupportedError, match="no target 'mars'"):
        pl.decompose(model, "mars")
    with pytest.raises(OptionError, match="target"):
        model.optimize_for("decompose")
    relu = pl.sym.relu(pl.sym.var("x"))
    with pytest.raises(PasslibError, match="mxnet"):
        pl.decompose(pl.Model(relu), "opset=13")
