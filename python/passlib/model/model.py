"""Models: a symbol together with its weights, from a file to results and back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from passlib import dialects, nd
from passlib.arrays import dtypes
from passlib.dialects import ModelData
from passlib.dialects.inference import infer
from passlib.errors import GraphError, UnsupportedError, listed
from passlib.files.collector import collection_off
from passlib.lowering import TypeSpec
from passlib.model.checkpoint import load_checkpoint, load_params, save_checkpoint
from passlib.nd import BaseSparseNDArray, NDArray
from passlib.nd.files import from_parts, to_parts
from passlib.runtime.export import save_onnx
from passlib.runtime.runner import Runner
from passlib.runtime.sessions import as_dense
from passlib.symbol.symbol import Symbol

__all__ = ["Model", "load", "load_checkpoint", "load_params", "save_checkpoint"]

_FLOAT32 = np.dtype(np.float32)


class Model:
    """A symbol with its weights. `optimize_for` gives a new model; this one stays as it is.

    Parameters
    ----------
    symbol : Symbol
    args, aux : mapping of str to array, optional
        Weights and auxiliary states by name. They are not copied: leave their elements as they
        are while the model is in use.
    dialect : str
        The family of models that this one belongs to.
    template : object, optional
        What the dialect read besides, for `save` to write back.

    Raises
    ------
    TypeError
        A weight is no array.
    UnsupportedError
        There is no such dialect.
    """

    def __init__(
        self,
        symbol: Symbol,
        args: Mapping[str, Any] | None = None,
        aux: Mapping[str, Any] | None = None,
        dialect: str = "mxnet",
        *,
        template: Any = None,
    ) -> None:
        self._format = dialects.find(dialect)
        self._symbol = symbol
        self._args = {name: _frozen(name, array) for name, array in (args or {}).items()}
        self._aux = {name: _frozen(name, array) for name, array in (aux or {}).items()}
        self._dialect = dialect
        self._template = template
        self._runner = Runner(symbol, self._format)

    @property
    def symbol(self) -> Symbol:
        """The graph."""
        return self._symbol

    @property
    def args(self) -> Mapping[str, Any]:
        """Weights by name. Neither the mapping nor its arrays can be written to."""
        return MappingProxyType(self._args)

    @property
    def aux(self) -> Mapping[str, Any]:
        """Auxiliary states by name. Neither the mapping nor its arrays can be written to."""
        return MappingProxyType(self._aux)

    @property
    def dialect(self) -> str:
        """The family of models that this one belongs to."""
        return self._dialect

    @property
    def inputs(self) -> list[str]:
        """Names of the variables that have no weights: what `run` is fed."""
        names = self._format.data_inputs(self._symbol.graph)
        return [name for name in names if name not in self._args and name not in self._aux]

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in order."""
        return self._symbol.list_outputs()

    def optimize_for(self, name: str, /, **options: Any) -> Model:
        """Run a pass and give the model that it made; this one stays as it is.

        The pass is lent a copy of each weight. Those that it leaves alone are shared by both
        models afterwards, and their copies are freed.

        Parameters
        ----------
        name : str
            Name of a pass of a loaded library, see `passlib.library.load`.
        **options
            Given to the pass as ``str(value)``; save for ``shape_dict``, ``type_dict``,
            ``stype_dict``, ``skip_infer`` and ``keep_inferred``, see `Symbol.optimize_for`.

        Returns
        -------
        Model

        Raises
        ------
        PasslibError
            There is no such pass.
        PassError
            The pass failed, with what its library said.
        """
        # Read-only arrays are lent to a pass as copies, and changed copies replace them here.
        args, aux = dict(self._args), dict(self._aux)
        graph = self._symbol.optimize_for(name, args, aux, **options)
        return Model(graph, args, aux, self._dialect, template=self._template)

    def run(self, inputs: Mapping[str, Any], *, train: bool = False) -> dict[str, NDArray]:
        """Compute the outputs from named inputs.

        Parameters
        ----------
        inputs : mapping of str to array
            A value for each variable of `inputs` that the outputs depend on; one given for a
            weight takes its place. What is no array yet becomes one of float32, as by
            `passlib.nd.array`; arrays keep their element type.
        train : bool
            Run the forward pass of training: with the statistics of the batch, and running ones
            brought up to date in `aux`, where the dialect says how. Besides, operators of libraries
            may write to states, in training or not. No call changes a model otherwise; arrays
            taken from `aux` before stay as they were.

        Returns
        -------
        dict of str to NDArray
            By the names of `outputs`.

        Raises
        ------
        GraphError
            The inputs do not fit the graph, one is missing, or two outputs have one name.
        UnsupportedError
            Something in the graph has no faithful lowering.
        PasslibError
            ONNX Runtime is absent, or failed.
        """
        names = self.outputs
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise GraphError(
                f"several outputs are named {', '.join(twice)}, so run cannot tell them apart; "
                "call the model, which gives a list"
            )
        return dict(zip(names, self._run(inputs, train=train), strict=True))

    def __call__(self, *inputs: Any) -> NDArray | list[NDArray]:
        """Compute the outputs from inputs in the order of `inputs`.

        Parameters
        ----------
        *inputs : array
            Trailing ones that no output depends on, such as labels, may be left out.

        Returns
        -------
        NDArray or list of NDArray
            A list if there are several outputs.

        Raises
        ------
        TypeError
            More arrays than inputs.
        """
        names = self.inputs
        if len(inputs) > len(names):
            raise TypeError(
                f"the model was given {len(inputs)} inputs, but has {len(names)}: "
                f"{', '.join(names) or 'none'}"
            )
        outputs = self._run(dict(zip(names, inputs, strict=False)))
        return outputs[0] if len(outputs) == 1 else outputs

    def _run(self, inputs: Mapping[str, Any], *, train: bool = False) -> list[NDArray]:
        feeds = {name: _as_array(value) for name, value in inputs.items()}
        fed, constants = feeds, {**self._args, **self._aux}
        if train:
            # What is compiled in cannot change, and states do at each step.
            states = self._aux.keys() & self._symbol.list_inputs()
            fed = {**{name: constants.pop(name) for name in states}, **feeds}
        try:
            outcome = self._runner.run(fed, constants, train=train)
        except (GraphError, UnsupportedError) as error:
            hint = self._hint(feeds)
            if not hint:
                raise
            raise type(error)(f"{error}; {hint}") from error
        for name, array in {**outcome.updates, **outcome.mutated}.items():
            if name in self._aux:
                self._aux[name] = _frozen(name, array)
        return outcome.outputs

    def _hint(self, feeds: Mapping[str, Any]) -> str:
        """Name the likely cause of inputs that do not fit: too few, or NumPy's doubles."""
        missing = [name for name in self.inputs if name not in feeds]
        if missing:
            return f"no value was given for {', '.join(missing)}"
        doubles = [name for name, array in feeds.items() if array.dtype == np.float64]
        weights = [*self._args.values(), *self._aux.values()]
        if not doubles or any(array.dtype == np.float64 for array in weights):
            return ""
        return (
            f"input {', '.join(doubles)} is float64, and no weight is: convert it with "
            ".astype('float32')"
        )

    def save(self, path: str | os.PathLike[str], **options: Any) -> tuple[str, ...]:
        """Write the model in the form it was read in; what fails leaves old files as they were.

        Parameters
        ----------
        path : path-like
            Folder and name. For MXNet the files are ``<path>-symbol.json`` and
            ``<path>-<epoch>.params``; the name of the symbol file may be given as well.
        **options
            Of the dialect. MXNet has ``epoch``, by default that which was loaded, or 0.

        Returns
        -------
        tuple of str
            The files written, that of the graph first.

        Raises
        ------
        UnsupportedError
            The format has no place for one of the arrays.
        OSError
            A file cannot be written.
        """
        with collection_off():
            return self._format.save(Path(path), self._data(), **options)

    def _data(self) -> ModelData:
        return ModelData(
            self._symbol.graph,
            self._symbol.attributes,
            {name: to_parts(array) for name, array in self._args.items()},
            {name: to_parts(array) for name, array in self._aux.items()},
            self._template,
        )

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the model as an ONNX file, and have ONNX check it.

        Parameters
        ----------
        path : path-like
        shapes : mapping of str to shape, optional
            Shapes of the inputs; ``None`` in one is a size left open, as far as the operators
            allow. By default those that the symbol's variables have as ``__shape__``, and those
            that follow from others.
        types : mapping of str to dtype, optional
            Their element types, by default that of the variable or float32.

        Raises
        ------
        GraphError
            Shapes contradict the graph, or that of an input is not known.
        UnsupportedError
            Something has no faithful lowering.
        PasslibError
            The packages ``onnx`` and ``onnxruntime`` are absent, or ONNX's checker objects.
        """
        specs = self._input_specs(shapes or {}, types or {})
        weights = {n: as_dense(array) for n, array in {**self._args, **self._aux}.items()}
        try:
            lowered = self._format.lower(self._symbol, specs, weights)
        except (GraphError, UnsupportedError) as error:
            missing = [name for name in self.inputs if name not in specs]
            if not missing:
                raise
            raise type(error)(
                f"{error}; give the shapes of {', '.join(missing)} as "
                f"to_onnx(path, shapes={{{missing[0]!r}: (...)}})"
            ) from error
        save_onnx(lowered, Path(path))

    def _input_specs(
        self, shapes: Mapping[str, Sequence[int | None]], types: Mapping[str, Any]
    ) -> dict[str, TypeSpec]:
        given = {name: tuple(shape) for name, shape in shapes.items()}
        kinds = {name: dtypes.as_dtype(kind) for name, kind in types.items()}
        unknown = sorted({*given, *kinds} - set(self._symbol.list_inputs()))
        if unknown:
            raise GraphError(
                f"the model has no input {', '.join(map(repr, unknown))}; "
                f"its inputs are {', '.join(self.inputs) or 'none'}"
            )
        weights = {**self._args, **self._aux}
        declared = self._format.input_types(self._data())
        known_shapes = {n: spec.shape for n, spec in declared.items() if spec.shape is not None}
        known_types = {n: spec.dtype for n, spec in declared.items() if spec.dtype is not None}
        known_shapes |= {name: array.shape for name, array in weights.items()} | given
        known_types |= {name: array.dtype for name, array in weights.items()} | kinds
        inferred = infer(self._symbol, known_shapes, known_types)
        specs = {}
        for node, outputs in inferred.outputs.items():
            if not node.is_variable or (node.name in weights and node.name not in given):
                continue
            # A shape that was given stays as open as it was given.
            shape = given.get(node.name, outputs[0].shape)
            if shape is not None:
                specs[node.name] = TypeSpec(outputs[0].dtype or _FLOAT32, shape)
        return specs

    def __repr__(self) -> str:
        weights = [*self._args.values(), *self._aux.values()]
        count = sum(int(np.prod(array.shape)) for array in weights)
        return (
            f"<Model {self._dialect}: inputs {listed(self.inputs, 4)}; "
            f"outputs {listed(self.outputs, 4)}; {len(self._symbol.graph)} nodes, "
            f"{len(weights)} weights of {count:,} elements>"
        )


def load(path: str | os.PathLike[str], dialect: str | None = None, **options: Any) -> Model:
    """Read a model with its weights.

    Parameters
    ----------
    path : path-like
        For MXNet ``x-symbol.json``, or ``x``, or one of its ``x-0000.params``.
    dialect : str, optional
        The family of models; by default found out from the content.
    **options
        Of the dialect. MXNet has ``epoch``, which weights where several were saved (by default
        the newest), and ``params``, a weight file of any name, .params, .npz or .safetensors,
        instead of the one beside the symbol.

    Returns
    -------
    Model
        Without weights where there is no weight file.

    Raises
    ------
    FormatError
        A file is damaged, the message has the file and the place; or it is of no known dialect.
    OSError
        There is no such model, or no such epoch of it.
    """
    with collection_off():
        family = dialects.recognise(path) if dialect is None else dialects.find(dialect)
        data = family.load(Path(path), **options)
    return Model(
        Symbol.of_graph(data.graph, data.attributes, family.name),
        {name: from_parts(array) for name, array in data.args.items()},
        {name: from_parts(array) for name, array in data.aux.items()},
        family.name,
        template=data.template,
    )


def _frozen(name: str, array: Any) -> Any:
    """Give a view that cannot be written to; of a sparse array, which has no views, itself."""
    if isinstance(array, BaseSparseNDArray):
        return array
    if type(array) is NDArray and not array.flags.writeable:
        return array
    if not isinstance(array, np.ndarray):
        raise TypeError(f"weight {name!r} is no array, but of type {type(array).__name__}")
    view = array.view(NDArray)
    view.flags.writeable = False
    return view


def _as_array(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic, BaseSparseNDArray)):
        return value
    return nd.array(value)
