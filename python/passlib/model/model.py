"""Models: a symbol together with its weights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from passlib import dialects
from passlib.arrays import NDArray
from passlib.arrays.given import as_mapping
from passlib.dialects.targets import check_target
from passlib.errors import GraphError, InputError, UnsupportedError
from passlib.files.regular import collection_off, durability, written_from
from passlib.lowering.builder import OPSET
from passlib.model.edits import extracted, renamed
from passlib.model.explanation import hint, unknown_inputs
from passlib.model.graph import ModelGraph
from passlib.model.inputs import as_fed
from passlib.model.lowered import lowered_for
from passlib.model.optimized import OptimizedModel
from passlib.model.parts import check_weights, frozen, remaining, replaced
from passlib.runtime.export import save_onnx
from passlib.runtime.settings import DEFAULT, Settings, settings_of


class Model(OptimizedModel):
    """A symbol with its weights. `optimize_for` returns a new model and leaves this one unchanged.

    A model can be pickled. ``copy.copy`` shares the weights, ``copy.deepcopy`` copies them.

    Parameters
    ----------
    symbol : ModelGraph
    args, aux : mapping of str to array, optional
        Weights and auxiliary states by name. They are not copied: do not modify their elements
        while the model is in use.
    dialect : str, optional
        The family of models that this one belongs to: that of its symbol.
    template : object, optional
        The rest of the file that the dialect read, for `save` to write back.

    Raises
    ------
    TypeError
        A weight is not an array.
    GraphError
        A weight belongs to no variable of the symbol, or has a shape that contradicts it.
    UnsupportedError
        The dialect is unknown, or another one than the symbol's.

    Examples
    --------
    >>> import passlib as pl
    >>> y = pl.sym.FullyConnected(pl.sym.var("x"), num_hidden=2, no_bias=True, name="fc")
    >>> model = pl.Model(y, {"fc_weight": pl.nd.ones((2, 3))})
    >>> model
    <Model mxnet: inputs x; outputs fc_output; 3 nodes, 1 weight of 6 elements>
    >>> model(pl.nd.ones((1, 3))).asnumpy()
    array([[3., 3.]], dtype=float32)
    """

    def __init__(
        self,
        symbol: ModelGraph,
        args: Mapping[str, Any] | None = None,
        aux: Mapping[str, Any] | None = None,
        dialect: str | None = None,
        *,
        template: Any = None,
    ) -> None:
        family = dialects.find(symbol.dialect if dialect is None else dialect)
        if family.name != symbol.dialect:
            raise UnsupportedError(
                f"the symbol is of the dialect {symbol.dialect!r}, so the model cannot be of "
                f"{family.name!r}"
            )
        self._set(symbol, args or {}, aux or {}, template)
        check_weights(symbol, self.data())

    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        train: bool = False,
        providers: Sequence[Any] | None = None,
        threads: int | None = None,
        session_options: Mapping[str, Any] | None = None,
    ) -> dict[str, NDArray]:
        """Compute the outputs from named inputs.

        Parameters
        ----------
        inputs : mapping of str to array
            A value for each variable of `inputs` that the outputs depend on; a value for a weight
            replaces it in this call. Arrays keep their element type; everything else is converted
            to an array of float32, as by `passlib.nd.array`. Where an ONNX model takes strings,
            sequences, maps or optional values, these are arrays of `str`, lists, dictionaries,
            and None or nothing at all.
        train : bool
            Run the forward pass of training: use the statistics of the batch, and update the
            running statistics in `aux` if the dialect defines how. Operators of libraries may
            also write to states, in training or not. No call modifies a model otherwise; arrays
            taken from `aux` earlier keep their values.
        providers : sequence of (str or (str, mapping)), optional
            Execution providers of ONNX Runtime, the preferred one first, each by name or with its
            options; by default ``["CPUExecutionProvider"]``.
        threads : int, optional
            Number of threads for one operator; by default ONNX Runtime decides.
        session_options : mapping of str to object, optional
            Attributes of ``onnxruntime.SessionOptions`` by name, and configuration entries such
            as ``"session.disable_prepacking"``.

        Returns
        -------
        dict of str to NDArray
            By the names of `outputs`. Sequences are lists, maps dictionaries, and an optional
            value may be None.

        Raises
        ------
        TypeError
            The inputs are not a mapping.
        GraphError
            The inputs do not fit the graph, one is missing, or two outputs have one name.
        UnsupportedError
            Something in the graph has no faithful lowering.
        PasslibError
            ONNX Runtime is not installed, lacks a provider or an option, or failed.
        KeyboardInterrupt
            SIGINT came while ONNX Runtime computed in the main thread.
        """
        settings = settings_of(providers, threads, session_options)
        names = self.outputs
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise GraphError(
                f"several outputs are named {', '.join(twice)}, so run cannot tell them apart; "
                "call the model, which returns a list"
            )
        return dict(zip(names, self._run(inputs, settings, train=train), strict=True))

    def __call__(self, *inputs: Any) -> NDArray | list[NDArray]:
        """Compute the outputs from inputs in the order of `inputs`.

        Parameters
        ----------
        *inputs : array
            Trailing ones that no output depends on, such as labels, may be omitted.

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

    def _run(
        self, inputs: Mapping[str, Any], settings: Settings = DEFAULT, *, train: bool = False
    ) -> list[NDArray]:
        names = self.inputs
        given = as_mapping("inputs", inputs, "array", names[0] if names else "")
        if self._passed_on is None:
            self._passed_on = self._format.passed_on(self._symbol)
        feeds = as_fed(given, self._passed_on)
        problem = unknown_inputs(feeds, self._symbol, names)
        if problem:
            raise InputError(problem)
        fed, constants = feeds, self._constants
        if train:
            # States change at each step, so they cannot be compiled in.
            states = self._aux.keys() & self._symbol.list_inputs()
            fed = {**{name: constants[name] for name in states}, **feeds}
            constants = {n: array for n, array in constants.items() if n not in states}
        try:
            outcome = self._runner.run(fed, constants, train=train, settings=settings)
        except (GraphError, UnsupportedError) as error:
            missing = [name for name in names if name not in feeds]
            weights = [*self._args.values(), *self._aux.values()]
            cause = hint(str(error), self._symbol.graph, self._format, feeds, missing, weights)
            if not cause:
                raise
            raise type(error)(f"{error}; {cause}") from error
        if outcome.updates or outcome.mutated:
            self._keep_states({**outcome.updates, **outcome.mutated})
        return outcome.outputs

    def _keep_states(self, new: Mapping[str, Any]) -> None:
        changed = {name: frozen(name, array) for name, array in new.items() if name in self._aux}
        if changed:
            self._aux.update(changed)
            self._collect_constants()

    def with_weights(
        self, args: Mapping[str, Any] | None = None, aux: Mapping[str, Any] | None = None
    ) -> Model:
        """Return a model with other values of some weights; this one stays unchanged.

        Parameters
        ----------
        args, aux : mapping of str to array, optional
            Weights and auxiliary states by name; the others stay.

        Raises
        ------
        TypeError
            A weight is not an array, or has another element type than the one it replaces.
        GraphError
            There is no variable of a name, or a shape is another one than before.
        """
        new_args = replaced("args", self._args, args, self._aux)
        new_aux = replaced("aux", self._aux, aux, self._args)
        added = (new_args.keys() | new_aux.keys()) - self._args.keys() - self._aux.keys()
        made = Model.of_parts(self._symbol, new_args, new_aux, self._template)
        if added:
            check_weights(made.symbol, made.data())
        return made

    def extract(
        self, inputs: Sequence[str] | str | None = None, outputs: Sequence[str] | str | None = None
    ) -> Model:
        """Return the part of the model that computes some values; this one stays unchanged.

        Parameters
        ----------
        inputs : sequence of str, optional
            Names of values that become inputs, with the shapes and types that inference knows. By
            default the part has those inputs of the model that it needs.
        outputs : sequence of str, optional
            Names of values, by default those of `outputs`. All names are in
            ``model.symbol.get_internals().list_outputs()``.

        Returns
        -------
        Model
            With the weights that it needs. Its inputs and outputs have the names asked for.

        Raises
        ------
        GraphError
            There is no value of a name, or the outputs need inputs that are not among ``inputs``.
        """
        constants = self._constants
        part = extracted(self._symbol, self._format, inputs, outputs, constants)
        kept = remaining(self._symbol, part, self._args, self._aux)
        return Model.of_parts(part, kept[0], kept[1], self._template)

    def rename(self, names: Mapping[str, str]) -> Model:
        """Return a model with other names; this one stays unchanged.

        Parameters
        ----------
        names : mapping of str to str
            New names by old ones: of inputs, weights, nodes, and of outputs where these have names
            of their own (ONNX, DLPrimitives). Names can be exchanged.

        Returns
        -------
        Model
            It shares the weights.

        Raises
        ------
        GraphError
            Nothing has an old name, or a new one is taken.
        """
        made = renamed(self._symbol, self._format, names)
        args, aux = ({names.get(n, n): a for n, a in w.items()} for w in (self._args, self._aux))
        return Model.of_parts(made, args, aux, self._template)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        durable: bool = True,
        origins: bool = False,
        **options: Any,
    ) -> tuple[str, ...]:
        """Write the model in the form it was read in; a failure leaves existing files unchanged.

        Parameters
        ----------
        path : path-like
            Folder and name. For MXNet the files are ``<path>-symbol.json`` and
            ``<path>-<epoch>.params``; the path may also be the name of the symbol file,
            ``x-symbol.json`` or ``x.json``.
        durable : bool
            Whether to wait until the files are on the disk. Otherwise a save survives the end of
            the process at any moment, but not that of the machine.
        origins : bool
            Whether to write ``__origin__``, the names of the nodes that a node made by a
            pattern replaced.
        **options
            Of the dialect. MXNet has ``epoch``, by default the one that was read, or 0. ONNX has
            ``external_data`` (True or False), ``location`` and ``size_threshold`` of the data
            file, and ``opset``, to which ONNX's version converter takes the model.

        Returns
        -------
        tuple of str
            The files written, the graph's first.

        Raises
        ------
        FormatError
            There is a pipe or a device at the path.
        UnsupportedError
            The format cannot represent one of the arrays, the dialect has no such option, or the
            path has the suffix of another format.
        OSError
            The path is a folder's, or a file cannot be written.
        """
        place = check_target(path, self._format)
        weights = (*self._args.values(), *self._aux.values())
        with collection_off(), durability(durable), written_from(weights):
            return self._format.save(place, self._written(origins=origins), **options)

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        types: Mapping[str, Any] | None = None,
        opset: int = OPSET,
    ) -> None:
        """Write the model as an ONNX file, checked by ONNX.

        Parameters
        ----------
        path : path-like
        shapes, types : mapping of str to shape or dtype, optional
            Of the inputs; ``None`` leaves a size open where the operators allow it. By default
            what the model declares (in MXNet ``__shape__``) or follows from others, or float32.
        opset : int
            Version of ONNX's operator set, from 13 on.

        Raises
        ------
        GraphError
            Shapes contradict the graph, or the shape of an input is unknown.
        UnsupportedError
            Something in the graph has no faithful lowering.
        PasslibError
            The packages ``onnx`` and ``onnxruntime`` are not installed, or ONNX's checker failed.
        """
        target = check_target(path, dialects.find("onnx"))
        save_onnx(lowered_for(self._symbol, self.data(origins=False), shapes, types), target, opset)
