"""The standard passes that the core runs: groups of rules, and algorithms.

``passlib/rules/passes.json`` declares them for all hosts, in the form of ``_passlibDeclarations``
of lib_api.h, with their steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import passlib._core as _core
from passlib.graph.plain import operators_of
from passlib.library.backends import register
from passlib.library.declared import Declaration, read_declarations
from passlib.library.python import Graph, PythonPass
from passlib.model import Model
from passlib.model.graph import graph_of
from passlib.passes.rewriting import lent_arrays
from passlib.passes.rulebook import BOOKS
from passlib.passes.standard.book import apply_groups, apply_move
from passlib.passes.standard.families import linear, moves, no_ops
from passlib.passes.standard.fold_constants import fold_constants

_OTHER_DIALECTS: Mapping[str, Callable[[Graph], None]] = {
    "cancelTransposes": moves.cancel_transposes,
    "foldLinear": linear.fold_linear,
    "mergeConcats": moves.merge_concats,
    "removeNoOps": no_ops.remove_no_ops,
}


_WITH_RUNTIME: Mapping[str, Callable[..., None]] = {"foldConstants": fold_constants}
"""Passes that do more where ONNX Runtime can run."""


class _StandardPass:
    """The function of a pass."""

    def __init__(self, declaration: Declaration, steps: list[dict[str, Any]]) -> None:
        self._name = declaration.name
        self._steps = steps
        self._options = {option.name: option.default for option in declaration.options or ()}

    def __call__(self, graph: Graph, **given: Any) -> None:
        options = {**self._options, **given}
        if self._name in _WITH_RUNTIME:
            _WITH_RUNTIME[self._name](graph, **options)
            return
        if graph.dialect != "onnx":
            _OTHER_DIALECTS[self._name](graph)
            return
        kept: set[str] | None = None
        for step in self._steps:
            if "keeps" in step and kept is None:
                kept = _core.kept_names(step["keeps"], graph, graph.attributes, lent_arrays(graph))
            names = kept if "keeps" in step and kept else set()
            if "move" in step:
                apply_move(graph, step["move"], names, options)
                continue
            groups = list(step["groups"])
            for condition, more in step.get("if", {}).items():
                groups += more if _holds(condition, options) else []
            for condition, more in step.get("unless", {}).items():
                groups += [] if _holds(condition, options) else more
            if groups:
                apply_groups(graph, groups, names)


def _holds(condition: str, options: Mapping[str, Any]) -> bool:
    """Whether an option is true; of ``option=text``, whether it is this text."""
    name, _, text = condition.partition("=")
    return bool(options[name] == (text or True))


def _register() -> None:
    whole = json.loads((BOOKS / "passes.json").read_text("utf-8"))
    steps = {each["name"]: each.pop("steps") for each in whole["passes"]}
    text = json.dumps(whole).encode()
    for name, declaration in read_declarations(text, __name__, steps).items():
        body = _StandardPass(declaration, steps[name])
        register({name: PythonPass(declaration, body, f"{__name__}.{name}")})


_register()


_LAYER_SETS = (17, 20, 23)
"""Versions of ONNX's operators with new ones that fuse_layers makes."""


def more_layers(model: Model) -> tuple[int, int] | None:
    """Return the version of ONNX's operators in which most layers could be fused.

    Operators whose form changed between the versions are not counted.

    Returns
    -------
    tuple of int, or None
        The version, and how many operators fewer the model would have; None if there are none.
    """
    graph, attributes = model.symbol.graph, dict(model.symbol.attributes)
    versions = json.loads(attributes.get("opset_import", "{}"))
    domain = "ai.onnx" if "ai.onnx" in versions else ""
    if model.dialect != "onnx" or not isinstance(versions.get(domain), int):
        return None
    template = model.data(whole=False).template
    now = operators_of(graph).total()
    best: tuple[int, int] | None = None
    for version in _LAYER_SETS:
        if version <= versions[domain]:
            continue
        attributes["opset_import"] = json.dumps({**versions, domain: version})
        symbol = graph_of(graph, attributes, model.dialect)
        raised = Model.of_parts(symbol, model.args, model.aux, template)
        raised = raised.after_passes("fuseLayers", skip_infer=True)
        if raised.symbol.graph is graph:
            continue
        for name in ("rebuildShapes", "mergeEqualNodes"):
            raised = raised.after_passes(name, skip_infer=True)
        fewer = now - operators_of(raised.symbol.graph).total()
        if fewer > (best[1] if best else 0):
            best = (version, fewer)
    return best
