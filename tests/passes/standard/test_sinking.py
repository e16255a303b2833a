"""cancelTransposes: Transposes that go through operators until they meet others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import passlib
from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

WEIGHTS = (
    "float[3] c = {1, -0.0, 3}, float[1, 4, 1] r = {1, 2, 3, 4}, float two = {2}, "
    "int64[8] pads = {0, 1, 2, 0, 0, 0, 1, 0}, int64[2] hw = {1, 2}"
)

IN, OUT = "<perm = [0, 2, 3, 1]>", "<perm = [0, 3, 1, 2]>"

FEWER = {
    "through an activation": (
        f"t = Transpose {IN} (x) a = Relu(t) b = Transpose {OUT} (a) y = Neg(b)",
        0,
    ),
    "through a bias, a scale and a number": (
        f"""t = Transpose {IN} (x) a = Add(t, c) b = Mul(r, a) d = Div(b, two)
            e = Transpose {OUT} (d) y = Neg(e)""",
        0,
    ),
    "of two summands": (
        f"""t = Transpose {IN} (x) u = Neg(x) v = Transpose {IN} (u) a = Relu(t) s = Add(a, v)
            e = Transpose {OUT} (s) y = Neg(e)""",
        0,
    ),
    "through Concat and Pad": (
        f"""t = Transpose {IN} (x) u = Neg(x) v = Transpose {IN} (u)
            s = Concat <axis = -1> (t, v, t) p = Pad <mode = "edge"> (s, pads)
            e = Transpose {OUT} (p) y = Neg(e)""",
        0,
    ),
    "one remains behind": (
        f"""t = Transpose {IN} (x) u = Neg(x) v = Transpose {IN} (u) y = Add(t, v)""",
        1,
    ),
    "one becomes another": (
        f"""t = Transpose {IN} (x) u = Neg(x) v = Transpose {IN} (u) s = Add(t, v)
            y = Transpose <perm = [3, 2, 1, 0]> (s)""",
        1,
    ),
    "used in between, too": (
        f"""t = Transpose {IN} (x) u = Neg(x) v = Transpose {IN} (u) s = Add(t, v)
            e = Transpose {OUT} (s) w = Abs(e) f = Transpose {OUT} (t) h = Neg(f) y = Mul(w, h)""",
        0,
    ),
}

STAYS = {
    "nothing to meet": f"t = Transpose {IN} (x) a = Relu(t) y = Softmax(a)",
    "a summand that is not transposed": (
        f"t = Transpose {IN} (x) a = Add(t, z) e = Transpose {OUT} (a) y = Neg(e)"
    ),
    "a reduction, which would add in another order": (
        f"""t = Transpose {IN} (x) a = Relu(t) m = ReduceMean <axes = [1, 2], keepdims = 0> (a)
            y = Neg(m)"""
    ),
}


def model(body: str) -> bytes:
    return parsed(
        f"""g (float[N, 3, 4, 4] x, float[4, 3] z) => (float[A, B, C, D] y) <{WEIGHTS}>
        {{ {body} }}"""
    )


def feeds(rows: int) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    random = np.random.default_rng(rows)
    x = random.standard_normal((rows, 3, 4, 4)).astype(np.float32)
    x.flat[0:1] = np.inf
    return {"x": x, "z": random.standard_normal((4, 3)).astype(np.float32)}


@pytest.mark.parametrize("name", FEWER)
def test_fewer_are_left(name: str, tmp_path: Path) -> None:
    body, left = FEWER[name]
    data = model(body)
    made = after(data, "cancelTransposes", tmp_path)
    onnx.checker.check_model(made, full_check=True)
    assert operators(made)["Transpose"] == left
    for rows in (1, 2):
        assert same_bits(results(made, feeds(rows)), results(data, feeds(rows)))


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str, tmp_path: Path) -> None:
    data = model(STAYS[name])
    made = after(data, "cancelTransposes", tmp_path)
    assert operators(made) == operators(data)
    assert same_bits(results(made, feeds(2)), results(data, feeds(2)))


def test_a_reduction_ends_it_if_rounding_may_differ(tmp_path: Path) -> None:
    data = model(STAYS["a reduction, which would add in another order"])
    made = after(data, "cancelTransposes{reorder_sums=true}", tmp_path)
    assert operators(made) == {"Relu": 1, "ReduceMean": 1, "Neg": 1}
    given = feeds(2)
    given["x"].flat[0:1] = 1
    np.testing.assert_allclose(results(made, given)[0], results(data, given)[0], rtol=1e-5)


def drawn(seed: int) -> bytes:
    """Return a model of random operators on values in either order of axes."""
    random = np.random.default_rng(seed)
    lines, plain, turned = [], ["x"], []
    for number in range(int(random.integers(6, 18))):
        name = f"v{number}"
        first = str(random.choice(turned or ["x"])) if turned else "x"
        kind = int(random.integers(0, 8)) if turned else 0
        if kind == 0:
            lines.append(f"{name} = Transpose {IN} ({random.choice(plain)})")
            turned.append(name)
        elif kind == 1:
            lines.append(f"{name} = Transpose {OUT} ({first})")
            plain.append(name)
        elif kind == 2:
            lines.append(f"{name} = Neg({random.choice(plain)})")
            plain.append(name)
        else:
            calls = (
                f"Relu({first})", f"Add({first}, c)", f"Mul(r, {first})",
                f"Sub({first}, {random.choice(turned)})", f"Max({random.choice(turned)}, {first})",
            )  # fmt: skip
            lines.append(f"{name} = {calls[kind - 3]}")
            turned.append(name)
    ends = f"a = Transpose {OUT} ({turned[-1]}) y = Add(a, {plain[-1]})" if turned else "y = Neg(x)"
    return model("\n".join([*lines, ends]))


@pytest.mark.sample(10)
@pytest.mark.usefixtures("standard_passes")
@pytest.mark.parametrize("seed", range(200))
def test_random_regions(seed: int, tmp_path: Path) -> None:
    data = drawn(seed)
    made = after(data, "removeDeadNodes, cancelTransposes", tmp_path)
    clean = after(data, "removeDeadNodes", tmp_path)
    assert operators(made).total() <= operators(clean).total()
    assert same_bits(results(made, feeds(2)), results(data, feeds(2)))


DAMAGED = {
    "an order with an axis twice": f"t = Transpose <perm = [0, 2, 3, 3]> (x) a = Relu(t) "
    f"e = Transpose {OUT} (a) y = Neg(e)",
    "an order with an axis that is not there": f"t = Transpose {IN} (x) a = Relu(t) "
    "e = Transpose <perm = [0, 9, 1, 2]> (a) y = Neg(e)",
    "Concat along an axis that is not there": f"t = Transpose {IN} (x) a = Concat <axis = 7> (t, t)"
    f" e = Transpose {OUT} (a) y = Neg(e)",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_operators_stay(name: str) -> None:
    made = passlib.Pipeline("cancelTransposes").run(passlib.load(model(DAMAGED[name])))
    assert not made.modified
