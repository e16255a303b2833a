"""An MXNet operator: its inputs, outputs and parameters, and the inputs that it writes to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from passlib.errors import UnsupportedError
from passlib.mxnet.schema.input_rules import CONDITIONS, REPEATED, SUBGRAPHS, Get, count
from passlib.mxnet.schema.output_rules import OUTPUTS
from passlib.mxnet.schema.parameters import UNBOUNDED, Bounds, Parameter, declared

_NO_ATTRS: Mapping[str, str] = {}


class Operator:
    """One operator. Its methods take the attributes of a node, text by name.

    Attributes
    ----------
    name : str
        The registered name; aliases share the operator.
    aliases : tuple of str
    variadic : str or None
        The attribute that counts the inputs, for operators that take any number.
    makes_variables : bool
        Whether missing inputs may become variables; otherwise all must be given.
    open : bool
        Whether any attribute is accepted because the operator declares none.
    same_shape : bool
        Whether all inputs and the first output have one shape, which MXNet infers either way.
    same_type : bool
        Whether MXNet infers that all inputs and the first output have one element type.
    """

    def __init__(self, name: str, facts: Mapping[str, Any]) -> None:
        self.name = name
        self.aliases: tuple[str, ...] = tuple(facts.get("aliases", ()))
        self.makes_variables = not facts.get("explicit", False)
        self.open: bool = facts.get("open", False)
        self.same_shape: bool = facts.get("same_shape", False)
        self.same_type: bool = facts.get("same_type", False)
        self.initial: Mapping[str, str] = facts.get("init", {})
        """The default ``__init__`` of an input's variable, by input."""
        self._declared_inputs: tuple[str, ...] = tuple(facts["inputs"])
        self._types: Mapping[str, str] = facts["parameters"]
        self._bounds: Mapping[str, Bounds] = {
            name: (least, most) for name, (least, most) in facts.get("bounds", {}).items()
        }
        self._outputs: tuple[str, ...] = tuple(facts.get("outputs", ("output",)))
        self._total: int = facts.get("total", len(self._outputs))
        self._mutated = frozenset(facts.get("mutated", ()))
        self._conditions = CONDITIONS.get(name, {})
        self._output_rule = OUTPUTS.get(name)
        self._repeated = REPEATED.get(name)
        self._takes_any_number = "variadic" in facts
        self.variadic: str | None = None
        if self._takes_any_number:
            self.variadic = self._repeated[0] if self._repeated else facts["variadic"] or None

    def __repr__(self) -> str:
        return f"<Operator {self.name}>"

    @property
    def takes_any_number(self) -> bool:
        """Whether the number of inputs is free."""
        return self._takes_any_number

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The declared attributes, in MXNet's order."""
        bounds = self._bounds
        return {n: declared(n, text, bounds.get(n, UNBOUNDED)) for n, text in self._types.items()}

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        """All inputs that the operator may have with any attributes."""
        return self._declared_inputs

    def default(self, name: str) -> str | None:
        """Return the default value of an attribute as text; None if it has no default.

        The text is as declared: ``"0"`` and ``"1"`` for booleans, ``"None"`` for an absent
        value, ``"[]"`` for an empty tuple.
        """
        text = self._types.get(name)
        return None if text is None else declared(name, text).default

    def input_names(self, attrs: Mapping[str, str] = _NO_ATTRS) -> tuple[str, ...]:
        """Return the names of a node's inputs, in order.

        Empty where the attributes do not determine them (``Custom``).

        Raises
        ------
        UnsupportedError
            An attribute declares more inputs than a graph can have.
        """
        if self._takes_any_number:
            return self._repeated_names(attrs)
        if not self._conditions:
            return self._declared_inputs
        conditions, get = self._conditions, self._getter(attrs)
        return tuple(
            name
            for name in self._declared_inputs
            if name not in conditions or conditions[name](get)
        )

    def auxiliary(self, attrs: Mapping[str, str] = _NO_ATTRS) -> frozenset[int]:
        """Return the positions of the inputs that are auxiliary states.

        In MXNet these are the inputs that the operator writes to.
        """
        return self.mutable_inputs(attrs)

    def mutable_inputs(self, attrs: Mapping[str, str] = _NO_ATTRS) -> frozenset[int]:
        """Return the positions of the inputs that the operator writes to."""
        if self._repeated is None or not self._mutated:
            return self._mutated
        step = len(self._repeated[1])
        number = self._count(attrs)
        return frozenset(i * step + k for i in range(number) for k in self._mutated if k < step)

    def output_names(self, attrs: Mapping[str, str] = _NO_ATTRS) -> tuple[str, ...]:
        """Return the names of the visible outputs; an output is called ``<node>_<name>``."""
        return self._outputs_of(attrs)[0]

    @property
    def fixed_outputs(self) -> int | None:
        """The number of all outputs; None where it depends on attributes."""
        return self._total if self._output_rule is None else None

    def num_visible_outputs(self, attrs: Mapping[str, str] = _NO_ATTRS) -> int:
        """Count the outputs that other nodes may use; 0 where only MXNet's code determines it."""
        return len(self._outputs_of(attrs)[0])

    def num_outputs(self, attrs: Mapping[str, str] = _NO_ATTRS) -> int:
        """Count all outputs, hidden ones included; 0 where only MXNet's code determines it."""
        return self._outputs_of(attrs)[1]

    def _outputs_of(self, attrs: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
        if self._output_rule is None:
            return self._outputs, self._total
        try:
            names, total = self._output_rule(self._getter(attrs))
        except UnsupportedError as error:
            raise self._named(error) from error
        return tuple(names), total

    def _named(self, error: UnsupportedError) -> UnsupportedError:
        return UnsupportedError(f"operator {self.name!r}: {error}")

    def _getter(self, attrs: Mapping[str, str]) -> Get:
        return lambda name: attrs.get(name, self.default(name))

    def _count(self, attrs: Mapping[str, str]) -> int:
        if self.variadic is None:
            return 0
        try:
            return count(self._getter(attrs), self.variadic)
        except UnsupportedError as error:
            raise self._named(error) from error

    def _repeated_names(self, attrs: Mapping[str, str]) -> tuple[str, ...]:
        if self.name == "UpSampling" and attrs.get("sample_type") == "bilinear":
            return ("data", "weight")
        number = self._count(attrs)
        if self.name in SUBGRAPHS:
            return tuple(f"data{i}" for i in range(number - SUBGRAPHS[self.name]))
        if self.name == "_contrib_quantized_concat":
            arrays = tuple(f"arg{i}" for i in range(number))
            return arrays + tuple(f"{a}_{end}" for a in arrays for end in ("min", "max"))
        if self.name == "_contrib_dgl_subgraph":
            return ("graph", *(f"varray{i}" for i in range(number - 1)))
        if self.name == "_contrib_dgl_graph_compact":
            half = range(number // 2)
            return (*(f"graph{i}" for i in half), *(f"varray{i}" for i in half))
        repeated, after = self._repeated[1:] if self._repeated else (("arg{}",), ())
        return tuple(form.format(i) for i in range(number) for form in repeated) + after
