"""``passlib inspect``: shows the contents of a model; imports only its reader."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from passlib import dialects
from passlib.cli.options import add_json, add_shapes, shapes_of
from passlib.cli.status import FINE, UsageError
from passlib.cli.tables import print_json, print_table
from passlib.dialects import Dialect, ModelData
from passlib.dialects.summary import operators_in, summary_of, weights_in
from passlib.errors import listed, printable
from passlib.graph.node import Entry
from passlib.graph.plain import PlainGraph

DESCRIPTION = "Show the inputs, outputs, operators and weights of a model of any dialect."
EXAMPLE = "passlib inspect model.onnx --ops"


_TITLES = {"ir_version": "IR version"}
"""Keys of facts that are no words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--ops", action="store_true", help="count each operator")
    which.add_argument(
        "--weights", action="store_true", help="list weights with dtype, shape and size"
    )
    which.add_argument(
        "--shapes", action="store_true", help="list inputs and results with dtype and shape"
    )
    which.add_argument(
        "--costs",
        nargs="?",
        const="operator",
        choices=("operator", "node"),
        help="estimate arithmetic, traffic and memory by operator (default) or node",
    )
    which.add_argument("--node", metavar="NAME", help="show attributes and edges of a node")
    add_shapes(parser, "shape of an input, for --costs; ? is as stated (repeatable)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the requested facts."""
    if arguments.shape and not arguments.costs:
        raise UsageError("--shape needs --costs")
    path = Path(arguments.model)
    if arguments.costs:
        _print_costs(arguments, path)
        return FINE
    family = dialects.recognise(path)
    data = family.load(path)
    if arguments.ops:
        _print_rows(arguments, ("operator", "count"), operators_in(data))
    elif arguments.weights:
        _print_weights(arguments, weights_in(data))
    elif arguments.shapes:
        _print_values(arguments, _values(family, data))
    elif arguments.node is not None:
        _print_facts(arguments, _node(family, data, arguments.node))
    else:
        _print_facts(arguments, summary_of(family, data))
    return FINE


def _print_rows(arguments: argparse.Namespace, titles: tuple[str, ...], rows: list[Any]) -> None:
    if arguments.json:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    elif rows:
        print_table(titles, rows)
    else:
        sys.stdout.write("none\n")


def _print_weights(arguments: argparse.Namespace, weights: list[dict[str, Any]]) -> None:
    if arguments.json:
        print_json(weights)
        return
    rows = [(*(each | {"shape": _shape_text(each["shape"])}).values(),) for each in weights]
    _print_rows(arguments, ("weight", "type", "shape", "bytes"), rows)


def _print_facts(arguments: argparse.Namespace, facts: dict[str, Any]) -> None:
    if arguments.json:
        print_json(facts)
        return
    rows = []
    for name, value in facts.items():
        items = value if isinstance(value, list) else [value]
        items = [f"{k} = {v}" for k, v in value.items()] if isinstance(value, dict) else items
        items = [_spelt(item) if isinstance(item, dict) else item for item in items]
        title = _TITLES.get(name, name.replace("_", " "))
        rows += [(title if i == 0 else "", item) for i, item in enumerate(items or ["none"])]
    print_table(("", ""), rows)


def _spelt(item: dict[str, Any]) -> str:
    """Spell a value with its type, or an output of a node."""
    if "node" in item:
        return f"{item['node']}:{item['output']}" if item["output"] else item["node"]
    return " ".join(filter(None, (item["name"], _type_text(item))))


def _type_text(item: dict[str, Any]) -> str:
    return " ".join(filter(None, (item["dtype"], _shape_text(item["shape"]))))


def _print_values(arguments: argparse.Namespace, values: list[dict[str, Any]]) -> None:
    if arguments.json:
        print_json(values)
        return
    rows = [(item["name"], item["operator"] or "input", _type_text(item) or "?") for item in values]
    _print_rows(arguments, ("value", "operator", "type"), rows)


def _print_costs(arguments: argparse.Namespace, path: Path) -> None:
    """Print estimates for one run, the largest first, and their sums."""
    from passlib.model import load
    from passlib.passes.cost import works_of

    model = load(path)
    shapes = shapes_of(arguments.shape)
    model = model.with_shapes(shapes) if shapes else model
    works = works_of(model.symbol, {**model.args, **model.aux})
    title = "operator" if arguments.costs == "operator" else "node"
    sums: dict[str, Counter[str]] = {}
    for work in works:
        numbers = {key: getattr(work, key) for key in ("flops", "read", "written", "weights")}
        name = work.node.op if title == "operator" else work.node.name
        sums.setdefault(name, Counter()).update({"nodes": 1, **numbers})
    titles = (title, "nodes", "flops", "bytes read", "bytes written", "weight bytes")
    columns = ("nodes", "flops", "read", "written", "weights")
    order = sorted(sums, key=lambda name: (-sums[name]["flops"], -sums[name].total()))
    rows = [(name, *(sums[name][column] for column in columns)) for name in order]
    total = ("total", *(sum(each[column] for each in sums.values()) for column in columns))
    peak = max(works, key=lambda work: work.live, default=None)
    nested = [work.node for work in works if work.node.subgraphs]
    if arguments.json:
        keys = [name.replace(" ", "_") for name in titles]
        print_json(
            {
                "rows": [dict(zip(keys, row, strict=True)) for row in rows],
                "total": dict(zip(keys[1:], total[1:], strict=True)),
                "peak_bytes": peak.live if peak else 0,
                "peak_node": peak.node.name if peak else None,
                "not_counted": [node.name for node in nested],
            }
        )
        return
    print_table(titles, [*rows, total])
    if peak is not None:
        sys.stdout.write(f"peak of results: {peak.live:,} bytes, at {printable(peak.node.name)}\n")
    if nested:
        names = listed([printable(node.name) for node in nested], 4)
        sys.stdout.write(f"not counted: nested graphs of {names}\n")


def _values(family: Dialect, data: ModelData) -> list[dict[str, Any]]:
    graph = PlainGraph.of_native(data.graph, data.attributes, family)
    described = family.described(graph, data)
    weights = data.args.keys() | data.aux.keys()
    found = {
        Entry(node, index): each
        for node in graph.nodes()
        if not node.is_variable or node.name not in weights
        for index, each in enumerate(described[node][: family.visible_outputs(node)])
        if each is not None
    }
    names = graph.with_entries(list(found)).list_outputs()
    return [
        {
            "name": name,
            "operator": None if entry.node.is_variable else entry.node.op,
            "dtype": each.dtype,
            "shape": each.shape,
        }
        for name, (entry, each) in zip(names, found.items(), strict=True)
    ]


def _node(family: Dialect, data: ModelData, name: str) -> dict[str, Any]:
    nodes = PlainGraph.of_native(data.graph, data.attributes, family).nodes()
    found = next((node for node in nodes if node.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [node.name for node in nodes], 3)
        hint = f"; near it are {', '.join(near)}" if near else ""
        raise UsageError(f"the model has no node {name!r}{hint}")
    return {
        "name": found.name,
        "operator": None if found.is_variable else found.op,
        "inputs": [{"node": each.node.name, "output": each.index} for each in found.inputs],
        "outputs": found.num_outputs,
        "users": [node.name for node in nodes if any(e.node is found for e in node.inputs)],
        "attributes": {key: value for key, value in found.attrs.items() if key[:2] != "__"},
        "nested_graphs": len(found.subgraphs),
    }


def _shape_text(shape: Any) -> str:
    if shape is None:
        return ""
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"
