"""What a model consists of: a graph, its weights, and the rest of its file."""

from __future__ import annotations

import copy
import importlib.util
import math
from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

import passlib._core as _core
from passlib import dialects
from passlib.arrays import BaseSparseNDArray, NDArray
from passlib.arrays.context import cpu
from passlib.arrays.given import as_mapping
from passlib.arrays.storage import Array
from passlib.arrays.views import computed, from_parts, read_only, still_to_compute, to_parts
from passlib.dialects import Dialect, ModelData, find, infer
from passlib.errors import GraphError, PasslibError, listed
from passlib.graph.plain import ORIGIN, without_origins
from passlib.library.lent import NumpyArrays
from passlib.lowering import TypeSpec
from passlib.lowering.shapes import partial_shape
from passlib.model.appearance import Summary, described, described_type, page, summarized
from passlib.model.graph import ModelGraph, graph_of
from passlib.pages import MOST_IN_NOTEBOOKS, Side, content_of, document, framed
from passlib.runtime.runner import Runner

_SHOWN = 20
"""Lines of a representation."""

_VIEWS: WeakValueDictionary[int, NDArray] = WeakValueDictionary()
"""What arrays of NumPy became, while somebody has it: one object in all models that share one."""


class Weights(Mapping[str, Any]):
    """Arrays by name, which can be looked at but not replaced.

    Arrays of NumPy, as readers of files make them, become an `NDArray` each when they are asked
    for: a large model has very many.

    Parameters
    ----------
    arrays : dict of str to array
        Read at each access.
    """

    __slots__ = ("_arrays",)

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> Any:
        array = self._arrays[name]
        _core.check_files((array,))
        array = computed(array)
        if type(array) is not np.ndarray:
            return array
        view = _VIEWS.get(id(array))
        if view is None or view.base is not array:
            view = _VIEWS[id(array)] = array.view(NDArray)
        return view

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def nbytes(self) -> int:
        """The size of all arrays, in bytes."""
        return sum(int(array.nbytes) for array in self._arrays.values())

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}

    def copy(self) -> dict[str, Any]:
        """Return a dictionary of the same arrays."""
        return dict(self)

    def __repr__(self) -> str:
        if not self._arrays:
            return "{}"
        names = list(self._arrays)
        lines = [f"    {name!r}: {_summary(self._arrays[name])}," for name in names[:_SHOWN]]
        if len(names) > _SHOWN:
            lines.append(f"    ... ({len(names)} in all)")
        return "\n".join(("{", *lines, "}"))


def check_weights(symbol: ModelGraph, model: ModelData) -> None:
    """Check that the weights of a model fit its graph.

    Shapes are inferred where the package onnx is installed, which inference needs.

    Parameters
    ----------
    symbol : ModelGraph
        The graph.
    model : ModelData
        With the same graph.

    Raises
    ------
    GraphError
        There are no variables of some names, or a shape contradicts the graph.
    """
    arrays = {**model.args, **model.aux}
    known = symbol.list_inputs()
    unknown = sorted(arrays.keys() - set(known))
    if unknown:
        lacking = [name for name in known if name not in arrays]
        raise GraphError(
            f"{len(unknown)} of {len(arrays)} weights belong to no variable of the graph: "
            f"{listed(unknown, 4)}; its variables without a weight are {listed(lacking, 4)}. "
            "Are they the weights of another model?"
        )
    if not arrays:
        return
    problem = _contradiction(symbol, arrays) or find(symbol.dialect).misfit(model)
    if problem:
        raise GraphError(f"the weights do not fit the graph: {problem}")


def _contradiction(symbol: ModelGraph, arrays: Mapping[str, Any]) -> str:
    """Return what inference has against weights, and not against the graph alone."""
    if importlib.util.find_spec("onnx") is None:
        return ""
    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        infer(symbol, shapes, {name: array.dtype for name, array in arrays.items()})
    except GraphError as error:
        try:
            infer(symbol, {})
        except GraphError:
            return ""  # as saving and running will report
        return str(error)
    return ""


def replaced(
    what: str,
    present: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    others: Mapping[str, Any],
) -> dict[str, Any]:
    """Return weights with other values of some, which have the shape and type of those before.

    Parameters
    ----------
    what : str
        "args" or "aux".
    present : mapping of str to array
    given : mapping of str to array, optional
    others : mapping of str to array
        The model's weights of the other kind.

    Raises
    ------
    TypeError
        A value is not an array, or its element type is another one.
    GraphError
        A weight is one of ``others``, or its shape is another one.
    """
    values = {n: frozen(n, a) for n, a in as_mapping(what, given, "array").items()}
    for name, array in values.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} has {name!r}, but must have arrays by names of variables")
        if name in others:
            other = "aux" if what == "args" else "args"
            raise GraphError(f"weight {name!r} is one of {other}, not of {what}")
        old = present.get(name)
        if old is None:
            continue
        if array.shape != old.shape:
            raise GraphError(f"weight {name!r} has shape {array.shape}; it was {old.shape}")
        if array.dtype != old.dtype:
            raise TypeError(
                f"weight {name!r} has element type {array.dtype}; it was {old.dtype}: convert it "
                f"with .astype({old.dtype.name!r})"
            )
    return {**present, **values}


def is_foreign(symbol: ModelGraph, dialect: Dialect, names: Set[str]) -> bool:
    """Whether arrays have names that the graph does not have, and lack some of its parameters."""
    if not names:
        return False
    known = set(symbol.list_inputs())
    if known.issuperset(names):
        return False
    return bool(dialect.parameters_among(symbol.graph, known - names))


def all_frozen(arrays: Mapping[str, Any], *, owned: bool = False) -> dict[str, Any]:
    """Return weights as the model holds them, see `frozen`.

    ``owned``: nobody else has the dictionary, which becomes the model's.
    """
    held = arrays if owned and isinstance(arrays, dict) else dict(arrays)
    for name in _core.writable_arrays(held, NDArray):
        held[name] = frozen(name, held[name])
    return held


def frozen(name: str, array: Any) -> Any:
    """Return a weight as the model holds it, see `passlib.arrays.views.read_only`.

    Raises
    ------
    TypeError
        The weight is not an array.
    """
    if not isinstance(array, (np.ndarray, BaseSparseNDArray)):
        raise TypeError(f"weight {name!r} is not an array, but of type {type(array).__name__}")
    return read_only(array)


def owner(array: Any) -> Any:
    """Return the array whose whole memory this one is a view of, else the array itself.

    A dialect's template may hold the same array; pickle writes one object only once.
    """
    base = getattr(array, "base", None)
    while isinstance(base, np.ndarray) and _layout(base) == _layout(array):
        array, base = base, base.base
    return array


def _layout(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    context = array.context if isinstance(array, NDArray) else cpu()
    return array.ctypes.data, array.shape, array.strides, array.dtype, context


def _summary(array: Any) -> str:
    stype = array.stype if isinstance(array, BaseSparseNDArray) else ""
    return " ".join(filter(None, (stype, array.dtype.name, str(tuple(array.shape)))))


def remaining(
    before: ModelGraph, after: ModelGraph, *weights: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return weights without those of variables that one graph has and another lacks."""
    gone = set(before.graph.missing_variables(after.graph))
    if not gone:
        return list(weights)
    return [{n: array for n, array in arrays.items() if n not in gone} for arrays in weights]


def drop_removed(before: ModelGraph, after: ModelGraph, *weights: NumpyArrays) -> None:
    """Take the weights of variables that a pass removed out of what was lent to it."""
    stated = [arrays.gone for arrays in weights if arrays.gone is not None]
    if len(stated) == len(weights):
        gone = {name for names in stated for name in names}
    else:
        gone = set(before.graph.missing_variables(after.graph))
    for arrays in weights:
        for name in gone:
            arrays.pop(name, None)


_M = TypeVar("_M", bound="ModelParts")

_AS_THEY_ARE = frozenset((np.ndarray, _core.ScaledArray))
"""Arrays that a model holds as readers make them and writers take them."""


class ModelParts:
    """The parts of a `Model`, which can be looked at, pickled and copied."""

    @classmethod
    def of_parts(
        cls: type[_M],
        symbol: ModelGraph,
        args: Mapping[str, Any],
        aux: Mapping[str, Any],
        template: Any,
        *,
        owned: bool = False,
    ) -> _M:
        """Make a model of parts that belong together: weights are not compared with the graph.

        ``owned``: nobody else has the dictionaries of weights, of which no copies are made.
        """
        made = cls.__new__(cls)
        made._set(symbol, args, aux, template, owned=owned)
        return made

    @classmethod
    def of_data(cls: type[_M], data: ModelData, dialect: str) -> _M:
        """Make a model of what a dialect read: weights are not compared with the graph."""
        symbol = graph_of(data.graph, data.attributes, dialect)
        args, aux = _as_held(data.args), _as_held(data.aux)
        return cls.of_parts(symbol, args, aux, data.template, owned=True)

    def _set(
        self,
        symbol: ModelGraph,
        args: Mapping[str, Any],
        aux: Mapping[str, Any],
        template: Any,
        *,
        owned: bool = False,
    ) -> None:
        self._format = dialects.find(symbol.dialect)
        self._symbol = symbol
        self._args = all_frozen(args, owned=owned)
        self._aux = all_frozen(aux, owned=owned)
        self._template = template
        self._input_names: tuple[str, ...] | None = None
        self._passed_on: frozenset[str] | None = None

    @property
    def _runner(self) -> Runner:
        found: Runner | None = self.__dict__.get("_made_runner")
        if found is None:
            # What another thread made meanwhile may have compiled the graph already.
            found = self.__dict__.setdefault("_made_runner", Runner(self._symbol, self._format))
        return found

    @property
    def symbol(self) -> ModelGraph:
        """The graph."""
        return self._symbol

    @property
    def args(self) -> Mapping[str, Any]:
        """Weights by name. Neither the mapping nor its arrays can be written to."""
        return Weights(self._args)

    @property
    def aux(self) -> Mapping[str, Any]:
        """Auxiliary states by name. Neither the mapping nor its arrays can be written to."""
        return Weights(self._aux)

    @property
    def dialect(self) -> str:
        """The family of models that this one belongs to."""
        return self._format.name

    @property
    def inputs(self) -> list[str]:
        """Names of the variables without weights, which `run` is fed."""
        if self._input_names is None:
            names = self._format.data_inputs(self._symbol.graph)
            weights = self._args.keys() | self._aux.keys()
            self._input_names = tuple(name for name in names if name not in weights)
        return list(self._input_names)

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in order."""
        return self._symbol.list_outputs()

    def data(self, *, origins: bool = True, whole: bool = True) -> ModelData:
        """Return the model as its dialect reads and writes it.

        Parameters
        ----------
        origins : bool
            Whether nodes keep ``__origin__``.
        whole : bool
            Whether all weights are in memory. Otherwise some may be `_core.ScaledArray`.
        """
        _core.check_files((*self._args.values(), *self._aux.values()))
        if whole:
            self._compute()
        graph = self._symbol.graph
        graph = graph if origins else without_origins(graph)
        return self._parts(graph, _as_parts(self._args), _as_parts(self._aux))

    def _written(self, *, origins: bool) -> ModelData:
        """Return the model as its dialect writes it to a file, which changes nothing in it."""
        whole = not self._format.saves_computed
        plain = _all_of_numpy(self._args) and not self._aux
        if origins or not self._format.omits_attributes:
            return self.data(origins=origins, whole=whole)
        if whole:
            self._compute()
        args, aux = self._args, self._aux
        if not plain:
            args, aux = _as_parts(args), _as_parts(aux)
        return self._parts(self._symbol.graph, args, aux, ORIGIN)

    def _parts(
        self,
        graph: _core.Graph,
        args: Mapping[str, Array],
        aux: Mapping[str, Array],
        omitted: str = "",
    ) -> ModelData:
        return ModelData(graph, self._symbol.attributes, args, aux, self._template, omitted)

    def _compute(self) -> None:
        """Compute the weights that a pass left for later."""
        for arrays in (self._args, self._aux):
            for name in still_to_compute(arrays):
                arrays[name] = arrays[name].array

    def __getstate__(self) -> dict[str, Any]:
        _core.check_files((*self._args.values(), *self._aux.values()))
        self._compute()
        return {
            "symbol": self._symbol,
            "args": {name: owner(array) for name, array in self._args.items()},
            "aux": {name: owner(array) for name, array in self._aux.items()},
            "template": self._template,
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._set(**state)

    def __deepcopy__(self: _M, memo: dict[int, Any]) -> _M:
        copied = copy.copy(self)
        for weights in (copied._args, copied._aux):
            weights.update({n: frozen(n, copy.deepcopy(a, memo)) for n, a in weights.items()})
        copied._collect_constants()
        return copied

    @property
    def _constants(self) -> Mapping[str, Any]:
        """The weights as `Runner.run` takes them: one mapping until one of them is replaced."""
        found: Mapping[str, Any] | None = self.__dict__.get("_collected")
        if found is None:
            # What another thread collected meanwhile may be of newer weights.
            found = self.__dict__.setdefault("_collected", self._collected_now())
        return found

    def _collected_now(self) -> Mapping[str, Any]:
        self._compute()
        return MappingProxyType({**self._args, **self._aux})

    def _collect_constants(self) -> None:
        """Collect the weights anew after one was replaced."""
        self.__dict__["_collected"] = self._collected_now()

    def _input_types(self) -> dict[str, TypeSpec]:
        """Return the types that the model states for its inputs, as far as it does."""
        try:
            stated = self._format.input_types(self.data(whole=False))
        except PasslibError:  # such as the absence of the package onnx
            stated = {}
        shapes = dict(self._symbol.graph.variables_with("__shape__"))
        types = dict(self._symbol.graph.variables_with("__dtype__"))
        found = {}
        for name in self.inputs:
            texts = {"__shape__": shapes.get(name), "__dtype__": types.get(name)}
            attributes = {key: text for key, text in texts.items() if text}
            found[name] = stated[name] if name in stated else _declared(attributes)
        return found

    def summary(self) -> Summary:
        """Return a table of the operators: how many there are, and the weights that they use.

        Returns
        -------
        Summary
            Prints as a table; its ``rows`` have the numbers.
        """
        return summarized(repr(self)[1:-1], self._symbol.graph, self._constants)

    def __repr__(self) -> str:
        nodes, weights = len(self._symbol.graph), [*self._args.values(), *self._aux.values()]
        return described(self.dialect, self._input_types(), self.outputs, nodes, weights)

    def _repr_html_(self) -> str:
        summary = self.summary()
        text = page(summary.title, self._input_types(), self.outputs, summary.table)
        if len(self._symbol.graph) > MOST_IN_NOTEBOOKS:
            return text
        return text + framed(repr(self), self._content())

    def to_html(self, title: str = "") -> str:
        """Return a page that draws the model: one HTML document, which loads nothing else.

        Parameters
        ----------
        title : str
            By default the model in one line.
        """
        return document(title or repr(self)[1:-1], self._content())

    def _content(self) -> dict[str, Any]:
        facts = [("dialect", self.dialect)]
        facts += [("input", f"{n} {described_type(s)}") for n, s in self._input_types().items()]
        facts += [("output", name) for name in self.outputs]
        weights = self._constants.values()
        elements = sum(math.prod(array.shape) for array in weights)
        facts.append(("weights", f"{len(weights)}, of {elements:,} elements"))
        return content_of(Side(self._symbol, self._constants), facts=facts)


def _as_held(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Return arrays from a reader as a model holds them: those of NumPy as they are."""
    if _all_of_numpy(arrays):
        return dict(arrays)
    return {n: a if type(a) is np.ndarray else from_parts(a) for n, a in arrays.items()}


def _as_parts(arrays: Mapping[str, Any]) -> dict[str, Array]:
    if _all_of_numpy(arrays):
        return dict(arrays)
    return {n: a if type(a) in _AS_THEY_ARE else to_parts(a) for n, a in arrays.items()}


def _all_of_numpy(arrays: Mapping[str, Any]) -> bool:
    """Whether no array is one of passlib's own; large models have very many."""
    return _AS_THEY_ARE.issuperset(map(type, arrays.values()))


def _declared(attributes: Mapping[str, str]) -> TypeSpec:
    try:
        spec = dialects.declared(attributes)
    except (PasslibError, ValueError):  # as inference and validation report
        return TypeSpec(None, None)
    # In MXNet, an unknown rank may be declared as one of 0.
    return TypeSpec(spec.dtype, partial_shape(spec.shape) if spec.shape else None)
