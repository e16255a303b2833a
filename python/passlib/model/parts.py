"""What a model consists of: a graph, its weights, and the rest of its file."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

import passlib._core as _core
from passlib import dialects
from passlib.arrays.storage import Array
from passlib.arrays.views import from_parts, still_to_compute, to_parts
from passlib.dialects import ModelData
from passlib.errors import PasslibError
from passlib.graph.native import ORIGIN, without_origins
from passlib.lowering import TypeSpec
from passlib.lowering.shapes import partial_shape
from passlib.model.appearance import Summary, described, described_type, page, summarized
from passlib.model.graph import ModelGraph, graph_of
from passlib.model.weights import Weights, all_frozen, frozen, owner
from passlib.pages import MOST_IN_NOTEBOOKS, Side, content_of, document, framed
from passlib.runtime.runner import Runner

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
        self._runner = Runner(symbol, self._format)
        self._input_names: tuple[str, ...] | None = None
        self._passed_on: frozenset[str] | None = None

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
