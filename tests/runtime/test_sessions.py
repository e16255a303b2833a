"""Sessions of ONNX Runtime: how many are made, by whom they are waited for, and their settings."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from dense_layer import X, Y, layer, weights
from passlib.errors import GraphError, PasslibError
from passlib.model import Model
from passlib.runtime import sessions
from passlib.runtime.sessions import Cache
from sanitized import unless_sanitized

BRANCHES = """
<ir_version: 8, opset_import: ["" : 17]>
branches (float[a, b] x, bool flat) => (float[n] y) {
   y = If(flat) <
     then_branch = vector () => (t) {
        axes = Constant <value = int64[1] {0}> ()
        one = Squeeze(x, axes)
        t = Identity(one)
     },
     else_branch = sum () => (e) {
        last = Constant <value_ints = [1]> ()
        e = ReduceSum<keepdims = 0>(x, last)
     }>
}
"""
"""The first branch is wrong for inputs of several rows, as inference sees once sizes are known."""


class Counted:
    """Counts the sessions that are made, and can hold one up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.entered, self.go = threading.Event(), threading.Event()
        self.go.set()
        original = sessions.Session

        def make(*args: Any) -> Any:
            self.made += 1
            self.entered.set()
            assert self.go.wait(20)
            return original(*args)

        monkeypatch.setattr(sessions, "Session", make)


@pytest.fixture
def small() -> Model:
    return Model(layer(), weights())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    return Counted(monkeypatch)


@pytest.fixture
def branches(tmp_path: Path) -> Model:
    onnx = pytest.importorskip("onnx", reason="needs the package onnx")
    onnx.save(onnx.parser.parse_model(BRANCHES), tmp_path / "branches.onnx")
    return passlib.load(tmp_path / "branches.onnx")


def test_open_sizes_of_onnx_stay_open(branches: Model, counted: Counted) -> None:
    for rows in (2, 1, 3):
        x = np.ones((rows, 4), np.float32)
        result = branches.run({"x": x, "flat": np.array(False)})
        np.testing.assert_array_equal(result["y"], np.full(rows, 4, np.float32))
    flat = branches.run({"x": np.ones((1, 4), np.float32), "flat": np.array(True)})
    assert flat["y"].shape == (4,)
    assert counted.made == 1
    with pytest.raises(GraphError, match=r"'x'.*shape \(4,\)|given shape"):
        branches.run({"x": np.ones(4, np.float32), "flat": np.array(False)})


OTHER = np.array([[1, 0], [0, 2], [3, 1]], np.float32)

CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as first": ({"data": X}, {}),
    "an NDArray": ({"data": passlib.nd.array(X)}, {}),
    "nested lists": ({"data": X.tolist()}, {}),
    "columns first": ({"data": np.asfortranarray(X)}, {}),
    "with steps": ({"data": np.repeat(X, 2, axis=0)[::2]}, {}),
    "another size": ({"data": np.ones((9, 2), np.float32)}, {}),
    "another width": ({"data": np.ones((2, 5), np.float32)}, {}),
    "one dimension": ({"data": X[0]}, {}),
    "float64": ({"data": X.astype(np.float64)}, {}),
    "other bytes": ({"data": X.astype(">f4")}, {}),
    "a weight": ({"data": X, "fc_weight": OTHER}, {}),
    "a wrong weight": ({"data": X, "fc_weight": OTHER[:2]}, {}),
    "nothing": ({}, {}),
    "an unknown input": ({"data": X, "z": X}, {}),
    "one thread": ({"data": X}, {"threads": 1}),
    "training": ({"data": X}, {"train": True}),
}


def outcome(model: Model, call: str) -> Any:
    """Run a model; return its output, or the error."""
    inputs, options = CALLS[call]
    try:
        (result,) = model.run(inputs, **options).values()
    except PasslibError as error:
        return type(error), str(error)
    return result.asnumpy().tolist()


def test_some_calls_run_and_others_fail(small: Model) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    failing = {"another width", "one dimension", "float64", "other bytes"}
    failing |= {"a wrong weight", "nothing", "an unknown input"}
    assert {call for call in CALLS if isinstance(outcome(small, call), tuple)} == failing


@pytest.mark.parametrize("first", CALLS)
def test_a_call_depends_on_no_call_before(first: str) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    model, alone = Model(layer(), weights()), Model(layer(), weights())
    for call in CALLS:
        expected = outcome(alone.with_weights(), call)
        outcome(model, first)
        assert [outcome(model, call) for _ in range(2)] == [expected] * 2, call
    with passlib.np_shape():
        assert outcome(model, first) == outcome(alone.with_weights(), first)


def test_a_call_after_weights_were_replaced(small: Model) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    np.testing.assert_allclose(small(X), Y)
    changed = small.with_weights({"fc_weight": OTHER})
    assert not np.allclose(changed(X).asnumpy(), Y)
    np.testing.assert_allclose(small(X), Y)


def test_compiled_sessions_do_not_wait_for_new_ones(small: Model, counted: Counted) -> None:
    np.testing.assert_allclose(small(X), Y)
    counted.go.clear()
    counted.entered.clear()
    results: list[Any] = []
    wide = np.ones((9, 2), np.float32)
    threads = [threading.Thread(target=lambda: results.append(small(wide))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert counted.entered.wait(20)
    np.testing.assert_allclose(small(X), Y)  # while the other is being compiled
    assert not results
    counted.go.set()
    for thread in threads:
        thread.join(20)
    assert len(results) == 3
    assert counted.made == 2


def test_failed_compilation_is_tried_again(small: Model, counted: Counted) -> None:
    for _ in range(2):
        with pytest.raises(GraphError, match="'fc'"):
            small(np.ones((2, 5), np.float32))
    np.testing.assert_allclose(small(X), Y)


def test_cache_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch, counted: Counted) -> None:
    monkeypatch.setattr(sessions, "_KEPT_BYTES", 60)
    model = Model(layer(), weights())  # 36 bytes of weights a session
    for size in (1, 1, 2, 2, 1):
        model(np.ones((size, 2), np.float32))
    assert counted.made == 3


def test_cache_keeps_what_was_used_last() -> None:
    made: list[int] = []

    def get(key: int, size: int = 1) -> int:
        def make() -> int:
            made.append(key)
            return key + 1

        return cache.get(key, make, size=lambda _: size)

    cache: Cache[int] = Cache(3, 10)
    assert [get(key) for key in (1, 2, 3, 1, 4, 1, 2)] == [2, 3, 4, 2, 5, 2, 3]
    assert made == [1, 2, 3, 4, 2]
    get(9, 50)  # alone it is over the limit, and stays until another comes
    get(9)
    assert made == [1, 2, 3, 4, 2, 9]
    get(1)
    get(9)
    assert made == [1, 2, 3, 4, 2, 9, 1, 9]


def test_settings_reach_onnx_runtime(small: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra run")
    seen = []
    original = runtime.InferenceSession

    def make(model: bytes, options: Any, providers: Any) -> Any:
        seen.append((options, providers))
        return original(model, options, providers=providers)

    monkeypatch.setattr(runtime, "InferenceSession", make)
    entry = "session.disable_prepacking"
    given = {"inter_op_num_threads": 2, entry: "1"}
    for _ in range(2):
        result = small.run(
            {"data": X},
            providers=[("CPUExecutionProvider", {})],
            threads=1,
            session_options=given,
        )
        np.testing.assert_allclose(result["fc_output"], Y)
    ((options, providers),) = seen
    assert providers == [("CPUExecutionProvider", {})]
    assert options.intra_op_num_threads == 1
    assert options.inter_op_num_threads == 2
    assert options.get_session_config_entry(entry) == "1"
    assert given == {"inter_op_num_threads": 2, entry: "1"}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"providers": ["Unheard"]}, PasslibError, "no provider 'Unheard' here; .*CPUExecution"),
        ({"providers": "CPUExecutionProvider"}, TypeError, r"such as \['CPUExecutionProvider'\]"),
        ({"threads": 0}, TypeError, "threads is 0, but must be a number from 1 on"),
        ({"threads": "2"}, TypeError, "threads is '2'"),
        ({"session_options": 3}, TypeError, "session_options is of type int.*a dictionary"),
        ({"session_options": {"speed": 3}}, PasslibError, "no session option 'speed'; it has.*log"),
        ({"session_options": {"log_severity_level": "x"}}, PasslibError, "cannot be 'x'"),
        ({"session_options": {"log_severity_level": []}}, TypeError, r"cannot be \[\]"),
    ],
)
def test_settings_that_do_not_fit(
    settings: dict[str, Any], error: type[Exception], message: str, small: Model
) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    with pytest.raises(error, match=message):
        small.run({"data": X}, **settings)


def resident() -> int:
    """Return the memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


WEIGHT = 32 << 20
"""Bytes of the weight of each model below."""


@unless_sanitized("keeps freed memory for a while")
def test_sessions_share_weights_that_stay_as_they_are() -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    data = passlib.sym.Variable("data")
    rows = WEIGHT // 4096
    graph = passlib.sym.Embedding(data, input_dim=rows, output_dim=1024, name="e")
    model = Model(graph, {"e_weight": np.ones((rows, 1024), np.float32)})
    model(np.zeros(1, np.float32))
    before = resident()
    for size in range(2, 7):
        assert model(np.zeros(size, np.float32)).shape == (size, 1024)
    assert resident() - before < WEIGHT


@unless_sanitized("keeps freed memory for a while")
def test_sessions_cost_one_copy_of_rearranged_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra run")
    monkeypatch.setattr(sessions, "_KEPT_BYTES", 2 * WEIGHT)
    graph = passlib.sym.Variable("data")
    # Smaller blocks than glibc always gives back.
    widths = [2048, 1024] * 2
    for number, width in enumerate(widths):
        graph = passlib.sym.FullyConnected(graph, num_hidden=width, no_bias=True, name=f"f{number}")
    arrays = {f"f{n}_weight": np.ones((w, 3072 - w), np.float32) for n, w in enumerate(widths)}
    assert sum(array.nbytes for array in arrays.values()) == WEIGHT
    model = Model(graph, arrays)
    model(np.ones((1, 1024), np.float32))
    before = resident()
    for size in range(2, 7):
        model(np.ones((size, 1024), np.float32))
    # Two sessions are kept, one of them is in `before`.
    assert resident() - before < 2 * WEIGHT
