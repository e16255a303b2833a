"""Variables of a graph as inputs, initializers and constants of ONNX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects.onnx.document import ID, Document, OriginalTensor
from passlib.dialects.onnx.tensors import code_of, same_array
from passlib.dialects.onnx.unchanged import same_params
from passlib.errors import UnsupportedError
from passlib.files.optional import require

if TYPE_CHECKING:
    from passlib._core import NodeTuple
    from passlib.dialects.onnx.naming import Names
    from passlib.lowering.types import TypeSpec

__all__ = ["LevelVariables"]

_INLINE = 4096
"""Arrays of fewer bytes are put into the message at once."""

_NEW = 1 << 40
"""Order of what was not in the file: behind all that was."""

_DATA_FIELDS = (
    "float_data",
    "int32_data",
    "string_data",
    "int64_data",
    "double_data",
    "uint64_data",
    "raw_data",
    "segment",
)


class LevelVariables:
    """Collects the inputs, initializers and constants of one graph.

    Parameters
    ----------
    document : Document
    params : mapping of str to numpy.ndarray
        Values by name of the variable; empty for nested graphs, whose values stay.
    fed : mapping of str to TypeSpec
        Variables that are inputs, whatever the file says.
    names : Names
    """

    def __init__(
        self,
        document: Document,
        params: Mapping[str, np.ndarray[Any, Any]],
        fed: Mapping[str, TypeSpec],
        names: Names,
    ) -> None:
        self._fed = fed
        self._document = document
        self._params = params
        self._names = names
        self._same = same_params(document, params) if params else set()
        self._onnx: Any = require("onnx", extra="onnx")
        self._inputs: list[tuple[int, Any]] = []
        self._new_arrays: list[tuple[str, np.ndarray[Any, Any]]] = []
        self._initializers: list[tuple[int, Any, Any, bool | None]] = []
        self._sparse: list[tuple[int, Any]] = []
        self.changed: set[str] = set()
        """Constants whose elements are not those of the file, or come from outside, by `ID`."""
        self.retyped: set[str] = set()
        """Those of them whose type or shape may be another one too."""

    def add(self, position: int, node: NodeTuple, claim: str) -> Any:
        """Take a variable in.

        Parameters
        ----------
        position : int
        node
            As `_core.Graph` gives it.
        claim : str
            Its `ID` if it stands for one of the file.

        Returns
        -------
        onnx.NodeProto or None
            The node, for a constant that is one.

        Raises
        ------
        UnsupportedError
            ONNX has no place for the array, or for a variable without a type.
        """
        name = self._names.of[position, 0]
        key = claim or node[2].get(ID, "")
        array = self._params.get(node[1])
        if array is not None and not isinstance(array, np.ndarray):
            raise UnsupportedError(f"parameter {node[1]!r} is sparse, and ONNX's are dense here")
        tensor = self._document.tensors.get(key)
        if tensor is not None and node[1] in self._fed:
            self.changed.add(key)
            self.retyped.add(key)
            self._inputs.append((_NEW + position, self._value_info(name, self._fed[node[1]])))
            return None
        if tensor is None:
            self._add_untied(position, node, key, name, array)
            return None
        same = array is None or self._is_same(node[1], array, tensor)
        if not same:
            self.changed.add(key)
            if array is None or not _is_like(array, tensor.array):
                self.retyped.add(key)
        if tensor.kind == "constant":
            return self._constant(tensor, name, None if same else array)
        order = tensor.order if claim else _NEW + position
        if tensor.kind == "sparse" and same:
            self._sparse.append((order, _renamed(tensor.proto, tensor.name, name, "values")))
        elif same:
            self._keep(order, tensor, name)
        else:
            assert array is not None
            like = tensor.proto if tensor.kind == "initializer" else None
            self._make(order, array, name, like, external=tensor.external)
        if tensor.input is not None:
            value, number = tensor.input
            if same or array is None:
                self._inputs.append((number, _renamed(value, value.name, name)))
            else:
                self._inputs.append((number, self._value_info(name, array)))
        return None

    def _is_same(self, name: str, array: np.ndarray[Any, Any], tensor: OriginalTensor) -> bool:
        if name == tensor.name:
            return name in self._same
        return tensor.array is not None and same_array(array, tensor.array)

    def _add_untied(
        self,
        position: int,
        node: NodeTuple,
        key: str,
        name: str,
        array: np.ndarray[Any, Any] | None,
    ) -> None:
        if node[1] in self._fed and key not in self._document.inputs:
            info = self._value_info(name, self._fed[node[1]])
            self._inputs.append((_NEW + position, info))
        elif array is not None:
            self._make(_NEW + position, array, name, None, external=False)
            self._new_arrays.append((name, array))
        elif key in self._document.inputs:
            value, number = self._document.inputs[key]
            self._inputs.append((number, _renamed(value, value.name, name)))
        else:
            self._inputs.append((_NEW + position, self._described(node, name)))

    def _keep(self, order: int, tensor: OriginalTensor, name: str) -> None:
        proto = _renamed(tensor.proto, tensor.name, name)
        aside = tensor.array if tensor.detached or tensor.external else None
        unchanged = False if tensor.external and aside is not None else None
        self._initializers.append((order, proto, aside, unchanged))

    def _make(
        self, order: int, array: np.ndarray[Any, Any], name: str, like: Any, *, external: bool
    ) -> None:
        proto = self._onnx.TensorProto()
        if like is not None:
            proto.CopyFrom(like)
        _fill_header(proto, array, name)
        if external:
            self._initializers.append((order, proto, array, True))
            return
        proto.ClearField("external_data")
        proto.ClearField("data_location")
        if array.nbytes < _INLINE:
            proto.raw_data = _bytes_of(array)
            self._initializers.append((order, proto, None, None))
        else:
            self._initializers.append((order, proto, array, None))

    def _constant(
        self, tensor: OriginalTensor, name: str, array: np.ndarray[Any, Any] | None
    ) -> Any:
        if array is None and name == tensor.name:
            return tensor.proto
        made = self._onnx.NodeProto()
        made.CopyFrom(tensor.proto)
        made.output[0] = name
        if array is not None:
            del made.attribute[:]
            value = made.attribute.add(name="value", type=self._onnx.AttributeProto.TENSOR).t
            _fill_header(value, array, "")
            value.ClearField("name")
            value.raw_data = _bytes_of(array)
        return made

    def _described(self, node: NodeTuple, name: str) -> Any:
        """Make a new input of what its attributes say: ``__dtype__`` and ``__shape__``."""
        dtype, shape = node[2].get("__dtype__"), node[2].get("__shape__")
        made = self._onnx.ValueInfoProto(name=name)
        if dtype is None:
            raise UnsupportedError(
                f"variable {node[1]!r} is new and has no values; give it some with alloc_arg, or "
                "for an input of the model its type as __dtype__ and __shape__"
            )
        if not re.fullmatch(r"\d{1,3}", dtype):
            raise UnsupportedError(f"variable {node[1]!r}: __dtype__ {dtype!r} is no number")
        made.type.tensor_type.elem_type = code_of(dtypes.from_code(int(dtype)), f"{node[1]!r}")
        if shape is not None:
            if not re.fullmatch(r"[\[(][-\d, ]*[\])]", shape):
                raise UnsupportedError(f"variable {node[1]!r}: __shape__ {shape!r} is no shape")
            made.type.tensor_type.shape.SetInParent()
            for size in re.findall(r"-?\d+", shape):
                dim = made.type.tensor_type.shape.dim.add()
                if int(size) > 0:
                    dim.dim_value = int(size)
        return made

    def _value_info(self, name: str, like: np.ndarray[Any, Any] | TypeSpec) -> Any:
        made = self._onnx.ValueInfoProto(name=name)
        if like.dtype is not None:
            made.type.tensor_type.elem_type = code_of(like.dtype, f"input {name!r}")
        if like.shape is not None:
            made.type.tensor_type.shape.SetInParent()
            for size in like.shape:
                dim = made.type.tensor_type.shape.dim.add()
                if size is not None:
                    dim.dim_value = size
        return made

    # What came together.

    def inputs(self, *, new_ones_too: bool) -> list[Any]:
        """Give the inputs of the graph in order; with new initializers if the version wants it."""
        self._inputs.sort(key=lambda item: item[0])
        found = [value for _, value in self._inputs]
        if new_ones_too:
            found += [self._value_info(name, array) for name, array in self._new_arrays]
        return found

    def initializers(self) -> list[Any]:
        """Give the initializers in order."""
        self._initializers.sort(key=lambda item: item[0])
        return [item[1] for item in self._initializers]

    def sparse(self) -> list[Any]:
        """Give the sparse initializers in order."""
        self._sparse.sort(key=lambda item: item[0])
        return [item[1] for item in self._sparse]

    def arrays(self) -> tuple[dict[int, np.ndarray[Any, Any]], dict[int, bool]]:
        """Give the arrays that are not in the messages of `initializers`, by number.

        Returns
        -------
        arrays : dict of int to numpy.ndarray
        external : dict of int to bool
            Which of them stand in another file, and whether they changed.
        """
        self.initializers()
        items = list(enumerate(self._initializers))
        arrays = {number: item[2] for number, item in items if item[2] is not None}
        external = {number: item[3] for number, item in items if item[3] is not None}
        return arrays, external


def _is_like(array: np.ndarray[Any, Any], other: np.ndarray[Any, Any] | None) -> bool:
    return other is not None and (array.shape, array.dtype) == (other.shape, other.dtype)


def _renamed(proto: Any, old: str, new: str, inside: str = "") -> Any:
    if old == new:
        return proto
    made = type(proto)()
    made.CopyFrom(proto)
    (getattr(made, inside) if inside else made).name = new
    return made


def _bytes_of(array: np.ndarray[Any, Any]) -> bytes:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _fill_header(proto: Any, array: np.ndarray[Any, Any], name: str) -> None:
    """Write name, type and dimensions, and take the old elements out."""
    for field in _DATA_FIELDS:
        proto.ClearField(field)
    proto.data_type = code_of(array.dtype, f"parameter {name!r}")
    del proto.dims[:]
    proto.dims.extend(array.shape)
    proto.name = name
