"""Passes and partitioners of libraries, and the weights that are lent to them."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.arrays.views import computed
from passlib.dialects import Dialect
from passlib.errors import UnsupportedError
from passlib.graph.node import Node
from passlib.graph.plain import collection_off
from passlib.library import registry
from passlib.library.call import (
    Arrays,
    Backend,
    Call,
    Library,
    Outcome,
    Param,
    standard_path,
    write,
    write_escaped,
)
from passlib.library.declared import Lending, list_text

_WAYS: Final = ("flat", "json")
"""How a graph may cross, from the fastest way to the slowest."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@cache
def _code(dtype: np.dtype[Any]) -> int | None:
    return None if dtype.name in dtypes.WITHOUT_CODE else dtypes.code(dtype)


class NumpyArrays(dict[str, Any]):
    """Weights of a model by name, of which large models have very many.

    Passes of libraries add arrays of NumPy, which nobody can write to.

    Attributes
    ----------
    gone : sequence of str or None
        The variables that the pass of a library removed; None if no such pass ran.
    """

    gone: Sequence[str] | None = None


class Lent:
    """The arrays of ``args`` or of ``aux``, lent to one call of a pass.

    A pass gets the memory of every array itself, so nothing is copied. An array that is not
    C-contiguous, not aligned, not in native byte order, read-only, sparse or no array at all is
    lent as a copy; `commit` copies the pass's writes back. Large read-only arrays in mapped files
    are lent without copies: the system copies the pages that a pass writes to. Raises `TypeError`
    if a value is no array; `GraphError` if a name has a NUL byte in it, where texts of libraries
    end; `UnsupportedError` if MXNet's ABI has no code for an element type.

    Parameters
    ----------
    kind : {"args", "aux"}
        For messages.
    given : mutable mapping of str to array, or None
        The caller's dictionary. The pass does not see names outside ``names``.
    names : sequence of str
        The variables of the graph, in its order.
    lending : {"whole", "on demand", "nothing"}
        Lend all memory, what the pass asks for, or none: names, shapes and types only.

    Attributes
    ----------
    arrays : _core.LentArrays
        What the library gets.
    """

    def __init__(
        self,
        kind: str,
        given: MutableMapping[str, Any] | None,
        names: Sequence[str],
        lending: Lending = "whole",
    ) -> None:
        self._kind = kind
        self._given = given
        self._copies: dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}
        if type(given) is dict or type(given) is NumpyArrays:
            plain = given
        else:
            plain = {name: given[name] for name in names if name in given} if given else {}
        other = self._describe if lending == "nothing" else self._lend_other
        with collection_off():
            self.arrays = _core.LentArrays(
                plain, names, _code, other, lending, are_args=kind == "args"
            )

    @property
    def params(self) -> list[Param]:
        """The arrays of the graph's variables, as the caller gave them where nothing is lost."""
        return self.arrays.params

    @property
    def accepts_new(self) -> bool:
        """Whether there is a dictionary to put new parameters into."""
        return self._given is not None

    def _describe(self, name: str, value: Any) -> Param:
        """Return an array of the shape and type of a value, whose memory is not for use."""
        if isinstance(value, (BaseSparseNDArray, _core.ScaledArray)):
            value = np.broadcast_to(np.zeros((), value.dtype), value.shape)
        array = as_lent_array(f"{self._kind}[{name!r}]", value)
        return name, array, dtypes.code(array.dtype.newbyteorder("="))

    def _lend_other(self, name: str, value: Any) -> Param:
        """Lend a copy of what is not one sequence of elements in native byte order."""
        array = as_lent_array(f"{self._kind}[{name!r}]", value)
        copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
        self._copies[name] = (copy, array)
        return name, copy, dtypes.code(copy.dtype)

    def commit(self, gone: Sequence[str], new: Arrays, is_parameter: Callable[[str], bool]) -> None:
        """Bring the caller's dictionary up to date; see `Holder.commit`."""
        if type(self._given) is NumpyArrays:
            self._commit_to_model(self._given, gone, new)
            return
        removed = [name for name in gone if is_parameter(name)]
        if self._given is None:
            if removed:
                shown = ", ".join(removed[:5]) + (", ..." if len(removed) > 5 else "")
                warnings.warn(
                    f"the pass removed parameters ({shown}), but optimize_for was given no "
                    f"{self._kind}: remove them from your weights, or pass "
                    f"{self._kind}=...",
                    stacklevel=4,
                )
            return
        over = {*removed, *new}
        for name, copy in self._written(over):
            self._given[name] = copy.view(NDArray)
        self._write_back(self._copies.keys() - over)
        for name in removed:
            self._given.pop(name, None)
        for name, array in new.items():
            made = array.computed() if isinstance(array, _core.ScaledArray) else array
            self._given[name] = made.view(NDArray)

    def _commit_to_model(self, weights: NumpyArrays, gone: Sequence[str], new: Arrays) -> None:
        """Put what is new into the weights of a model, which drops those of ``gone`` itself."""
        weights.gone = gone
        over = {*gone, *new}
        made: dict[str, Any] = dict(self._written(over))
        self._write_back(self._copies.keys() - over)
        made.update(new)
        _core.freeze_arrays(made)
        weights.update(made)

    def _written(self, over: set[str]) -> list[tuple[str, np.ndarray[Any, Any]]]:
        """Return the lent copies that the pass wrote to, but those of some names."""
        with collection_off():
            return self.arrays.changed(over)

    def _changed(self, among: Iterable[str]) -> list[str]:
        """Return the names of parameters whose copies differ in any bit from the originals."""
        names = list(among)
        pairs = (
            (copy, np.ascontiguousarray(before, dtype=copy.dtype))
            for copy, before in (self._copies[name] for name in names)
        )
        return [names[position] for position in _core.differing_arrays(pairs)]

    def _write_back(self, among: Iterable[str]) -> None:
        """Bring what was lent as a copy of another form up to date, if the pass wrote to it."""
        assert self._given is not None
        for name in self._changed(among):
            copy, original = self._copies[name][0], self._given[name]
            if isinstance(original, np.ndarray) and original.flags.writeable:
                original[...] = copy
            elif isinstance(original, BaseSparseNDArray):
                self._given[name] = copy.view(NDArray).tostype(original.stype)
            else:
                self._given[name] = copy.view(NDArray)


def as_lent_array(what: str, value: Any) -> np.ndarray[Any, Any]:
    """Return a weight as an array; a sparse one as a dense copy.

    Raises `TypeError` if it is no array.
    """
    value = computed(value)
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, BaseSparseNDArray):
        return np.asarray(value.asnumpy())
    if isinstance(value, (Mapping, str, bytes)) or not hasattr(value, "__array__"):
        message = f"{what} must be an array, not {type(value).__name__}"
        raise TypeError(message)
    return np.asarray(value)


def _option_texts(
    options: Mapping[str, object], *, declared: bool = False
) -> list[tuple[str, str]]:
    """Return options as a library gets them: lists as JSON if it declares them, else as MXNet does.

    Raises `UnsupportedError` if one has half of a surrogate pair in it, which UTF-8 cannot express.
    """
    texts = [
        (key, list_text(value) if declared and isinstance(value, tuple) else str(value))
        for key, value in options.items()
    ]
    for key, value in texts:
        if _SURROGATE.search(key + value):
            message = (
                f"the option {key!r} has half of a surrogate pair in it and cannot be passed "
                "to a library, whose texts are UTF-8"
            )
            raise UnsupportedError(message)
    return texts


def _lent_arrays(call: Call) -> tuple[_core.LentArrays, _core.LentArrays]:
    """Return what was lent to a call of a library, of ``args`` and of ``aux``."""
    assert isinstance(call.args, Lent)
    assert isinstance(call.aux, Lent)
    return call.args.arrays, call.aux.arrays


@dataclass(frozen=True)
class Compiled(Backend):
    """A pass or a partitioner of a library.

    Attributes
    ----------
    source : Library
    index : int
        Position in ``source.passes`` or ``source.partitioners``.
    """

    source: Library
    index: int

    @property
    def library(self) -> Library:
        """The library that has it."""
        return self.source

    @staticmethod
    def handover() -> str:
        """Return the fastest way in which graphs may cross, by the environment.

        Raises `ValueError` if ``PASSLIB_HANDOVER`` is no way.
        """
        if os.environ.get("PASSLIB_FORCE_JSON", "") not in ("", "0"):
            return "json"
        wanted = os.environ.get("PASSLIB_HANDOVER") or "flat"
        if wanted not in _WAYS:
            message = (
                f"the environment variable PASSLIB_HANDOVER is {wanted!r}, which is none of "
                f"{', '.join(map(repr, _WAYS))}"
            )
            raise ValueError(message)
        return wanted

    def lend(self, kind: str, given: MutableMapping[str, Any] | None, names: Sequence[str]) -> Lent:
        """Lend the memory of the arrays itself, if the pass needs it."""
        return Lent(kind, given, names, self.declaration.lending)


class CompiledPass(Compiled):
    """A pass of a library."""

    def reads_types(self, graph: _core.Graph) -> bool:
        """Whether the library requests types.

        Types of operators of libraries are not inferred while one runs, whose lock is held.
        """
        asks = "flat" == self.handover() == self.source.handover
        return asks and graph.operators().keys().isdisjoint(registry.names())

    def run(self, call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
        """Run the pass; its output to ``std::cout`` goes to `sys.stdout`."""
        settings = _core.CallSettings(
            accept_args=call.args.accepts_new,
            accept_aux=call.aux.accepts_new,
            handover=self.handover(),
            consume=call.types_known,
            ordered=dialect.ordered,
        )
        result, own, params, gone = _core.run_pass(
            self.source.core,
            self.index,
            graph,
            dict(call.attributes),
            _option_texts(call.options, declared=self.declaration.options is not None),
            *_lent_arrays(call),
            settings,
            call.types,
            dtypes.from_code,
            write_escaped if self.source.path == str(standard_path()) else write,
        )
        return Outcome(result, own, params, gone)


class Partitioner(Compiled):
    """A partitioner of a library."""

    def run(self, call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
        """Run the strategies, each on the graph that the previous one left.

        What the library prints to ``std::cout`` goes to `sys.stdout`. The outcome is without new
        parameters, and no variable is gone. Raises `PassError` if the library failed, or chose
        subgraphs that would make a cycle; the message names partitioner, strategy and library.
        """

        def suffix(op: str, attrs: Mapping[str, str], num_outputs: int, index: int) -> str:
            return dialect.output_name(Node(op, "", attrs, num_outputs=num_outputs), index)

        settings = _core.PartitionSettings(
            consume=call.types_known,
            ordered=dialect.ordered,
            force_json=self.handover() == "json",
        )
        made = _core.run_partitioner(
            self.source.core,
            self.index,
            graph,
            dict(call.attributes),
            _option_texts(call.options),
            *_lent_arrays(call),
            settings,
            suffix,
            dialect.states,
            write,
        )
        return Outcome(made, dict(call.attributes), ({}, {}), [])
