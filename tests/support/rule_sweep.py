"""Rules on models that match them, or nearly: results of ONNX Runtime before and after.

``python tests/support/rule_sweep.py [FIRST:]COUNT [RULE...]`` draws as many models of each of
passlib's rules (`passlib.proof.models`), from number FIRST on, applies each alone, and prints what
is wrong, and for each rule how many models it changed, how many it did not, and how many ONNX
Runtime refuses.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import onnx

import passlib
from fuzzing import run_batch
from passlib.passes.rules import Rule, books
from passlib.proof.counterexamples import differences
from passlib.proof.models import Drawn
from random_graphs import bytes_of
from rewriting import accepted

_BATCH: Final = 400
_FRAGILE: Final = ("Concat", "GRU", "RNN", "LSTM", "LayerNormalization")
"""Operators that do not bear empty values: they leave elements as they are, or crash."""
_EITHER_ZERO: Final = ("Max", "Min")
"""Operators that return 0.0 or -0.0 of the two, as the vector instruction has it."""


def rules() -> dict[str, Rule]:
    """Return passlib's rules by name."""
    return {rule.name: rule for book in books() for rule in book}


def check(rule: Rule, number: int) -> Iterator[tuple[str, str]]:
    """Apply a rule to one of its models.

    Parameters
    ----------
    rule : Rule
    number : int
        Of the model.

    Yields
    ------
    tuple of str and str
        ``changed``, ``kept``, ``refused`` or ``wrong``, and what is wrong.
    """
    drawn = Drawn(rule, number)
    try:
        data = drawn.finished().SerializeToString()
        before = accepted(data)
        original = passlib.load(data)
    except Exception:  # of several modules, and of none in particular
        yield "refused", ""
        return
    place = f"{rule.name} {number} ({', '.join(drawn.changes)}): "
    try:
        made = rule.rules(original, only=[rule.name], target=rule.target)
        if _structure(made) == _structure(original):
            yield "kept", ""
            return
        changed = bytes_of(made)
    except passlib.errors.GraphError as error:
        # ONNX's checker sees in it that the model, which it accepts, always fails.
        feeds = drawn.feeds(special=False, empty=False)
        if not _fails(before, feeds) and not _is_beyond(rule, data, feeds):
            yield "wrong", f"{place}{error}"
        return
    except Exception as error:
        yield "wrong", f"{place}{type(error).__name__}: {error}"
        return
    yield "changed", ""
    for text in _compared(rule, drawn, before, data, changed):
        yield "wrong", place + text


def _is_beyond(rule: Rule, data: bytes, feeds: dict[str, Any]) -> bool:
    """Whether ONNX Runtime does not bear these inputs, or constants of the model."""
    if not any(op in rule.text for op in _FRAGILE):
        return False
    constants = onnx.load_from_string(data).graph.initializer
    return any(not array.size for array in feeds.values()) or any(0 in c.dims for c in constants)


def _fails(session: Any, feeds: dict[str, Any]) -> bool:
    names = [each.name for each in session.get_inputs()]
    try:
        session.run(None, {name: array for name, array in feeds.items() if name in names})
    except Exception:
        return True
    return False


def _structure(model: passlib.Model) -> list[Any]:
    graphs = [model.symbol]
    found = []
    while graphs:
        graph = graphs.pop()
        for node in graph.nodes():
            found.append(
                (node.op, len(node.inputs), sorted(node.attrs.items()) if node.op != "null" else 0)
            )
            graphs += getattr(node, "subgraphs", [])
    return found


def _compared(rule: Rule, drawn: Drawn, before: Any, data: bytes, changed: bytes) -> Iterator[str]:
    try:
        onnx.checker.check_model(data)
    except onnx.checker.ValidationError:
        pass
    else:
        try:
            onnx.checker.check_model(changed)
        except onnx.checker.ValidationError as error:
            yield f"ONNX's checker: {error}"
            return
    try:
        after = accepted(changed)
    except Exception as error:
        yield f"ONNX Runtime refuses it: {error}"
        return
    for name, one, other in _signatures(before, after):
        if one != other:
            yield f"{name} is {other}, not {one}"
            return
    taken = {each.name for each in after.get_inputs()}
    for special in (False, True):
        # Rules that round may assume that no open size is 0.
        feeds = drawn.feeds(special=special, empty=rule.exact)
        if _is_beyond(rule, data, feeds):
            continue
        names = [each.name for each in before.get_inputs()]
        feeds = {name: array for name, array in feeds.items() if name in names}
        try:
            expected = before.run(None, feeds)
        except Exception as error:
            if "Missing Input" in str(error):
                # ONNX Runtime removes casts even if nested graphs use them.
                continue
            expected = None
        try:
            found = after.run(None, {name: array for name, array in feeds.items() if name in taken})
        except Exception as error:
            if expected is not None:
                yield f"fails: {error}"
            continue
        if expected is None:
            if not rule.drops_check and rule.exact:
                yield "works where the model before fails"
        elif rule.exact or not special:
            if any(op in rule.text for op in _EITHER_ZERO):
                expected, found = (
                    [each + each.dtype.type(0) if each.dtype.kind == "f" else each for each in side]
                    for side in (expected, found)
                )
            yield from differences(expected, found, exact=rule.exact)


def _signatures(before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    sides = [
        [[(each.name, each.type, each.shape) for each in group] for group in groups]
        for groups in (
            (before.get_inputs(), before.get_outputs()), (after.get_inputs(), after.get_outputs()),
        )
    ]  # fmt: skip
    yield "the signature", [each[0] for each in sides[0][1]], [each[0] for each in sides[1][1]]
    for (name, kind, shape), (_, other, its) in zip(sides[0][1], sides[1][1], strict=True):
        yield f"the type of {name}", kind, other
        if len(shape) and len(its):
            yield f"the rank of {name}", len(shape), len(its)


def _child(names: list[str], seed: int, count: int, folder: Path) -> None:
    """Check models of rules, and note what comes of each in a file."""
    known = rules()
    chosen = [known[name] for name in names]
    with (folder / "states").open("a") as states:
        for number in range(seed, seed + count):
            sys.stdout.write(f"{number}: ")
            sys.stdout.flush()
            rule = chosen[number % len(chosen)]
            for state, text in check(rule, number // len(chosen)):
                states.write(f"{rule.name} {state}\n")
                if text:
                    sys.stdout.write(f"\nWRONG {text[:600]}")
            sys.stdout.write("\n")
            sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Run the sweep of the command line."""
    if "--child" in arguments:
        place = arguments.index("--child")
        seed, count, folder = arguments[place + 1 :]
        _child(arguments[:place], int(seed), int(count), Path(folder))
        return
    names = arguments[1:] or list(rules())
    first, _, count_each = arguments[0].rpartition(":")
    start, found = int(first or 0) * len(names), 0
    number, total = start, start + int(count_each) * len(names)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while number < total:
            count, wrong = run_batch(
                [__file__, *names], number, min(_BATCH, total - number), folder
            )
            number += count
            found += len(wrong)
            sys.stdout.write("".join(f"{line}\n" for line in wrong))
            sys.stdout.flush()
        states = Counter((folder / "states").read_text().splitlines())
    for each in names:
        counts = {key: states[f"{each} {key}"] for key in ("changed", "kept", "refused", "wrong")}
        sys.stdout.write(
            f"{each}: {', '.join(f'{count} {key}' for key, count in counts.items())}\n"
        )
    sys.stdout.write(f"{total - start} models, {found} wrong\n")
    sys.exit(found > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
