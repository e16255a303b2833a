"""Checks before ONNX's inference or ONNX Runtime get a model.

Both are native code that takes the numbers of inputs, outputs and attributes for right, and may
end the process where they are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from passlib.dialects.onnx import attributes, schema
from passlib.dialects.onnx.messages import graphs_within
from passlib.dialects.onnx.tensors import kind_of
from passlib.errors import GraphError
from passlib.files.optional import require

__all__ = ["check_model", "complaint_about", "inferred", "open_sizes"]

_INT_MAX: Final = (1 << 31) - 1

_MOST_AXES: Final = 64
"""No tensor has more axes; ONNX Runtime's limits are lower."""

_MOST_EXPANDED: Final = 10_000_000
"""The largest number of nodes that a model may have with all its functions expanded."""

_AXES: Final = frozenset(
    ("axes", "axis", "axis_w", "batch_axis", "batch_dims", "perm", "scan_input_axes",
     "scan_output_axes", "seq_axis", "time_axis")
)  # fmt: skip
"""Attributes that number axes."""


class _Formal(NamedTuple):
    """The form that a schema requires of a node.

    Attributes
    ----------
    inputs, outputs : tuple of (int, int)
        The lowest and the highest number.
    required : frozenset of int
        The inputs that cannot be omitted.
    attributes : mapping of str to int
        Types by name.
    mandatory : frozenset of str
    """

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    required: frozenset[int]
    attributes: Mapping[str, int]
    mandatory: frozenset[str]


@lru_cache(maxsize=4096)
def _formal(op: str, domain: str, version: int) -> _Formal | None:
    defs: Any = require("onnx.defs", extra="onnx")
    try:
        found = defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return None
    single = defs.OpSchema.FormalParameterOption.Single
    return _Formal(
        (found.min_input, found.max_input),
        (found.min_output, found.max_output),
        frozenset(i for i, formal in enumerate(found.inputs) if formal.option == single),
        {name: int(value.type.value) for name, value in found.attributes.items()},
        frozenset(name for name, value in found.attributes.items() if value.required),
    )


def check_model(model: Any) -> None:
    """Check the nodes of a model, in nested graphs and functions too.

    Parameters
    ----------
    model : onnx.ModelProto

    Raises
    ------
    GraphError
        A node does not have the form that its operator requires, or functions call themselves.
    """
    versions = _versions(model.opset_import) or {"": 1}
    functions = {(f.domain, f.name) for f in model.functions}
    _check_bodies([model.graph], versions, functions)
    for function in model.functions:
        _check_bodies([function], _versions(function.opset_import) or versions, functions)
    _check_calls(model)


def _versions(imports: Iterable[Any]) -> dict[str, int]:
    return {
        schema.plain(entry.domain): min(max(int(entry.version), 0), _INT_MAX) for entry in imports
    }


def _check_bodies(
    bodies: list[Any], versions: Mapping[str, int], functions: set[tuple[str, str]]
) -> None:
    for graph in graphs_within(*bodies):
        for tensor in getattr(graph, "initializer", ()):
            if any(size < 0 for size in tensor.dims):
                raise GraphError(f"initializer {tensor.name!r} has a negative dimension")
            if kind_of(tensor) in ("?", "undefined"):
                raise GraphError(
                    f"initializer {tensor.name!r}: ONNX has no element type {tensor.data_type}"
                )
        for number, node in enumerate(graph.node):
            if (node.domain, node.op_type) in functions:
                continue
            message = complaint_about(node, versions)
            if message:
                title = repr(node.name) if node.name else str(number)
                raise GraphError(f"node {title} ({node.op_type}): {message}")


def complaint_about(node: Any, versions: Mapping[str, int]) -> str:
    """Return how a node differs from the form that its operator requires; empty if it does not.

    Parameters
    ----------
    node : onnx.NodeProto
    versions : mapping of str to int
        Of the operator sets, by domain. Nodes of unknown operators are not checked.
    """
    domain = schema.plain(node.domain)
    formal = _formal(node.op_type, domain, versions.get(domain, 0))
    if formal is None:
        return ""
    return (
        _counted("inputs", len(node.input), formal.inputs)
        or _counted("outputs", len(node.output), formal.outputs)
        or _omitted(node, formal)
        or _about_attributes(node, formal)
        or (_OWN[node.op_type](node) if not domain and node.op_type in _OWN else "")
    )


def _counted(what: str, count: int, limits: tuple[int, int]) -> str:
    low, high = limits
    if low <= count <= high:
        return ""
    if low == high:
        many = str(low)
    else:
        many = f"at least {low}" if high >= _INT_MAX else f"{low} to {high}"
    return f"it has {count} {what}, but the operator has {many}"


def _omitted(node: Any, formal: _Formal) -> str:
    for slot, name in enumerate(node.input):
        if not name and slot in formal.required:
            return f"input {slot} is omitted, but the operator requires it"
    return ""


def _about_attributes(node: Any, formal: _Formal) -> str:
    present = set()
    for value in node.attribute:
        name, kind = value.name, attributes.kind_of(value)
        present.add(name)
        stated = formal.attributes.get(name)
        if stated is None or value.ref_attr_name:
            continue
        if stated != kind:
            return f"attribute {name!r} has type {kind} of AttributeProto, which must be {stated}"
        if kind == attributes.TENSOR and any(size < 0 for size in value.t.dims):
            return f"the tensor of attribute {name!r} has a negative dimension"
        if name in _AXES:
            items = [value.i] if kind == attributes.INT else value.ints
            far = next((item for item in items if not -_MOST_AXES <= item <= _MOST_AXES), None)
            if kind in (attributes.INT, attributes.INTS) and far is not None:
                return f"attribute {name!r} is {far}, but no tensor has so many axes"
    missing = sorted(formal.mandatory - present)
    return f"attribute {missing[0]!r} is missing" if missing else ""


def open_sizes(model: Any) -> None:
    """Remove negative sizes, which stand for unknown ones, from the stated types of a model."""
    for graph in graphs_within(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in _innermost(value.type).tensor_type.shape.dim:
                if dim.dim_value < 0:
                    dim.ClearField("dim_value")


def _innermost(kind: Any) -> Any:
    """Return the type of the elements of sequences, optional values and maps."""
    while True:
        field = kind.WhichOneof("value")
        if field in ("sequence_type", "optional_type"):
            kind = getattr(kind, field).elem_type
        elif field == "map_type":
            kind = kind.map_type.value_type
        else:
            return kind


def inferred(model: Any) -> Any:
    """Return a model with the types of its values by ONNX's inference, or itself if that fails.

    Parameters
    ----------
    model : onnx.ModelProto
        Loses its negative sizes.

    Raises
    ------
    GraphError
        See `check_model`; or inference needs more memory than there is.
    """
    check_model(model)
    open_sizes(model)
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        return inference.infer_shapes(model)
    except (inference.InferenceError, RuntimeError, ValueError, IndexError, OverflowError):
        return model
    except MemoryError as error:
        raise GraphError("type inference of this model needs more memory than there is") from error


# Operators that need more.


def _integer(node: Any, name: str) -> int | None:
    for value in node.attribute:
        if value.name == name and not value.ref_attr_name:
            return int(value.i)
    return None


def _split(node: Any) -> str:
    stated = _integer(node, "num_outputs")
    if stated is None or stated == len(node.output):
        return ""
    return f"num_outputs is {stated}, but it has {len(node.output)} outputs"


def _scan(node: Any) -> str:
    scans = _integer(node, "num_scan_inputs")
    if scans is None:
        return ""
    if not 1 <= scans <= len(node.input):
        return f"num_scan_inputs is {scans}, but it has {len(node.input)} inputs"
    return ""


def _gather_nd(node: Any) -> str:
    dims = _integer(node, "batch_dims")
    return f"batch_dims is {dims}, which is negative" if dims is not None and dims < 0 else ""


_OWN: Final = {"GatherND": _gather_nd, "Scan": _scan, "Split": _split}


def _check_calls(model: Any) -> None:
    """Refuse functions that call themselves, or make a model too large when expanded."""
    bodies = {(f.domain, f.name): f for f in model.functions}
    if not bodies:
        return
    sizes: dict[tuple[str, str], int] = {}
    for key in bodies:
        _measure(key, bodies, sizes)
    if _size(model.graph, sizes) > _MOST_EXPANDED:
        raise GraphError(
            f"this model has more than {_MOST_EXPANDED} nodes when its functions are expanded"
        )


def _measure(
    start: tuple[str, str], bodies: Mapping[tuple[str, str], Any], sizes: dict[tuple[str, str], int]
) -> None:
    """Compute the size of a function, and of all that it calls."""
    path = [start]
    active = {start}
    while path:
        key = path[-1]
        called = {
            (node.domain, node.op_type)
            for graph in graphs_within(bodies[key])
            for node in graph.node
        }
        pending = [name for name in called & bodies.keys() if name not in sizes]
        if not pending:
            sizes[key] = _size(bodies[key], sizes)
            active.discard(path.pop())
        elif active.intersection(pending):
            raise GraphError(f"function {key[1]!r} of domain {key[0]!r} calls itself")
        else:
            path.append(pending[0])
            active.add(pending[0])


def _size(body: Any, sizes: Mapping[tuple[str, str], int]) -> int:
    return sum(
        1 + sizes.get((node.domain, node.op_type), 0)
        for graph in graphs_within(body)
        for node in graph.node
    )
