"""All problems of ONNX files are reported, each with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import onnx_models
import passlib
from passlib import dialects
from passlib.dialects import Problem
from steps import counted_steps

VALIDATE = dialects.find("onnx").validate


def problems_after(text: str, path: Path, damage: Callable[[Any], object]) -> list[Problem]:
    onnx_models.save(text, path)
    model = onnx.load(path)
    damage(model)
    path.write_bytes(model.SerializeToString())
    return VALIDATE(path)


@pytest.mark.parametrize("text", [onnx_models.CHAIN, onnx_models.LOOP, onnx_models.NESTED])
def test_sound_models_have_no_problems(text: str, tmp_path: Path) -> None:
    assert VALIDATE(onnx_models.save(text, tmp_path / "a.onnx")) == []


DAMAGES: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "no version": (lambda m: m.ClearField("ir_version"), "ir_version", "missing"),
    "no operator sets": (lambda m: m.ClearField("opset_import"), "opset_import", "no operator"),
    "a set twice": (
        lambda m: m.opset_import.add(domain="", version=3),
        "opset_import[1]",
        "twice",
    ),
    "a key twice": (
        lambda m: [m.metadata_props.add(key="k", value="v") for _ in range(2)],
        "metadata_props[1]",
        "'k' occurs twice",
    ),
    "an input twice": (lambda m: m.graph.input.append(m.graph.input[0]), "graph.input[1]", "'x'"),
    "an initializer twice": (
        lambda m: m.graph.initializer.append(m.graph.initializer[0]),
        "graph.initializer[2]",
        "'w' is defined twice",
    ),
    "an unknown input": (
        lambda m: m.graph.node[1].input.__setitem__(0, "q"),
        "graph.node[1]",
        "input 0, 'q'",
    ),
    "an unknown output": (
        lambda m: setattr(m.graph.output[1], "name", "q"),
        "graph.output[1]",
        "'q'",
    ),
    "a value twice": (
        lambda m: m.graph.node[1].output.__setitem__(0, "a"),
        "graph.node[1]",
        "'a' is defined twice",
    ),
    "an unknown operator": (
        lambda m: setattr(m.graph.node[2], "op_type", "Clop"),
        "graph.node[2]",
        "Clop",
    ),
    "an unknown domain": (
        lambda m: setattr(m.graph.node[2], "domain", "nowhere"),
        "graph.node[2]",
        "'nowhere' is not imported",
    ),
    "an unknown attribute": (
        lambda m: m.graph.node[2].attribute.add(name="q", type=2, i=1),
        "graph.node[2]",
        "q",
    ),
    "too few elements": (
        lambda m: m.graph.initializer[0].dims.__setitem__(0, 5),
        "graph.initializer[0]",
        "5",
    ),
    "no outputs": (lambda m: m.graph.ClearField("output"), "graph.output", "no outputs"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_each_problem_has_its_place(what: str, tmp_path: Path) -> None:
    damage, place, message = DAMAGES[what]
    found = problems_after(onnx_models.CHAIN, tmp_path / "a.onnx", damage)
    errors = [p for p in found if p.severity == "error"]
    assert any(p.place == place and message in p.message for p in errors), found


def test_all_problems_are_reported(tmp_path: Path) -> None:
    def damage(model: Any) -> None:
        for what in ("an unknown operator", "an unknown input", "too few elements", "a key twice"):
            DAMAGES[what][0](model)

    found = problems_after(onnx_models.CHAIN, tmp_path / "a.onnx", damage)
    assert [p.place for p in found] == [
        "metadata_props[1]",
        "graph.initializer[0]",
        "graph.node[1]",
        "graph.node[2]",
    ]


def test_problems_in_nested_graphs(tmp_path: Path) -> None:
    def damage(model: Any) -> None:
        model.graph.node[2].attribute[1].g.node[0].input[1] = "q"

    found = problems_after(onnx_models.NESTED, tmp_path / "a.onnx", damage)
    assert [p.place for p in found] == ["graph.node[2].attribute['else_branch'].node[0]"]


def test_newer_formats_are_warnings(tmp_path: Path) -> None:
    found = problems_after(
        onnx_models.CHAIN, tmp_path / "a.onnx", lambda m: setattr(m, "ir_version", 99)
    )
    assert ("warning", "ir_version") in [(p.severity, p.place) for p in found]


def test_the_same_operator_set_twice_is_a_warning(tmp_path: Path) -> None:
    found = problems_after(
        onnx_models.CHAIN,
        tmp_path / "a.onnx",
        lambda m: m.opset_import.append(m.opset_import[0]),
    )
    assert [(p.severity, p.place) for p in found] == [("warning", "opset_import[1]")]


@pytest.mark.parametrize(("version", "severity"), [(0, "warning"), (1, "error")])
def test_the_other_name_of_an_operator_set(version: int, severity: str, tmp_path: Path) -> None:
    def damage(model: Any) -> None:
        model.opset_import.add(domain="ai.onnx", version=model.opset_import[0].version - version)

    found = problems_after(onnx_models.CHAIN, tmp_path / "a.onnx", damage)
    assert [(p.severity, p.place) for p in found] == [(severity, "opset_import[1]")]


def test_a_file_that_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(b"\x0a\xff\xff")
    assert [p.severity for p in VALIDATE(path)] == ["error"]


ACCEPTED: dict[str, tuple[str, str]] = {
    "an initializer that is no input in IR version 3": (
        '<ir_version: 3, opset_import: ["" : 8]> Add',
        "'w' is no input, as files of IR version 3 require",
    ),
    "an operator that ONNX Runtime had before ONNX": (
        '<ir_version: 7, opset_import: ["" : 11]> LayerNormalization',
        "ONNX Runtime has it",
    ),
    "an operator that only ONNX Runtime has": (
        '<ir_version: 8, opset_import: ["" : 17]> SimplifiedLayerNormalization',
        "ONNX Runtime has it",
    ),
    "the same under the other name of the domain": (
        '<ir_version: 8, opset_import: ["ai.onnx" : 17]> ai.onnx.SimplifiedLayerNormalization',
        "ONNX Runtime has it",
    ),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_onnx_runtime_accepts_is_a_warning(what: str, tmp_path: Path) -> None:
    (head, _, operator), message = ACCEPTED[what][0].rpartition(" "), ACCEPTED[what][1]
    text = f"""{head} g (float[2, 4] x) => (float[2, 4] y) <float[4] w = {{1.0, 2.0, 3.0, 4.0}}>
    {{ y = {operator}(x, w) }}"""
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    (problem,) = passlib.validate(path)
    assert problem.severity == "warning"
    assert message in problem.message
    assert passlib.load(path).run({"x": np.ones((2, 4), np.float32)})


def registered_by_runtime() -> list[str]:
    """Return the operators that ONNX Runtime has in ONNX's first set, and ONNX not yet."""
    from onnxruntime.capi import onnxruntime_pybind11_state

    first: dict[str, int] = {}
    for each in onnx.defs.get_all_schemas_with_history():
        if not each.domain:
            first[each.name] = min(each.since_version, first.get(each.name, each.since_version))
    found = set()
    for each in onnxruntime_pybind11_state.get_all_operator_schema():
        if not each.domain and each.since_version < first.get(each.name, 1 << 31):
            found.add(each.name)
    return sorted(found)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", registered_by_runtime())
def test_operators_of_onnx_runtime_in_the_domain_of_onnx(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    text = f"""<ir_version: 8, opset_import: ["" : 7]>
    g (float[2, 4] x) => (float[2, 4] y) {{ y = {name}(x, x) }}"""
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    problems = VALIDATE(path)
    assert {each.severity for each in problems} == {"warning"}
    assert "ONNX Runtime has it" in problems[0].message


def test_an_operator_that_nobody_has(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "other" : 1]>
    g (float[2] x) => (y)
    { z = SimplifiedLayerNorm(x) y = other.SimplifiedLayerNormalization(z) }"""
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    (problem,) = (each for each in VALIDATE(path) if each.severity == "error")
    assert "SimplifiedLayerNorm" in problem.message


EARLY = """<ir_version: 8, opset_import: ["" : 17]>
early (float[4] x, bool c) => (float[4] y)
{
   y = If(c) <
     then_branch = one () => (t) { s = Relu(z) t = Relu(s) },
     else_branch = two () => (e) { e = Neg(z) }>
   [last] z = Add(b, a)
   a = Abs(x)
   b = Neg(x)
}"""


def problems_of(model: Any, path: Path) -> list[Problem]:
    path.write_bytes(model.SerializeToString())
    return passlib.validate(path)


def test_nodes_in_no_order_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    (problem,) = problems_of(onnx.parser.parse_model(EARLY), path)
    assert problem.severity == "warning"
    assert problem.place == "graph.node[0]"
    assert "'z' is computed by a later node, 1 (Add 'last') (2 nodes come" in problem.message
    assert "passlib and ONNX Runtime sort the nodes" in problem.message
    onnxruntime.InferenceSession(path.read_bytes())
    feeds = {"x": np.ones(4, np.float32), "c": np.array(False)}
    assert passlib.load(path).run(feeds)["y"].asnumpy().tolist() == [0.0] * 4


def test_nested_nodes_in_no_order_are_a_warning(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(EARLY)
    body = model.graph.node[0].attribute[0].g
    nodes = list(body.node)
    del body.node[:]
    body.node.extend(reversed(nodes))
    nested = problems_of(model, tmp_path / "a.onnx")[1]
    assert nested.severity == "warning"
    assert nested.place == "graph.node[0].attribute['then_branch'].node[0]"
    assert "passlib sorts the nodes; ONNX Runtime refuses" in nested.message
    passlib.load(tmp_path / "a.onnx")


@pytest.mark.parametrize(
    ("node", "name", "message"),
    [
        (2, "y", "its own outputs"),
        (2, "z", "its own outputs"),
        (2, "a", "its own outputs"),
        (3, "q", "'q', is not defined"),
    ],
)
def test_nodes_that_no_order_fits_are_an_error(
    node: int, name: str, message: str, tmp_path: Path
) -> None:
    model = onnx.parser.parse_model(EARLY)
    model.graph.node[node].input[0] = name
    problems = problems_of(model, tmp_path / "a.onnx")
    errors = [problem for problem in problems if problem.severity == "error"]
    assert errors
    assert message in errors[0].message
    with pytest.raises(passlib.PasslibError):
        passlib.load(tmp_path / "a.onnx")


def test_time_is_proportional_to_the_nodes(tmp_path: Path) -> None:
    """In this process; the checker has one of its own."""
    taken = []
    for count in (1, 500, 4_000):
        model = onnx.parser.parse_model(onnx_models.CHAIN)
        model.graph.node.extend(
            onnx.helper.make_node("Relu", ["x"], [f"unused{number}"]) for number in range(count)
        )
        path = tmp_path / "a.onnx"
        path.write_bytes(model.SerializeToString())
        problems, steps = counted_steps(lambda: VALIDATE(path))  # noqa: B023 (called at once)
        assert problems == []
        taken.append(steps)
    assert taken[2] < 10 * taken[1], taken
