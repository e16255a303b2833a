"""Reading rules: their parts, and errors with places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import passlib as pl
from passlib import _core
from passlib.passes.rules import BOOKS, books

RULE = """\
# Rules of a test.
rule first "Does it."   # not part of the sentence
  group things
  onnx 7..12, com.microsoft 1..
  a, b = Split[axis=$a](x, s?:param)
  y = com.microsoft::Gelu(a) | Relu(
    a)
  where rank(x) = 2, k := 1 + 2
        k > $a or not const(x)
    and type(x) in (float16, float)
  => y = Conv[*y, pads=[k, -1]](x, fold(Mul(s, 2.0)))
     b = x
  rounding
  lowers nodes, bytes
  drops check
  breaks fusion of MatMulAdd, Other
  example
    y = Relu(x: float[2, n])
    => y = x

rule second "Does that."
  y = Relu(x)
  => y = x
  exact
  enables
"""


def test_parts_of_a_rule_are_read() -> None:
    first, second = pl.Rules(RULE)
    assert (first.name, first.sentence, first.group) == ("first", "Does it.", "things")
    assert first.sets == (("", 7, 12), ("com.microsoft", 1, 0))
    assert (first.exact, first.lowers, first.drops_check) == (False, ("nodes", "bytes"), True)
    assert first.breaks == ("MatMulAdd", "Other")
    assert first.text.startswith('rule first "Does it."')
    assert first.text.endswith("=> y = x")
    assert len(first.examples) == 1
    assert (second.exact, second.lowers, second.line) == (True, (), 21)


def test_rules_are_a_sequence() -> None:
    rules = pl.Rules(RULE)
    assert len(rules) == 2
    assert [rule.name for rule in rules] == ["first", "second"]
    assert rules["second"] is rules[1]
    with pytest.raises(KeyError, match="third"):
        rules["third"]


HEAD = 'rule r "S."\n'
END = "\n=> y = x\nexact\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("y = Relu(x)", 1, 1, "expected rule, a name and a sentence"),
        ("rule", 1, 5, "expected the name of the rule"),
        ("rule r\n", 1, 7, "expected a sentence in quotes"),
        ('rule r "S', 1, 8, "the quotation mark is not closed"),
        ('rule r "S." more\n', 1, 13, "expected the end of the line, not 'm'"),
        (HEAD + END, 1, 1, "the rule has no pattern"),
        (HEAD + "y = Relu(x)\nexact", 1, 1, "the rule has no replacement"),
        (HEAD + "y = Relu(x)\n=> y = x", 1, 1, "say exact or rounding"),
        (HEAD + "y = Relu(x)\n=> y = x\nexact\nrounding", 5, 1, "exact or rounding is said once"),
        (HEAD + "y = Relu(x" + END, 3, 1, "expected ) or ,"),
        (HEAD + "y = Relu x" + END, 2, 10, "expected an operation or the end of the statement"),
        (HEAD + "y = Relu[axis](x)" + END, 2, 14, "expected = and a value"),
        (HEAD + "y = Relu(x:weight)" + END, 2, 12, "expected param, input or value"),
        (HEAD + "y = Relu(x:value[rank=2])" + END, 2, 17, "rank and type are conditions"),
        (HEAD + "y = Relu(*xs, *ys)" + END, 2, 15, "an operation has one variadic input"),
        (HEAD + "y = Relu(x)\nx = Neg(x)" + END, 3, 1, "has a meaning already"),
        (HEAD + "y = Relu(x)\nwhere" + END, 4, 1, "expected a condition"),
        (HEAD + "y = Relu(x)\nwhere rank(x) = " + END, 4, 1, "expected a value"),
        (HEAD + "y = Relu(x)\nwhere rank(z) = 2" + END, 3, 12, "has no value 'z'"),
        (HEAD + "y = Relu(x)\nwhere $p = 2" + END, 3, 7, "the pattern has no attribute $p"),
        (HEAD + "y = Relu(x)\nwhere size_of(x) = 2" + END, 3, 7, "unknown function 'size_of'"),
        (HEAD + "y = Relu(x)\nwhere dim(x) = 2" + END, 3, 7, "expected dim(x, axis)"),
        (HEAD + "y = Relu(x)\nwhere rank(x) = 2 3" + END, 3, 19, "expected , or the end"),
        (HEAD + "y = Relu(x)\nwhere rank(x) in 2" + END, 3, 18, "expected ( and the values"),
        (HEAD + "y = Relu(x)\nwhere rank(x) < 2 +- 1" + END, 3, 15, "a tolerance follows ="),
        (HEAD + "y = Relu(x)\nwhere 2 := rank(x)" + END, 3, 7, "a name stands before :="),
        (HEAD + "y = Relu(x)\nwhere k := 2, k := 3" + END, 3, 20, "'k' is defined twice"),
        (HEAD + "y = Relu(x)\nwhere 99999999999999999999 = 2" + END, 3, 7, "at most 64 bits"),
        (HEAD + "y = Relu(x)\n=> y = z\nexact", 3, 8, "the pattern has no value 'z'"),
        (HEAD + "y = Relu(x)\n=> z = x\nexact", 3, 4, "nothing replaces the result 'y'"),
        (HEAD + "y = Relu(x)\n=> y = Neg[*z](x)\nexact", 3, 12, "has no operation 'z'"),
        (HEAD + "y = Relu(x)\n=> y = Neg[a=x](x)\nexact", 3, 14, "write value(x)"),
        (HEAD + "y = Relu(x)\n=> y = Neg[a=rank(q)](x)\nexact", 3, 19, "no value 'q'"),
        (HEAD + "y = Relu(*x)\n=> y = Neg(x)\nexact", 3, 12, "'x' is variadic: write *x"),
        (HEAD + "y = Relu(x)\n=> y = like(x)\nexact", 3, 8, "like has 2 arguments"),
        (HEAD + "onnx\ny = Relu(x)" + END, 2, 1, "expected an operation"),
        (HEAD + "onnx 9..7\ny = Relu(x)" + END, 2, 6, "the last version comes before the first"),
        (HEAD + "lowers time\ny = Relu(x)" + END, 2, 8, "expected nodes, bytes, flops or traffic"),
        (HEAD + "y = Relu(x)" + END + "example\ny = Relu(x: float[2])", 5, 1, "=> and the model"),
        (HEAD + "y = Relu(x)" + END + "example\ny = Relu(x: real[2])\n=> y = x", 6, 13, "'real'"),
        ((HEAD + "y = Relu(x)" + END) * 2, 5, 1, "a second rule of the name 'r'"),
        (HEAD + "y = Relu(" + "(" * 100 + END, 2, 73, "more than 64 levels"),
        (HEAD + "y = Relu(x)\nwhere " + "-" * 200 + "1" + END, 3, 70, "more than 64 levels"),
        (HEAD + "y = Relu(x)\nwhere " + "1+" * 200 + "1 = 1" + END, 3, 7, "more than 64 levels"),
        (HEAD + "y = A(" + "B(x) | C(x), " * 9 + "z)" + END, 2, 111, "more than 256 choices"),
    ],
)
def test_an_error_names_line_and_column(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(pl.PatternError) as caught:
        pl.Rules(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert f"line {line}, column {column}: " in str(caught.value)


def test_an_error_in_a_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(HEAD)
    with pytest.raises(pl.PatternError, match=r"mine\.rules, line 1, column 1: "):
        pl.Rules.load(path)
    path.write_bytes(b"rule \xff")
    with pytest.raises(pl.PatternError, match="UTF-8"):
        pl.Rules.load(path)
    with pytest.raises(OSError, match="nowhere"):
        pl.Rules.load(tmp_path / "nowhere.rules")


SIGNS = "( ) [ ] = => , ; | * $p @y ? : :: := .. +- -1 1e99 \" '"
WORDS = sorted({*RULE.split(), *SIGNS.split(), "\n"})


def place_of_error(text: str) -> tuple[int, int] | None:
    """Read rules, and return the place of the error if there is one."""
    try:
        _core.RuleBook(text, "")
    except pl.PatternError as error:
        return error.line or 0, error.column or 0
    return None


@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
def test_random_words_are_read_or_refused(text: str) -> None:
    assert min(place_of_error(HEAD + text) or (1, 1)) >= 1


TEXT = "\n".join(place.read_text() for place in sorted(BOOKS.glob("*.rules")))


@given(st.integers(0, len(TEXT)), st.integers(0, 30), st.text(max_size=3))
def test_damaged_books_are_read_or_refused(place: int, size: int, text: str) -> None:
    line, _ = place_of_error(TEXT[:place] + text + TEXT[place + size :]) or (1, 1)
    assert 1 <= line <= TEXT.count("\n") + 5


def test_each_rule_of_the_books_has_one_name() -> None:
    names = [rule.name for book in books() for rule in book]
    assert len(names) == len(set(names)) >= 20
