"""A part of ONNX's own backend suite; tests/support/onnx_suite.py runs all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

import onnx_suite
import passlib
from onnx_suite import Case, RefusedError
from passlib.dialects.onnx.writing import assembly

Loader = Callable[[str], passlib.library.Library]

MODULES = (
    "adam", "affinegrid", "ai_onnx_ml", "attention", "batchnorm", "cast", "compress", "constant",
    "constantofshape", "conv", "dropout", "einsum", "gru", "if", "layernormalization", "loop",
    "lstm", "nonmaxsuppression", "optionalgetelement", "optionalhaselement", "pad",
    "quantizelinear",
    "resize", "rnn", "roialign", "scan", "sequence_map", "sequenceinsert", "slice",
    "softmaxcrossentropy", "split", "string_split", "stringnormalizer", "tfidfvectorizer", "topk",
    "upsample", "where",
)  # fmt: skip
"""Modules of the suite that together have every kind of attribute, type and nesting."""

NO_IDENTITY = ("seq", "optional")
"""Models with these in their name have values that Identity takes only in later operator sets."""


def collect() -> list[Case]:
    known = {path.stem for path in (onnx_suite.BACKEND / "case" / "node").iterdir()}
    present = [module for module in MODULES if module in known]
    assert len(present) > 25
    return [
        *onnx_suite.node_cases(present),
        *onnx_suite.file_cases(),
        *onnx_suite.light_cases(),
    ]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return collect()


def canonical(data: bytes) -> bytes:
    text: bytes = onnx.ModelProto.FromString(data).SerializeToString(deterministic=True)
    return text


@pytest.mark.sample(1)
@pytest.mark.usefixtures("handover")
def test_identity_gives_every_model_back(
    cases: list[Case], tmp_path: Path, load_plugin: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_plugin("good")
    assert len(cases) > 450
    wrong = []
    for case in cases:
        source, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
        source.write_bytes(case.data)
        model = passlib.load(source).optimize_for("identity", skip_infer=True)
        model.save(out)
        if out.read_bytes() != case.data:
            wrong.append(case.name)
        # The same where something has changed, so that every node is named and placed anew.
        with monkeypatch.context() as patch:
            patch.setattr(assembly, "is_unchanged", lambda *_: False)
            model.save(out)
        if canonical(out.read_bytes()) != canonical(case.data):
            wrong.append(f"{case.name}, anew")
    assert wrong == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", range(0, 40, 4))
def test_every_model_is_valid(cases: list[Case], first: int, tmp_path: Path) -> None:
    dialect = passlib.dialects.find("onnx")
    path = tmp_path / "a.onnx"
    errors = []
    for case in cases[first::40]:  # each validation starts a process
        path.write_bytes(case.data)
        assert dialect.recognises(path)
        errors += [(case.name, str(p)) for p in dialect.validate(path) if p.severity == "error"]
    assert errors == []


@pytest.fixture(scope="module")
def right_before(cases: list[Case]) -> list[Case]:
    """The models that ONNX Runtime takes and gets right as they are."""
    small = [case for case in cases if not case.name.startswith("light/")]
    right = [case for case in small if is_right(case, case.data)]
    assert len(right) > len(small) // 2
    return right


STANDARD = passlib.library.load_standard().passes


@pytest.mark.sample(1)
@pytest.mark.parametrize("pass_name", ["rebuildOperators", "interpose", *STANDARD])
def test_results_stay_what_the_suite_expects(
    right_before: list[Case], pass_name: str, tmp_path: Path, load_plugin: Loader
) -> None:
    load_plugin("onnx_edits")
    passlib.library.load_standard()
    source, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    wrong = []
    for case in right_before:
        if pass_name == "interpose" and any(part in case.name for part in NO_IDENTITY):
            continue
        source.write_bytes(case.data)
        passlib.load(source).optimize_for(pass_name, skip_infer=True).save(out)
        if not is_right(case, out.read_bytes()):
            wrong.append(case.name)
    assert wrong == []


def is_right(case: Case, data: bytes) -> bool:
    """Whether ONNX Runtime takes the model and computes what the suite expects."""
    try:
        return all(
            onnx_suite.agree(onnx_suite.run(data, inputs), outputs, case.rtol, case.atol)
            for inputs, outputs in case.data_sets
        )
    except RefusedError:
        return False
