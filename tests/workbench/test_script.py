"""Scripts of plain onnx.helper calls that make reduced models."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib as pl
from commands import passlib_command
from onnx_suite import node_cases
from passlib.errors import UnsupportedError
from passlib.workbench import script

HEAD = '<ir_version: 9, opset_import: ["" : 17]> g'

Fails = Callable[[Sequence[pl.Model], Mapping[str, Any]], bool]


def parsed(text: str, **weights: np.ndarray[Any, Any]) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def loaded(model: onnx.ModelProto) -> pl.Model:
    return pl.load(model.SerializeToString())


def always(models: Sequence[pl.Model], inputs: Mapping[str, Any]) -> bool:
    return True


def run(text: str, folder: Path) -> str:
    """Run a script with another Python process, and return its output."""
    (folder / "issue.py").write_text(text, "utf-8")
    # Isolated, so that the script cannot import passlib's helpers.
    found = subprocess.run(
        [sys.executable, "-I", "issue.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


def made(
    model: onnx.ModelProto, folder: Path, inputs: Mapping[str, Any], fails: Fails = always
) -> tuple[onnx.ModelProto, str]:
    """Return the model that a script makes, and the script."""
    text = script({"model.onnx": loaded(model)}, inputs, fails)
    assert "passlib" not in text
    run(text, folder)
    found = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(found, full_check=True)
    return found, text


NESTED = """<ir_version: 8, opset_import: ["" : 17, "com.secret" : 1], producer_name: "secret">
secret (float[secret_n, 16] secret_x, bool secret_c) => (float[secret_n, 4] secret_y)
<float[16, 4] secret_w, float[4] secret_b = {1, 2, 3, 4}>
{
    secret_h = MatMul(secret_x, secret_w)
    secret_s = com.secret.Secret <alpha: float = 0.1> (secret_h)
    secret_y = If (secret_c) <
        then_branch = secret_t () => (float[secret_n, 4] r1) { r1 = Add(secret_s, secret_b) },
        else_branch = secret_e () => (float[secret_n, 4] r2) {
            r2 = Loop <body = secret_l (int64 i, bool c, float[secret_n, 4] a)
                => (bool d, float[secret_n, 4] b) { d = Identity(c) b = Mul(a, secret_s) }>
                (secret_m, secret_c, secret_s)
        }>
    secret_m = Constant <value = int64 {2}> ()
}
<domain: "com.secret", opset_import: ["" : 17]>
Secret <alpha> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }
"""


def nested() -> onnx.ModelProto:
    model = parsed(NESTED, secret_w=np.random.default_rng(7).standard_normal((16, 4), np.float32))
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend([nodes[-1], *nodes[:-1]])
    helper.set_model_props(model, {"secret": "secret"})
    model.graph.node[1].name = "secret_node"
    model.graph.doc_string = "secret"
    return model


FED = {
    "secret_x": np.random.default_rng(8).standard_normal((2, 16), np.float32),
    "secret_c": np.array(False),
}


def test_nested_graphs_and_functions_with_neutral_names(tmp_path: Path) -> None:
    model = nested()
    found, text = made(model, tmp_path, FED)
    assert "secret" not in text.lower()
    assert [node.op_type for node in found.graph.node] == ["Constant", "MatMul", "F0", "If"]
    assert len(found.functions) == 1
    inputs = {"x0": FED["secret_x"], "x1": FED["secret_c"]}
    seeded = numpy_helper.to_array(next(t for t in found.graph.initializer if len(t.dims) == 2))
    assert np.array_equal(
        seeded, np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    )
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2:
            tensor.CopyFrom(numpy_helper.from_array(seeded, tensor.name))
    wanted = loaded(model).run(FED)["secret_y"].asnumpy()
    assert np.array_equal(loaded(found).run(inputs)["y0"].asnumpy(), wanted)


def test_expected_numbers_are_those_of_the_run(tmp_path: Path) -> None:
    text = script({"model.onnx": loaded(nested())}, FED, always, "my-tool model.onnx")
    printed = run(text, tmp_path)
    assert "model.onnx: y0 differs by at most 0.0" in printed
    assert f"onnx {onnx.__version__}" in text
    assert "then: my-tool model.onnx" in text


@pytest.mark.parametrize(
    ("kept", "shows"),
    [
        ("secret_node", lambda m: any(node.name == "secret_node" for node in m.graph.node)),
        ("secret_x", lambda m: m.graph.input[0].name == "secret_x"),
        ("producer_name", lambda m: m.producer_name == "secret"),
        ("'secret': 'secret'", lambda m: m.metadata_props and m.metadata_props[0].key == "secret"),
    ],
)
def test_what_the_fault_needs_is_kept(
    kept: str, shows: Callable[[onnx.ModelProto], bool], tmp_path: Path
) -> None:
    def fails(models: Sequence[pl.Model], inputs: Mapping[str, Any]) -> bool:
        models[0].save(tmp_path / "candidate.onnx")
        return bool(shows(onnx.load(tmp_path / "candidate.onnx")))

    found, text = made(nested(), tmp_path, FED, fails)
    assert kept in text
    assert shows(found)


def test_a_fault_that_no_call_makes() -> None:
    model = parsed(f"{HEAD} (float[2] x) => (float[2] y) {{ y = Exp(x) }}")
    with pytest.raises(UnsupportedError, match="helper make: it needs"):
        script({"model.onnx": loaded(model)}, {}, lambda models, inputs: False)


def test_other_dialects() -> None:
    model = pl.Model(pl.sym.exp(pl.sym.var("x", shape=(2,))))
    with pytest.raises(UnsupportedError, match="passlib convert"):
        script({"model.onnx": model}, {}, always)


class TestArrays:
    MODEL = f"{HEAD} (float[3, 5] x) => (float[3, 5] y) {{ a = Mul(x, w) y = Add(a, v) }}"

    def model(self) -> onnx.ModelProto:
        generator = np.random.default_rng(5)
        return parsed(
            self.MODEL,
            w=generator.standard_normal((3, 5)).astype(np.float32),
            v=generator.standard_normal((3, 5)).astype(np.float32),
        )

    def inputs(self) -> dict[str, Any]:
        return {"x": np.random.default_rng(6).standard_normal((3, 5)).astype(np.float32)}

    def test_one_array_that_the_fault_needs_is_written_out(self, tmp_path: Path) -> None:
        model = self.model()
        wanted = numpy_helper.to_array(model.graph.initializer[1])

        def fails(models: Sequence[pl.Model], inputs: Mapping[str, Any]) -> bool:
            return any(np.array_equal(array, wanted) for array in models[0].args.values())

        found, text = made(model, tmp_path, self.inputs(), fails)
        assert text.count("default_rng") == 2
        assert np.array_equal(numpy_helper.to_array(found.graph.initializer[1]), wanted)

    def test_inputs_that_the_fault_needs(self, tmp_path: Path) -> None:
        given = self.inputs()

        def fails(models: Sequence[pl.Model], inputs: Mapping[str, Any]) -> bool:
            return np.array_equal(inputs[models[0].inputs[0]], given["x"])

        text = script({"model.onnx": loaded(self.model())}, given, fails)
        space: dict[str, Any] = {}
        run(text, tmp_path)
        exec(text[: text.index("for path, model")], space)
        assert np.array_equal(space["inputs"]["x0"], given["x"])
        assert text.count("default_rng") == 2

    @pytest.mark.parametrize(
        "array",
        [
            np.array([0.1, -0.0, np.nan, np.inf, -np.inf, 1e-45, 3.4e38], np.float32),
            np.array([0.1, 65504, 6e-8], np.float16),
            np.array([0.1, -0.0, 5e-324]),
            np.full((2, 3), -0.0, np.float32),
            np.full((2, 3), 2.5, np.float32),
            np.zeros((0, 3), np.int64),
            np.array(7, np.int32),
            np.array([True, False]),
            np.array([2**64 - 1], np.uint64),
            np.array([1 + 2j, -1j], np.complex64),
            np.array(["a\"'\n", "\N{SNOWMAN}"], object),
            np.array([[b"\xff", b""]], object),
            np.linspace(-1, 1, 999, dtype=np.float32).reshape(3, 333),
            np.array([np.nan], np.float32).view(np.uint32).__add__(1).view(np.float32),
        ],
        ids=lambda array: f"{array.dtype}{array.shape}",
    )
    def test_all_bits_are_kept(self, array: np.ndarray[Any, Any], tmp_path: Path) -> None:
        tensor = numpy_helper.from_array(array, "c")
        node = helper.make_node("Constant", [], ["y"], value=tensor)
        kind = helper.make_tensor_value_info("y", tensor.data_type, array.shape)
        graph = helper.make_graph([node], "g", [], [kind])
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)

        def fails(models: Sequence[pl.Model], inputs: Mapping[str, Any]) -> bool:
            models[0].save(tmp_path / "candidate.onnx")
            return content(onnx.load(tmp_path / "candidate.onnx")) == content(model)

        found, _ = made(model, tmp_path, {}, fails)
        assert content(found) == content(model)

    def test_types_that_numpy_lacks(self, tmp_path: Path) -> None:
        kinds = (TensorProto.BFLOAT16, TensorProto.INT4, TensorProto.FLOAT8E4M3FN)
        tensors = [
            helper.make_tensor(f"c{kind}", kind, [4], [1.0, 2.0, -3.0, 4.0]) for kind in kinds
        ]
        nodes = [helper.make_node("Constant", [], [each.name], value=each) for each in tensors]
        values = [helper.make_tensor_value_info(f"c{kind}", kind, [4]) for kind in kinds]
        graph = helper.make_graph(nodes, "g", [], values)
        opsets = [helper.make_opsetid("", 21)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        found, _ = made(model, tmp_path, {})
        for node, tensor in zip(found.graph.node, tensors, strict=True):
            left, right = map(numpy_helper.to_array, (node.attribute[0].t, tensor))
            assert left.tobytes() == right.tobytes()


def content(model: onnx.ModelProto) -> tuple[Any, ...]:
    tensor = model.graph.node[0].attribute[0].t
    if tensor.data_type == TensorProto.STRING:
        return tuple(tensor.dims), list(tensor.string_data)
    array = numpy_helper.to_array(tensor)
    return array.dtype, array.shape, array.tobytes()


def test_hostile_texts(tmp_path: Path) -> None:
    """Names and commands are text, whatever they contain."""
    model = parsed(f"{HEAD} (float[2] x) => (float[2] y) {{ y = Exp(x) }}")
    bad = '"]); raise SystemExit("""\\'
    model.graph.input[0].name = bad
    model.graph.node[0].input[0] = bad

    def fails(models: Sequence[pl.Model], inputs: Mapping[str, Any]) -> bool:
        return models[0].inputs == [bad]

    text = script({"model.onnx": loaded(model)}, {}, fails, f'tool "{bad} \\x""')
    run(text, tmp_path)
    assert onnx.load(tmp_path / "model.onnx").graph.input[0].name == bad


def test_special_attributes(tmp_path: Path) -> None:
    """Attributes that are no parameters of make_node are added afterwards."""
    node = helper.make_node("Thing", ["x"], ["y"], domain="com.mine", alpha=[1.5, 2.0])
    node.attribute.append(helper.make_attribute("name", "n"))
    node.attribute.append(helper.make_attribute("lambda", 3))
    node.attribute.append(helper.make_attribute("none", [], attr_type=onnx.AttributeProto.INTS))
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    graph = helper.make_graph([node], "g", kinds[:1], kinds[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.mine", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    run(script({"model.onnx": loaded(model)}, {}, always), tmp_path)
    attributes = {
        each.name: each for each in onnx.load(tmp_path / "model.onnx").graph.node[0].attribute
    }
    assert attributes == {each.name: each for each in node.attribute}


SUITE = (
    "affinegrid", "ai_onnx_ml.label_encoder", "constant", "if_", "loop", "optionalgetelement",
    "quantizelinear", "scan", "sequenceinsert", "string_concat",
)  # fmt: skip


def kinds_of(model: Any) -> list[str]:
    """Return the types of inputs and outputs as text, with open sizes numbered in order."""
    sizes: dict[str, str] = {}

    def numbered(found: re.Match[str]) -> str:
        return sizes.setdefault(found[0], f"size {len(sizes)}")

    values = (*model.graph.input, *model.graph.output)
    return [re.sub(r'dim_param: "[^"]*"', numbered, str(value.type)) for value in values]


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    return list(node_cases(SUITE))


def test_models_of_the_suite(cases: list[Any]) -> None:
    """Scripts make models that compute the same."""
    count = 0
    for case in cases:
        model = onnx.ModelProto.FromString(case.data)
        text = script({"model.onnx": loaded(model)}, {}, always)
        space: dict[str, Any] = {}
        exec(text[: text.index("for path, model")], space)
        found = space["model"]
        assert [each.op_type for each in found.graph.node] == [
            each.op_type for each in model.graph.node
        ], case.name
        assert kinds_of(found) == kinds_of(model), case.name
        count += 1
    assert count > 40


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        nodes = "{ a = Exp(x) b = MatMul(a, w) y = Softmax <axis = 1> (b) }"
        text = f"{HEAD} (float[6, 8] x) => (float[6, 4] y) {nodes}"
        generator = np.random.default_rng(5)
        model = parsed(text, w=generator.standard_normal((8, 4)).astype(np.float32))
        onnx.save(model, tmp_path / "model.onnx")
        (tmp_path / "wrong.py").write_text(
            "import passlib as pl\n\n\n@pl.graph_pass\ndef wrong(graph: pl.Graph) -> None:\n"
            '    for node in graph.sorted():\n        if node.op == "Softmax":\n'
            '            node.attrs["axis"] = "0"\n'
        )
        return tmp_path

    def test_of_a_pass(self, folder: Path) -> None:
        given = ("-l", "wrong.py", "--passes", "wrong", "--check")
        found = passlib_command(
            "reduce", "model.onnx", *given, "--script", "issue.py", folder=folder
        )
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout.splitlines()[1:] == ["issue.py"]
        (folder / "made").mkdir()
        run((folder / "issue.py").read_text(), folder / "made")
        model = pl.load(folder / "made" / "model.onnx")
        assert [node.op for node in model.symbol.nodes() if not node.is_variable] == ["Softmax"]
        again = passlib_command("opt", "made/model.onnx", "-o", "out.onnx", *given, folder=folder)
        assert again.returncode == 4
        assert (
            "passlib opt model.onnx -o out.onnx --check --passes wrong -l wrong.py"
            in (folder / "issue.py").read_text()
        )

    def test_of_a_command(self, folder: Path) -> None:
        wanted = "'MatMul' not in [node.op_type for node in model.graph.node]"
        code = f"import onnx, sys; model = onnx.load(sys.argv[1]); sys.exit({wanted})"
        test = f'! {sys.executable} -c "{code}" {{}}'
        found = passlib_command(
            "reduce", "model.onnx", "--test", test, "--script", "issue.py", "-o", "small.onnx",
            folder=folder,
        )  # fmt: skip
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout.splitlines()[1:] == ["small.onnx", "issue.py"]
        (folder / "made").mkdir()
        run((folder / "issue.py").read_text(), folder / "made")
        ops = [node.op_type for node in onnx.load(folder / "made" / "model.onnx").graph.node]
        assert ops == ["MatMul"]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ((), "give -o OUT, --script FILE.py or both"),
            (("--script", "none/issue.py"), "the folder none does not exist"),
        ],
    )
    def test_messages(self, given: tuple[str, ...], message: str, folder: Path) -> None:
        found = passlib_command("reduce", "model.onnx", "--check", *given, folder=folder)
        assert found.returncode == 1
        assert message in found.stderr
