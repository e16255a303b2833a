"""The standard passes that the core runs: groups of rules, and algorithms.

``passlib/rules/passes.json`` declares them for all hosts, in the form of ``_passlibDeclarations``
of lib_api.h, with their steps. `_core.StandardPasses` checks it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import passlib._core as _core
from passlib.graph.plain import operators_of
from passlib.library.backends import register, register_pipeline
from passlib.library.call import write_escaped
from passlib.library.declared import Declaration, list_text, option_text, read_declarations
from passlib.library.python import Graph, PythonPass
from passlib.model import Model
from passlib.model.graph import graph_of
from passlib.passes.calls import MessagePass, Since
from passlib.passes.rulebook import BOOKS, assumptions
from passlib.passes.standard.facts.running import edit_of
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

    def __init__(self, declaration: Declaration) -> None:
        self._name = declaration.name
        self._options = {option.name: option.default for option in declaration.options or ()}

    def __call__(self, graph: Graph, **given: Any) -> None:
        options = {**self._options, **given}
        if self._name in _WITH_RUNTIME:
            _WITH_RUNTIME[self._name](graph, **options)
        elif graph.dialect != "onnx" and self._name in _OTHER_DIALECTS:
            _OTHER_DIALECTS[self._name](graph)
        else:
            printed = _passes().run(self._name, edit_of(graph), _texts(options), assumptions())
            if printed:
                write_escaped(printed)

    def change(self, model: bytes, given: Mapping[str, Any], since: Since) -> bytes | None:
        """Change the message of a model; None if it stays."""
        options = _texts({**self._options, **given})
        return _passes().changed_message(self._name, model, options, since)


def _texts(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return options as the core's passes get them."""
    return [
        (key, list_text(value) if isinstance(value, (list, tuple)) else option_text(value))
        for key, value in options.items()
    ]


@cache
def _passes() -> _core.StandardPasses:
    return _core.StandardPasses(os.fsencode(BOOKS))


def _register() -> None:
    text = (BOOKS / "passes.json").read_bytes()
    for name, declaration in read_declarations(text, __name__).items():
        body = _StandardPass(declaration)
        if _passes().is_of_messages(name):
            register_pipeline(MessagePass(declaration, declaration.exact, body.change))
        else:
            made = PythonPass(declaration, body, f"{__name__}.{name}", drops_handles=True)
            register({name: made})


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
        if raised.symbol.graph.equals(graph):
            continue
        for name in ("rebuildShapes", "mergeEqualNodes"):
            raised = raised.after_passes(name, skip_infer=True)
        fewer = now - operators_of(raised.symbol.graph).total()
        if fewer > (best[1] if best else 0):
            best = (version, fewer)
    return best
