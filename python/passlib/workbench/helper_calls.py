"""Writes ONNX messages as Python text: plain calls of onnx.helper."""

from __future__ import annotations

import base64
import itertools
import keyword
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from passlib.errors import UnsupportedError
from passlib.files.optional import require

_WIDTH: Final = 96
_MOST_LISTED: Final = 256
"""Larger arrays are written as compressed bytes."""

_OWN_PARAMETERS: Final = frozenset(
    ("op_type", "inputs", "outputs", "name", "doc_string", "domain", "overload", "kwargs")
)
"""Parameters of make_node, so that no attribute can have their names there."""


class Calls:
    """Statements that make models.

    Attributes
    ----------
    lines : list of str
    arrays : dict of key to (str, str)
        Variable and text of each array that the statements use.

    Parameters
    ----------
    seeded : dict of key to str
        Text of the arrays that are drawn, by `array_key`.
    """

    def __init__(self, seeded: dict[Any, str]) -> None:
        self.lines: list[str] = []
        self.arrays: dict[Any, tuple[str, str]] = {}
        self._seeded = seeded
        self._bodies = itertools.count()
        self._functions = itertools.count()

    def array(self, array: np.ndarray[Any, Any], name: str = "") -> str:
        """Return a variable that has the elements of an array.

        ``name``: the preferred name of a new variable.
        """
        key = array_key(array)
        if key not in self.arrays:
            taken = {variable for variable, _ in self.arrays.values()}
            is_free = name[:1] in ("w", "x") and name[1:].isdecimal() and name not in taken
            number = len(self.arrays)
            variable = name if is_free else f"array{number}"
            self.arrays[key] = variable, self._seeded.get(key) or array_text(array)
        return self.arrays[key][0]

    def model(self, model: Any, variable: str) -> None:
        """Add the statements that make a model."""
        functions = [self._function(function) for function in model.functions]
        graph = f"{variable}_graph"
        self._graph(model.graph, graph)
        given = [graph, f"opset_imports=[{', '.join(map(_opset, model.opset_import))}]"]
        given.append(f"ir_version={model.ir_version}")
        if functions:
            given.append(f"functions=[{', '.join(functions)}]")
        given += _stated(model, ("producer_name", "producer_version", "domain", "model_version"))
        self.lines.append(_call(f"{variable} = helper.make_model", given))
        self._metadata(model, variable)

    def _metadata(self, message: Any, place: str) -> None:
        pairs = {each.key: each.value for each in message.metadata_props}
        if pairs:
            self.lines.append(f"helper.set_metadata_props({place}, {quoted(pairs)})")

    def _function(self, function: Any) -> str:
        variable = f"function{next(self._functions)}"
        nodes, later = self._nodes(function.node, variable)
        given = [
            quoted(function.domain),
            quoted(function.name),
            _names(function.input),
            _names(function.output),
            _rows(nodes),
            f"[{', '.join(map(_opset, function.opset_import))}]",
            _names(function.attribute),
            _rows([self._attribute(each) for each in function.attribute_proto]),
        ]
        if function.overload:
            given.append(f"overload={quoted(function.overload)}")
        if function.value_info:
            given.append(f"value_info={_rows([_value(each) for each in function.value_info])}")
        self.lines += [_call(f"{variable} = helper.make_function", given), *later]
        self._metadata(function, variable)
        return variable

    def _graph(self, graph: Any, variable: str) -> None:
        nodes, later = self._nodes(graph.node, variable)
        given = [
            _rows(nodes),
            quoted(graph.name),
            _rows([_value(each) for each in graph.input]),
            _rows([_value(each) for each in graph.output]),
            _rows([self._tensor(each) for each in graph.initializer]),
        ]
        if graph.value_info:
            given.append(f"value_info={_rows([_value(each) for each in graph.value_info])}")
        if graph.sparse_initializer:
            sparse = [self._sparse(each) for each in graph.sparse_initializer]
            given.append(f"sparse_initializer={_rows(sparse)}")
        self.lines += [_call(f"{variable} = helper.make_graph", given), *later]
        self._metadata(graph, variable)
        for field in ("input", "output", "value_info", "initializer"):
            for i, each in enumerate(getattr(graph, field)):
                self._metadata(each, f"{variable}.{field}[{i}]")

    def _nodes(self, nodes: Sequence[Any], variable: str) -> tuple[list[str], list[str]]:
        """Return calls that make nodes, and statements for what these calls do not take."""
        made, later = [], []
        for number, node in enumerate(nodes):
            given = [quoted(node.op_type), _names(node.input), _names(node.output)]
            given += _stated(node, ("name", "domain", "overload"))
            place = f"{variable}.node[{number}]"
            for attribute in node.attribute:
                if is_keyword(attribute):
                    given.append(f"{attribute.name}={self._value_of(attribute)}")
                else:
                    later.append(f"{place}.attribute.append({self._attribute(attribute)})")
            made.append(f"helper.make_node({', '.join(given)})")
            pairs = {each.key: each.value for each in node.metadata_props}
            if pairs:
                later.append(f"helper.set_metadata_props({place}, {quoted(pairs)})")
        return made, later

    def _attribute(self, attribute: Any) -> str:
        name, kind = quoted(attribute.name), f"onnx.AttributeProto.{kind_of(attribute)}"
        if attribute.ref_attr_name:
            referred = quoted(attribute.ref_attr_name)
            return f"onnx.AttributeProto(name={name}, ref_attr_name={referred}, type={kind})"
        return f"helper.make_attribute({name}, {self._value_of(attribute)}, attr_type={kind})"

    def _value_of(self, attribute: Any) -> str:
        kind = kind_of(attribute)
        field, make = self._writers()[kind.removesuffix("S")]
        if kind.endswith("S"):
            plural = {"f": "floats", "i": "ints", "s": "strings", "t": "tensors", "g": "graphs"}
            values = getattr(attribute, plural.get(field) or kind.lower())
            return f"[{', '.join(map(make, values))}]"
        return make(getattr(attribute, field))

    def _writers(self) -> dict[str, tuple[str, Callable[[Any], str]]]:
        """Return the field of each kind of attribute, and the function that writes its value."""
        return {
            "FLOAT": ("f", lambda value: number_text(np.float32(value))),
            "INT": ("i", str),
            "STRING": ("s", _text),
            "TENSOR": ("t", self._tensor),
            "GRAPH": ("g", self._body),
            "SPARSE_TENSOR": ("sparse_tensor", self._sparse),
            "TYPE_PROTO": ("tp", type_text),
        }

    def _body(self, graph: Any) -> str:
        variable = f"body{next(self._bodies)}"
        self._graph(graph, variable)
        return variable

    def _tensor(self, tensor: Any) -> str:
        if tensor.raw_data and not is_plain_type(tensor.data_type):
            helper = require("onnx.helper", extra="onnx")
            kind = helper.tensor_dtype_to_string(tensor.data_type)
            sizes = str(list(tensor.dims))
            content = _bytes_text(tensor.raw_data)
            return (
                f"helper.make_tensor({quoted(tensor.name)}, {kind}, {sizes}, {content}, raw=True)"
            )
        array = array_of(tensor)
        name = f", {quoted(tensor.name)}" if tensor.name else ""
        return f"numpy_helper.from_array({self.array(array, tensor.name)}{name})"

    def _sparse(self, tensor: Any) -> str:
        values, indices = self._tensor(tensor.values), self._tensor(tensor.indices)
        return f"helper.make_sparse_tensor({values}, {indices}, {list(tensor.dims)})"


def _stated(message: Any, fields: Sequence[str]) -> list[str]:
    """Return keyword arguments for the fields that a message has."""
    return [
        f"{field}={quoted(getattr(message, field))}" for field in fields if getattr(message, field)
    ]


def is_keyword(attribute: Any) -> bool:
    """Whether a call of make_node can have an attribute as a keyword argument."""
    name, kind = attribute.name, kind_of(attribute)
    if attribute.ref_attr_name or name in _OWN_PARAMETERS or keyword.iskeyword(name):
        return False
    plural = kind.lower() if kind.endswith("S") else ""
    return bool(name.isidentifier() and (not plural or len(getattr(attribute, plural))))


_KINDS: Final = {
    "f": "FLOAT", "i": "INT", "s": "STRING", "t": "TENSOR", "g": "GRAPH", "tp": "TYPE_PROTO",
    "sparse_tensor": "SPARSE_TENSOR",
}  # fmt: skip
_PLURALS: Final = (
    "floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos"
)  # fmt: skip


def kind_of(attribute: Any) -> str:
    """Return the name of an attribute's type, which old files do not state."""
    if attribute.type:
        kinds = require("onnx", extra="onnx").AttributeProto.AttributeType
        return str(kinds.Name(attribute.type))
    single = [kind for field, kind in _KINDS.items() if attribute.HasField(field)]
    several = [field.upper() for field in _PLURALS if len(getattr(attribute, field))]
    return [*single, *several, "INTS"][0]


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor; strings that are not of UTF-8 as bytes."""
    if tensor.data_type != require("onnx", extra="onnx").TensorProto.STRING:
        array: np.ndarray[Any, Any] = require("onnx.numpy_helper", extra="onnx").to_array(tensor)
        return array
    made = np.empty(len(tensor.string_data), object)
    made[:] = [_decoded(content) for content in tensor.string_data]
    return made.reshape(tuple(tensor.dims))


def is_plain_type(code: int) -> bool:
    """Whether NumPy has an element type of ONNX by itself."""
    names = require("onnx", extra="onnx").TensorProto.DataType
    plain = "FLOAT16 FLOAT DOUBLE BOOL STRING COMPLEX64 COMPLEX128"
    sizes = (8, 16, 32, 64)
    known = {*plain.split(), *(f"{sign}INT{size}" for size in sizes for sign in ("", "U"))}
    return names.Name(code) in known


def quoted(text: Any) -> str:
    """Return a literal; that of a text has double quotation marks if possible."""
    literal = ascii(text)
    is_simple = isinstance(text, str) and not {"'", '"'} & {*text}
    return f'"{literal[1:-1]}"' if is_simple else literal


def _names(names: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, names))}]"


def _opset(opset: Any) -> str:
    return f"helper.make_opsetid({quoted(opset.domain)}, {opset.version})"


def _value(value: Any) -> str:
    """Return a call that makes the description of a value."""
    name = quoted(value.name)
    if not value.HasField("type"):
        return f"helper.make_empty_tensor_value_info({name})"
    if value.type.WhichOneof("value") == "tensor_type":
        given = _tensor_type(value.type.tensor_type)
        return f"helper.make_tensor_value_info({name}, {given})"
    return f"helper.make_value_info({name}, {type_text(value.type)})"


def type_text(kind: Any) -> str:
    """Return an expression that makes a type.

    Raises
    ------
    UnsupportedError
        onnx.helper cannot make it.
    """
    which = kind.WhichOneof("value")
    if which is None:
        return "onnx.TypeProto()"
    inner = getattr(kind, which)
    if which in ("tensor_type", "sparse_tensor_type"):
        return f"helper.make_{which}_proto({_tensor_type(inner)})"
    if which in ("sequence_type", "optional_type"):
        return f"helper.make_{which}_proto({type_text(inner.elem_type)})"
    if which == "map_type":
        key = _element_type(inner.key_type)
        return f"helper.make_map_type_proto({key}, {type_text(inner.value_type)})"
    raise UnsupportedError(f"onnx.helper makes no type of the kind {which}")


def _tensor_type(kind: Any) -> str:
    sizes = "None"
    if kind.HasField("shape"):
        texts = []
        for dim in kind.shape.dim:
            which = dim.WhichOneof("value")
            texts.append("None" if which is None else quoted(getattr(dim, which)))
        sizes = f"[{', '.join(texts)}]"
    return f"{_element_type(kind.elem_type)}, {sizes}"


def _element_type(code: int) -> str:
    return f"TensorProto.{require('onnx', extra='onnx').TensorProto.DataType.Name(code)}"


def _rows(texts: Sequence[str]) -> str:
    """Return a list, with one element a line if there are several or long ones."""
    line = f"[{', '.join(texts)}]"
    if len(texts) < 2 and len(line) < _WIDTH:
        return line
    return "[\n" + "".join(f"{_indented(text, 8)},\n" for text in texts) + "    ]"


def _indented(text: str, spaces: int) -> str:
    return " " * spaces + text


def _call(name: str, given: Sequence[str]) -> str:
    line = f"{name}({', '.join(given)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in given) + ")"


def _text(value: bytes) -> str:
    """Return a literal for a string, which is bytes if it is not of UTF-8."""
    return quoted(_decoded(value))


def _decoded(content: bytes) -> str | bytes:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content


def _bytes_text(content: bytes) -> str:
    if len(content) <= _MOST_LISTED:
        return f'bytes.fromhex("{content.hex()}")'
    packed = base64.b64encode(zlib.compress(content, 9)).decode()
    rows = [packed[i : i + _WIDTH - 16] for i in range(0, len(packed), _WIDTH - 16)]
    body = "".join(f'        "{row}"\n' for row in rows)
    return f"zlib.decompress(base64.b64decode(\n{body}    ))"


def array_key(array: np.ndarray[Any, Any]) -> Any:
    """Return a key that is equal for equal arrays."""
    content = repr(array.tolist()) if array.dtype.kind in "OSU" else array.tobytes()
    return array.dtype.str, array.shape, content


def number_text(value: Any) -> str:
    """Return the shortest literal of a number that NumPy's type of it reads as the same."""
    kind = np.asarray(value).dtype.kind
    if kind == "c":
        return f"complex({number_text(value.real)}, {number_text(value.imag)})"
    if kind != "f":
        return repr(value.item())
    if math.isnan(value):
        return "np.nan"
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    short = repr(float(str(value)))
    return short if type(value)(float(short)) == value else repr(float(value))


def array_text(array: np.ndarray[Any, Any]) -> str:
    """Return an expression that makes an array, with all its bits."""
    if array.dtype.kind in "OSU":
        return f"np.array({_listed(array, _string_text)}, object).reshape({array.shape})"
    dtype = f"np.{array.dtype.name}" if array.dtype != np.bool_ else "bool"
    flat = array.reshape(-1)
    if array.size > 4 and _is_same(np.full_like(array, flat[0]), array):
        if flat[0] in (0, 1) and not np.signbit(flat[0].real):
            return f"np.{'ones' if flat[0] else 'zeros'}({array.shape}, {dtype})"
        if flat[0] == flat[0] and array.dtype.kind != "c":
            return f"np.full({array.shape}, {number_text(flat[0])}, {dtype})"
    if not array.size:
        return f"np.zeros({array.shape}, {dtype})"
    is_listed = array.size <= _MOST_LISTED
    if is_listed and array.dtype.kind in "fc":
        reals = np.ascontiguousarray(flat).view(flat.real.dtype)
        is_listed = _is_same(np.array(_read(reals), reals.dtype), reals)
    if is_listed:
        return f"np.array({_listed(array, number_text)}, {dtype})"
    order = array.astype(array.dtype.newbyteorder("<"), copy=False)
    content = _bytes_text(order.tobytes())
    return f'np.frombuffer({content}, "{order.dtype.str}").reshape({array.shape})'


def _is_same(one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> bool:
    return one.tobytes() == two.tobytes()


def _read(flat: np.ndarray[Any, Any]) -> list[float]:
    """Return what the literals of some numbers stand for."""
    special = {"np.nan": np.nan, "np.inf": np.inf, "-np.inf": -np.inf}
    texts = map(number_text, flat)
    return [special[text] if text in special else float(text) for text in texts]


def _string_text(value: Any) -> str:
    return _text(value) if isinstance(value, bytes) else quoted(str(value))


def _listed(array: np.ndarray[Any, Any], write: Callable[[Any], str]) -> str:
    """Return nested lists of the elements; a row that is too long has several lines."""
    if not array.ndim:
        return write(array[()])
    level = [write(value) for value in array.reshape(-1)]
    is_first = True
    for size in reversed(array.shape):
        if not size:
            return "[]"
        rows = [level[i : i + size] for i in range(0, len(level), size)]
        level = [_row(row) if is_first else _joined(row) for row in rows]
        is_first = False
    return level[0]


def _joined(texts: Sequence[str]) -> str:
    line = f"[{', '.join(texts)}]"
    return line if len(line) < _WIDTH - 8 else line.replace("], [", "],\n        [")


def _row(texts: Sequence[str]) -> str:
    lines = [""]
    for text in texts:
        if len(lines[-1]) + len(text) > _WIDTH - 8:
            lines.append("")
        lines[-1] += f"{text}, "
    joined = "\n        ".join(line.rstrip() for line in lines)
    return f"[{joined.rstrip(' ,')}]"
