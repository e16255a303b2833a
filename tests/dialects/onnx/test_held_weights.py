"""Large weights of ONNX models, which no pass and no edit puts into a message or into memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper, parser

import passlib
import passlib._core as _core
from passlib.dialects.onnx.lowering import model as lowering
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.writing import assembly, saving
from passlib.errors import FormatError, UnsupportedError
from passlib.files.copying import in_temporary_file
from passlib.library import python
from passlib.model.edits import content_of
from passlib.workbench.randomness import seeded
from sanitized import unless_sanitized

SIZE = 256
RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, SIZE)).astype(np.float32)
WEIGHTS = {
    name: (RNG.standard_normal((SIZE, SIZE)) / 16).astype(np.float32)
    for name in ("first", "second", "inner", "captured")
}
SETS = 'opset_import: ["" : 17, "own" : 1]'
TEXT = f"""
<ir_version: 8, {SETS}>
g (float[2, {SIZE}] x, bool c) => (float[2, {SIZE}] y, float[2, {SIZE}] z)
<float two = {{2.0}}> {{
    a = MatMul(x, first) b = HardSwish(a) d = own.Act(b)
    e = MatMul(d, second) f = HardSwish(e) y = own.Act(f)
    z = If (c) <
        then_branch = one () => (t) {{ p = MatMul(y, inner) q = Mul(p, two) t = Neg(q) }},
        else_branch = two () => (u) {{ r = MatMul(y, captured) s = Identity(r) u = Abs(s) }}>
}}
<domain: "own", {SETS}> Act (v) => (w) {{ m = Identity(v) w = Mul(m, v) }}
"""
TAIL = f"""
<ir_version: 8, {SETS}>
g (float[2, {SIZE}] y) => (float[2, {SIZE}] last) {{ h = MatMul(y, first) last = Relu(h) }}
"""
LIMIT = 60_000
"""Bytes of a message in these tests: fewer than one weight has."""


def built(text: str, names: list[str], *, nested: bool = False) -> Any:
    """Return a model with its weights.

    ``nested``: those that nested graphs use are theirs.
    """
    model = parser.parse_model(text)
    graphs = dict.fromkeys(names, model.graph)
    if nested:
        branches = model.graph.node[-1].attribute
        graphs |= {"inner": branches[0].g, "captured": branches[1].g}
    for name, graph in graphs.items():
        graph.initializer.append(numpy_helper.from_array(WEIGHTS[name], name))
    return model


def stored(path: Path, text: str, names: list[str], *, nested: bool = False) -> Path:
    """Store the same with the weights in a data file."""
    model = built(text, names, nested=nested)
    onnx.save(model, path, save_as_external_data=True, location=f"{path.stem}.data")
    return path


@pytest.fixture(params=[False, True], ids=["main graph", "nested graphs"])
def model(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> passlib.Model:
    monkeypatch.setattr(saving, "INLINE_LIMIT", LIMIT)
    path = stored(tmp_path / "m.onnx", TEXT, list(WEIGHTS), nested=request.param)
    return passlib.load(path)


def results(path: Path, **values: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(path)
    given = {each.name: values[each.name] for each in session.get_inputs()}
    return list(session.run(None, given))


def flat(model: passlib.Model) -> passlib.Model:
    return passlib.inline_functions(model)


EDITS: dict[str, Callable[[passlib.Model], passlib.Model]] = {
    "inlineFunctions": flat,
    "outline": lambda model: passlib.outline(flat(model), least=2),
    "outline and back": lambda model: flat(passlib.outline(flat(model), least=2)),
    "decompose": lambda model: model.optimize_for("decompose", target="opset=13", quiet=True),
    "with_opset": lambda model: flat(model).with_opset(21),
    "to an older set": lambda model: flat(model).with_opset(13),
    "simplify": passlib.simplify,
    "seeded": lambda model: seeded(model) or model,
    "pickle": lambda model: pickle.loads(pickle.dumps(flat(model))),
}


@pytest.mark.parametrize("where", ["as before", "in one file"])
@pytest.mark.parametrize("edit", EDITS)
def test_edits_of_a_model_that_no_message_holds(
    edit: str, where: str, model: passlib.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = EDITS[edit](model)
    target = tmp_path / "new" / "made.onnx"
    target.parent.mkdir()
    if where == "in one file":
        monkeypatch.undo()
        made.save(target, external_data=False)
        assert len(list(target.parent.iterdir())) == 1
    else:
        made.save(target)
    onnx.checker.check_model(target)
    for c in (True, False):
        before = results(tmp_path / "m.onnx", x=X, c=np.array(c))
        after = results(target, x=X, c=np.array(c))
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


SEEN = ["constantsToWeights", "simplify", "toHalf", "quantizeWeights{bits=8,block=0}"]


@pytest.mark.parametrize("passes", SEEN)
def test_passes_see_weights_of_nested_graphs_in_data_files(passes: str, tmp_path: Path) -> None:
    path = stored(tmp_path / "m.onnx", TEXT, list(WEIGHTS), nested=True)
    inside = built(TEXT, list(WEIGHTS), nested=True)
    saved = []
    for source in (passlib.load(path), passlib.load(inside)):
        target = tmp_path / f"{len(saved)}.onnx"
        source.optimize_for(passes).save(target, external_data=False)
        saved.append(target.read_bytes())
    assert saved[0] == saved[1]


def test_weights_of_nested_graphs_run_from_data_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "_MOST_INSIDE", LIMIT)
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, {SIZE}] x, bool c) => (float[2, {SIZE}] y) {{
      y = If (c) <
        then_branch = one () => (t) {{ p = MatMul(x, w) t = Add(p, small) }},
        else_branch = two () => (u) {{
          u = If (c) <then_branch = three () => (v) {{ v = Neg(w) }},
                      else_branch = four () => (s) {{ s = MatMul(x, w) }}> }}> }}""")
    for branch, name in zip(model.graph.node[0].attribute, ("first", "second"), strict=True):
        branch.g.initializer.append(numpy_helper.from_array(WEIGHTS[name], "w"))
    small = numpy_helper.from_array(WEIGHTS["inner"][0], "small")
    model.graph.node[0].attribute[0].g.initializer.append(small)
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="data", size_threshold=0)
    loaded = passlib.load(path)
    for c in (True, False):
        (found,) = loaded.run({"x": X, "c": np.array(c)}).values()
        (expected,) = results(path, x=X, c=np.array(c))
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-5)


def test_large_weights_are_next_to_the_message(model: passlib.Model) -> None:
    content = content_of(model)
    assert len(content) < LIMIT
    assert sorted(content.weights.arrays) == sorted(
        entry.value
        for graph in graphs_within(onnx.ModelProto.FromString(content).graph)
        for tensor in graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    )
    places = [_core.is_in_file(array) for array in content.weights.arrays.values()]
    assert len(places) == 4
    assert None not in places


@pytest.mark.parametrize("edit", [flat, lambda model: flat(model).with_opset(21)])
def test_weights_of_data_files_go_to_a_data_file(
    edit: Callable[[passlib.Model], passlib.Model], tmp_path: Path
) -> None:
    path = stored(tmp_path / "m.onnx", TEXT, list(WEIGHTS))
    message = onnx.load(path, load_external_data=False)
    one, other = message.graph.initializer[-2:]  # which share their data
    del other.external_data[:]
    other.external_data.extend(one.external_data)
    path.write_bytes(message.SerializeToString())
    model = passlib.load(path)
    target = tmp_path / "new.onnx"
    edit(model).save(target)
    assert target.stat().st_size < LIMIT
    data = (tmp_path / "new.onnx.data").stat().st_size
    assert 3 * WEIGHTS["first"].nbytes <= data < 4 * WEIGHTS["first"].nbytes
    for c in (True, False):
        before, after = (results(file, x=X, c=np.array(c)) for file in (path, target))
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


def test_merging(model: passlib.Model, tmp_path: Path) -> None:
    tail = stored(tmp_path / "tail.onnx", TAIL, ["first"])
    made = passlib.merge(model, tail, prefix="tail.")
    made.save(tmp_path / "made.onnx")
    y, _ = results(tmp_path / "m.onnx", x=X, c=np.array(True))
    outputs = results(tmp_path / "made.onnx", x=X, c=np.array(True))
    np.testing.assert_allclose(outputs[-1], np.maximum(y @ WEIGHTS["first"], 0), rtol=1e-4)


def test_a_message_for_users_is_whole_or_refused(
    model: passlib.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    flattened = flat(model)
    with pytest.raises(UnsupportedError, match="the model would have"):
        flattened.to_onnx_proto()
    monkeypatch.undo()
    whole = {each.name: each for each in flattened.to_onnx_proto().graph.initializer}
    np.testing.assert_array_equal(numpy_helper.to_array(whole["first"]), WEIGHTS["first"])


def test_a_data_file_that_changed_is_noticed(model: passlib.Model, tmp_path: Path) -> None:
    made = flat(model)
    with (tmp_path / "m.data").open("r+b") as file:
        file.write(b"changed!")
    with pytest.raises(FormatError, match="changed"):
        made.save(tmp_path / "made.onnx")


def _large(folder: Path, count: int) -> Path:
    """Store a model of weights of 128 MB each, whose data is a sparse file."""
    rows, columns = 8192, 4096
    model = parser.parse_model(
        f"<ir_version: 8, {SETS}> g (float[N, {rows}] x) => (float[N, {rows}] y) {{"
        + "".join(f"m{i} = MatMul(x, w{i}) h{i} = HardSwish(m{i}) " for i in range(count))
        + f"s = Sum({', '.join(f'h{i}' for i in range(count))}) y = Concat<axis = 1>(s, s) }}"
    )
    offset, size = 0, rows * columns * 4
    for number in range(count):
        tensor = TensorProto(name=f"w{number}", data_type=1, dims=(rows, columns), data_location=1)
        for key, value in (("location", "data"), ("offset", offset), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        model.graph.initializer.append(tensor)
        offset += size
    del model.opset_import[1:]
    (folder / "large.onnx").write_bytes(model.SerializeToString())
    with (folder / "data").open("wb") as file:
        for number in range(count):
            file.seek(number * size)
            file.write(np.float32(number + 1).tobytes())
        file.truncate(offset)
    return folder / "large.onnx"


LARGE = """
import resource, sys
import passlib
resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20))
model = passlib.load(sys.argv[1])
made = passlib.outline(model, least=2)
assert any(node.op == "Layer" for node in made.symbol.nodes())
made = passlib.inline_functions(made)
made = made.optimize_for("decompose", target="opset=13", quiet=True)
made = passlib.merge(made, passlib.load(sys.argv[1]), {"y": "x"}, prefix="second.")
made = made.with_opset(13)
assert sum(weight.nbytes for weight in made.args.values()) > 4 << 30
assert all(node.op != "HardSwish" for node in made.symbol.nodes())
"""


@unless_sanitized("it limits memory")
def test_edits_of_more_than_two_gigabytes_in_little_memory(tmp_path: Path) -> None:
    _run(LARGE, _large(tmp_path, 17))


UNREAD = """
import re, sys
import passlib
from passlib.runtime import export
model = passlib.load(sys.argv[1])
export._INLINE_LIMIT = 0
passlib.simplify(model).save(sys.argv[1] + ".simple.onnx", durable=False)
model.with_opset(21).to_onnx(sys.argv[1] + ".converted.onnx")
with open("/proc/self/status") as status:
    megabytes = int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) >> 10
assert megabytes < 300, f"{megabytes} MB"
"""


@unless_sanitized("it measures memory")
def test_unchanged_weights_are_not_read(tmp_path: Path) -> None:
    path = _large(tmp_path, 4)
    _run(UNREAD, path)
    made = passlib.load(f"{path}.simple.onnx").args
    assert sorted(float(made[f"w{i}"][0, 0]) for i in range(4)) == [1, 2, 3, 4]


def _run(script: str, path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", script, path],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("edit", [lambda model: model, flat], ids=["functions", "no functions"])
@pytest.mark.parametrize("room", [True, False])
@pytest.mark.parametrize(
    "name", ["toHalf", "quantizeWeights{block=0}", "nameUniquely, quantizeWeights{block=0}"]
)
def test_new_weights_are_moved_to_a_file(
    name: str,
    room: bool,
    edit: Callable[[passlib.Model], passlib.Model],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = edit(passlib.load(stored(tmp_path / "m.onnx", TEXT, list(WEIGHTS))))
    plain = model.optimize_for(name)
    monkeypatch.setattr(python, "MOST_IN_MEMORY", 0)
    if not room:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no folder"))
    made = model.optimize_for(name)
    assert made.args.keys() == plain.args.keys()
    new = {n: made.args[n] for n in plain.args if plain.args[n] is not model.args.get(n)}
    for n, array in new.items():
        np.testing.assert_array_equal(array, plain.args[n])
    in_file = [n for n, array in new.items() if _core.is_in_file(np.asarray(array))]
    assert bool(in_file) == room


@pytest.mark.parametrize("room", [True, False])
def test_weights_in_4_bits_are_packed_in_a_file(
    room: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = flat(passlib.load(stored(tmp_path / "m.onnx", TEXT, list(WEIGHTS))))
    made = made.with_opset(21).optimize_for("quantizeWeights{bits=4}")
    made.save(tmp_path / "plain.onnx", external_data=True)
    moved = []

    def noted(arrays: Iterable[Any]) -> list[Any]:
        moved.append(in_temporary_file(arrays))
        return moved[-1]

    monkeypatch.setattr(assembly, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(assembly, "in_temporary_file", noted)
    if not room:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no folder"))
    made.save(tmp_path / "other.onnx", external_data=True)
    assert bool(moved) == room
    data = [(tmp_path / f"{name}.onnx.data").read_bytes() for name in ("plain", "other")]
    assert data[0] == data[1]
