"""Certificates: what they say of a simplification, and that forged ones are refused."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import passlib as pl
from passlib.cli.command import main
from passlib.errors import UnsupportedError
from passlib.passes.rule_examples import build
from passlib.proof.outcomes import shipped
from passlib.workbench import Certify, certificate_checker
from passlib.workbench.certificate_checker import CertificateError, check
from passlib.workbench.certificate_rules import Reader
from passlib.workbench.certifying import known_rules

Forge = Callable[[Any], object]


def _model() -> onnx.ModelProto:
    """Return a model with something to do for each kind of step."""
    weights = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    value = helper.make_tensor_value_info
    then = helper.make_graph(
        [helper.make_node("Neg", ["s"], ["n1"]), helper.make_node("Neg", ["n1"], ["n2"])],
        "then",
        [],
        [value("n2", 1, None)],
    )
    other = helper.make_graph(
        [helper.make_node("Abs", ["s"], ["n3"])], "else", [], [value("n3", 1, None)]
    )
    nodes = [
        helper.make_node("Identity", ["x"], ["i"]),
        helper.make_node("Transpose", ["i"], ["t"], perm=[1, 0]),
        helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0]),
        helper.make_node("Mul", ["two", "w"], ["w2"]),
        helper.make_node("MatMul", ["u", "w2"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Exp", ["a"], ["e1"]),
        helper.make_node("Exp", ["a"], ["e2"]),
        helper.make_node("Add", ["e1", "e2"], ["s"]),
        helper.make_node("Cast", ["c"], ["c1"], to=1),
        helper.make_node("If", ["c"], ["f"], then_branch=then, else_branch=other),
        helper.make_node("Relu", ["f"], ["r1"]),
        helper.make_node("Relu", ["r1"], ["r2"]),
        helper.make_node("Transpose", ["r2"], ["r3"], perm=[1, 0]),
        helper.make_node("Split", ["r3", "half"], ["p", "q"], axis=0),
        helper.make_node("Concat", ["p", "q"], ["y"], axis=0),
    ]
    constants = {
        "w": weights,
        "two": np.float32(2),
        "b": np.ones(4, np.float32),
        "half": np.array([2, 2], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "graph",
        [value("x", 1, ["n", 4]), value("c", 9, [])],
        [value("y", 1, [4, "n"])],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("certificate")
    onnx.save(_model(), made / "before.onnx")
    certify = Certify()
    result = pl.Pipeline("simplify").run(pl.load(made / "before.onnx"), [certify])
    result.model.save(made / "after.onnx")
    certify.save(made / "before.onnx", made / "after.onnx", made / "c.json")
    return made


def _check(folder: Path) -> list[certificate_checker.Verdict]:
    paths = [folder / name for name in ("before.onnx", "after.onnx", "c.json")]
    return check(*paths, reader=Reader(known_rules()))


class TestGenuine:
    def test_each_step_is_proven_or_recomputed(self, folder: Path) -> None:
        verdicts = _check(folder)
        assert {each.step.claim for each in verdicts} == set(certificate_checker.CLAIMS)
        assert [(str(e.step), e.reason) for e in verdicts if e.state == "believed"] == []
        proven = {e.step.rules for e in verdicts if e.state == "proven"}
        assert proven == {("identity",), ("reluTwice",), ("transposeBack",), ("addOfMatMul",)}
        bound = next(e.step.bound for e in verdicts if e.step.rules == ("addOfMatMul",))
        assert (bound["a"], bound["m"], bound["y"]) == ("x", "m", "a")

    def test_without_the_reader_of_rules_nothing_is_proven(self, folder: Path) -> None:
        verdicts = check(folder / "before.onnx", folder / "after.onnx", folder / "c.json")
        assert {each.state for each in verdicts} == {"recomputed"}

    def test_steps_name_rules_and_passes(self, folder: Path) -> None:
        made = json.loads((folder / "c.json").read_text())
        assert "addOfMatMul" in [name for step in made["steps"] for name in step["rules"]]
        assert any(step["pass"].startswith("cancelTransposes") for step in made["steps"])
        text = made["rules"]["addOfMatMul"]["text"].encode()
        assert made["rules"]["addOfMatMul"]["sha256"] == hashlib.sha256(text).hexdigest()

    def test_the_checker_runs_without_passlib(self, folder: Path) -> None:
        code = (
            "import sys; sys.modules['passlib'] = None\n"
            "import runpy; sys.argv = sys.argv[1:]\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        paths = [str(folder / name) for name in ("before.onnx", "after.onnx", "c.json")]
        run = subprocess.run(
            [sys.executable, "-c", code, certificate_checker.__file__, *paths],
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.count("recomputed") == len(_check(folder))

    def test_sizes_that_were_fixed(self, folder: Path, tmp_path: Path) -> None:
        certify = Certify()
        model = pl.load(folder / "before.onnx")
        steps = pl.Pipeline([("simplify", {"fixed": ["x:3,4"]})])
        steps.run(model, [certify]).model.save(tmp_path / "after.onnx")
        certify.save(folder / "before.onnx", tmp_path / "after.onnx", tmp_path / "c.json")
        assert check(folder / "before.onnx", tmp_path / "after.onnx", tmp_path / "c.json")

    def test_functions(self, tmp_path: Path) -> None:
        text = """
            <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
            g (float[n] x) => (float[n] y) { a = local.f(x)  y = local.f(a) }
            <domain: "local", opset_import: ["" : 17]>
            f (u) => (v) { p = Neg(u)  q = Neg(p)  v = Exp(q) }
        """
        onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
        certify = Certify()
        result = pl.Pipeline("simplify").run(pl.load(tmp_path / "before.onnx"), [certify])
        result.model.save(tmp_path / "after.onnx")
        certify.save(tmp_path / "before.onnx", tmp_path / "after.onnx", tmp_path / "c.json")
        assert [each.step.rules for each in _check(tmp_path)] == [("negTwice",)] * 2

    def test_functions_that_call_each_other_without_end(self, tmp_path: Path) -> None:
        functions = [
            f'<domain: "local", opset_import: ["" : 17, "local" : 1]> f{n} (u) => (v) '
            f"{{ p = local.f{n + 1}(u)  v = local.f{n + 1}(p) }}"
            for n in range(40)
        ]
        text = f"""
            <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
            g (float[n] x) => (float[n] y) {{ y = local.f0(x) }}
            {" ".join(functions)}
            <domain: "local", opset_import: ["" : 17]> f40 (u) => (v) {{ v = Exp(u) }}
        """
        onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
        with pytest.raises(CertificateError, match="call each other too often"):
            check(tmp_path / "m.onnx", tmp_path / "m.onnx", tmp_path / "m.onnx")

    def test_nothing_to_do(self, folder: Path, tmp_path: Path) -> None:
        certify = Certify()
        pl.Pipeline("simplify").run(pl.load(folder / "after.onnx"), [certify])
        certify.save(folder / "after.onnx", folder / "after.onnx", tmp_path / "c.json")
        assert check(folder / "after.onnx", folder / "after.onnx", tmp_path / "c.json") == []

    def test_a_wrong_pass_is_refused(self, folder: Path, tmp_path: Path) -> None:
        """A pass that changes results says so when its certificate is made or checked."""

        def halve(graph: pl.Graph) -> None:
            graph.args["w"] = graph.args["w"] / 2

        certify = Certify()
        step = pl.graph_pass(name="halveCertified", replace=True)(halve)
        result = pl.Pipeline([step]).run(pl.load(folder / "before.onnx"), [certify])
        result.model.save(tmp_path / "after.onnx")
        certify.save(folder / "before.onnx", tmp_path / "after.onnx", tmp_path / "c.json")
        verdicts = check(folder / "before.onnx", tmp_path / "after.onnx", tmp_path / "c.json")
        assert [each.state for each in verdicts] == ["believed"]
        assert "differ" in verdicts[0].reason

    def test_other_dialects_have_none(self) -> None:
        model = pl.Model(pl.sym.relu(pl.sym.var("x")))
        with pytest.raises(Exception, match="certificates are for ONNX") as caught:
            pl.Pipeline("removeDeadNodes").run(model, [Certify()])
        assert isinstance(caught.value.__cause__, UnsupportedError)


class TestRules:
    """The checker's reading of rules against the engine: each on its own example."""

    @pytest.mark.sample(3)
    @pytest.mark.parametrize(
        "name",
        ["castToItself", "mulByOne", "dropout", "notTwice", "transposeOfNothing", "expandOfNothing",
         "addAnyZero", "whereOfSame", "powTwo", "productOfNegs", "squareOfAbs", "divByConstant",
         "xorTrue", "addOfMatMul", "addOfGemm", "transposeOfGemm", "matMulOfTransposed",
         "gatherOfConcat", "concatWithNothing", "globalPoolOfOne", "sigmoid", "gelu", "geluByTanh",
         "logSoftmax", "hardSwishByClip", "shapeOfCast"],
    )  # fmt: skip
    def test_a_proven_rule_is_verified(self, name: str, tmp_path: Path) -> None:
        (rule,) = [each for each in shipped() if each.name == name]
        ((_, first, last),) = rule.sets
        opset = max(first, min(last or 13, 13))
        before = build(rule.examples[0].before, opset).model
        before.save(tmp_path / "before.onnx")
        certify = Certify()
        rules = pl.Rules(rule.text)
        result = pl.Pipeline([rules]).run(pl.load(tmp_path / "before.onnx"), [certify])
        result.model.save(tmp_path / "after.onnx")
        certify.save(tmp_path / "before.onnx", tmp_path / "after.onnx", tmp_path / "c.json")
        (verdict,) = _check(tmp_path)
        assert (verdict.state, verdict.step.rules, verdict.reason) == ("proven", (name,), "")


def _of(made: Any, claim: str) -> Any:
    return next(step for step in made["steps"] if step["claim"] == claim)


def _node(made: Any, op: str) -> Any:
    return next(node for step in made["steps"] for node in step["nodes"] if node["op"] == op)


def _rule(made: Any, name: str) -> Any:
    return next(s for s in made["steps"] if s["claim"] == "rule" and s["rules"] == [name])


def _rename_rule(made: Any, old: str, new: str) -> None:
    """Name another rule for a step, with its true text."""
    (text,) = [rule.text for rule in shipped() if rule.name == new]
    made["rules"][new] = {"text": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    _rule(made, old)["rules"] = [new]


def _swap(made: Any, one: int, two: int) -> None:
    steps = made["steps"]
    steps[one], steps[two] = steps[two], steps[one]


def _other_value(made: Any) -> None:
    """Alter a folded value, and its hash with it."""
    (constant,) = _of(made, "fold")["constants"]
    tensor = numpy_helper.from_array(np.ones((4, 4), np.float32))
    constant["after"] = ""
    constant["tensor"] = base64.b64encode(tensor.SerializeToString()).decode()
    constant["sha256"] = hashlib.sha256(tensor.raw_data).hexdigest()


def _external(made: Any) -> None:
    (constant,) = _of(made, "fold")["constants"]
    tensor = onnx.TensorProto(data_type=1, dims=[4], data_location=1)
    tensor.external_data.add(key="location", value="/etc/passwd")
    constant["after"] = ""
    constant["tensor"] = base64.b64encode(tensor.SerializeToString()).decode()
    constant["sha256"] = hashlib.sha256(b"").hexdigest()


def _cycle(made: Any) -> None:
    """Let a value replace one that it is made of."""
    made["steps"][-1]["same"].append(["x", "y"])


def _toggle(made: Any) -> None:
    """Add an operator with many inputs, and replace these again and again."""
    node = {"op": "Max", "domain": "", "attributes": {}, "captures": [], "outputs": ["many"]}
    step = made["steps"][0]
    step["nodes"].append({**node, "inputs": ["e1"] * 10_000})
    step["same"] = [["e1", "e2"], ["e2", "e1"]] * 5_000


def _captures(made: Any) -> None:
    _node(made, "If")["captures"].clear()


FORGED: dict[str, tuple[Forge, str]] = {
    "the hash of before": (lambda m: m.update(before="0" * 64), "another hash"),
    "the hash of after": (lambda m: m.update(after=m["before"]), "another hash"),
    "no hash": (lambda m: m.pop("after"), "has no 'after'"),
    "another format": (lambda m: m.update(format=2), "another format"),
    "a format of text": (lambda m: m.update(format="1"), "must be an integer, not a text"),
    "a format of truth": (lambda m: m.update(format=True), "must be an integer, not a truth"),
    "an unknown item": (lambda m: m.update(trusted=True), "unknown item 'trusted'"),
    "steps that are no list": (lambda m: m.update(steps={"0": 1}), "must be a list"),
    "steps of numbers": (lambda m: m.update(steps=[1, 2]), "must be an object, not a number"),
    "no steps": (lambda m: m["steps"].clear(), "do not lead to"),
    "the first step dropped": (lambda m: m["steps"].pop(0), ""),
    "the last step dropped": (lambda m: m["steps"].pop(), ""),
    "each other step dropped": (lambda m: m.update(steps=m["steps"][::2]), ""),
    "a step twice": (lambda m: m["steps"].append(m["steps"][-1]), ""),
    "steps in another order": (lambda m: m["steps"].reverse(), ""),
    "two steps exchanged": (lambda m: _swap(m, 1, 2), ""),
    "a rule without a text": (lambda m: m["rules"].clear(), "whose text is missing"),
    "the text of a rule": (
        lambda m: m["rules"]["addOfMatMul"].update(text="rule addOfMatMul"),
        "has another hash than it states",
    ),
    "the hash of a rule": (
        lambda m: m["rules"]["addOfMatMul"].update(sha256="0"),
        "has another hash than it states",
    ),
    "a rule that is no object": (lambda m: m["rules"].update(addOfMatMul=[]), "must be an object"),
    "a rule that does not fit": (
        lambda m: _rename_rule(m, "identity", "reluTwice"),
        "the rule does not fit at 'i'",
    ),
    "a rule for a step that none made": (
        lambda m: _of(m, "same").update(claim="rule", rules=["identity"]),
        "the rule does not fit at '",
    ),
    "a rule of several values": (
        lambda m: _rule(m, "identity")["same"].append(["r2", "r1"]),
        "",
    ),
    "a rule that this step cannot state": (
        lambda m: _rule(m, "identity").update(rules=[]),
        "is not what it claims",
    ),
    "a binding to another value": (
        lambda m: _rule(m, "addOfMatMul")["bound"].update(a="e1"),
        "the rule does not fit at 'a'",
    ),
    "two names exchanged": (
        lambda m: _rule(m, "addOfMatMul")["bound"].update(a="b", c="x"),
        "the rule does not fit at 'a'",
    ),
    "a binding to a number": (
        lambda m: _rule(m, "addOfMatMul")["bound"].update(a=1),
        "must hold names",
    ),
    "an unknown claim": (lambda m: _of(m, "dead").update(claim="sound"), "unknown claim 'sound'"),
    "a fold that claims to be equal": (lambda m: _of(m, "fold").update(claim="equal"), "claims"),
    "a rewrite that claims to be dead": (lambda m: _of(m, "rewrite").update(claim="dead"), ""),
    "values that are not equal": (
        lambda m: _of(m, "equal").update(same=[["e2", "a"]]),
        "is not what it claims to be, 'equal'",
    ),
    "other values that are to be the same": (
        lambda m: m["steps"].insert(0, {**_of(m, "same"), "same": [["t", "w"]]}),
        "",
    ),
    "a value that replaces itself": (
        lambda m: _of(m, "same").update(same=[["y", "y"]]),
        "replaces itself",
    ),
    "pairs of three": (lambda m: _of(m, "same")["same"][0].append("x"), "pairs of names"),
    "pairs of numbers": (lambda m: _of(m, "same").update(same=[[1, 2]]), "pairs of names"),
    "a value outside of the graph": (
        lambda m: _of(m, "same")["same"][0].__setitem__(1, "nowhere"),
        "there is no value 'nowhere'",
    ),
    "an operator that is used": (
        lambda m: _of(m, "dead").update(dead=["e1"]),
        "is no dead node, because 'e1' is used",
    ),
    "an operator that computes an output": (
        lambda m: _of(m, "dead").update(dead=["y"]),
        "",
    ),
    "an operator that is not there": (
        lambda m: _of(m, "dead").update(dead=["zz"]),
        "no operator 'zz'",
    ),
    "a folded value": (_other_value, "the constant 'Mul_3_value' is another"),
    "a folded value with the old hash": (
        lambda m: (_other_value(m), _of(m, "fold")["constants"][0].update(sha256="0" * 64)),
        "another hash than is stated",
    ),
    "a constant of no model": (
        lambda m: _of(m, "fold")["constants"][0].update(after="nowhere"),
        "has no constant 'nowhere'",
    ),
    "a constant that is no base64": (
        lambda m: _of(m, "fold")["constants"][0].update(after="", tensor="***"),
        "is no tensor",
    ),
    "a constant in another file": (_external, ""),
    "another operator": (lambda m: _node(m, "Gemm").update(op="MatMul"), ""),
    "an operator that ONNX does not have": (
        lambda m: _node(m, "If").update(op="Iff"),
        "ONNX has no operator 'Iff'",
    ),
    "an attribute that ONNX does not have": (
        lambda m: _node(m, "If")["attributes"].update(depth={"i": 1}),
        "If has no attribute 'depth'",
    ),
    "an operator of another domain": (lambda m: _node(m, "Gemm").update(domain="evil"), ""),
    "inputs in another order": (lambda m: _node(m, "Gemm")["inputs"].reverse(), ""),
    "another attribute": (lambda m: _node(m, "Gemm")["attributes"].update(transB={"i": 1}), ""),
    "an attribute of a wrong type": (
        lambda m: _node(m, "Gemm")["attributes"].update(transB={"i": "1"}),
        "has no value",
    ),
    "an attribute of several values": (
        lambda m: _node(m, "Gemm")["attributes"].update(transB={"i": 1, "f": 2.0}),
        "has no value",
    ),
    "a number that is too large": (
        lambda m: _node(m, "Gemm")["attributes"].update(transB={"i": 10**30}),
        "is too large",
    ),
    "a name that is taken": (lambda m: _node(m, "Gemm").update(outputs=["x"]), "is taken"),
    "a name of the checker": (lambda m: _node(m, "Gemm").update(outputs=["~forced"]), "be a name"),
    "an input outside of the graph": (
        lambda m: _node(m, "Gemm")["inputs"].__setitem__(0, "nowhere"),
        "uses 'nowhere', which is missing",
    ),
    "an operator that uses itself": (
        lambda m: _node(m, "Gemm")["inputs"].__setitem__(0, _node(m, "Gemm")["outputs"][0]),
        "which is missing",
    ),
    "a nested graph that captures nothing": (_captures, "captures more values"),
    "a nested graph that is no attribute": (
        lambda m: _node(m, "If")["attributes"].update(then_branch={"proto": "AAAA"}),
        "",
    ),
    "an If without a condition": (
        lambda m: _node(m, "If")["inputs"].clear(),
        "has a wrong number of values",
    ),
    "a name that is half a character": (
        lambda m: _of(m, "dead").update(dead=["\ud800"]),
        "must hold texts",
    ),
    "a rule that is half a character": (
        lambda m: m["rules"]["identity"].update(text="\ud800"),
        "no Unicode",
    ),
    "names that are numbers": (lambda m: _of(m, "dead").update(dead=[7]), "must hold texts"),
    "a cycle": (_cycle, ""),
    "values that are replaced to and fro": (_toggle, "values are replaced too often"),
}


class TestForged:
    @pytest.mark.parametrize("name", FORGED)
    def test_a_forged_certificate_is_refused(
        self, name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        forge, message = FORGED[name]
        made = json.loads((folder / "c.json").read_text())
        forge(made)
        (tmp_path / "c.json").write_text(json.dumps(made))
        paths = [str(folder / "before.onnx"), str(folder / "after.onnx"), str(tmp_path / "c.json")]
        assert main(["check-certificate", *paths]) == 4
        printed = capsys.readouterr()
        assert printed.err.startswith("passlib check-certificate: ")
        assert message in printed.err
        assert "Traceback" not in printed.err

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is no JSON"),
            ("[" * 100_000, "is no JSON"),
            ("[]", "must be an object, not a list"),
            ('{"format": NaN}', "NaN, which is no JSON"),
            ('{"format": ' + "9" * 10_000 + "}", "is too large"),
            ('{"format": 1, "format": 1}', "states a key twice"),
            ("\udcff", "no UTF-8"),
        ],
    )
    def test_other_texts_are_refused(
        self, text: str, message: str, folder: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "c.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(CertificateError, match=message):
            check(folder / "before.onnx", folder / "after.onnx", tmp_path / "c.json")

    def test_a_condition_that_fails_is_refused(self, tmp_path: Path) -> None:
        """Where the numbers agree within rounding, and the rule would be proven."""
        value = helper.make_tensor_value_info
        nodes = [helper.make_node("Mul", ["x", "c"], ["m"]), helper.make_node("Exp", ["m"], ["y"])]
        nearly = numpy_helper.from_array(np.array(1.0001, np.float32), "c")
        for name, kept in (("before", nodes), ("after", [helper.make_node("Exp", ["x"], ["y"])])):
            graph = helper.make_graph(
                kept, "g", [value("x", 1, [2])], [value("y", 1, [2])], [nearly]
            )
            opset = [helper.make_opsetid("", 17)]
            model = helper.make_model(graph, opset_imports=opset, ir_version=8)
            onnx.save(model, tmp_path / f"{name}.onnx")
        made: dict[str, Any] = {
            "format": 1,
            **{
                name: hashlib.sha256((tmp_path / f"{name}.onnx").read_bytes()).hexdigest()
                for name in ("before", "after")
            },
            "rules": {},
            "steps": [
                {
                    "constants": [],
                    "nodes": [],
                    "pass": "removeNoOps",
                    "claim": "rule",
                    "rules": ["old"],
                    "believe": "",
                    "same": [["m", "x"]],
                    "dead": ["m"],
                    "bound": {},
                }
            ],
        }
        made["steps"][0]["rules"] = ["old"]
        _rename_rule(made, "old", "mulByOne")
        (tmp_path / "c.json").write_text(json.dumps(made))
        with pytest.raises(CertificateError, match=r"all\(value\(one\) = 1\)' of the rule is not"):
            _check(tmp_path)

    def test_a_changed_model_is_refused(self, folder: Path, tmp_path: Path) -> None:
        """Also with the hash of the changed file."""
        shutil.copytree(folder, tmp_path / "f")
        model = onnx.load(tmp_path / "f" / "after.onnx")
        for node in model.graph.node:
            if node.op_type == "Exp":
                node.op_type = "Log"
        onnx.save(model, tmp_path / "f" / "after.onnx")
        with pytest.raises(CertificateError, match="another hash"):
            _check(tmp_path / "f")
        made = json.loads((folder / "c.json").read_text())
        content = (tmp_path / "f" / "after.onnx").read_bytes()
        made["after"] = hashlib.sha256(content).hexdigest()
        (tmp_path / "f" / "c.json").write_text(json.dumps(made))
        with pytest.raises(CertificateError, match="is another operator"):
            _check(tmp_path / "f")

    def test_another_type_of_an_output_is_refused(self, folder: Path, tmp_path: Path) -> None:
        shutil.copytree(folder, tmp_path / "f")
        made = json.loads((folder / "c.json").read_text())
        model = onnx.load(tmp_path / "f" / "after.onnx")
        model.graph.output[0].type.tensor_type.elem_type = 11
        onnx.save(model, tmp_path / "f" / "after.onnx")
        content = (tmp_path / "f" / "after.onnx").read_bytes()
        made["after"] = hashlib.sha256(content).hexdigest()
        (tmp_path / "f" / "c.json").write_text(json.dumps(made))
        with pytest.raises(CertificateError, match="the type of the output 'y' is another"):
            _check(tmp_path / "f")

    def test_a_folded_value_is_computed_again(self, folder: Path, tmp_path: Path) -> None:
        """Where all hashes are those of the forged value."""
        shutil.copytree(folder, tmp_path / "f")
        made = json.loads((folder / "c.json").read_text())
        (constant,) = _of(made, "fold")["constants"]
        model = onnx.load(tmp_path / "f" / "after.onnx")
        (tensor,) = [each for each in model.graph.initializer if each.name == constant["after"]]
        array = numpy_helper.to_array(tensor) * np.float32(1.01)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        onnx.save(model, tmp_path / "f" / "after.onnx")
        content = (tmp_path / "f" / "after.onnx").read_bytes()
        made["after"] = hashlib.sha256(content).hexdigest()
        constant["sha256"] = hashlib.sha256(tensor.raw_data).hexdigest()
        (tmp_path / "f" / "c.json").write_text(json.dumps(made))
        with pytest.raises(CertificateError, match=r"step 1 \(foldConstants.*but at \[0, 0\]"):
            _check(tmp_path / "f")

    def test_files_that_are_no_models_are_refused(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "no.onnx").write_bytes(b"\xff" * 10)
        with pytest.raises(CertificateError, match="not an ONNX model"):
            check(tmp_path / "no.onnx", folder / "after.onnx", folder / "c.json")
        with pytest.raises(CertificateError, match="this is no file"):
            check(tmp_path, folder / "after.onnx", folder / "c.json")
        content = (folder / "before.onnx").read_bytes()
        (tmp_path / "no.onnx").write_bytes(content.replace(b"Exp", b"\xff\xff\xff"))
        with pytest.raises(CertificateError, match="op_type is no UTF-8"):
            check(tmp_path / "no.onnx", folder / "after.onnx", folder / "c.json")


class TestCommand:
    def test_opt_certifies(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after, made = folder / "before.onnx", tmp_path / "o.onnx", tmp_path / "c.json"
        assert main(["opt", str(before), "-o", str(after), "--certify", str(made)]) == 0
        assert "c.json\n" in capsys.readouterr().out
        paths = [str(before), str(after), str(made)]
        assert main(["check-certificate", *paths, "--strict"]) == 0
        lines = capsys.readouterr().out.splitlines()
        count = len(lines) - 1
        assert lines[-1] == f"{count} steps: 4 proven, {count - 4} recomputed, 0 believed"
        assert main(["check-certificate", *paths, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [row["state"] for row in rows].count("proven") == 4

    @pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (0, 2, 1), (2, 1, 0)])
    def test_arguments_in_another_order(
        self, order: tuple[int, ...], folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        paths = [str(folder / name) for name in ("before.onnx", "after.onnx", "c.json")]
        assert main(["check-certificate", *(paths[place] for place in order)]) == 4
        before, after, made = paths
        assert capsys.readouterr().err.endswith(
            f"; the order is BEFORE AFTER CERTIFICATE, and BEFORE is {before}, AFTER is {after}, "
            f"CERTIFICATE is {made}\n"
        )

    def test_what_cannot_be_computed_is_believed(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        paths = [str(folder / name) for name in ("before.onnx", "after.onnx", "c.json")]
        wrong = ["--shape", "x:3,5"]
        assert main(["check-certificate", *paths, *wrong]) == 0
        assert "could not be computed" in capsys.readouterr().out
        assert main(["check-certificate", *paths, *wrong, "--strict"]) == 4

    @pytest.mark.parametrize("more", [["--opset", "18"], ["--rewrite-limit", "1"], ["--isolate"]])
    def test_options_that_do_not_go_with_certificates(
        self, more: list[str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ["opt", str(folder / "before.onnx"), "-o", str(tmp_path / "o.onnx")]
        assert main([*arguments, "--certify", str(tmp_path / "c.json"), *more]) == 1
        assert "--certify: " in capsys.readouterr().err
