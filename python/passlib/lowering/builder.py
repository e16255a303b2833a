"""An ONNX graph under construction: names, constants, nodes, and the types of all values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require
from passlib.graph.names import NameSource
from passlib.lowering.kernels import computed_types, substitute
from passlib.lowering.types import Scope, Shape, TypeSpec, Value, check_extent, describe

if TYPE_CHECKING:
    import onnx

OPSET = 21
"""The ONNX operator set version that every lowering targets."""

IR_VERSION = 10
"""The ONNX IR version that belongs to this operator set."""

LIBRARIES = "passlib"
"""The domain of operators that libraries own, which ONNX has no schemas for."""

_KNOWN_DATA_LIMIT = 1024
"""Constants of at most this many elements are passed to type inference (shapes, axes, pads)."""

_NO_TYPE = 0
"""ONNX's code for a type that is not known, while only types are inferred."""


class NodeSpec(NamedTuple):
    """An ONNX node without its inputs."""

    op_type: str
    names: Sequence[str]
    node_name: str
    domain: str
    attributes: Mapping[str, Any]
    types: Sequence[TypeSpec] | None = None
    """Types of the outputs if inference cannot find them, as with nested graphs."""


class GraphBuilder:
    """Collects nodes, and infers the type and shape of every value when its node is added.

    ``blame`` describes the source node being lowered, for error messages. With ``types_only``,
    values that nothing computes may be used.
    """

    def __init__(self, blame: Callable[[], str], *, types_only: bool = False) -> None:
        self._onnx: Any = require("onnx", extra="onnx")
        self.helper: Any = require("onnx.helper", extra="onnx")
        self._inference: Any = require("onnx.shape_inference", extra="onnx")
        self._checker: Any = require("onnx.checker", extra="onnx")
        self._numpy_helper: Any = require("onnx.numpy_helper", extra="onnx")
        self._opset = self.helper.make_opsetid("", OPSET)
        self._blame = blame
        self._types_only = types_only
        self._names = NameSource(set())
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._inferred: dict[object, list[TypeSpec]] = {}
        self.scope = Scope()
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.updates: dict[str, Value] = {}
        """New contents of values that the current source node writes to, by the value's name."""
        self.variables: dict[str, Value] = {}
        """The graph's variables, by their names."""
        self._owned: list[Value] = []

    @contextmanager
    def nested(self) -> Iterator[list[onnx.NodeProto]]:
        """Collect the nodes added inside the ``with`` block in a list of their own.

        They may use the values of the enclosing graphs. Constants stay those of the whole model.
        """
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    def unique(self, wish: str) -> str:
        """Claim an unused name: ``wish`` itself if it is free."""
        return self._names.fresh(wish)

    def tensor_type(self, dtype: np.dtype) -> int:
        """Return ONNX's code of an element type; raise `UnsupportedError` if ONNX lacks it."""
        try:
            return int(self.helper.np_dtype_to_tensor_dtype(dtype))
        except (KeyError, ValueError, TypeError):
            raise UnsupportedError(f"{self._blame()}: ONNX has no element type {dtype}") from None

    def constant(self, array: np.ndarray) -> Value:
        """Add a constant, or return an existing equal one."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._constants:
            self.tensor_type(array.dtype)
            name = self.unique("constant")
            self.initializers[name] = self._numpy_helper.from_array(array, name)
            self._constants[key] = Value(name, array.dtype, array.shape, array, scope=self.scope)
        return self._constants[key]

    def add(self, spec: NodeSpec, inputs: Sequence[Value | None]) -> list[Value]:
        """Add a node, in an element type that ONNX Runtime computes, and infer its outputs.

        Raises `GraphError` if the inputs do not fit together; `UnsupportedError` if nothing
        computes an input, or no kernel supports its type.
        """
        for value in inputs:
            if value is not None and not self._types_only:
                value.require(self._blame())
        if spec.domain == LIBRARIES:
            made = self._append(None, spec, inputs)
            self._owned += made
            return made
        first = inputs[0] if inputs else None
        if spec.op_type == "Shape" and first is not None and first.known and not spec.attributes:
            return [self.constant(np.array(first.shape, np.int64))]
        schema = self._schema(spec)
        native, back = self._with_kernel(schema, inputs)
        if not back:
            return self._append(schema, spec, native)
        made = self._append(
            schema,
            spec._replace(names=[self.unique(f"{name}_computed") for name in spec.names]),
            native,
        )
        formal = _formal(schema.outputs, len(made))
        return [
            self.cast(value, back[parameter.type_str], name)
            if parameter.type_str in back
            else value
            for value, parameter, name in zip(made, formal, spec.names, strict=True)
        ]

    def stated(self, nodes: Sequence[onnx.NodeProto]) -> list[Any]:
        """Return the types that a graph of these nodes has to state, since nothing infers them."""
        names = {name for node in nodes if node.domain == LIBRARIES for name in node.output}
        return [self.value_info(value) for value in self._owned if value.name in names]

    def value_info(self, value: Value) -> Any:
        """Return the declaration of a value, an ``onnx.ValueInfoProto``."""
        code = _NO_TYPE if value.dtype is None else self.tensor_type(value.dtype)
        return self.helper.make_tensor_value_info(value.name, code, value.shape)

    def copy(self, value: Value, wish: str) -> Value:
        """Add a value equal to another, under an unused name."""
        name = self.unique(wish)
        return self.add(NodeSpec("Identity", [name], name, "", {}), [value])[0]

    def rename(self, value: Value, wish: str, start: int) -> None:
        """Rename a value, if a node from position ``start`` on computes it.

        Only nodes from ``start`` on may use the value so far.
        """
        recent = self.nodes[start:]
        if not any(value.name in node.output for node in recent):
            return
        name = self.unique(wish)
        for node in recent:
            for names in (node.input, node.output):
                for position, old in enumerate(names):
                    if old == value.name:
                        names[position] = name
        value.name = name

    def cast(self, value: Value, dtype: np.dtype, name: str | None = None) -> Value:
        """Convert the element type as C does; a value that has it already is returned as it is."""
        # NumPy takes None, the unknown type, for float64.
        if value.dtype is not None and value.dtype == dtype and name is None:
            return value
        wish = name or self.unique(f"{value.name}_{dtype.name}")
        spec = NodeSpec("Cast", [wish], wish, "", {"to": self.tensor_type(dtype)})
        return self._append(self._schema(spec), spec, [value])[0]

    def _schema(self, spec: NodeSpec) -> Any:
        return self._onnx.defs.get_schema(spec.op_type, OPSET, spec.domain)

    def _with_kernel(
        self, schema: Any, inputs: Sequence[Value | None]
    ) -> tuple[list[Value | None], dict[str, np.dtype]]:
        native = list(inputs)
        back: dict[str, np.dtype] = {}
        formal = _formal(schema.inputs, len(native))
        for index, (value, parameter) in enumerate(zip(inputs, formal, strict=True)):
            if value is None or value.dtype is None:
                continue
            computed = computed_types(schema.name, parameter.type_str)
            if computed is None or value.dtype.name in computed:
                continue
            other = substitute(value.dtype.name, computed)
            if other is None:
                raise UnsupportedError(
                    f"{self._blame()}: ONNX Runtime has no {schema.name} kernel for "
                    f"{value.dtype.name}"
                )
            back[parameter.type_str] = value.dtype
            native[index] = self.cast(value, np.dtype(other))
        return native, back

    def _append(self, schema: Any, spec: NodeSpec, inputs: Sequence[Value | None]) -> list[Value]:
        node = self.helper.make_node(
            spec.op_type,
            ["" if value is None else value.name for value in inputs],
            list(spec.names),
            name=spec.node_name,
            domain=spec.domain or None,
            **spec.attributes,
        )
        types = spec.types if spec.types is not None else self._infer(schema, node, inputs)
        if not self._types_only:
            for found in types:
                check_extent(f"{self._blame()}: its value", found.dtype, found.shape)
        self.nodes.append(node)
        values = [
            Value(name, *spec, scope=self.scope)
            for name, spec in zip(spec.names, types, strict=True)
        ]
        if spec.op_type == "Identity" and inputs[0] is not None:
            values[0].constant = inputs[0].constant
        return values

    def _infer(
        self, schema: Any, node: onnx.NodeProto, inputs: Sequence[Value | None]
    ) -> list[TypeSpec]:
        present = [value for value in inputs if value is not None]
        if any(value.dtype is None for value in present):
            return [TypeSpec(None, None)] * len(node.output)
        key = (
            node.op_type,
            node.domain,
            tuple(attribute.SerializeToString() for attribute in node.attribute),
            tuple(
                None if v is None else (v.dtype, v.shape, None if v.constant is None else v.name)
                for v in inputs
            ),
            len(node.output),
        )
        if key not in self._inferred:
            self._inferred[key] = self._infer_afresh(schema, node, present)
        return self._inferred[key]

    def _infer_afresh(
        self, schema: Any, node: onnx.NodeProto, present: Sequence[Value]
    ) -> list[TypeSpec]:
        known = {
            value.name: self.initializers[value.name]
            for value in present
            if value.constant is not None
            and value.constant.size <= _KNOWN_DATA_LIMIT
            and value.name in self.initializers
        }
        try:
            types = self._inference.infer_node_outputs(
                schema,
                node,
                {value.name: self._type_proto(value) for value in present},
                known,
                opset_imports=[self._opset],
                ir_version=IR_VERSION,
            )
        except (self._inference.InferenceError, self._checker.ValidationError) as error:
            given = ", ".join(describe(value) for value in present)
            reason = str(error).rsplit("] ", maxsplit=1)[-1]
            raise GraphError(
                f"{self._blame()}: its inputs do not fit together ({node.op_type} of {given}: "
                f"{reason})"
            ) from None
        return [self._spec(types.get(name)) for name in node.output]

    def _type_proto(self, value: Value) -> Any:
        assert value.dtype is not None
        return self.helper.make_tensor_type_proto(self.tensor_type(value.dtype), value.shape)

    def _spec(self, proto: Any) -> TypeSpec:
        if proto is None or not proto.tensor_type.elem_type:
            return TypeSpec(None, None)
        tensor = proto.tensor_type
        dtype = np.dtype(self.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        if not tensor.HasField("shape"):
            return TypeSpec(dtype, None)
        shape: Shape = tuple(
            dimension.dim_value if dimension.HasField("dim_value") else None
            for dimension in tensor.shape.dim
        )
        return TypeSpec(dtype, shape)


class Body:
    """A nested graph under construction; names of its inputs begin with ``stem``.

    The builder adds to ``nodes`` while the graph is open.
    """

    def __init__(self, builder: GraphBuilder, stem: str, nodes: list[onnx.NodeProto]) -> None:
        self._builder = builder
        self._stem = stem
        self._nodes = nodes
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def input(self, what: str, dtype: np.dtype | None, shape: Shape | None) -> Value:
        """Add an input of the graph and return its value."""
        name = self._builder.unique(f"{self._stem}_{what}")
        value = Value(name, dtype, shape, scope=self._builder.scope)
        self._inputs.append(value)
        return value

    def output(self, value: Value, shape: Shape | None = None) -> None:
        """Add an output: a value of this graph or of an enclosing one, of a declared shape."""
        # An output must be computed in this graph, under a name of its own.
        made = self._builder.copy(value, f"{self._stem}_result")
        self._outputs.append(Value(made.name, made.dtype, made.shape if shape is None else shape))

    def graph(self) -> Any:
        """Return the finished graph, an ``onnx.GraphProto``."""
        helper = self._builder.helper
        return helper.make_graph(
            self._nodes,
            self._builder.unique(f"{self._stem}_body"),
            [self._builder.value_info(value) for value in self._inputs],
            [self._builder.value_info(value) for value in self._outputs],
            value_info=self._builder.stated(self._nodes),
        )


def _formal(parameters: Sequence[Any], count: int) -> list[Any]:
    """Return a formal parameter for each actual one: the last of a variadic operator repeats."""
    return [parameters[min(index, len(parameters) - 1)] for index in range(count)]
