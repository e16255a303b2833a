"""Checks of all nodes of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from passlib.dialects.onnx import attributes, schema
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.tensors import kind_of
from passlib.errors import GraphError
from passlib.files.optional import require

_MOST_AXES: Final = 64
"""No tensor has more axes; ONNX Runtime's limits are lower."""

_MOST_PLACES: Final = 1 << 24
"""Of the kernel of a pooling: those of an image of 4,096 by 4,096."""

_MOST_SAMPLES: Final = 1024
"""In each direction, for one element of the result."""

_MOST_SKIPPED: Final = 1 << 24
"""Items that an n-gram leaves out."""

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
    repeated : int
        The first input of those whose number is free, none of which can be omitted either.
    repeated_outputs : int
        The first output of those whose number is free.
    attributes : mapping of str to int
        Types by name.
    mandatory : frozenset of str
    """

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    required: frozenset[int]
    repeated: int
    repeated_outputs: int
    attributes: Mapping[str, int]
    mandatory: frozenset[str]


@lru_cache(maxsize=4096)
def _formal(op: str, domain: str, version: int) -> _Formal | None:
    defs: Any = require("onnx.defs", extra="onnx")
    try:
        found = defs.get_schema(op, version, domain)
    except (defs.SchemaError, TypeError):  # protobuf returns names that are no UTF-8 as bytes
        return None
    single = defs.OpSchema.FormalParameterOption.Single
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    free, free_outputs = (
        next((i for i, formal in enumerate(each) if formal.option == variadic), schema.INT_MAX)
        for each in (found.inputs, found.outputs)
    )
    return _Formal(
        (found.min_input, found.max_input),
        (found.min_output, found.max_output),
        frozenset(i for i, formal in enumerate(found.inputs) if formal.option == single),
        free,
        free_outputs,
        {name: int(value.type.value) for name, value in found.attributes.items()},
        frozenset(name for name, value in found.attributes.items() if value.required),
    )


def is_defined(domain: str, op: str, version: int) -> bool:
    """Whether an operator set that onnx knows has an operator."""
    return _formal(op, domain, version) is not None


def fewest_inputs(domain: str, op: str, version: int) -> int | None:
    """Return how many inputs an operator has at least; None for unknown operators.

    ONNX Runtime has some operators in older operator sets than ONNX: then those of the newest one
    count.
    """
    formal = _known_form(domain, op, version)
    return None if formal is None else formal.inputs[0]


def first_of_any_number(domain: str, op: str, version: int) -> int:
    """Return the first of the outputs whose number an operator leaves free.

    A number that no node reaches if it has none, or is not known.
    """
    formal = _known_form(domain, op, version)
    return schema.INT_MAX if formal is None else formal.repeated_outputs


def _known_form(domain: str, op: str, version: int) -> _Formal | None:
    domain = schema.plain(domain)
    formal = _formal(op, domain, version)
    if formal is None and not domain:
        newest: int = require("onnx.defs", extra="onnx").onnx_opset_version()
        formal = _formal(op, domain, newest)
    return formal


def complaint_about(node: Any, versions: Mapping[str, int]) -> str:
    """Return how a node differs from the form that its operator requires; empty if it does not.

    ``versions``: of the operator sets, by domain. Nodes of unknown operators are not checked.
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
    many = str(low) if low == high else f"{low} to {high}"
    if high >= schema.INT_MAX:
        many = f"at least {low}"
    return f"it has {count} {what}, but the operator has {many}"


def _omitted(node: Any, formal: _Formal) -> str:
    for slot, name in enumerate(node.input):
        if not name and (slot in formal.required or slot >= formal.repeated):
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


def _batch_normalization(node: Any) -> str:
    # ONNX Runtime leaves outputs without memory in any other mode.
    mode = _integer(node, "training_mode")
    return "" if mode in (None, 0, 1) else f"training_mode is {mode}, which must be 0 or 1"


def _gather_nd(node: Any) -> str:
    dims = _integer(node, "batch_dims")
    return f"batch_dims is {dims}, which is negative" if dims is not None and dims < 0 else ""


def _pool(node: Any) -> str:
    # ONNX Runtime visits each place of the kernel, however far it reaches over the image.
    kernel = next((list(each.ints) for each in node.attribute if each.name == "kernel_shape"), [])
    if math.prod(max(abs(size), 1) for size in kernel) <= _MOST_PLACES:
        return ""
    return f"kernel_shape is {kernel}, which is more than {_MOST_PLACES} places"


def _roi_align(node: Any) -> str:
    # ONNX Runtime allocates by the square, without a check for overflow.
    ratio = _integer(node, "sampling_ratio") or 0
    if 0 <= ratio <= _MOST_SAMPLES:
        return ""
    return f"sampling_ratio is {ratio}, which must be 0 to {_MOST_SAMPLES}"


def _tf_idf(node: Any) -> str:
    # ONNX Runtime tries each distance, however few items there are.
    skipped = _integer(node, "max_skip_count") or 0
    if 0 <= skipped <= _MOST_SKIPPED:
        return ""
    return f"max_skip_count is {skipped}, which must be 0 to {_MOST_SKIPPED}"


_OWN: Final = {
    "AveragePool": _pool,
    "BatchNormalization": _batch_normalization,
    "GatherND": _gather_nd,
    "LpPool": _pool,
    "MaxPool": _pool,
    "RoiAlign": _roi_align,
    "Scan": _scan,
    "Split": _split,
    "TfIdfVectorizer": _tf_idf,
}


_MOST_EXPANDED: Final = 10_000_000
"""The largest number of nodes that a model may have with all its functions expanded."""


def check_calls(model: Any) -> None:
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


def check_model(model: Any) -> None:
    """Check the nodes of a model, in nested graphs and functions too.

    Raises `GraphError` if a node does not have the form that its operator requires, or functions
    call themselves.
    """
    versions = versions_of(model.opset_import) or {"": 1}
    functions = {(f.domain, f.name) for f in model.functions}
    _check_bodies([model.graph], versions, functions)
    for function in model.functions:
        _check_bodies([function], versions_of(function.opset_import) or versions, functions)
    check_calls(model)


def versions_of(imports: Iterable[Any]) -> dict[str, int]:
    """Return the versions of operator sets by domain."""
    return {
        schema.plain(entry.domain): min(max(int(entry.version), 0), schema.INT_MAX)
        for entry in imports
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


def drop_omitted(model: Any) -> None:
    """Leave out the empty names at the end of the inputs of nodes, which mean the same.

    ONNX Runtime 1.32 ends the process on LayerNormalization whose last input has an empty name.
    """
    for body, versions in _bodies(model):
        _drop(body, versions)


def name_omitted(model: Any) -> None:
    """Give names to omitted outputs of nodes that have any number of them, such as Split and Loop.

    ONNX Runtime 1.32 ends the process on Split and Loop with one, and refuses If and Scan.
    """
    for body, versions in _bodies(model):
        _name(body, versions)


def _bodies(model: Any) -> Iterator[tuple[Any, Mapping[str, int]]]:
    """Iterate over the main graph and the functions, each with its operator sets."""
    versions = versions_of(model.opset_import)
    yield model.graph, versions
    for function in model.functions:
        yield function, versions_of(function.opset_import) or versions


def _name(body: Any, versions: Mapping[str, int]) -> None:
    omitting = []
    for graph in graphs_within(body):
        for node in graph.node:
            if all(node.output):
                continue
            version = versions.get(schema.plain(node.domain), 0)
            first = first_of_any_number(node.domain, node.op_type, version)
            places = [i for i, name in enumerate(node.output) if i >= first and not name]
            omitting += [(node, place) for place in places]
    if not omitting:
        return
    used = {name for graph in graphs_within(body) for name in _names(graph)}
    number = 0
    for node, place in omitting:
        while f"omitted_{number}" in used:
            number += 1
        node.output[place] = f"omitted_{number}"
        number += 1


def _names(graph: Any) -> Iterator[str]:
    for node in graph.node:
        yield from node.output
    for part in ("input", "initializer"):
        for item in getattr(graph, part, ()):  # those of functions are names
            yield item if isinstance(item, str) else item.name
    for item in getattr(graph, "sparse_initializer", ()):
        yield item.values.name


def _drop(body: Any, versions: Mapping[str, int]) -> None:
    for graph in graphs_within(body):
        for node in graph.node:
            if not node.input or node.input[-1]:
                continue
            version = versions.get(schema.plain(node.domain), 0)
            fewest = fewest_inputs(node.domain, node.op_type, version)
            while fewest is not None and len(node.input) > fewest and not node.input[-1]:
                del node.input[-1]
