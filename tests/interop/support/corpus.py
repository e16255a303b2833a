"""Models, and passes with their options, for the interop tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from places import DATA, SHARED

_PLACES = (
    (DATA / "mxnet" / "models", "*.json"),
    (SHARED / "mxnet" / "models", "*.json"),
    (SHARED / "nnvm" / "mxnet_custom", "*.json"),
    (SHARED / "nnvm" / "mxnet_repo", "*.json"),
    (SHARED / "nnvm" / "mxnet_zoo", "alexnet-symbol.json"),
    (SHARED / "nnvm" / "mxnet_zoo", "resnet18_v1-symbol.json"),
)


def _find() -> dict[str, Path]:
    """Find symbol files, once for each content."""
    found: dict[str, Path] = {}
    contents: set[bytes] = set()
    for folder, pattern in _PLACES:
        for path in sorted(folder.glob(pattern)):
            content = path.read_bytes()
            if not path.name.endswith(".golden.json") and content not in contents:
                contents.add(content)
                found[path.stem.removesuffix("-symbol")] = path
    return found


MODELS: dict[str, Path] = _find()

WEIGHTED: dict[str, Path] = {
    name: params
    for name, path in MODELS.items()
    if (params := path.with_name(f"{name}-0000.params")).exists()
}
"""Parameter files of the models that have weights; <name>-io.npz has inputs and outputs."""

DIALECT_LINE = "\tdialect : mxnet\n"
"""The line that print() writes in passlib only, where a graph's attributes name its dialect."""

AWKWARD = 'a "quoted" word, a back\\slash at the end \\'
UNICODE = "größe λ 模型 🙂"
SPACES = ' tab\t newline\n return\r {"json": [1, -2.5e3, true, null]} '

PORTABLE: dict[str, tuple[str, dict[str, Any]]] = {
    "identity": ("interop_identity", {}),
    "print": ("interop_print", {}),
    "print_attributes": ("interop_printAttributes", {}),
    "remove_no_ops": ("interop_remove", {}),
    "remove_activations": ("interop_remove", {"ops": "Activation,Flatten,Reshape"}),
    "rename_operators": ("interop_rename", {}),
    "rename_all": ("interop_rename", {"prefix": "größe/", "variables": True}),
    "insert_after_relu": ("interop_insertAfterRelu", {"a_max": 2.5}),
    "replace_pattern": ("interop_replacePattern", {}),
    "add_variables": ("interop_addVariables", {}),
    "swap_operands": ("interop_swapOperands", {}),
    "add_heads": ("interop_addHeads", {"step": 5}),
    "remove_heads": ("interop_removeHeads", {"depth": 4}),
    "set_unicode": ("interop_setAttribute", {"value": UNICODE, "op": "null"}),
    "set_attribute": ("interop_setAttribute", {"value": -1.5, "key": "__number__"}),
    "drop_attributes": ("interop_dropAttributes", {}),
    "keep_options": ("interop_keepOptions", {"z": None, "a": True, "list": [1, 2], "real": 1e-30}),
}
"""Passes that compile against both headers: name of the pass, and options."""

ESCAPED: dict[str, tuple[str, dict[str, Any]]] = {
    "set_quotes": ("interop_setAttribute", {"value": AWKWARD}),
    "set_spaces": ("interop_setAttribute", {"value": SPACES}),
}
"""Passes as in PORTABLE, with texts that need escapes, which MXNet's lib_api does not write."""

EDITING: dict[str, tuple[str, dict[str, Any]]] = {
    "delete_activations": ("interop_deleteActivations", {}),
    "wrap_heads": ("interop_wrapHeads", {}),
    "order_convolutions": ("interop_orderConvolutions", {}),
    "start_over": ("interop_startOver", {}),
    "declared": ("interop_declared", {}),
    "declared_options": (
        "interop_declared",
        {"op": "Pooling", "users": True, "kernel": [7], "level": 3},
    ),
    "fuse_activations": ("interop_fuseActivations", {}),
    "reshape_poolings": ("interop_reshapePoolings", {}),
    "reorder_sums": ("interop_reorderSums", {}),
}
"""Passes that need passlib's header."""

FAILING: dict[str, tuple[str, dict[str, Any]]] = {
    "with_messages": ("interop_fail", {"message": f"no such weight: {UNICODE}"}),
    "without_message": ("interop_fail", {}),
    "thrown": ("interop_throw", {"message": "thrown in the library"}),
}
"""Passes that fail."""


def read_model(name: str) -> str:
    """Read the text of a model's symbol file."""
    return MODELS[name].read_text("utf-8")
