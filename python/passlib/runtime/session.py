"""Running lowered models on ONNX Runtime."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from passlib.dialects import find
from passlib.dialects.onnx.nested import graphs_within
from passlib.errors import InputError, PasslibError, no_input
from passlib.files.installation import ort_library
from passlib.files.optional import require
from passlib.graph.plain import PlainGraph
from passlib.library.ending import ForeignCall
from passlib.library.registry import find_operator
from passlib.lowering import Lowered, TypeSpec, blame, describe
from passlib.lowering.builder import LIBRARIES
from passlib.lowering.types import Value
from passlib.runtime.interrupts import interruptible
from passlib.runtime.settings import DEFAULT, Settings

_STRINGS = "tensor(string)"

_UNLIKE_NUMPY: Final = MappingProxyType(
    {
        "tensor(bfloat16)": "bfloat16",
        "tensor(float8e4m3fn)": "float8_e4m3fn",
        "tensor(float8e4m3fnuz)": "float8_e4m3fnuz",
        "tensor(float8e5m2)": "float8_e5m2",
        "tensor(float8e5m2fnuz)": "float8_e5m2fnuz",
        "tensor(float8e8m0)": "float8_e8m0fnu",
    }
)
"""Types of ONNX Runtime whose elements only the package ml_dtypes has, and their names there."""


_LIBRARIES: Final = "passlib.libraries"
"""The entry of the session options that names libraries; see docs/onnxruntime.md."""


def _libraries(model: Any) -> list[str]:
    """Return the paths of the loaded libraries that own operators of a model's nodes.

    Raises `PasslibError` if no loaded library owns one of them.
    """
    if all(each.domain != LIBRARIES for each in model.opset_import):
        return []
    functions = {each.name for each in model.functions if each.domain == LIBRARIES}
    paths: dict[str, None] = {}
    for graph in graphs_within(model.graph, *model.functions):
        for node in graph.node:
            if node.domain != LIBRARIES or node.op_type in functions:
                continue
            operator = find_operator(node.op_type)
            if operator is None:
                raise PasslibError(
                    f"node {node.name!r}: no loaded library has the operator {node.op_type!r}; "
                    "load it with passlib.library.load, or -l FILE in commands"
                )
            if os.pathsep in operator.library.path:
                raise PasslibError(
                    f"library {operator.library.path!r}: ONNX Runtime is given paths separated by "
                    f"{os.pathsep!r}; load the library from a path without it"
                )
            paths[operator.library.path] = None
    return list(paths)


class Session:
    """A model compiled by ONNX Runtime, ready to run many times.

    Raises `PasslibError` if ONNX Runtime is absent, lacks a provider or an option, or refuses the
    model.

    Parameters
    ----------
    lowered : Lowered
        Its weights are used in place, without a copy, and kept alive by the session. ONNX
        Runtime may keep its own rearranged copies, so a changed weight needs a new session.
    optimization, threads
        Replace those of the settings.
    """

    def __init__(
        self,
        lowered: Lowered,
        settings: Settings = DEFAULT,
        *,
        optimization: str | None = None,
        threads: int | None = None,
    ) -> None:
        if optimization is not None:
            settings = settings._replace(optimization=optimization)
        if threads is not None:
            settings = settings._replace(threads=threads)
        self._runtime: Any = require("onnxruntime", extra="run")
        self._lowered = lowered
        self._inputs = _inputs(lowered)
        providers = settings.providers_for(self._runtime)
        options = settings.session_options(self._runtime)
        libraries = _libraries(lowered.model)
        self._weights = {name: self._wrap(array) for name, array in lowered.weights.items()}
        if self._weights:
            options.add_external_initializers(
                list(self._weights.keys()), list(self._weights.values())
            )
        if settings.on_cpu:
            # Otherwise each session copies the weights that it does not rearrange.
            for name, weight in self._weights.items():
                options.add_initializer(name, weight)
        try:
            if libraries:
                options.add_session_config_entry(_LIBRARIES, os.pathsep.join(libraries))
                options.register_custom_ops_library(ort_library())
            with ForeignCall():
                self._session = self._runtime.InferenceSession(
                    lowered.model.SerializeToString(), options, providers=providers
                )
        except Exception as error:
            raise self._translated(error, "refuses the model") from error
        given, made = self._session.get_inputs(), self._session.get_outputs()
        self._others = {value.name: value.type for value in given if not _is_tensor(value.type)}
        # Arrays of NumPy's types go in and out in a tenth of the time that OrtValues take.
        ends = [value.type for value in (*given, *made)]
        self._wraps = all(map(_is_tensor, ends)) and not _UNLIKE_NUMPY.keys().isdisjoint(ends)

    @property
    def weight_bytes(self) -> int:
        """Size of the weights, of which ONNX Runtime may keep a rearranged copy."""
        return sum(array.nbytes for array in self._lowered.weights.values())

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs that `run` needs."""
        return self._lowered.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, in order."""
        return self._lowered.output_names

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Compute the outputs.

        ``feeds``: one array for each input, of its element type and shape. Result: in the order of
        `output_names`. Sequences are lists, maps are dictionaries, and an optional value may be
        None; this goes for feeds, too. Raises `GraphError` if an input is missing, unknown, or of
        another element type or shape than the model's; `PasslibError` if ONNX Runtime failed; the
        message names the source node.
        """
        return self._compute(feeds, self.output_names)

    def run_updating(self, feeds: Mapping[str, Any]) -> tuple[list[Any], dict[str, np.ndarray]]:
        """Compute the outputs, and the new content of variables that operators write to.

        ``feeds``: see `run`.

        Returns
        -------
        outputs : list of numpy.ndarray
            In the order of `output_names`.
        updates : dict of str to numpy.ndarray
            The new content of each variable that is written to, such as a running mean in
            training. The weights themselves stay as they are.

        Errors are those of `run`.
        """
        updates, names = self._lowered.updates, self.output_names
        if not updates:
            return self._compute(feeds, names), {}
        arrays = self._compute(feeds, (*names, *updates.values()))
        count = len(names)
        return arrays[:count], dict(zip(updates, arrays[count:], strict=True))

    def _compute(self, feeds: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
        if not feeds.keys() <= self._inputs.keys():
            unknown = sorted(feeds.keys() - self._inputs.keys())
            raise InputError(no_input(unknown, list(self._inputs)))
        values = {name: self._feed(value, feeds) for name, value in self._inputs.items()}
        compute = self._session.run_with_ort_values if self._wraps else self._session.run
        with ForeignCall():
            found: list[Any] = interruptible(
                compute,
                (list(names), values),
                self._runtime.RunOptions,
                lambda error: self._translated(error, "failed"),
            )
        return [_unwrap(output) for output in found] if self._wraps else found

    def _feed(self, value: Value, feeds: Mapping[str, Any]) -> Any:
        kind = self._others.get(value.name, "")
        if value.name not in feeds:
            if kind.startswith("optional("):
                return None
            raise InputError(f"input {value.name!r} ({kind or describe(value)}) is missing")
        if kind and kind != _STRINGS:
            return feeds[value.name]
        array = np.asarray(feeds[value.name])
        if kind == _STRINGS:
            array = _strings(value.name, array)
        if array.dtype != value.dtype:
            raise InputError(
                f"input {value.name!r} has element type {array.dtype}, the model wants "
                f"{value.dtype}; convert it with .astype({str(value.dtype)!r})"
            )
        if not _fits(value.shape, array.shape):
            raise InputError(
                f"input {value.name!r} has shape {array.shape}, the model wants {describe(value)}"
            )
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        return self._wrap(array) if self._wraps else array

    def _wrap(self, array: np.ndarray) -> Any:
        """Wrap an array for ONNX Runtime without a copy; the OrtValue keeps it alive."""
        plain = array.view(np.ndarray)
        if plain.dtype.name in _UNLIKE_NUMPY.values():
            helper: Any = require("onnx.helper", extra="onnx")
            code = helper.np_dtype_to_tensor_dtype(plain.dtype)
            return self._runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(
                plain.view(f"u{plain.itemsize}"), code
            )
        return self._runtime.OrtValue.ortvalue_from_numpy(plain)

    def _translated(self, error: Exception, verb: str) -> PasslibError:
        text = str(error)
        named = re.search(r"Name: ?'([^']*)'", text) or re.search(r"\(node:?\s*([^\s)]+)\)", text)
        node = self._lowered.source_of.get(named.group(1)) if named else None
        where = f"{blame(node)}: " if node is not None else ""
        kind = _OutOfBoundsError if _OUT_OF_BOUNDS.search(text) else PasslibError
        return kind(f"{where}ONNX Runtime {verb}: {text}")


_OUT_OF_BOUNDS: Final = re.compile("invalid ind(ex|ice) found|indices element out of data bounds")


class _OutOfBoundsError(PasslibError, IndexError):
    """ONNX Runtime found an index beyond its axis."""


def run(
    symbol: PlainGraph,
    inputs: Mapping[str, np.ndarray],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
    optimization: str = "all",
) -> list[np.ndarray]:
    """Compute the outputs of a symbol once.

    Result: one for each output of the symbol. Raises `GraphError` if inputs of a node do not fit
    together; `UnsupportedError` if an operator, an attribute or an element type has no faithful
    translation; `PasslibError` if ONNX Runtime failed.

    Parameters
    ----------
    inputs : mapping of str to numpy.ndarray
        Data, whose element types and shapes the model is lowered for.
    params : mapping of str to numpy.ndarray
        Weights and auxiliary states.
    train : bool
        Run as in training.
    optimization : str
        See `Settings`.
    """
    arrays = {name: np.asarray(array) for name, array in inputs.items()}
    specs = {name: TypeSpec(array.dtype, array.shape) for name, array in arrays.items()}
    dialect = find(symbol.dialect)
    lowered = dialect.lower(symbol, specs, params, train=train)
    return Session(lowered, Settings(optimization=optimization)).run(arrays)


def _inputs(lowered: Lowered) -> dict[str, Value]:
    by_name = {value.name: value for value in lowered.value_of.values()}
    return {name: by_name[name] for name in lowered.input_names}


def _fits(wanted: Sequence[int | None] | None, shape: Sequence[int]) -> bool:
    if wanted is None:
        return True
    if len(wanted) != len(shape):
        return False
    for want, have in zip(wanted, shape, strict=True):
        if want is not None and want != have:
            return False
    return True


def _is_tensor(kind: str) -> bool:
    """Whether ONNX Runtime hands over values of a type as memory: tensors other than strings."""
    return kind.startswith("tensor(") and kind != _STRINGS


def _strings(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of strings as Python objects, which ONNX Runtime takes."""
    items = array.reshape(-1).tolist()
    if array.dtype.kind not in "OU" or not all(isinstance(item, str) for item in items):
        raise InputError(
            f"input {name!r} has element type {array.dtype}, the model wants strings, such as "
            "numpy.array(['a', 'b'])"
        )
    return array.astype(object)


def _unwrap(output: Any) -> np.ndarray:
    name = _UNLIKE_NUMPY.get(output.data_type())
    if name is None:
        try:
            array: np.ndarray = output.numpy()
        except RuntimeError as error:  # such as of four bits
            kind = output.data_type()
            raise PasslibError(f"NumPy has no type for an output of type {kind}") from error
        return array
    made = np.empty(tuple(output.shape()), getattr(require("ml_dtypes", extra="run"), name))
    if made.size:
        ctypes.memmove(made.ctypes.data, output.data_ptr(), made.nbytes)
    return made
