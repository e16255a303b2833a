"""Variables of a graph as inputs, initializers and constants of ONNX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib._core import NodeTuple
from passlib.arrays import dtypes
from passlib.dialects.onnx.keys import ID
from passlib.dialects.onnx.messages import copy_of, value_info, with_name
from passlib.dialects.onnx.originals import OriginalTensor
from passlib.dialects.onnx.tensors import DATA_FIELDS, code_of, same_array, to_bytes
from passlib.dialects.onnx.writing.level import Level
from passlib.dialects.onnx.writing.naming import Names
from passlib.dialects.onnx.writing.unchanged import same_params
from passlib.errors import UnsupportedError
from passlib.files.optional import require
from passlib.lowering.types import TypeSpec

__all__ = ["LevelVariables"]

_INLINE = 4096
"""Arrays of fewer bytes are put into the message at once."""

_NEW = 1 << 40
"""Order of the first new variable: after all those of the file."""


class LevelVariables:
    """Collects the inputs, initializers and constants of one graph.

    Parameters
    ----------
    level : Level
    names : Names
    params : mapping of str to numpy.ndarray
        Values by name of the variable; empty for nested graphs, whose values stay.
    fed : mapping of str to TypeSpec
        Variables that become inputs, whatever they are in the file.
    """

    def __init__(
        self,
        level: Level,
        names: Names,
        params: Mapping[str, np.ndarray[Any, Any]],
        fed: Mapping[str, TypeSpec],
    ) -> None:
        self._level = level
        self._document = level.document
        self._names = names
        self._params = params
        self._fed = fed
        self._same = same_params(level.document, params) if params else set()
        self._onnx: Any = require("onnx", extra="onnx")
        self._inputs: list[tuple[int, Any]] = []
        self._new_arrays: list[tuple[str, np.ndarray[Any, Any]]] = []
        self._initializers: list[tuple[int, Any, Any, bool | None]] = []
        self._sparse: list[tuple[int, Any]] = []
        self.changed: set[str] = set()
        """Constants that are fed, or whose elements are not those of the file, by `ID`."""
        self.retyped: set[str] = set()
        """Those of them whose type or shape may have changed too."""

    def add(self, position: int) -> Any:
        """Add a variable.

        Returns
        -------
        onnx.NodeProto or None
            The node, if the variable is a constant node of the file.

        Raises
        ------
        UnsupportedError
            ONNX has no form for the array, or for a variable without a type.
        """
        node, claim = self._level.nodes[position], self._level.claim(position)
        name = self._names.of[position, 0]
        key = claim or node.attrs.get(ID, "")
        array = self._params.get(node.name)
        if array is not None and not isinstance(array, np.ndarray):
            raise UnsupportedError(
                f"parameter {node.name!r} is sparse; ONNX files are written with dense ones only"
            )
        tensor = self._document.tensors.get(key)
        if tensor is not None and node.name in self._fed:
            self.changed.add(key)
            self.retyped.add(key)
            self._inputs.append((_NEW + position, _typed(name, self._fed[node.name])))
            return None
        if tensor is None:
            self._add_untied(position, key, array)
            return None
        same = array is None or self._is_same(node.name, array, tensor)
        if not same:
            self.changed.add(key)
            if array is None or not _is_like(array, tensor.array):
                self.retyped.add(key)
        if tensor.kind == "constant":
            return self._constant(tensor, name, None if same else array)
        order = tensor.order if claim else _NEW + position
        if tensor.kind == "sparse" and same:
            self._sparse.append((order, _renamed_sparse(tensor.proto, name)))
        elif same:
            self._keep(order, tensor, name)
        else:
            assert array is not None
            self._make(order, array, name, tensor)
        if tensor.input is not None:
            value, number = tensor.input
            if same or array is None:
                self._inputs.append((number, with_name(value, name)))
            else:
                self._inputs.append((number, _typed(name, array)))
        return None

    def _is_same(self, name: str, array: np.ndarray[Any, Any], tensor: OriginalTensor) -> bool:
        if name == tensor.name:
            return name in self._same
        return tensor.array is not None and same_array(array, tensor.array)

    def _add_untied(self, position: int, key: str, array: np.ndarray[Any, Any] | None) -> None:
        """Add a variable that is not a constant of the file."""
        node = self._level.nodes[position]
        name = self._names.of[position, 0]
        if node.name in self._fed and key not in self._document.inputs:
            self._inputs.append((_NEW + position, _typed(name, self._fed[node.name])))
        elif array is not None:
            self._make(_NEW + position, array, name)
            self._new_arrays.append((name, array))
        elif key in self._document.inputs:
            value, number = self._document.inputs[key]
            self._inputs.append((number, with_name(value, name)))
        else:
            self._inputs.append((_NEW + position, _described(node, name)))

    def _keep(self, order: int, tensor: OriginalTensor, name: str) -> None:
        proto = with_name(tensor.proto, name)
        aside = tensor.array if tensor.detached or tensor.external else None
        unchanged = False if tensor.external and aside is not None else None
        self._initializers.append((order, proto, aside, unchanged))

    def _make(
        self,
        order: int,
        array: np.ndarray[Any, Any],
        name: str,
        tensor: OriginalTensor | None = None,
    ) -> None:
        """Make an initializer of an array, which may replace that of the file."""
        dense = tensor is not None and tensor.kind == "initializer"
        proto = copy_of(tensor.proto) if tensor and dense else self._onnx.TensorProto()
        _fill_header(proto, array, name)
        if tensor is not None and tensor.external:
            self._initializers.append((order, proto, array, True))
            return
        proto.ClearField("external_data")
        proto.ClearField("data_location")
        if array.nbytes < _INLINE:
            proto.raw_data = to_bytes(array)
            self._initializers.append((order, proto, None, None))
        else:
            self._initializers.append((order, proto, array, None))

    def _constant(
        self, tensor: OriginalTensor, name: str, array: np.ndarray[Any, Any] | None
    ) -> Any:
        if array is None and name == tensor.name:
            return tensor.proto
        made = copy_of(tensor.proto)
        made.output[0] = name
        if array is not None:
            del made.attribute[:]
            value = made.attribute.add(name="value", type=self._onnx.AttributeProto.TENSOR).t
            _fill_header(value, array, "")
            value.ClearField("name")
            value.raw_data = to_bytes(array)
        return made

    # The results.

    def inputs(self, *, with_new: bool) -> list[Any]:
        """Return the inputs of the graph in order, new initializers included if ``with_new``."""
        self._inputs.sort(key=lambda item: item[0])
        found = [value for _, value in self._inputs]
        if with_new:
            found += [_typed(name, array) for name, array in self._new_arrays]
        return found

    def initializers(self) -> list[Any]:
        """Return the initializers in order."""
        self._initializers.sort(key=lambda item: item[0])
        return [item[1] for item in self._initializers]

    def sparse(self) -> list[Any]:
        """Return the sparse initializers in order."""
        self._sparse.sort(key=lambda item: item[0])
        return [item[1] for item in self._sparse]

    def arrays(self) -> tuple[dict[int, np.ndarray[Any, Any]], dict[int, bool]]:
        """Return the arrays that are not in the messages of `initializers`.

        Returns
        -------
        arrays : dict of int to numpy.ndarray
            By number of the initializer.
        external : dict of int to bool
            Those of them that are in another file, and whether they changed.
        """
        self.initializers()
        items = list(enumerate(self._initializers))
        arrays = {number: item[2] for number, item in items if item[2] is not None}
        external = {number: item[3] for number, item in items if item[3] is not None}
        return arrays, external


def _typed(name: str, like: np.ndarray[Any, Any] | TypeSpec) -> Any:
    """Describe an input with the element type and shape of an array."""
    code = None if like.dtype is None else code_of(like.dtype, f"input {name!r}")
    return value_info(name, code, like.shape)


def _described(node: NodeTuple, name: str) -> Any:
    """Describe a new input by its attributes ``__dtype__`` and ``__shape__``."""
    dtype, shape = node.attrs.get("__dtype__"), node.attrs.get("__shape__")
    if dtype is None:
        raise UnsupportedError(
            f"variable {node.name!r} is new and has no values; allocate them with alloc_arg, or "
            "state the type of a new model input as __dtype__ and __shape__"
        )
    if not re.fullmatch(r"\d{1,3}", dtype):
        raise UnsupportedError(f"variable {node.name!r}: __dtype__ {dtype!r} is not a number")
    code = code_of(dtypes.from_code(int(dtype)), f"{node.name!r}")
    if shape is None:
        return value_info(name, code, None)
    if not re.fullmatch(r"[\[(][-\d, ]*[\])]", shape):
        raise UnsupportedError(f"variable {node.name!r}: __shape__ {shape!r} is not a shape")
    sizes = map(int, re.findall(r"-?\d+", shape))
    return value_info(name, code, [size if size > 0 else None for size in sizes])


def _is_like(array: np.ndarray[Any, Any], other: np.ndarray[Any, Any] | None) -> bool:
    return other is not None and (array.shape, array.dtype) == (other.shape, other.dtype)


def _renamed_sparse(proto: Any, name: str) -> Any:
    if proto.values.name == name:
        return proto
    made = copy_of(proto)
    made.values.name = name
    return made


def _fill_header(proto: Any, array: np.ndarray[Any, Any], name: str) -> None:
    """Set name, type and dimensions, and remove the old elements."""
    for field in DATA_FIELDS:
        proto.ClearField(field)
    proto.data_type = code_of(array.dtype, f"parameter {name!r}")
    del proto.dims[:]
    proto.dims.extend(array.shape)
    proto.name = name
