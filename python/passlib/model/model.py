"""Models: a symbol together with its weights."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

import passlib._core as _core
from passlib import dialects
from passlib.arrays import NDArray
from passlib.arrays.dtypes import as_mapping
from passlib.arrays.sparse_array import Array
from passlib.arrays.views import from_parts, still_to_compute, to_parts
from passlib.dialects import ModelData
from passlib.dialects.protocol import Described, with_names
from passlib.dialects.table import check_target
from passlib.errors import GraphError, InputError, PasslibError, UnsupportedError, short_repr
from passlib.files.optional import require
from passlib.files.regular import durability, written_from
from passlib.graph.plain import ORIGIN, collection_off, operators_of, without_origins
from passlib.library.backends import (
    find_backend,
    find_pipeline,
    is_one_of_ours,
    passes,
    pipelines,
)
from passlib.library.compiled import NumpyArrays
from passlib.library.declared import Declaration, names_of
from passlib.library.pipeline import (
    Step,
    Steps,
    check,
    execute,
    flat,
    has_named,
    name_of,
    steps_of,
    text_of_shapes,
    weights_differ,
)
from passlib.lowering import TypeSpec
from passlib.lowering.builder import OPSET
from passlib.lowering.types import partial_shape
from passlib.model.graph import (
    ModelGraph,
    as_steps,
    drop_removed,
    graph_of,
    optimized,
    refuse_options,
)
from passlib.model.weights import (
    Weights,
    check_weights,
    frozen,
    owner,
    remaining,
    replaced,
)

if TYPE_CHECKING:
    from passlib.model.appearance import Summary
    from passlib.runtime.runner import Runner
    from passlib.runtime.settings import Settings

# Imported where they are used, since loading a model needs none of them: passlib.pages,
# passlib.runtime, and the modules of this room that edit, run and show models.

_AS_THEY_ARE = frozenset((np.ndarray, _core.ScaledArray))
"""Types of arrays that a model holds as readers return them and writers take them."""

INFERENCE: Final = frozenset(
    ("shapes", "types", "shape_dict", "type_dict", "stype_dict", "skip_infer", "keep_inferred")
)
"""Keywords of `Model.optimize_for` that are no options of a pass."""


@short_repr
class Model:
    """A symbol with its weights. `optimize_for` returns a new model and leaves this one unchanged.

    A model can be pickled. ``copy.copy`` shares the weights, ``copy.deepcopy`` copies them.

    Parameters
    ----------
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
    <Model mxnet: inputs x; outputs fc_output; 1 operator, 1 weight of 6 elements>
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

    @classmethod
    def of_parts(
        cls,
        symbol: ModelGraph,
        args: Mapping[str, Any],
        aux: Mapping[str, Any],
        template: Any,
        *,
        owned: bool = False,
    ) -> Model:
        """Make a model of parts that belong together: weights are not compared with the graph.

        ``owned``: nobody else has the dictionaries of weights, of which no copies are made.
        """
        made = cls.__new__(cls)
        made._set(symbol, args, aux, template, owned=owned)
        return made

    @classmethod
    def of_data(cls, data: ModelData, dialect: str) -> Model:
        """Make a model of data that a dialect read: weights are not compared with the graph."""
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
        self._args = _all_frozen(args, owned=owned)
        self._aux = _all_frozen(aux, owned=owned)
        self._template = template
        self._input_names: tuple[str, ...] | None = None
        self._passed_on: frozenset[str] | None = None

    @property
    def _runner(self) -> Runner:
        found: Runner | None = self.__dict__.get("_made_runner")
        if found is None:
            from passlib.runtime.runner import Runner

            # Another thread may have made one meanwhile, with a compiled graph.
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

    def has_weights_of(self, other: Model) -> bool:
        """Whether the weights are those of another model: the same arrays, or the same memory."""
        for own, others in ((self._args, other._args), (self._aux, other._aux)):
            if own.keys() != others.keys():
                return False
            changed = [name for name in own if own[name] is not others[name]]
            new, old = Weights(own), Weights(others)
            if weights_differ({n: old[n] for n in changed}, {n: new[n] for n in changed}):
                return False
        return True

    def differs_from(self, other: Model) -> bool:
        """Whether the graph, a weight or what only the file has, such as functions, is another."""
        return (
            self._template is not other._template
            or not self._symbol.graph.equals(other._symbol.graph)
            or not self.has_weights_of(other)
        )

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
            Whether ``__origin__`` and ``__rules__`` of nodes are written. They tell from which
            nodes others get metadata in any case.
        whole : bool
            Whether all weights are in memory. Otherwise some may be `_core.ScaledArray`.
        """
        _core.check_files((*self._args.values(), *self._aux.values()))
        if whole:
            self._compute()
        graph, omitted = self._symbol.graph, ""
        if not origins and self._format.omits_attributes:
            omitted = ORIGIN
        elif not origins:
            graph = without_origins(graph)
        return self._parts(graph, _as_parts(self._args), _as_parts(self._aux), omitted)

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

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
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
            # Another thread may have collected newer weights meanwhile.
            found = self.__dict__.setdefault("_collected", self._collected_now())
        return found

    def _collected_now(self) -> Mapping[str, Any]:
        self._compute()
        return MappingProxyType({**self._args, **self._aux})

    def _collect_constants(self) -> None:
        """Collect the weights again after one was replaced."""
        self.__dict__["_collected"] = self._collected_now()

    @property
    def input_types(self) -> dict[str, TypeSpec]:
        """Element types and shapes that the model states for its inputs, as far as it does."""
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

    def _described_inputs(self) -> list[Described]:
        """Return `input_types` with the names of open dimensions."""
        types, named = self.input_types, dict[str, Described]()
        if any(None in (spec.shape or ()) for spec in types.values()):
            with suppress(PasslibError):
                inputs, _ = self._format.interface(self._symbol, self.data(whole=False))
                named = {each.name: each for each in inputs}
        return [with_names(name, spec, named.get(name)) for name, spec in types.items()]

    def summary(self) -> Summary:
        """Return a table of the operators: how many there are, and the weights that they use.

        Returns
        -------
        Summary
            Prints as a table; its ``rows`` have the numbers.
        """
        from passlib.model.appearance import summarized

        return summarized(repr(self)[1:-1], self._symbol.graph, self._constants)

    def __repr__(self) -> str:
        from passlib.model.appearance import described

        operators = operators_of(self._symbol.graph).total()
        weights = [*self._args.values(), *self._aux.values()]
        return described(self.dialect, self._described_inputs(), self.outputs, operators, weights)

    def _repr_html_(self) -> str:
        from passlib.model.appearance import page
        from passlib.pages import MOST_IN_NOTEBOOKS, framed

        summary = self.summary()
        text = page(summary.title, self._described_inputs(), self.outputs, summary.table)
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
        from passlib.pages import document

        return document(title or repr(self)[1:-1], self._content())

    def _content(self) -> dict[str, Any]:
        from passlib.model.appearance import described_type
        from passlib.pages import Side, content_of

        facts = [("dialect", self.dialect)]
        inputs = self._described_inputs()
        facts += [("input", f"{each.name} {described_type(each)}") for each in inputs]
        facts += [("output", name) for name in self.outputs]
        weights = self._constants.values()
        elements = sum(math.prod(array.shape) for array in weights)
        facts.append(("weights", f"{len(weights)}, of {elements:,} elements"))
        return content_of(Side(self._symbol, self._constants), facts=facts)

    def optimize_for(self, name: Any, /, **options: Any) -> Model:
        """Run a pass or a pipeline and return the resulting model; this one stays unchanged.

        The pass works on copies of the weights. Both models share the weights that it does not
        modify; their copies are freed.

        Parameters
        ----------
        name : str, list or Pipeline
            Name of a pass, ``simplify`` or ``clean`` (see `passlib.simplify`), text of a pipeline,
            or a list, as of `ModelGraph.optimize_for`.
        **options
            Passed to the pass as ``str(value)``, except ``shapes`` and ``types`` (in MXNet
            ``shape_dict`` and ``type_dict``) of inputs, ``stype_dict``, ``skip_infer`` and
            ``keep_inferred``, see `ModelGraph.optimize_for`.

        Raises
        ------
        PasslibError
            The pass does not exist.
        PassError
            The pass failed; the message includes that of its library.
        """
        if callable(name):
            name = name_of(name)
        steps = as_steps(name)
        if steps is not None and (has_named(steps) or self._enters_functions(steps)):
            return self._through(steps, name if isinstance(name, str) else "", options)
        made = self.after_passes(name, steps, **options)
        if steps is None:
            made = made._after_functions(name, options)
        if steps is None and not is_one_of_ours(name):
            return made
        kept = self.unless_refused(made)
        if kept is self and steps is not None and made.symbol.graph is not self._symbol.graph:
            return self._through(steps, name if isinstance(name, str) else "", options)
        return kept

    def after_passes(self, name: Any, steps: Steps | None = None, /, **options: Any) -> Model:
        """Run a pass, or ``steps``, as `optimize_for` does, but without `unless_refused`."""
        # Read-only arrays are lent to a pass as copies; those that it changed replace them here.
        args, aux = NumpyArrays(self._args), NumpyArrays(self._aux)
        graph = optimized(self._symbol, name, steps, args, aux, **options)
        if graph.graph is self._symbol.graph:
            return self
        with collection_off():
            drop_removed(self._symbol, graph, args, aux)
            return self.of_parts(graph, args, aux, self._template, owned=True)

    def _enters_functions(self, steps: Steps) -> bool:
        """Whether a step is a pass that has to be run on local functions of this model, too."""
        if not self._format.has_functions(self._symbol):
            return False
        known = passes()
        found = [known[step.name] for step in flat(steps) if step.name in known]
        return any(map(_enters_functions, found))

    def _after_functions(self, name: Any, options: Mapping[str, Any]) -> Model:
        """Run a pass on the bodies of local functions, if it enters them."""
        if not self._format.has_functions(self._symbol):
            return self
        backend = find_backend(name) if isinstance(name, str) else name
        declaration = backend.declaration
        # The named pipelines, which do not give names, enter functions in a step of their own.
        enters = _enters_functions(declaration) and isinstance(name, str)
        if not (enters or declaration.enters_functions):
            return self
        from passlib.model.edits import content_of, of_content
        from passlib.model.functions import with_functions

        own = {key: value for key, value in options.items() if key not in INFERENCE}
        own.update(declaration.in_functions)

        def change(content: bytes) -> bytes | None:
            try:
                before = of_content(self, content)
                after = before.after_passes(backend, **own)
            except PasslibError:
                if declaration.enters_functions:
                    raise
                return None  # a body that is no model stays as it is
            return content_of(after) if after.differs_from(before) else None

        passes_errors = declaration.enters_functions and not is_one_of_ours(name)
        return with_functions(self, change, passes_errors=passes_errors)

    def unless_refused(self, made: Model) -> Model:
        """Return a model that standard passes made of this one; this one if it cannot be saved.

        Types that a pass makes known may show the checker of the format that a branch which is
        never taken cannot run; runtimes with the same check refuse such a model.
        """
        if made.symbol.graph is self._symbol.graph:
            return made
        refuses = self._format.refuses_to_save
        if refuses(made.data(whole=False)) and not refuses(self.data(whole=False)):
            return self
        return made

    def _through(self, steps: Steps, text: str, options: Mapping[str, Any]) -> Model:
        """Run steps of which one is a named pipeline."""
        inference = {key: value for key, value in options.items() if key in INFERENCE}
        own = {key: value for key, value in options.items() if key not in INFERENCE}
        if all(isinstance(step, Step) and find_pipeline(step.name) for step in steps):
            _refuse_types(inference)
        if len(steps) == 1 and isinstance(steps[0], Step) and not steps[0].options:
            if isinstance(own.get("fixed"), Mapping):
                own["fixed"] = text_of_shapes(own["fixed"])
            steps = steps_of((steps[0].name, own))
        else:
            refuse_options(own)
        return execute(steps, self, check(steps, text, self.dialect), ModelSteps(inference))

    def simplify(
        self,
        *,
        exact: bool = False,
        cost: Literal["nodes", "bytes", "flops", "traffic"] = "nodes",
        max_growth: int | None = None,
        max_rounds: int = 16,
        skip: Collection[str] = (),
        fixed: Mapping[str, Sequence[int | None]] | None = None,
        target: Literal["onnx", "onnxruntime"] = "onnx",
    ) -> Model:
        """Return a model with fewer operators that computes the same; this one stays unchanged.

        Parameters, results and errors are those of `passlib.simplify`.
        """
        options: dict[str, Any] = {"cost": cost, "max_growth": max_growth, "max_rounds": max_rounds}
        options["target"] = target
        options["skip"] = tuple(names_of("skip", skip))
        options["fixed"] = as_mapping("fixed", fixed, "(1, 3, 224, 224)")
        made: Model = pipelines()["clean" if exact else "simplify"].run(self, options)
        return made

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
        from passlib.runtime.settings import settings_of

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
        self, inputs: Mapping[str, Any], settings: Settings | None = None, *, train: bool = False
    ) -> list[NDArray]:
        from passlib.model.inputs import as_fed, hint, unknown_inputs
        from passlib.runtime.settings import DEFAULT

        self._format.check_source(self._symbol.attributes)
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
            outcome = self._runner.run(fed, constants, train=train, settings=settings or DEFAULT)
        except (GraphError, UnsupportedError) as error:
            missing = [name for name in names if name not in feeds]
            weights = [*self._args.values(), *self._aux.values()]
            cause = hint(str(error), self._symbol.graph, self._format, feeds, missing, weights)
            if not cause:
                raise
            raise type(error)(f"{error}; {cause}") from error
        new = {**outcome.updates, **outcome.mutated}
        changed = {name: frozen(name, array) for name, array in new.items() if name in self._aux}
        if changed:
            self._aux.update(changed)
            self._collect_constants()
        return outcome.outputs

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

    def with_shapes(self, shapes: Mapping[str, Sequence[int | str | None]]) -> Model:
        """Return a model whose inputs state other shapes; this one stays unchanged.

        The shapes of other values follow when the model is written or inferred again. Sizes that
        are constants of the graph, such as those of a Reshape, stay as they are.

        Parameters
        ----------
        shapes : mapping of str to sequence of (int, str or None)
            By input, for each axis: a size; the name of an open size (ONNX), or ``"?"`` for one
            without a name; None for the size that the model states.

        Returns
        -------
        Model
            It shares the weights.

        Raises
        ------
        GraphError
            There is no input of a name, or a size is invalid.
        UnsupportedError
            Open sizes have no names in this dialect.
        """
        from passlib.model.edits import with_shapes

        made = with_shapes(self._symbol, shapes, self.input_types)
        return Model.of_parts(made, self._args, self._aux, self._template)

    def with_attributes(self, node: str, attributes: Mapping[str, str | None]) -> Model:
        """Return a model where a node has other attributes; this one stays unchanged.

        Parameters
        ----------
        node : str
            Its name.
        attributes : mapping of str to str or None
            Texts as in the node's ``attrs``, such as ``"(1, 1)"`` or ``"0.5"``; None removes one.
            The others stay.

        Raises
        ------
        GraphError
            There is no node of this name, or several.
        """
        from passlib.model.edits import with_attributes

        made = with_attributes(self._symbol, node, attributes)
        return Model.of_parts(made, self._args, self._aux, self._template)

    def with_opset(self, opset: int) -> Model:
        """Return an ONNX model with another version of ONNX's operators; this one stays unchanged.

        Parameters
        ----------
        opset : int
            As in `save`.

        Raises
        ------
        UnsupportedError
            The model is of another dialect, or an operator has no form in this version.

        """
        from passlib.model.edits import with_opset

        return with_opset(self, opset)

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
        from passlib.model.edits import extracted

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
        from passlib.model.edits import renamed

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
            pattern replaced, and ``__rules__``, the names of the rules that made it.
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
        model = self
        if options.get("opset") is not None:
            from passlib.model.edits import with_known_operators

            model = with_known_operators(self, options["opset"])
        weights = (*model._args.values(), *model._aux.values())
        with collection_off(), durability(durable), written_from(weights):
            return model._format.save(place, model._written(origins=origins), **options)

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        types: Mapping[str, Any] | None = None,
        opset: int | None = None,
    ) -> None:
        """Write the model as an ONNX file, checked by ONNX.

        Parameters
        ----------
        shapes, types : mapping of str to shape or dtype, optional
            Of the inputs; ``None`` leaves a size open where the operators allow it. By default
            what the model declares (in MXNet ``__shape__``) or follows from others, or float32.
        opset : int, optional
            Version of ONNX's operator set, by default 21 or that of an ONNX model; from 13 on for
            other dialects.

        Raises
        ------
        GraphError
            Shapes contradict the graph, or the shape of an input is unknown.
        UnsupportedError
            Something in the graph has no faithful lowering, or no form in the version.
        PasslibError
            The packages ``onnx`` and ``onnxruntime`` are not installed, or ONNX's checker failed.
        """
        from passlib.model.inputs import lowered_for
        from passlib.runtime.export import check_opset, save_onnx

        target = check_target(path, dialects.find("onnx"))
        model = self
        if opset is not None and self.dialect == "onnx":
            model, opset = self.with_opset(opset), None
        elif opset is not None:
            check_opset(opset)
        data = model.data(origins=False)
        lowered = lowered_for(model._symbol, data, shapes, types)
        save_onnx(lowered, target, OPSET if opset is None else opset)

    def to_onnx_proto(
        self,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        types: Mapping[str, Any] | None = None,
        opset: int | None = None,
    ) -> Any:
        """Return the model as an onnx.ModelProto, without a file; `passlib.load` reads it back.

        Parameters
        ----------
        shapes, types : mapping of str to shape or dtype, optional
            As of `to_onnx`; for models of other dialects.
        opset : int, optional
            Version of ONNX's operator set. By default that of an ONNX model, and of `to_onnx`.

        Raises
        ------
        GraphError, UnsupportedError, PasslibError
            As `to_onnx` does, and for an ONNX model of more than 2 GB.

        Examples
        --------
        >>> import passlib as pl
        >>> model = pl.Model(pl.sym.relu(pl.sym.var("x"), name="y"))
        >>> proto = model.to_onnx_proto(shapes={"x": (1, 3)})
        >>> [node.op_type for node in proto.graph.node], pl.load(proto).inputs
        (['Relu'], ['x'])
        """
        if self.dialect == "onnx":
            from passlib.model.edits import whole_content_of

            if shapes or types:
                raise UnsupportedError(
                    "an ONNX model has shapes and types of its own; with_shapes changes them"
                )
            model = self if opset is None else self.with_opset(opset)
            message = require("onnx", extra="onnx").ModelProto
            return message.FromString(whole_content_of(model))
        from passlib.model.inputs import lowered_for
        from passlib.runtime.export import check_opset, to_message

        if opset is not None:
            check_opset(opset)
        lowered = lowered_for(self._symbol, self.data(origins=False), shapes, types)
        return to_message(lowered, OPSET if opset is None else opset)


def _all_frozen(arrays: Mapping[str, Any], *, owned: bool = False) -> dict[str, Any]:
    """Return weights as the model holds them, see `frozen`.

    ``owned``: nobody else has the dictionary, which becomes the model's.
    """
    held = arrays if owned and isinstance(arrays, dict) else dict(arrays)
    for name in _core.writable_arrays(held, NDArray):
        held[name] = frozen(name, held[name])
    return held


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


def _refuse_types(given: Mapping[str, Any]) -> None:
    """Refuse shapes and types of inputs next to pipelines that determine them by themselves."""
    names = [name for name, value in given.items() if value and isinstance(value, Mapping)]
    if names:
        raise UnsupportedError(
            f"simplify and clean infer shapes and types themselves, and would ignore {names[0]!r}; "
            "fixed={'data': (1, 3, 224, 224)} states the sizes of inputs of an ONNX model"
        )


def _enters_functions(declaration: Declaration) -> bool:
    """Whether a pass is run on the bodies of local functions, as those that simplify models are."""
    return declaration.enters_functions or declaration.joins is not None


class ModelSteps:
    """Runs steps on models.

    ``inference``: passed on to `Model.optimize_for`.
    """

    def __init__(self, inference: Mapping[str, Any]) -> None:
        self._inference = inference

    def apply(self, step: Step, options: dict[str, Any], subject: Model) -> Model:
        """Run one step, a pass or a named pipeline."""
        named = find_pipeline(step.name)
        if named is not None:
            made: Model = named.run(subject, options, self.watch)
            return made
        given = {**self._inference, **options}
        return self.watch(step, subject, lambda: subject.optimize_for(step.name, **given))

    def watch(self, step: Step, subject: Model, run: Callable[[], Model]) -> Model:
        """Run what counts as one step, however it makes the model."""
        return run()

    def differs(self, before: Model, after: Model) -> bool:
        """Whether anything changed."""
        return after.differs_from(before)
