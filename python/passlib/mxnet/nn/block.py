"""Blocks: graphs that are called like functions, with Gluon's names."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.arrays.context import require_host
from passlib.arrays.views import read_only, to_parts
from passlib.dialects.inference import declared, infer
from passlib.dialects.weights.params import ARG, AUX
from passlib.errors import GraphError, PasslibError, listed, printable
from passlib.lowering import TypeSpec
from passlib.model.graph import ModelGraph
from passlib.mxnet import files, symbol
from passlib.mxnet.nd import NDArray
from passlib.mxnet.nn.initializer import Initial
from passlib.mxnet.nn.parameter import (
    Parameter,
    ParameterDict,
    make_parameters,
    outputs_of,
    require_symbol,
    variable_names,
)
from passlib.mxnet.symbol.composition import substitute
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.writing import write_model
from passlib.runtime.runner import Runner

if TYPE_CHECKING:
    from passlib.arrays.context import Context


Shape: TypeAlias = "int | list[Shape]"
"""The nesting of a structure: a list, 0 for one item, or n for a symbol of n outputs."""


def flatten(structure: Any) -> tuple[list[Any], Shape]:
    """Return the items of a structure and their nesting.

    Parameters
    ----------
    structure : item, or list or tuple of structures
        Each output of a symbol is an item.
    """
    if isinstance(structure, (list, tuple)):
        items: list[Any] = []
        shape: list[Shape] = []
        for part in structure:
            inner, nested = flatten(part)
            items += inner
            shape.append(nested)
        return items, shape
    if isinstance(structure, ModelGraph) and len(structure) > 1:
        return list(structure), len(structure)
    return [structure], 0


def regroup(items: Iterator[Any], shape: Shape) -> Any:
    """Build a structure of this shape from its items.

    Parameters
    ----------
    items : iterator
        Only the items that the shape contains are consumed.
    """
    if isinstance(shape, list):
        return [regroup(items, nested) for nested in shape]
    return [next(items) for _ in range(shape)] if shape else next(items)


class PassCall(NamedTuple):
    """The name of a pass and its options."""

    backend: str
    options: Mapping[str, Any]


class BlockGraph:
    """A graph, the names of its inputs, and its parameters. A pass makes a new one.

    Parameters
    ----------
    inputs : sequence of str
        In the order of the block's arguments. The graph may use only some of them.
    parameters : mapping of str to Parameter
        One for each other variable.
    """

    def __init__(
        self, graph: Symbol, inputs: Sequence[str], parameters: Mapping[str, Parameter]
    ) -> None:
        self.graph = graph
        self.inputs = tuple(inputs)
        self.parameters = dict(parameters)
        self._variables = frozenset(graph.list_inputs())
        self._runner = Runner(graph, graph.family)

    def run(self, arrays: Mapping[str, Any]) -> list[NDArray]:
        """Compute the outputs.

        Raises `GraphError` if the arrays do not fit the graph; `PasslibError` if a parameter has no
        values, or ONNX Runtime failed.

        Parameters
        ----------
        arrays : mapping of str to array
            One for each input.
        """
        self.initialize(arrays)
        feeds = {name: array for name, array in arrays.items() if name in self._variables}
        constants: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if parameter.array is None:
                raise parameter.missing()
            (feeds if parameter.shared else constants)[name] = parameter.array
        outcome = self._runner.run(feeds, constants)
        for name, array in outcome.mutated.items():
            if name in self.parameters:
                self.parameters[name].set_data(array)
        return outcome.outputs

    def initialize(self, values: Mapping[str, Any]) -> None:
        """Set initial values of the parameters that were deferred until their shapes are known.

        Raises `GraphError` if the shape of a parameter cannot be inferred; then none is
        initialized.

        Parameters
        ----------
        values : mapping of str to array or Symbol
            Inputs, of which only shapes and types are used.
        """
        waiting = [p for p in self.parameters.values() if p.deferred]
        if not waiting:
            return
        specs = {name: _spec(value) for name, value in values.items() if name in self._variables}
        for name, parameter in self.parameters.items():
            specs[name] = TypeSpec(parameter.dtype, parameter.shape)
        shapes = {name: spec.shape for name, spec in specs.items() if spec.shape is not None}
        types = {name: spec.dtype for name, spec in specs.items() if spec.dtype is not None}
        found = infer(self.graph, shapes, types, default_dtype=np.dtype(np.float32)).by_name()
        known = []
        for parameter in waiting:
            dtype, shape = found[parameter.name][0]
            sizes = tuple(size for size in shape or () if size is not None)
            if shape is None or dtype is None or len(sizes) < len(shape):
                given = ", ".join(f"{name} {_spec(value).shape}" for name, value in values.items())
                raise GraphError(
                    f"the shape of parameter {parameter.name!r} cannot be inferred from the "
                    f"inputs ({given or 'none'}); set it with set_data()"
                )
            known.append((parameter, sizes, dtype))
        for parameter, sizes, dtype in known:
            parameter.finish(sizes, dtype)

    def optimized(self, call: PassCall, values: Mapping[str, Any]) -> BlockGraph:
        """Run a pass.

        Raises `GraphError` if the pass added a variable and allocated no array for it; `PassError`
        if the pass failed.

        Parameters
        ----------
        values : mapping of str to array or Symbol
            Inputs: arrays that the pass can read, or variables that declare shapes.

        Returns
        -------
        BlockGraph
            Shares the parameters that the pass did not modify. This one stays unchanged.
        """
        self.initialize(values)
        lent = {name: p.array for name, p in self.parameters.items() if p.array is not None}
        lent |= {n: v for n, v in values.items() if not isinstance(v, ModelGraph)}
        lent = {name: read_only(array) for name, array in lent.items()}
        specs = {n: _spec(v) for n, v in values.items() if isinstance(v, ModelGraph)}
        shapes = {n: [size or 0 for size in s.shape] for n, s in specs.items() if s.shape}
        types = {n: s.dtype for n, s in specs.items() if s.dtype is not None}
        auxiliary = frozenset(self.graph.list_auxiliary_states())
        args = {name: array for name, array in lent.items() if name not in auxiliary}
        aux = {name: array for name, array in lent.items() if name in auxiliary}
        graph = self.graph.optimize_for(
            call.backend,
            args,
            aux,
            shape_dict=shapes or None,
            type_dict=types or None,
            **call.options,
        )
        states = frozenset(graph.list_auxiliary_states())
        parameters = {}
        for name in graph.list_inputs():
            if name not in self.inputs:
                array = args.get(name, aux.get(name))
                known = self.parameters.get(name)
                parameters[name] = _after(name, array, lent.get(name), known, name in states)
        return BlockGraph(graph, self.inputs, parameters)


def _after(name: str, array: Any, lent: Any, known: Parameter | None, is_state: bool) -> Parameter:
    """Return the parameter of a variable after a pass."""
    if known is not None and array is lent:
        return known
    if array is None:
        raise GraphError(
            f"the pass added the variable {name!r} without allocating an array for it; it must "
            "call alloc_arg or alloc_aux on the node"
        )
    default = "null" if is_state else "write"
    grad_req = default if known is None else known.grad_req
    return Parameter.of_array(name, array, grad_req, shared=False)


def _spec(value: Any) -> TypeSpec:
    """Return the type of an array, or the type that a variable declares."""
    if not isinstance(value, ModelGraph):
        return TypeSpec(value.dtype, tuple(value.shape))
    return declared(value.list_attr())


class SymbolBlock:
    """A symbol with its parameters, called like a function.

    Parameters
    ----------
    outputs : Symbol or nested list of Symbol
        Results are nested in the same way; a list of one symbol is that symbol.
    inputs : Symbol or nested list of Symbol
        The variables that the block is called with. All other variables become parameters.
    params : mapping of str to Parameter or array, optional
        Values of parameters, which are shared, not copied.

    Raises
    ------
    TypeError
        Outputs or inputs are not symbols.
    ValueError
        An input is not a variable, or two have the same name.

    Examples
    --------
    >>> import passlib as mx
    >>> x = mx.sym.var("x")
    >>> block = mx.gluon.SymbolBlock(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), x)
    >>> block.initialize("ones")
    >>> block(mx.nd.ones((1, 3))).asnumpy()
    array([[4., 4.]], dtype=float32)
    """

    def __init__(self, outputs: Any, inputs: Any, params: Mapping[str, Any] | None = None) -> None:
        single = isinstance(outputs, (list, tuple)) and len(outputs) == 1
        heads, self._out_shape = flatten(outputs[0] if single else outputs)
        # Each variable of a group is one argument.
        variables, self._in_shape = flatten(
            inputs if isinstance(inputs, (list, tuple)) else outputs_of(inputs)
        )
        for head in heads:
            require_symbol(head, "output")
        graph = heads[0] if len(heads) == 1 else symbol.Group(heads)
        names = variable_names(variables)
        known = graph.list_inputs()
        unused = [name for name in names if name not in known]
        if unused:
            warnings.warn(f"the outputs do not use the input {listed(unused)}", stacklevel=2)
        self._original = BlockGraph(graph, names, make_parameters(graph, names, params or {}))
        self._current = self._original
        self._pending: list[PassCall] = []

    @staticmethod
    def imports(
        symbol_file: str | os.PathLike[str],
        input_names: str | Sequence[str],
        param_file: str | os.PathLike[str] | None = None,
        ctx: Context | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """Create a block from a symbol file.

        Parameters
        ----------
        input_names : str or sequence of str
            Names of the variables that the block is called with.
        param_file : path-like, optional
            .params, .npz or .safetensors; without it, call `initialize`.
        ctx : Context, optional
            Only the CPU.
        allow_missing : bool
            Leave parameters that the file does not contain without values.
        ignore_extra : bool
            Ignore arrays in the file that are not parameters.

        Raises
        ------
        FormatError
            A file is damaged, or the parameters do not fit the symbol.
        GraphError
            The symbol has no variable of one of the names.
        UnsupportedError
            The device is a GPU.
        """
        require_host(ctx, "a block")
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        graph = symbol.load(symbol_file)
        known = graph.list_inputs()
        for name in names:
            if name not in known:
                raise GraphError(
                    f"{os.fspath(symbol_file)}: the symbol has no variable {name!r} to use as an "
                    f"input; its variables are {listed(known)}"
                )
        block = SymbolBlock(graph, [symbol.var(name) for name in names])
        if param_file is not None:
            block.collect_params().load(
                param_file,
                allow_missing=allow_missing,
                ignore_extra=ignore_extra,
                cast_dtype=True,
                dtype_source="saved",
            )
        return block

    def initialize(
        self,
        init: Initial | None = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
        *,
        seed: int | None = None,
    ) -> None:
        """Set initial values of the parameters that have none; see `ParameterDict.initialize`.

        Parameters of unknown shape get theirs when the block is first called.
        """
        self.collect_params().initialize(init, ctx, verbose, force_reinit, seed=seed)

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """Return the parameters that the block currently runs with.

        After a pass these are the parameters of the optimized graph: without those that the pass
        removed, and with those that it added.

        Parameters
        ----------
        select : str, optional
            Regular expression that must match at the beginning of names.
        """
        chosen = self._current.parameters
        if select is not None:
            pattern = re.compile(select)
            chosen = {name: p for name, p in chosen.items() if pattern.match(name)}
        return ParameterDict(chosen)

    @property
    def params(self) -> ParameterDict:
        """The parameters, see `collect_params`."""
        return self.collect_params()

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move to a device, which must be the CPU.

        Raises
        ------
        UnsupportedError
            The device is a GPU.
        """
        self.collect_params().reset_ctx(ctx)

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        *,
        backend_opts: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Schedule a pass to run when the block is next called.

        Parameters
        ----------
        active : bool
            False cancels the passes that are scheduled.
        backend : str, optional
            Name of a pass.
        clear : bool
            Start from the graph that the block was made with.
        static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
            Ignored; accepted for compatibility with MXNet. ONNX Runtime plans by itself.
        backend_opts, **options
            Both are passed to the pass as ``str(value)``.

        Raises
        ------
        ValueError
            There are options, but no pass.
        """
        merged = {**(backend_opts or {}), **options}
        if backend is None and merged:
            raise ValueError(f"options {', '.join(merged)} need a pass: hybridize(backend=...)")
        if clear:
            self._current = self._original
        if clear or not active:
            self._pending = []
        if active and backend is not None:
            self._pending.append(PassCall(backend, merged))

    def optimize_for(
        self,
        x: Any,
        *args: Any,
        backend: str | None = None,
        clear: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        partition_if_dynamic: bool = True,
        backend_opts: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Run a pass on the block now, without computing anything.

        Each pass starts from the result of the previous one. If one fails, the block stays
        unchanged.

        Parameters
        ----------
        x, *args : array or Symbol
            The inputs, for the pass to read, or ``sym.var(name, shape=...)`` for their shapes.
        backend : str
            Name of a pass.
        clear, static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
            As of `hybridize`.
        partition_if_dynamic : bool
            Ignored; accepted for compatibility with MXNet.
        backend_opts, **options
            Both are passed to the pass as ``str(value)``, in this call only.

        Raises
        ------
        ValueError
            ``backend`` is missing, or the number of inputs differs from the block's.
        PasslibError
            The pass does not exist.
        PassError
            The pass failed; the message includes that of its library.
        """
        if not backend:
            raise ValueError("optimize_for needs the name of a pass: backend=...")
        values = self._values((x, *args))
        passes = [] if clear else list(self._pending)
        passes.append(PassCall(backend, {**(backend_opts or {}), **options}))
        start = self._original if clear else self._current
        self._current = _optimized(start, passes, values)
        self._pending = []

    def __call__(self, x: Any, *args: Any) -> Any:
        """Compute the outputs.

        Parameters
        ----------
        x, *args : array or Symbol
            The inputs, nested like the block's inputs. With symbols nothing is computed.

        Returns
        -------
        NDArray or Symbol, or nested lists of these
            Nested like the block's outputs.

        Raises
        ------
        ValueError
            The number of inputs or their nesting differs from the block's.
        TypeError
            An input is neither array nor symbol, or both kinds are mixed.
        PasslibError
            A parameter has no values, or ONNX Runtime is not installed or failed.
        """
        values = self._values((x, *args))
        symbols = [value for value in values.values() if isinstance(value, Symbol)]
        if symbols and len(symbols) < len(values):
            raise TypeError("a block is called either with arrays or with symbols, not with both")
        if symbols:
            known = self._current.graph.list_inputs()
            used = {name: value for name, value in values.items() if name in known}
            return regroup(iter(Symbol(substitute(self._current.graph, used))), self._out_shape)
        if self._pending:
            self._current = _optimized(self._current, self._pending, values)
            self._pending = []
        return regroup(iter(self._current.run(values)), self._out_shape)

    forward = __call__

    def export(
        self, path: str | os.PathLike[str], epoch: int = 0, remove_amp_cast: bool = True
    ) -> tuple[str, str]:
        """Write the graph and its parameters: both files, or neither.

        Parameters
        ----------
        path : path-like
            Folder and name. The files are ``<path>-symbol.json`` and ``<path>-<epoch>.params``,
            with four digits for the epoch.
        remove_amp_cast : bool
            Omit the casts of automatic mixed precision.

        Returns
        -------
        parameter file : str
            It has no arrays if the graph has no parameters.

        Raises
        ------
        PasslibError
            A pass is scheduled for the next call of the block, or a parameter has no values.
        OSError
            A file cannot be written.
        """
        if self._pending:
            raise PasslibError(
                f"the pass {self._pending[0].backend!r} was scheduled with hybridize and has not "
                "run yet; call the block, or run the pass with optimize_for, before export"
            )
        graph = self._current.graph
        auxiliary = frozenset(graph.list_auxiliary_states())
        content = {}
        for name, parameter in self._current.parameters.items():
            if parameter.array is None:
                raise parameter.missing()
            content[(AUX if name in auxiliary else ARG) + name] = parameter.array
        target = files.symbol_path(path)
        weights = files.params_path(path, epoch)
        arrays = {name: to_parts(array) for name, array in content.items()}
        write_model(target, graph.tojson(remove_amp_cast), weights, arrays)
        return str(target), str(weights)

    def _values(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments by name of their input."""
        items, shape = flatten(list(arguments))
        names = self._original.inputs
        if shape != self._in_shape:
            raise ValueError(
                f"the block was given {len(items)} inputs"
                + (", nested in another way" if len(items) == len(names) else "")
                + f"; it has {len(names)}: {', '.join(names) or 'none'}"
            )
        for name, value in zip(names, items, strict=True):
            if not isinstance(value, (np.ndarray, BaseSparseNDArray, Symbol)):
                raise TypeError(
                    f"input {name!r} is of type {type(value).__name__}, neither array nor symbol; "
                    "make an array with passlib.nd.array"
                )
        return dict(zip(names, items, strict=True))

    def __repr__(self) -> str:
        current = self._current
        return printable(
            f"SymbolBlock({', '.join(current.inputs) or 'nothing'} -> "
            f"{', '.join(current.graph.list_outputs())}; {len(current.graph.graph)} nodes, "
            f"{len(current.parameters)} parameters)"
        )


def _optimized(
    start: BlockGraph, passes: Sequence[PassCall], values: Mapping[str, Any]
) -> BlockGraph:
    for call in passes:
        start = start.optimized(call, values)
    return start
