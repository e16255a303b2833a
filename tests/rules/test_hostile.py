"""Rules that ask for too much, and examples that are none: reasons and errors, and no memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

import passlib as pl
from commands import passlib_command

HEAD = 'rule tried "Is tried."\n'
END = "\nexact\nenables\n"


def model_of(nodes: str, weights: str = "") -> pl.Model:
    head = '<ir_version: 9, opset_import: ["": 20]> g (float[3, 3] x) => (float[3, 3] y)'
    message = onnx.parser.parse_model(f"{head} {weights} {{{nodes}}}")
    message.graph.node[-1].name = "y"
    return pl.load(message)


def chain(first: str, step: str, count: int) -> str:
    """Definitions, each made of the one before, which stands as K."""
    lines = [f"k0 := {first}"]
    lines += [f"k{n} := {step.replace('K', f'k{n - 1}')}" for n in range(1, count)]
    return "\n".join([*lines, f"len(k{count - 1}) = 1"])


WHERE = [
    (chain("[1, 1]", "[K, K, K, K]", 40), "an item of a list is a list"),
    ("len(repeat(repeat(1, 4096), 4096)) = 1", "an item of a list is a list"),
    ("len(insert([1], range(4096), range(4096))) = 1", "an item of a list is a list"),
    (chain("range(4096)", "insert(K, range(4096), 7)", 40), "a list of too many items"),
    (chain("[1, 1]", "concat(K, K, K, K)", 40), "a list of too many items"),
    (chain("range(4096)", "range(4096)", 1000), "the definitions of the rule hold too many items"),
]


@pytest.mark.parametrize(("where", "reason"), WHERE)
def test_lists_are_bounded(where: str, reason: str) -> None:
    rules = pl.Rules(f"{HEAD}y = Relu(x)\nwhere {where}\n=> y = Neg(x){END}")
    assert reason in str(pl.why(model_of("y = Relu(x)"), rules["tried"], "y"))


RIGHT = [
    "flat(c, 1000000000000)",
    "flat(c, 300000000)",
    "flat(c, 9223372036854775807)",
    "fold(Expand[shape=[100000, 100000]](c))",
    "fold(Expand(c, i64[100000, 100000]))",
    "fold(Expand(c, i64[-1, 2]))",
    "fold(Mul(aligned(flat(c, 30000), 0, 2), aligned(flat(c, 30000), 1, 2)))",
    "aligned(c, 0, 1000)",
    "i8(300)",
    "i8[1, 300]",
    "i32(0.5)",
    "u8(-1)",
    "u64(-1)",
    "bool(2)",
    'f32("a")',
]


@pytest.mark.parametrize("value", RIGHT)
def test_constants_that_no_model_has_are_not_made(value: str) -> None:
    rules = pl.Rules(f"{HEAD}y = Mul(x, c:param)\n=> y = Mul(x, {value}){END}")
    after = rules(model_of("y = Mul(x, c)", "<float[1] c = {2}>"))
    assert [np.asarray(each).tolist() for each in after.args.values()] == [[2]]


@pytest.mark.parametrize(
    "value",
    [
        "Tile(c, i64[1000000000])",
        "ConstantOfShape(i64[3000000000])",
        "Cast[to=1](Range(i64(0), i64(100000000000), i64(1)))",
        "Pad(c, i64[1000000000, 1000000000])",
        "HannWindow(i64(1000000000))",
        "my.own::Unknown(c)",
    ],
)
def test_operations_on_constants_are_folded_if_their_size_is_small(value: str) -> None:
    pattern = "z = Mul(x, c:param)\ny = Mul(z, c)"
    rules = pl.Rules(f"{HEAD}{pattern}\n=> y = Mul(x, fold({value}))\nrounding")
    model = model_of("z = Mul(x, c) y = Mul(z, c)", "<float[1] c = {2}>")
    assert [node.op for node in rules(model).symbol.nodes() if node.op != "null"] == ["Mul", "Mul"]


def test_a_real_number_of_64_bits_is_a_constant() -> None:
    rules = pl.Rules(f"{HEAD}y = Relu(x)\n=> y = Add(x, Cast[to=1](f64[1e300])){END}")
    after = rules(model_of("y = Relu(x)"))
    assert [np.asarray(each).tolist() for each in after.args.values()] == [[1e300]]


@pytest.mark.parametrize(
    "right",
    [
        "\n".join(["a0 = Relu(x)", *(f"a{n} = Relu(a{n - 1})" for n in range(1, 100))])
        + "\n   y = Relu(a99)",
    ],
)
def test_growth_ends(right: str) -> None:
    rules = pl.Rules(f"{HEAD}y = Relu(x)\n=> {right}{END}")
    with pytest.raises(pl.PassError, match="a rule applies to what it makes: tried"):
        rules(model_of("y = Relu(x)"))


def test_constants_that_grow_are_bounded() -> None:
    rules = pl.Rules(f"{HEAD}y = Mul(x, c:param)\n=> y = Mul(Mul(x, c), flat(c, 1000000)){END}")
    after = rules(model_of("y = Mul(x, c)", "<float[1] c = {2}>"))
    assert sum(np.asarray(each).nbytes for each in after.args.values()) <= 1 << 26


@pytest.mark.parametrize(
    "text",
    [
        "y = Relu(x)\n=> " + "\n".join(f"a{n} = Neg(x)" for n in range(300)) + "\ny = Neg(a1)",
        "y = Sum(" + ", ".join(f"x{n}" for n in range(1001)) + ")\n=> y = x1",
        "\n".join(f"a{n} = Neg(x{n})" for n in range(600)) + "\n=> y = x1",
        "y = Relu(" + ", ".join("A(z) | B(z)" for _ in range(500)) + ")\n=> y = z",
    ],
)
def test_rules_are_small(text: str) -> None:
    with pytest.raises(pl.PatternError, match=r"more than \d+ operations and values"):
        pl.Rules(HEAD + text + END)


@pytest.mark.parametrize(
    "text",
    [
        "y = Relu(x)\nwhere " + "1" * 10000,
        "y = Relu(x)\nwhere " + "ä" * 400,
        "y = Relu(x)\n=> y = " + "z" * 10000,
    ],
)
def test_errors_quote_the_beginning_of_a_word(text: str) -> None:
    with pytest.raises(pl.PatternError) as caught:
        pl.Rules(HEAD + text + END)
    assert len(str(caught.value).encode()) < 400


EXAMPLES = [
    ("Relu(Relu(x: float[100000, 100000]))", "'x': too large for an example"),
    ("Relu(Relu(x: float[9223372036854775807, 9223372036854775807]))", "'x': too large"),
    ("Relu(Relu(x: float[" + "n, " * 30 + "n]))", "'x': too large"),
    ("Relu(Relu(x: float[" + "1, " * 80 + "1]))", "'x': too large"),
    ("Relu(Relu(x: float[-1]))", "'x': no array has the size -1"),
    ("Relu(Relu(x: float[1.5]))", "'x': no array has the size 1.5"),
    ("Relu(Relu(Add(x: float[2], w: param float[n])))", "'w': no array has the size 'n'"),
    ("Relu(Relu(Add(x: float[2], w: param float[50000000])))", "'w': too large"),
    ("Relu(Relu(Add(x: float[2], w: causal float[2])))", "'w': a causal mask has real or truth"),
    ("Relu(Relu(Tile(x: float[2], i64[1000000000])))", "too large"),
    ("Relu(Relu(x: string[2]))", "'x': no numbers are drawn for this element type"),
    ("Relu(Relu(x: float8e4m3fn[2]))", "'x': no numbers are drawn for this element type"),
    ("Relu(Relu(Elu[domain=3](x: float[2])))", "expected null"),
    ("Relu(Relu(Elu[alpha='" + "[" * 100000 + "'](x: float[2])))", "attribute 'alpha' has type 3"),
    ("Relu(Relu(Split[num_outputs=2](x: float[2]):9999))", "10000 outputs"),
    ("Relu(Relu(Add(x: int8[2], 300)))", "300 out of bounds"),
    ("Relu(Relu(EyeLike(my.own::Untyped(x: float[2, 2]))))", "EyeLike"),
    ("Relu(Relu(a))\n    a, b = Relu(x: float[2])", "it has 2 outputs"),
]


@pytest.mark.parametrize(("before", "problem"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_are_checked(before: str, problem: str, tmp_path: Path) -> None:
    place = tmp_path / "mine.rules"
    place.write_text(
        f"{HEAD}y = Relu(Relu(x))\n=> y = Relu(x)\nexact\nexample\n"
        f"    y = {before}\n    => y = Relu(x)\n"
    )
    done = passlib_command("rules", "--check", str(place))
    assert (done.returncode, done.stderr) == (4, "")
    assert problem in done.stdout


@pytest.mark.parametrize("kind", ["f32", "float32", "bf16", "u16", "u8"])
def test_short_names_of_types_in_examples(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "mine.rules"
    place.write_text(
        f"{HEAD}y = Identity(Identity(x))\n=> y = Identity(x)\nexact\nexample\n"
        f"    y = Identity(Identity(x: {kind}[2]))\n    => y = Identity(x)\n"
    )
    assert "all as shown" in passlib_command("rules", "--check", str(place)).stdout


def test_only_regular_files_are_rules(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, what in ((tmp_path / "pipe", "named pipe"), (Path("/dev/zero"), "device")):
        with pytest.raises(pl.FormatError, match=what):
            pl.Rules.load(place)
