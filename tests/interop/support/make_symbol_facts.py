"""Ask a real MXNet 1.9.1 what it says of the model files, and freeze the answers.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/make_symbol_facts.py tests/data/mxnet/models \\
        tests/data/mxnet/symbols.json
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import mxnet as mx


def digest(value: object) -> str:
    """Shorten an answer to something that fits into a small file."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def facts(path: Path) -> dict[str, object]:
    """What MXNet says of one file."""
    symbol = mx.sym.load(str(path))
    internals = symbol.get_internals()
    children = symbol.get_children()
    return {
        "name": symbol.name,
        "outputs": symbol.list_outputs(),
        "arguments": len(symbol.list_arguments()),
        "arguments_digest": digest(symbol.list_arguments()),
        "auxiliary_states": len(symbol.list_auxiliary_states()),
        "auxiliary_states_digest": digest(symbol.list_auxiliary_states()),
        "inputs_digest": digest(symbol.list_inputs()),
        "internals": len(internals.list_outputs()),
        "internals_digest": digest(internals.list_outputs()),
        "children": children.list_outputs(),
        "attributes": symbol.list_attr(),
        "attr_dict_digest": digest(symbol.attr_dict()),
        "tojson_digest": hashlib.sha256(symbol.tojson().encode()).hexdigest(),
        "fifth_json_digest": hashlib.sha256(internals[4].tojson().encode()).hexdigest(),
    }


if __name__ == "__main__":
    models = sorted(Path(sys.argv[1]).glob("*-symbol.json"))
    table = {path.name.replace("-symbol.json", ""): facts(path) for path in models}
    Path(sys.argv[2]).write_text(json.dumps(table, indent=1) + "\n", "utf-8")
