"""Reading a network natively, where there is nothing to find."""

from __future__ import annotations

import passlib._core as _core
from passlib.dialects.dlprim import notes
from passlib.dialects.dlprim.findings import Findings
from passlib.dialects.dlprim.options import OptionError
from passlib.dialects.dlprim.reading.document import Document
from passlib.dialects.dlprim.reading.operator_options import OptionReader
from passlib.dialects.dlprim.schema import ALIASES, OPERATORS
from passlib.dialects.dlprim.shapes import infer_cached
from passlib.dialects.dlprim.types import MAX_RANK, NAMES, Spec, code
from passlib.dialects.json_text import MAX_DEPTH, parse
from passlib.lowering.misfit import Misfit

__all__ = ["read_plain"]


def read_plain(text: bytes) -> tuple[_core.Graph, Document] | None:
    """Read a sound network in the usual form, as `read_network` and `build_graph` would.

    Returns
    -------
    tuple of (_core.Graph, Document) or None
        None for any other file: those two say what is wrong, or accept it.
    """
    schema = _Schema()
    found = _core.read_dlprim(text, schema, (notes.ID, notes.TENSOR, notes.FROZEN), MAX_DEPTH)
    if found is None:
        return None
    graph, inputs, outputs, parameters = found
    graph.check()
    return graph, Document(text, tuple(inputs), tuple(outputs), parameters)


class _Schema:
    """What the reader asks, once for each kind of operator with its options and input types.

    Types of tensors have numbers, the index in ``specs``.
    """

    def __init__(self) -> None:
        self.specs: list[Spec] = []
        self._numbers: dict[Spec, int] = {}
        self._attributes: dict[tuple[str, bytes], dict[str, str] | None] = {}

    def input(self, dtype: str, shape: tuple[int, ...]) -> tuple[int, dict[str, str]] | None:
        """Return the type of an input and its attributes; None if it is wrong."""
        if not 1 <= len(shape) <= MAX_RANK or dtype not in NAMES:
            return None
        spec = Spec(NAMES[dtype], shape)
        attributes = {notes.SHAPE: str(shape), notes.DTYPE: str(code(spec.dtype))}
        return self._number(spec), attributes

    def infer(
        self, op: str, options: bytes, inputs: list[int]
    ) -> tuple[dict[str, str], int, list[int], bool] | None:
        """Return attributes, types of output and parameters, and whether the output is an alias.

        None if something is wrong.
        """
        if op not in OPERATORS:
            return None
        attributes = self._attributes_of(op, options)
        if attributes is None:
            return None
        specs = tuple(self.specs[number] for number in inputs)
        try:
            output, parameters = infer_cached(op, tuple(attributes.items()), specs)
        except (Misfit, OptionError):
            return None
        numbers = [self._number(spec) for spec in parameters]
        return attributes, self._number(output), numbers, op in ALIASES

    def _attributes_of(self, op: str, options: bytes) -> dict[str, str] | None:
        if (op, options) not in self._attributes:
            # Warnings are for `validate`, which reads the file as a whole.
            reader = OptionReader(options, Findings())
            self._attributes[op, options] = reader.read("", op, parse(options, comments=True))
        return self._attributes[op, options]

    def _number(self, spec: Spec) -> int:
        number = self._numbers.setdefault(spec, len(self.specs))
        if number == len(self.specs):
            self.specs.append(spec)
        return number
