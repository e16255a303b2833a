"""What a pass declares: what it does, on which models, with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from passlib.errors import UnsupportedError, did_you_mean
from passlib.library.declared.option import Option, OptionError, option_text

Lending: TypeAlias = Literal["nothing", "on demand", "whole"]
"""How the weights of a model are lent to a pass."""


CostClass: TypeAlias = Literal["nodes", "weights", "runs"]
"""What the time of a pass grows with: nodes, the size of weights too, or operators that it runs."""


@dataclass(frozen=True)
class Joins:
    """What a pass is in the named pipelines that it joins.

    Attributes
    ----------
    pipelines : sequence of str
        Such as ``"simplify"`` and ``"clean"``.
    after : str
        The pass behind which it runs; empty, or none of the pipeline, for the end of a round.
    options : mapping of str to object
        Options that the pipelines give it.
    rounding : mapping of str to object
        Further ones where results may change by rounding, and in rare cases more.
    cost : {"nodes", "weights", "runs"}
        What its time grows with: the number of nodes, the size of the weights too, or the time of
        operators that it runs.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass(exact=True, triggers=["Abs"], joins=pl.passes.Joins(["simplify", "clean"]))
    ... def abs_of_abs(graph: pl.Graph) -> None:
    ...     '''Leaves one of two Abs.'''
    >>> abs_of_abs.declaration.joins.pipelines
    ('simplify', 'clean')
    """

    pipelines: Sequence[str]
    after: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rounding: Mapping[str, Any] = field(default_factory=dict)
    cost: CostClass = "nodes"

    def __post_init__(self) -> None:
        """Hold the names in a tuple.

        Raises
        ------
        TypeError
            They are one text.
        ValueError
            The cost is none of these.
        """
        if isinstance(self.pipelines, str):
            raise TypeError(f"pipelines must be a sequence of names, such as [{self.pipelines!r}]")
        if self.cost not in get_args(CostClass):
            raise ValueError(f"cost is one of {', '.join(get_args(CostClass))}, not {self.cost!r}")
        object.__setattr__(self, "pipelines", tuple(self.pipelines))


@dataclass(frozen=True, repr=False)
class Declaration:
    """A pass as it describes itself.

    ``help(passlib.library.passes()["name"])`` and ``print`` show it.

    Attributes
    ----------
    name : str
    description : str
        Empty for a pass that declares nothing.
    dialects : tuple of str
        Families of models that it works on; empty for all.
    options : tuple of Option or None
        None for a pass that declares nothing: it takes any options.
    needs_weights, needs_shapes : bool
        Whether it reads weights, and inferred shapes and types.
    weights_on_demand : bool
        Whether it asks for the weights that it reads.
    exact : bool
        Whether it keeps every bit of the model's results.
    triggers : tuple of str
        Operators without one of which it changes no graph; empty if it may change any.
    joins : Joins or None
        What it is in the named pipelines that it joins.
    library : str
        Path of the library, or module of the function.
    is_partitioner : bool
    any_options : bool
        Whether it takes other options than those that it declares.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass(dialects=["onnx"])
    ... def nothing_at_all(graph: pl.Graph, *, level: int = 1) -> None:
    ...     '''Leaves the graph as it is.'''
    >>> declaration = nothing_at_all.declaration
    >>> declaration.dialects, declaration.description
    (('onnx',), 'Leaves the graph as it is.')
    """

    name: str
    description: str = ""
    dialects: tuple[str, ...] = ()
    options: tuple[Option, ...] | None = None
    needs_weights: bool = True
    needs_shapes: bool = True
    library: str = ""
    is_partitioner: bool = False
    any_options: bool = False
    weights_on_demand: bool = False
    exact: bool = False
    triggers: tuple[str, ...] = ()
    joins: Joins | None = None

    @property
    def lending(self) -> Lending:
        """How weights are lent to it."""
        if not self.needs_weights:
            return "nothing"
        return "on demand" if self.weights_on_demand else "whole"

    def __post_init__(self) -> None:
        """Let ``help`` of the object show what it declares, not what a declaration is.

        Raises
        ------
        OptionError
            It joins a pipeline with an option that it does not have, or a wrong value.
        """
        object.__setattr__(self, "__doc__", str(self))
        if self.joins is not None:
            self._checked({**self.joins.options, **self.joins.rounding})

    def is_for(self, dialect: str) -> bool:
        """Whether the pass works on models of a dialect; it does if it declares none."""
        return not self.dialects or dialect in self.dialects

    def require_dialect(self, dialect: str) -> None:
        """Check that the pass works on models of a dialect.

        Raises
        ------
        UnsupportedError
            It declares others.
        """
        if not self.is_for(dialect):
            raise UnsupportedError(
                f"pass {self.name!r} is for models of {', '.join(self.dialects)}, and this one is "
                f"of {dialect}"
            )

    def checked(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return options in their declared types, without those that were not given.

        Parameters
        ----------
        given : mapping of str to object
            Values, or their text.

        Raises
        ------
        OptionError
            An option is unknown, missing, of a wrong type or out of range.
        """
        values = self._checked(given)
        missing = [each for each in self.options or () if each.required and each.name not in given]
        if missing:
            name, what = missing[0].name, missing[0].type_text
            raise OptionError(f"pass {self.name!r} needs the option {name!r}: {what}", name)
        return values

    def _checked(self, given: Mapping[str, object]) -> dict[str, Any]:
        if self.options is None:
            return dict(given)
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known and not self.any_options:
                raise OptionError(self._unknown(name, list(known)), name)
        try:
            return {
                name: known[name].checked(value) if name in known else value
                for name, value in given.items()
            }
        except OptionError as error:
            raise OptionError(f"pass {self.name!r}: {error}", error.option) from None

    def _unknown(self, name: str, known: list[str]) -> str:
        hint = did_you_mean(name, known, 1)
        have = f"it has: {', '.join(known)}" if known else "it has none"
        return f"pass {self.name!r} has no option {name!r}{hint} ({have})"

    def __repr__(self) -> str:
        return f"<{'partitioner' if self.is_partitioner else 'pass'} {self.name}>"

    def __str__(self) -> str:
        lines = [self.name + (f": {self.description}" if self.description else "")]
        if self.dialects:
            lines.append(f"  dialects: {', '.join(self.dialects)}")
        if self.exact:
            lines.append("  keeps every bit of the results")
        if self.triggers:
            lines.append(f"  does nothing without one of {', '.join(self.triggers)}")
        if self.joins is not None:
            lines.append(f"  part of the pipelines {', '.join(self.joins.pipelines)}")
        if self.options is None:
            lines.append("  options: not declared, any are passed on")
        if self.any_options:
            lines.append("  options: these, and any others are passed on")
        for option in self.options or ():
            default = "required" if option.required else f"default {option_text(option.default)}"
            lines.append(f"  {option.name}: {option.type_text}; {default}")
            lines += [f"      {line}" for line in option.description.splitlines()]
        return "\n".join(lines + ([f"  from {self.library}"] if self.library else []))
