"""Many small models, of which some crash a pass, make it hang, or are damaged."""

from __future__ import annotations

from pathlib import Path

from passlib import sym

_PASSES = '''
import os
import time
from pathlib import Path

import passlib as pl


@pl.graph_pass
def shorten(graph: pl.Graph) -> None:
    """Takes relu out; crashes and hangs by the names of nodes, and counts its calls in a file."""
    with Path(__file__).with_name("calls.txt").open("a") as calls:
        calls.write("called\\n")
    for node in graph.sorted():
        if node.name == "crash":
            os.abort()
        if node.name == "hang":
            time.sleep(600)
        if node.op == "relu":
            graph.replace(node.outputs[0], node.inputs[0])
            graph.remove(node)
'''


def write_passes(folder: Path) -> Path:
    """Write the Python file with the pass ``shorten``."""
    path = folder / "careful.py"
    path.write_text(_PASSES, "utf-8")
    return path


def write_models(folder: Path, count: int) -> dict[str, list[Path]]:
    """Write ``count`` models: of 40 each one crashes, of 100 one hangs, of 60 one is damaged.

    Returns
    -------
    dict of str to list of Path
        By what is to become of them: ``"done"``, ``"crash"``, ``"hang"``, ``"damaged"``.
    """
    found: dict[str, list[Path]] = {"done": [], "crash": [], "hang": [], "damaged": []}
    for i in range(count):
        path = folder / f"model{i:03}.json"
        faults = {"crash": (40, 7), "hang": (100, 53), "damaged": (60, 31)}
        kinds = [kind for kind, (step, first) in faults.items() if i % step == first]
        kind = kinds[0] if kinds else "done"
        name = kind if kind in ("crash", "hang") else "end"
        graph = sym.tanh(sym.relu(sym.var("x"), name="start"), name=name)
        text = graph.tojson()
        path.write_text(text[: len(text) // 2] if kind == "damaged" else text, "utf-8")
        found[kind].append(path)
    return found
