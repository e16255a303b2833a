"""The class `Symbol`: a graph with MXNet's methods."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np

import passlib._core as _core
from passlib.arrays.dtypes import as_shapes, as_types
from passlib.dialects import find, infer
from passlib.dialects.operator_types import refusals
from passlib.errors import UnsupportedError
from passlib.files.regular import replacing
from passlib.graph.node import Entry, Node, postorder
from passlib.graph.plain import PlainGraph
from passlib.model import inferred
from passlib.model.graph import ModelGraph
from passlib.mxnet.inference.infer import infer as infer_mxnet
from passlib.mxnet.inference.types import ElementTypeError
from passlib.mxnet.numpy_mode import is_numpy
from passlib.mxnet.reading import read_symbol
from passlib.mxnet.schema.calls import INTERNAL
from passlib.mxnet.schema.operator import HIDDEN
from passlib.mxnet.schema.registry import library_rules
from passlib.mxnet.symbol.composition import method, operator, substitute
from passlib.runtime import binding

if TYPE_CHECKING:
    from passlib.arrays.context import Context
    from passlib.arrays.ndarray import NDArray
    from passlib.runtime.executor import Executor

_OTHER_TYPES: Final = (np.int32, np.bool_, np.float64, np.int64, np.int8, np.uint8)
"""Types of variables that shapes are inferred with where an operator does not take float32."""


class _Names(NamedTuple):
    """MXNet's operators for one operator of Python."""

    both: str
    """Of two symbols."""
    scalar: str
    """Of a symbol and a number."""
    reverse: str
    """Of a number and a symbol."""


_NAMES = {
    "+": _Names("_Plus", "_PlusScalar", "_PlusScalar"),
    "-": _Names("_Minus", "_MinusScalar", "_RMinusScalar"),
    "*": _Names("_Mul", "_MulScalar", "_MulScalar"),
    "/": _Names("_Div", "_DivScalar", "_RDivScalar"),
    "%": _Names("_Mod", "_ModScalar", "_RModScalar"),
    "**": _Names("_Power", "_PowerScalar", "_rpower_scalar"),
    "==": _Names("_equal", "_equal_scalar", "_equal_scalar"),
    "!=": _Names("_not_equal", "_not_equal_scalar", "_not_equal_scalar"),
    ">": _Names("_greater", "_greater_scalar", "_lesser_scalar"),
    ">=": _Names("_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar"),
    "<": _Names("_lesser", "_lesser_scalar", "_greater_scalar"),
    "<=": _Names("_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"),
}


_REASONS: Final = {
    **dict.fromkeys(
        ("as_in_context", "asnumpy", "asscalar", "copy", "wait_to_read"),
        "a symbol has no elements; bind or eval it to compute them",
    ),
    **dict.fromkeys(
        ("as_nd_ndarray", "as_np_ndarray"), "there is one kind of symbol, and none of mx.np"
    ),
    **dict.fromkeys(
        ("backward", "detach", "gradient"), "passlib does not train, so there are no gradients"
    ),
    "__bool__": "a symbol has no truth value: comparisons of symbols are new symbols; compare with "
    "'is', or tojson() for equal graphs",
    "get_backend_symbol": "use optimize_for, which runs the passes of loaded libraries",
}


class NotImplementedForSymbol(UnsupportedError, TypeError):  # noqa: N818, MXNet's name
    """A method that arrays have and symbols do not.

    Parameters
    ----------
    alias : str, optional
        The operator of Python that calls it.
    *args : object
        Its arguments.
    why : str
        What to do instead.

    Examples
    --------
    >>> import passlib as mx
    >>> str(mx.base.NotImplementedForSymbol(mx.nd.NDArray.asnumpy, None))
    'Symbol.asnumpy: is for arrays, not for symbols '
    """

    def __init__(self, function: Any, alias: str | None, *args: Any, why: str = "") -> None:
        name = getattr(function, "__name__", str(function))
        also = f" (operator {alias})" if alias else ""
        what = why or f"is for arrays, not for symbols {args or ''}"
        super().__init__(f"Symbol.{name}{also}: {what}")


class Symbol(ModelGraph):
    """A graph of MXNet's operators. Immutable; `optimize_for` returns a new one.

    Python's operators apply MXNet's, element by element, to another symbol whose output has the
    same shape, or to a number; comparisons compute 0 or 1. Every operator is a method too:
    ``x.relu()`` is ``sym.relu(x)``.

    Parameters
    ----------
    entries : sequence of Entry
        The outputs.

    Examples
    --------
    >>> import passlib as pl
    >>> y = pl.sym.relu(pl.sym.var("x")) + 1
    >>> [node.op for node in y.nodes()]
    ['null', 'relu', '_plus_scalar']
    """

    __slots__ = ()

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__(entries, "mxnet")

    @classmethod
    def of_graph(cls, graph: _core.Graph, attributes: Mapping[str, str] | None = None) -> Symbol:
        """Wrap a native graph, which nobody may change afterwards.

        Parameters
        ----------
        graph : _core.Graph
            Checked, each node after its inputs, in post-order.
        attributes : mapping of str to str, optional
            The graph's own attributes, as JSON by key.
        """
        return cls.of_native(graph, attributes, find("mxnet"))

    @classmethod
    def of_json(cls, text: str | bytes) -> Symbol:
        """Read a symbol from MXNet's JSON; parameters and errors are those of `load_json`."""
        graph, attributes, _ = read_symbol(text)
        return cls.of_graph(graph, attributes)

    def attr(self, key: str) -> str | None:
        """Look up an attribute of the output's node; None if it has none of this name.

        Keys that MXNet hides between underscores, such as ``__lr_mult__``, are found without them.
        A group of several nodes has no attributes.
        """
        return self.list_attr().get(key) if self.name is not None else None

    def list_attr(self) -> dict[str, str]:
        """Return the attributes of the output's node; of a group, those of its first."""
        return _with_plain_keys(self.entries[0].node.attrs) if self.entries else {}

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes of all nodes that have any, by node name."""
        return {node.name: _with_plain_keys(node.attrs) for node in self.nodes() if node.attrs}

    # Writing.

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Write the graph as MXNet 1.9.1 writes it, byte for byte.

        Nodes stand in post-order from the outputs; nodes that no output needs are not written.

        Parameters
        ----------
        remove_amp_cast : bool
            Leave out the casts that automatic mixed precision put in, as MXNet does.
        """
        if remove_amp_cast and not self.graph.operators().keys().isdisjoint(MIXED_PRECISION):
            return ModelGraph.tojson(self.with_entries(without_casts(self.entries)))
        return super().tojson()

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write `tojson` to a file, which is replaced as a whole or not at all."""
        text = self.tojson(remove_amp_cast)
        with replacing(fname) as path:
            path.write_text(text, "utf-8", newline="")

    # Shapes, and running.

    def _inferred_shapes(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
    ) -> Any:
        shapes = as_shapes("infer_shape", inferred.named(self, args, kwargs))
        numpy = is_numpy(self)
        if not numpy:  # () is unknown there
            shapes = {name: shape for name, shape in shapes.items() if shape}
        known = self._of_any_types(shapes, partial=partial)
        return inferred.shapes(
            self,
            known,
            partial=partial,
            numpy=numpy,
            reasons=lambda: refusals(library_rules(self), known),
        )

    def _of_any_types(self, shapes: Mapping[str, Any], *, partial: bool) -> inferred.Outputs:
        """Infer from shapes alone: variables have the first type that all operators take.

        MXNet infers shapes whatever the types are, and lowering wants types.
        """

        def attempt(dtype: Any) -> inferred.Outputs:
            return infer_mxnet(self, shapes, default_dtype=np.dtype(dtype), partial=partial)

        try:
            return attempt(np.float32)
        except ElementTypeError as error:
            refused = error
        for dtype in _OTHER_TYPES:
            with contextlib.suppress(ElementTypeError):
                return attempt(dtype)
        raise refused

    def _inferred_types(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
    ) -> Any:
        types = as_types("infer_type", inferred.named(self, args, kwargs))
        known = infer(self, {}, types).outputs
        reasons = lambda: refusals(library_rules(self), known)  # noqa: E731
        return inferred.types(self, known, partial=partial, reasons=reasons)

    def bind(
        self,
        ctx: Context | None = None,
        args: Any = None,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Any = None,
    ) -> Executor:
        """Bind arrays to the arguments, to run the graph: see `passlib.executor.bind`."""
        return binding.bind(
            self, ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec
        )

    _bind = bind

    def simple_bind(
        self,
        ctx: Context | None = None,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        **shapes: Sequence[int],
    ) -> Executor:
        """Bind new arrays of these shapes: see `passlib.executor.simple_bind`."""
        return binding.simple_bind(self, ctx, grad_req, type_dict, **shapes)

    _simple_bind = simple_bind

    def eval(self, ctx: Context | None = None, **arrays: Any) -> list[NDArray]:
        """Compute the outputs from arrays for all variables, by name."""
        return binding.evaluate(self, ctx, **arrays)

    # Composition.

    @property
    def handle(self) -> None:
        """None: there is no object of MXNet's C library."""
        return None

    def __getattr__(self, name: str) -> Any:
        return method(self, name, Symbol)

    def __call__(self, *, name: str | None = None, **inputs: Symbol) -> Symbol:
        """Replace variables by other symbols, by the variables' names."""
        return Symbol(substitute(self, inputs, name))

    def _apply(self, sign: str, other: Any, *, swapped: bool = False) -> Symbol:
        names = _NAMES[sign]
        if isinstance(other, Symbol):
            operands = (other, self) if swapped else (self, other)
            return operator(names.both, INTERNAL, Symbol)(*operands)
        if isinstance(other, (Number, np.generic)):
            name = names.reverse if swapped else names.scalar
            return operator(name, INTERNAL, Symbol)(self, scalar=other)
        if isinstance(other, PlainGraph):
            hint = "; graphs are compared with first.graph.equals(second.graph)"
            raise TypeError(
                f"{sign} would make a node of MXNet's operator, and one of the operands is of "
                f"{other.dialect!r}" + (hint if sign in ("==", "!=") else "")
            )
        left, right = (other, self) if swapped else (self, other)
        raise TypeError(
            f"unsupported operands for {sign}: {type(left).__name__!r} and "
            f"{type(right).__name__!r}; a symbol goes with a symbol or a number"
        )

    def __add__(self, other: Any) -> Symbol:
        return self._apply("+", other)

    def __radd__(self, other: Any) -> Symbol:
        return self._apply("+", other, swapped=True)

    def __sub__(self, other: Any) -> Symbol:
        return self._apply("-", other)

    def __rsub__(self, other: Any) -> Symbol:
        return self._apply("-", other, swapped=True)

    def __mul__(self, other: Any) -> Symbol:
        return self._apply("*", other)

    def __rmul__(self, other: Any) -> Symbol:
        return self._apply("*", other, swapped=True)

    def __truediv__(self, other: Any) -> Symbol:
        return self._apply("/", other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._apply("/", other, swapped=True)

    def __mod__(self, other: Any) -> Symbol:
        return self._apply("%", other)

    def __rmod__(self, other: Any) -> Symbol:
        return self._apply("%", other, swapped=True)

    def __pow__(self, other: Any) -> Symbol:
        return self._apply("**", other)

    def __rpow__(self, other: Any) -> Symbol:
        return self._apply("**", other, swapped=True)

    def __neg__(self) -> Symbol:
        # MXNet multiplies by -1.0.
        return self._apply("*", -1.0)

    def __abs__(self) -> Symbol:
        return operator("abs", "", Symbol)(self)

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]
        return self._apply("==", other)

    def __ne__(self, other: object) -> Symbol:  # type: ignore[override]
        return self._apply("!=", other)

    def __gt__(self, other: Any) -> Symbol:
        return self._apply(">", other)

    def __ge__(self, other: Any) -> Symbol:
        return self._apply(">=", other)

    def __lt__(self, other: Any) -> Symbol:
        return self._apply("<", other)

    def __le__(self, other: Any) -> Symbol:
        return self._apply("<=", other)

    __hash__ = ModelGraph.__hash__


def _refusing(name: str, why: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedForSymbol(method, None, why=why)

    method.__name__ = name
    method.__doc__ = f"Raise NotImplementedForSymbol: {why}."
    return method


for _name, _why in _REASONS.items():
    setattr(Symbol, _name, _refusing(_name, _why))


def _with_plain_keys(attrs: Mapping[str, str]) -> dict[str, str]:
    """Add the attributes that stand between underscores under their plain names, as MXNet does."""
    plain = {key: attrs[f"__{key}__"] for key in HIDDEN if f"__{key}__" in attrs}
    return {**plain, **attrs}


MIXED_PRECISION = ("amp_cast", "amp_multicast")
"""The casts that automatic mixed precision puts in."""


def without_casts(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Rebuild the nodes without the casts of mixed precision, each replaced by its input.

    A cast that is an output itself stays, as in MXNet; so does one of a damaged file, which lacks
    the input of an output that is used.
    """
    made: dict[int, Node] = {}

    def follow(entry: Entry) -> Entry:
        while entry.node.op in MIXED_PRECISION and entry.index < len(entry.node.inputs):
            entry = entry.node.inputs[entry.index]
        return entry._replace(node=made.get(id(entry.node), entry.node))

    for node in postorder(entry.node for entry in entries):
        inputs = [follow(entry) for entry in node.inputs]
        if all(new.node is old.node for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        deps = [made.get(id(dep), dep) for dep in node.control_deps]
        made[id(node)] = Node(
            node.op, node.name, node.attrs, inputs, node.num_outputs, deps, node.subgraphs
        )
    return tuple(e._replace(node=made.get(id(e.node), e.node)) for e in entries)
