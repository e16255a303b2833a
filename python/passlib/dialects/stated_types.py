"""Types of nodes that run a subgraph, in a form that needs no inference when the node runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from passlib.dialects.inference import infer
from passlib.dialects.onnx.tensors import CODES
from passlib.dialects.operator_types import Rules, infer_node
from passlib.dialects.table import find
from passlib.errors import GraphError, UnsupportedError
from passlib.files.limits import limits
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import Shape, TypeSpec

_Place: TypeAlias = "tuple[int, int]"
"""An input and one of its axes."""

_Size: TypeAlias = "int | str"

_Type: TypeAlias = "tuple[np.dtype[Any], list[_Size]]"

_STAND_IN: Final = 120
"""Stand-ins are multiples of this: large enough for most windows, with many divisors."""

_ANY_BYTES: Final = 1 << 62
"""A limit that values with stand-ins for their sizes do not exceed; nothing is allocated."""

_NAMES: Final = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS: Final = frozenset(("floor", "ceil", "min", "max"))


class StatedTypes(NamedTuple):
    """Types of a node: open sizes of inputs have names, and those of outputs are in their terms."""

    inputs: list[_Type]
    outputs: list[_Type]

    def text(self, written: Sequence[int]) -> str:
        """Return the text that libpasslib_ort reads. ``written``: inputs that are written to."""

        def listed(types: Sequence[_Type]) -> list[dict[str, Any]]:
            return [{"element": CODES[dtype.name], "shape": shape} for dtype, shape in types]

        return json.dumps(
            {
                "inputs": listed(self.inputs),
                "outputs": listed(self.outputs),
                "written": list(written),
            }
        )

    def output_specs(self) -> list[TypeSpec]:
        """Return the types of the outputs, without names."""
        return [
            TypeSpec(dtype, tuple(size if isinstance(size, int) else None for size in shape))
            for dtype, shape in self.outputs
        ]


def stated_types(
    node: Node, operator: Rules, attributes: Mapping[str, str], inputs: Sequence[TypeSpec]
) -> StatedTypes:
    """Infer the types of a node that runs a subgraph, for all open sizes of its inputs.

    Open sizes that the subgraph requires to be equal have one name. Raises `GraphError` if the
    inputs do not fit the subgraph; `UnsupportedError` if a type is unknown, if a size of an output
    depends on more than the sizes of the inputs, or if only some open sizes fit the subgraph.
    """

    def inferred(specs: Sequence[TypeSpec]) -> tuple[list[TypeSpec], list[TypeSpec]]:
        return infer_node(node, operator, attributes, specs, lambda *g: infer(*g).outputs)

    known, outputs = inferred(inputs)
    ranked: list[tuple[np.dtype[Any], Shape]] = []
    for position, spec in enumerate(known):
        if spec.dtype is None or spec.shape is None:
            source = node.inputs[position].node.name
            raise UnsupportedError(
                f"{blame(node)}: runs a subgraph, and the rank or the element type of its input "
                f"{position} ({source!r}) is unknown"
            )
        ranked.append((spec.dtype, spec.shape))
    hint = "; give all sizes of the model's inputs, or run the model with Model.run"
    try:
        names = _named(ranked, inferred)
    except GraphError as error:
        raise UnsupportedError(f"{error}, with stand-ins for its open sizes{hint}") from error
    made: list[_Type] = [
        (dtype, [names[i, k] if size is None else size for k, size in enumerate(shape)])
        for i, (dtype, shape) in enumerate(ranked)
    ]
    subgraph: Any = node.subgraphs[0]
    found = _symbolic(subgraph, known, made) if names else [spec.shape for spec in outputs]
    results: list[_Type] = []
    for spec, shape, name in zip(outputs, found, subgraph.list_outputs(), strict=True):
        sizes = [size for size in shape or () if _is_known(size, names)]
        if spec.dtype is None or shape is None or len(sizes) < len(shape):
            raise UnsupportedError(
                f"{blame(node)}: the type of the output {name!r} of its subgraph does not follow "
                f"from the sizes of its inputs{hint if names else ''}"
            )
        results.append((spec.dtype, sizes))
    return StatedTypes(made, results)


def _is_known(size: int | str | None, names: Mapping[_Place, str]) -> TypeGuard[_Size]:
    if not isinstance(size, str):
        return size is not None
    used = set(_NAMES.findall(size)) - _FUNCTIONS
    return used <= set(names.values()) and '"' not in size and "?" not in size


def _named(
    specs: Sequence[tuple[np.dtype[Any], Shape]],
    infer: Callable[[list[TypeSpec]], tuple[list[TypeSpec], Any]],
) -> dict[_Place, str]:
    """Name open sizes: equal names for those that the subgraph requires to be equal.

    ``infer``: infers the subgraph, and raises `GraphError` if the inputs do not fit it. So does
    this function, if sizes of these names do not always fit, as when an axis is split in two.
    """

    def inferred(sizes: Mapping[_Place, int]) -> list[TypeSpec]:
        given = [
            TypeSpec(dtype, tuple(sizes.get((i, k), size) for k, size in enumerate(shape)))
            for i, (dtype, shape) in enumerate(specs)
        ]
        return infer(given)[0]

    def fit(sizes: Mapping[_Place, int]) -> bool:
        try:
            inferred(sizes)
        except GraphError:
            return False
        return True

    def clash(one: _Place, other: _Place) -> bool:
        return not fit({one: _STAND_IN, other: 2 * _STAND_IN})

    waiting = [
        (i, k) for i, (_, shape) in enumerate(specs) for k, n in enumerate(shape) if n is None
    ]
    if not waiting:
        return {}
    groups: list[list[_Place]] = []
    with limits(tensor_bytes=_ANY_BYTES):
        while waiting:
            first = waiting[0]
            # Inference sets these sizes together, so they need no trial for each pair.
            found = _places_of(_STAND_IN, inferred({first: _STAND_IN})) | {first}
            groups.append([place for place in waiting if place in found])
            waiting = [place for place in waiting if place not in found]
        if not fit(_stand_ins(groups)):
            groups = _merged(groups, clash)
        # With few divisors: one odd size, odd and even sums.
        for more in (lambda number: 0, lambda number: 1, lambda number: 1 + number):
            inferred(_stand_ins(groups, more))
    return {place: f"d{number}" for number, group in enumerate(groups) for place in group}


def _places_of(size: int, specs: Sequence[TypeSpec]) -> set[_Place]:
    return {
        (i, k) for i, spec in enumerate(specs) for k, n in enumerate(spec.shape or ()) if n == size
    }


def _merged(
    groups: Sequence[list[_Place]], clash: Callable[[_Place, _Place], bool]
) -> list[list[_Place]]:
    """Merge the groups that ``clash`` if they have different sizes."""
    made: list[list[_Place]] = []
    for group in groups:
        tied = [other for other in made if clash(other[0], group[0])]
        made = [other for other in made if other not in tied]
        made.append([place for each in (*tied, group) for place in each])
    return sorted(made)


def _stand_ins(
    groups: Sequence[Sequence[_Place]], more: Callable[[int], int] = lambda number: 0
) -> dict[_Place, int]:
    return {
        place: _STAND_IN * (1 + number) + more(number)
        for number, group in enumerate(groups)
        for place in group
    }


def _symbolic(
    subgraph: PlainGraph, specs: Sequence[TypeSpec], named: Sequence[_Type]
) -> Sequence[Sequence[int | str | None] | None]:
    """Return the shapes of a graph's outputs by the facts of the core about its form in ONNX."""
    inputs = dict(zip(subgraph.list_inputs(), specs, strict=False))
    lowered = find(subgraph.dialect).lower_for_file(subgraph, inputs, {})
    for value, (_, shape) in zip(lowered.model.graph.input, named, strict=False):
        for dim, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
            if isinstance(size, str):
                dim.dim_param = size
    onnx = find("onnx")
    data = onnx.load_bytes(lowered.model.SerializeToString())
    graph = PlainGraph.of_native(data.graph, data.attributes, onnx)
    _, outputs = onnx.interface(graph, data)
    return [described.shape for described in outputs[: len(lowered.output_names)]]
