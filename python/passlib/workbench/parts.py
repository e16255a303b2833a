"""Parts of models, and the values of their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib import dialects
from passlib.errors import InputError, PasslibError
from passlib.graph.node import Entry
from passlib.model import Model
from passlib.model.graph import ModelGraph


def with_outputs(model: Model, entries: Sequence[Entry]) -> Model:
    """Return the model with other outputs, values of its graph."""
    return of_symbol(model, model.symbol.with_entries(entries))


def of_symbol(
    model: Model,
    symbol: ModelGraph,
    args: Mapping[str, Any] | None = None,
    aux: Mapping[str, Any] | None = None,
) -> Model:
    """Return a model with another graph and the weights that this graph uses.

    ``args`` and ``aux`` replace the weights of the model.
    """
    known = set(symbol.list_inputs())
    kept = [
        {name: array for name, array in weights.items() if name in known}
        for weights in (model.args if args is None else args, model.aux if aux is None else aux)
    ]
    return Model.of_parts(symbol, kept[0], kept[1], model.data().template)


def outputs_of(model: Model, inputs: Mapping[str, Any]) -> list[Any]:
    """Compute the outputs on inputs by name.

    Raises
    ------
    InputError
        An input is missing.
    """
    names = model.inputs
    missing = [name for name in names if name not in inputs]
    while names and names[-1] in missing:
        # Trailing inputs may be labels, on which no output depends.
        missing.remove(names.pop())
    if missing:
        raise InputError(f"no value was given for {', '.join(missing)}")
    outputs = model(*(inputs[name] for name in names))
    return outputs if isinstance(outputs, list) else [outputs]


def values_of(model: Model, inputs: Mapping[str, Any]) -> dict[tuple[str, int], Any]:
    """Compute the values of all nodes, by name of the node and index of the output.

    Values that cannot be model outputs are omitted.
    """
    visible = dialects.find(model.dialect).visible_outputs
    entries = [
        Entry(node, index)
        for node in model.symbol.nodes()
        if not node.is_variable
        for index in range(visible(node))
    ]
    found: dict[tuple[str, int], Any] = {}
    pending = [entries]
    while pending:
        part = pending.pop()
        if not part:
            continue
        try:
            values = outputs_of(with_outputs(model, part), inputs)
        except PasslibError:
            # Some value cannot be an output; halves find it.
            if len(part) > 1:
                middle = len(part) // 2
                pending += [part[middle:], part[:middle]]
            continue
        found.update({(e.node.name, e.index): v for e, v in zip(part, values, strict=True)})
    order = {(e.node.name, e.index): number for number, e in enumerate(entries)}
    return dict(sorted(found.items(), key=lambda item: order[item[0]]))
