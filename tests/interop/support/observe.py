"""The answers of a symbol to the same questions in MXNet and in passlib."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

KEYS = ("kernel", "num_hidden", "lr_mult", "__lr_mult__", "ctx_group", "__shape__", "nothing")
MANY = 40


def describe(symbol: Any) -> dict[str, Any]:
    """Ask a symbol everything that needs no execution.

    Parameters
    ----------
    symbol : mxnet.symbol.Symbol or passlib.symbol.Symbol

    Returns
    -------
    dict
        Answers by question, as JSON values; ``"raises"`` stands for an exception.
    """
    questions: dict[str, Callable[[], Any]] = {
        "name": lambda: symbol.name,
        "arguments": symbol.list_arguments,
        "auxiliary states": symbol.list_auxiliary_states,
        "inputs": symbol.list_inputs,
        "outputs": symbol.list_outputs,
        "attributes of all": symbol.attr_dict,
        "attributes": symbol.list_attr,
        "length": lambda: len(symbol),
        "iteration": lambda: [each.list_outputs() for each in symbol],
        "internals": lambda: symbol.get_internals().list_outputs(),
        "children": lambda: _outputs(symbol.get_children()),
        "grandchildren": lambda: _outputs(symbol.get_children().get_children()),
        "last": partial(_text, symbol, len(symbol) - 1),
        "beyond the last": partial(_text, symbol, len(symbol)),
        "unknown name": partial(_text, symbol, "no such output"),
    }
    for key in KEYS:
        questions[f"attribute {key}"] = partial(symbol.attr, key)
    answers = {question: _answer(ask) for question, ask in questions.items()}
    answers["by name"] = _by_name(symbol)
    return answers


def _by_name(symbol: Any) -> dict[str, Any]:
    """Look up some of the internals by name, and describe them and the graph below them."""
    internals = symbol.get_internals()
    names = list(dict.fromkeys(internals.list_outputs()))
    chosen = names[:: max(1, len(names) // MANY)]

    def look(name: str) -> list[Any]:
        found = internals[name]
        plain = [found.name, found.list_outputs(), found.list_attr(), found.list_arguments()]
        return [*plain, _outputs(found.get_children())]

    return {name: _answer(partial(look, name)) for name in chosen}


def _text(symbol: Any, index: int | str) -> str:
    return str(symbol[index].tojson())


def _outputs(symbol: Any) -> list[str] | None:
    return None if symbol is None else list(symbol.list_outputs())


def _answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception:
        return "raises"
