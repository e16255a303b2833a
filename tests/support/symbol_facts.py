"""Facts about a symbol, in the same words for MXNet and passlib, short enough for a small file."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(value: object) -> str:
    """Shorten an answer to its hash."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def facts(symbol: Any) -> dict[str, object]:
    """Ask a symbol for its names, attributes and text."""
    internals = symbol.get_internals()
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
        "children": symbol.get_children().list_outputs(),
        "attributes": symbol.list_attr(),
        "attr_dict_digest": digest(symbol.attr_dict()),
        "tojson_digest": hashlib.sha256(symbol.tojson().encode()).hexdigest(),
        "fifth_json_digest": hashlib.sha256(internals[4].tojson().encode()).hexdigest(),
    }
