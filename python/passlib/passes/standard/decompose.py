"""decompose: replaces operators of ONNX models that a target lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import passlib._core as _core
from passlib.dialects.onnx.expansion import expand
from passlib.dialects.onnx.nested import sealed
from passlib.dialects.onnx.reading import Folder
from passlib.dialects.onnx.soundness.inference import placed_graphs
from passlib.dialects.onnx.targets import OperatorSet, Refusal, Target, refusals
from passlib.errors import UnsupportedError, counted
from passlib.files.optional import require
from passlib.library.backends import NamedPipeline, register_pipeline
from passlib.library.call import write_escaped
from passlib.library.declared import Declaration, Option
from passlib.library.pipeline import Step
from passlib.library.python import Graph, PythonPass
from passlib.model import Model
from passlib.model.edits import content_of, of_content
from passlib.model.functions import with_functions
from passlib.model.loading import AnyModel, as_model
from passlib.passes.rulebook import BOOKS, apply_rules
from passlib.passes.standard.facts.running import fold

_MOST_ROUNDS: Final = 8
_MOST_LINES: Final = 20


def decompose(model: AnyModel, target: str) -> Model:
    """Return an ONNX model without the operators that a target lacks, as far as that is possible.

    It is the pass ``decompose``. Operators are replaced by the operators that ONNX defines them by,
    or by those of a rule. `lint` lists the nodes that are left.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    target : str
        ``onnxruntime-cpu``, ``opset=N`` for operators of ONNX's set N, or the path of a table, see
        docs/targets.md.

    Raises
    ------
    PasslibError
        There is no such target, or the model cannot be loaded.

    Examples
    --------
    >>> import onnx, passlib as pl
    >>> graph = "g (float[4] x) => (float[4] y) { y = HardSwish(x) }"
    >>> made = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 14]> {graph}')
    >>> older = pl.decompose(made, "opset=13")
    decompose: replaced 1 HardSwish
    >>> [node.op for node in older.symbol.nodes() if node.inputs]
    ['Div', 'Add', 'Min', 'Max', 'Mul']
    """
    return as_model(model).optimize_for("decompose", target=target)


class _Decomposing(NamedPipeline):
    def check(self, options: Mapping[str, Any]) -> None:
        """Accept all options that the declaration accepts."""

    def run(self, model: Model, options: Mapping[str, Any], watch: Any = None) -> Model:
        """Return the changed model; the same object if nothing changes."""
        body = partial(_decomposed, model, options["target"], quiet=options.get("quiet", False))
        made: Model = body() if watch is None else watch(Step(self.declaration.name), model, body)
        return made


def _decomposed(model: Model, name: str, *, quiet: bool) -> Model:
    target = Target.load(name)
    if isinstance(target, OperatorSet):
        target = target.operators_only()
    if model.dialect != "onnx":
        raise UnsupportedError(
            f"decompose changes ONNX models, and this one is of {model.dialect}: convert it first, "
            "see `passlib convert`"
        )
    done: Counter[str] = Counter()
    content = content_of(model)
    proto = _proto_of(content)
    left = refusals(proto, target)
    for _ in range(_MOST_ROUNDS):
        for made in _changed(model, proto, content.weights, target, left):
            if made is model:
                continue
            content = content_of(made)
            proto = _proto_of(content)
            after = refusals(proto, target)
            if after != left:
                break
        else:
            break
        done += Counter(each.op for each in left) - Counter(each.op for each in after)
        model, left = made, after
    if not quiet:
        _report(done, left)
    return model


def _proto_of(content: bytes) -> Any:
    onnx: Any = require("onnx", extra="onnx")
    return onnx.ModelProto.FromString(content)


def _changed(
    model: Model,
    proto: Any,
    weights: Folder,
    target: Target | OperatorSet,
    refused: Sequence[Refusal],
) -> Iterator[Model]:
    """Yield the model as rules change it, and with operators as ONNX defines them.

    ``proto``, ``weights``: the model as a message, which is changed.
    """
    if refused:
        yield _by_rules(model, proto, refused)
        yield _by_bodies(model, proto, weights, target)


def _by_bodies(model: Model, proto: Any, weights: Folder, target: Target | OperatorSet) -> Model:
    """Replace operators by those that ONNX defines them by, in bodies of functions as well."""
    spared = {operator for operator, _ in _roots()}

    def change(body: bytes) -> bytes | None:
        proto = _proto_of(body)
        return proto.SerializeToString() if expand(proto, target, spared) else None

    expanded = expand(proto, target, spared)
    made = of_content(model, sealed(proto, weights)) if expanded else model
    return with_functions(made, change)


def _by_rules(model: Model, proto: Any, refused: Sequence[Refusal]) -> Model:
    """Replace operators by those of the rules."""
    operators = {each.op for each in refused}
    only = [name for operator, name in _roots() if operator in operators]
    if not only:
        return model
    titles = {each.node for each in refused}
    nodes = set(titles)
    for body in (proto.graph, *proto.functions):
        for place, graph in placed_graphs(body):
            # The names that the reader makes where there are none, or two are equal.
            nodes.update(
                f"{node.name or node.op_type}_{place}{number}"
                for number, node in enumerate(graph.node)
                if (node.name or next(filter(None, node.output), "")) in titles
            )
    return model.optimize_for(_RULES, only=only, nodes=sorted(nodes))


@cache
def _book() -> _core.RuleBook:
    return _core.RuleBook((BOOKS / "decompositions.rules").read_text("utf-8"), "")


@cache
def _roots() -> Sequence[tuple[str, str]]:
    """Return the operator that each rule replaces, and the rule."""
    return [
        (_book().sides(number)["left"][0][2]["names"][0], rule["name"])
        for number, rule in enumerate(_book().rules)
    ]


def _apply(graph: Graph, only: Sequence[str], nodes: Sequence[str]) -> None:
    book = _book()
    chosen = [number for number, rule in enumerate(book.rules) if rule["name"] in set(only)]
    kept = {node.name for node in graph.nodes}.difference(nodes)
    apply_rules(book, graph, chosen, fold, kept)


_RULES: Final = PythonPass(
    Declaration(
        "decompositions",
        "Replace some operators by those of rules.",
        ("onnx",),
        (
            Option("only", "text", (), "Names of the rules.", is_list=True),
            Option("nodes", "text", (), "Names of the nodes.", is_list=True),
        ),
        enters_functions=True,
    ),
    _apply,
    f"{__name__}._apply",
)


def _report(done: Mapping[str, int], left: Sequence[Refusal]) -> None:
    lines = [f"replaced {count} {name}" for name, count in sorted(done.items()) if count]
    lines += [f"left {each}" for each in left[:_MOST_LINES]]
    if len(left) > _MOST_LINES:
        lines.append(f"left {counted(len(left) - _MOST_LINES, 'more node')}")
    write_escaped("".join(f"decompose: {line}\n" for line in lines))


register_pipeline(
    _Decomposing(
        Declaration(
            "decompose",
            "Replace operators that a target lacks by others.",
            ("onnx",),
            (
                Option(
                    "target", "text", None, "Name of a target, or path of a table.", required=True
                ),
                Option("quiet", "boolean", False, "Print nothing."),
            ),
        ),
        exact=False,
    )
)
