"""An MXNet operator: its inputs, outputs and parameters, and the inputs that it writes to."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from passlib.errors import GraphError, UnsupportedError
from passlib.graph.node import MOST_OUTPUTS

HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")
"""Attributes of any node that MXNet stores as ``__ctx_group__`` and so on."""


def is_dunder(key: str) -> bool:
    """Whether a key is free for anyone's use: ``__mine__``."""
    return key.startswith("__") and key.endswith("__")


def hidden_on_operator(key: str) -> str:
    """Return the key under which an operator stores an attribute.

    MXNet wraps every key that begins with a hidden one: ``lr_mult`` becomes ``__lr_mult__``. Raises
    `GraphError` if the key addresses the variable of an input (``weight_lr_mult``), which operators
    may not.
    """
    for hidden in HIDDEN:
        if key.startswith(hidden):
            return f"__{key}__"
    _refuse_suffix(key)
    return key


def hidden_on_variable(key: str) -> str:
    """Return the key under which a variable stores an attribute; only whole hidden keys change.

    Raises `GraphError`, as for `hidden_on_operator`.
    """
    if key in HIDDEN:
        return f"__{key}__"
    _refuse_suffix(key)
    return key


def _refuse_suffix(key: str) -> None:
    for hidden in HIDDEN:
        if key.endswith(hidden):
            owner = key[: -len(hidden)].rstrip("_")
            raise GraphError(
                f"attribute {key!r} would belong to the variable {owner!r}: create it with "
                f"var(..., {hidden}=...) or attr={{'__{hidden}__': ...}} and pass it as an input"
            )


Get = Callable[[str], "str | None"]
"""Returns an attribute's value, its default, or None."""

_INPUTS: Any = json.loads(Path(__file__).with_name("inputs.json").read_text("utf-8"))

CONDITIONS: Mapping[str, Mapping[str, str]] = _INPUTS["conditions"]
"""Inputs that exist only under a condition, by operator; see `holds`."""


class Repeated(NamedTuple):
    """The inputs of an operator that has as many of each as an attribute says."""

    counting: str
    """The attribute."""
    each: Sequence[str]
    """Their names without the numbers."""
    after: Sequence[str]
    """The inputs behind them."""


REPEATED = {name: Repeated(**form) for name, form in _INPUTS["repeated"].items()}
"""By operator. The inputs of other variadic operators are ``arg0`` and so on."""


def holds(condition: str, get: Get) -> bool:
    """Whether a condition holds: terms between ``|`` or between ``&``.

    ``a`` stands for a true attribute, ``!a`` for one that is not true, ``?a`` for one that is
    absent, ``a=text`` for one of this text.
    """

    def term_holds(term: str) -> bool:
        if term[0] == "!":
            return not is_true(get(term[1:]))
        if term[0] == "?":
            return get(term[1:]) in (None, "None")
        name, equals, text = term.partition("=")
        return get(name) == text if equals else is_true(get(name))

    if "|" in condition:
        return any(map(term_holds, condition.split("|")))
    return all(map(term_holds, condition.split("&")))


SUBGRAPHS = {"_foreach": 1, "_while_loop": 2, "_cond": 3}
"""How many of ``num_args`` are nested graphs, which are not inputs of the node."""


def count(get: Get, name: str) -> int:
    """Read an attribute that counts inputs or outputs; 0 for anything that is no number.

    Raises `UnsupportedError` if the number is too large: a file must not cause an allocation that
    it merely claims.
    """
    text = (get(name) or "").strip().removeprefix("+")
    if not (text.isascii() and text.isdecimal()):
        return 0
    digits = text.lstrip("0")
    if len(digits) > len(str(MOST_OUTPUTS)) or int(digits or "0") > MOST_OUTPUTS:
        raise UnsupportedError(
            f"attribute {name!r} is {text[:20]}; at most {MOST_OUTPUTS} are supported"
        )
    return int(digits or "0")


Outputs = Callable[[Get], "tuple[Sequence[str], int]"]
"""Returns the names of the visible outputs, and the number of all."""


def _parts(text: str | None) -> int:
    return sum(1 for part in (text or "").strip("()[] ").split(",") if part.strip())


def numbered(number: int) -> tuple[Sequence[str], int]:
    """Return MXNet's names of outputs without names of their own, and their number."""
    names = ["output"] if number == 1 else [f"output{i}" for i in range(number)]
    return names, number


def _pooling(get: Get) -> tuple[Sequence[str], int]:
    # oneDNN's maximum pooling, used for channels first and one to three spatial axes, keeps the
    # position of each maximum for the gradient.
    axes = _parts(get("kernel"))
    first = get("layout") in (None, "None", "NCW", "NCHW", "NCDHW")
    kept = get("pool_type") == "max" and first and 1 <= axes <= 3
    return ("output",), 2 if kept else 1


def _by(name: str) -> Outputs:
    return lambda get: numbered(count(get, name))


def _more(flag: str, extra: tuple[str, ...], total: int) -> Outputs:
    """Return the rule of outputs that are always computed, but visible only with ``flag``."""
    return lambda get: (("output", *(extra if is_true(get(flag)) else ())), total)


def _split(get: Get) -> tuple[Sequence[str], int]:
    return numbered(count(get, "sections") or _parts(get("indices")))


def _slice_channel(get: Get) -> tuple[Sequence[str], int]:
    number = count(get, "num_outputs")
    return [f"output{i}" for i in range(number)], number


def _recurrent(cell: str) -> Outputs:
    def outputs(get: Get) -> tuple[Sequence[str], int]:
        names = ["output"]
        if is_true(get("state_outputs")):
            names.append("state_output")
            if get("mode") == "lstm":
                names.append(cell)
        return names, len(names)

    return outputs


def _topk(get: Get) -> tuple[Sequence[str], int]:
    chosen = get("ret_typ")
    if chosen == "both":
        return ("output0", "output1"), 2
    return (("output0",), 2) if chosen == "value" else (("output",), 1)


def _leaky(get: Get) -> tuple[Sequence[str], int]:
    return (("output", "mask"), 2) if get("act_type") == "rrelu" else (("output",), 1)


def _unique(get: Get) -> tuple[Sequence[str], int]:
    flags = ("return_index", "return_inverse", "return_counts")
    return numbered(1 + sum(is_true(get(flag)) for flag in flags))


def _ranged(flag: str, when: bool) -> Outputs:
    """Return the rule of an output that is quantized, with its range in two more, or real."""
    names = ("output", "min_output", "max_output")
    return lambda get: (names, 3) if is_true(get(flag)) is when else (("output",), 1)


def _quantized(get: Get) -> tuple[Sequence[str], int]:
    kept = is_true(get("quantized")) and not is_true(get("enable_float_output"))
    return (("output", "min_output", "max_output"), 3) if kept else (("output",), 1)


def _average(get: Get) -> tuple[Sequence[str], int]:
    return ("output0", "output1") if is_true(get("returned")) else ("output0",), 2


def _sampled(get: Get) -> tuple[Sequence[str], int]:
    return numbered(2 if is_true(get("get_prob")) else 1)


def _subgraphs(others: int, mapped: int) -> Outputs:
    def outputs(get: Get) -> tuple[Sequence[str], int]:
        graphs = max(count(get, "num_args") - others, 0) // mapped
        return numbered(graphs * (2 if is_true(get("return_mapping")) else 1))

    return outputs


_MEAN_VAR = ("mean", "var")

OUTPUTS: dict[str, Outputs] = {
    "BatchNorm": _more("output_mean_var", _MEAN_VAR, 3),
    "BatchNorm_v1": _more("output_mean_var", _MEAN_VAR, 3),
    "GroupNorm": _more("output_mean_var", ("mean", "std"), 3),
    "LayerNorm": _more("output_mean_var", ("mean", "std"), 3),
    "LeakyReLU": _leaky,
    "Pooling": _pooling,
    "RNN": _recurrent("statecell_output"),
    "SliceChannel": _slice_channel,
    **{
        name: _by(form.counting)
        for name, form in REPEATED.items()
        if form.counting != "num_arrays" and not name.startswith("_npi_")
    },
    **dict.fromkeys(("_cond", "_foreach", "_while_loop"), _by("num_outputs")),
    "_contrib_BatchNormWithReLU": _more("output_mean_var", _MEAN_VAR, 4),
    "_contrib_MultiProposal": _more("output_score", ("score",), 2),
    "_contrib_Proposal": _more("output_score", ("score",), 2),
    "_contrib_SyncBatchNorm": _more("output_mean_var", _MEAN_VAR, 3),
    "_contrib_dgl_graph_compact": _subgraphs(0, 2),
    "_contrib_dgl_subgraph": _subgraphs(1, 1),
    # The missing letter is MXNet's.
    "_contrib_quantized_rnn": _recurrent("statecell_ouput"),
    "_contrib_quantized_elemwise_mul": _ranged("enable_float_output", when=False),
    "_npi_average": _average,
    **dict.fromkeys(("_npi_dsplit", "_npi_hsplit", "_split_v2"), _split),
    "_npi_unique": _unique,
    "_sample_multinomial": _sampled,
    "_sg_mkldnn_selfatt_qk": _quantized,
    "_sg_mkldnn_selfatt_valatt": _quantized,
    "topk": _topk,
}
"""Names of the visible outputs, and the number of all, by operator.

cpp/mxnet/operators.cc has the same for native hosts; tests/native/test_mxnet.py compares them.
"""


Bounds: TypeAlias = "tuple[float | None, float | None]"
"""The least and the largest value that an operator admits, None without such a limit."""

UNBOUNDED: Final[Bounds] = (None, None)

# Longer numbers fit none of MXNet's types.
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*")
_OPTIONAL_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}L?\s*")
_REAL = re.compile(
    r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)f?", re.I
)
_SIZE = r"(None|[+-]?\d{1,20}L?)"
_TUPLE = re.compile(rf"\s*[\[(]\s*({_SIZE}\s*(,\s*{_SIZE}\s*)*,?)?\s*[\])]\s*")
_NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?L?\s*"
_NUMBERS = re.compile(rf"\s*[\[(]({_NUMBER}(,{_NUMBER})*,?)?\s*[\])]\s*|{_NUMBER}")
_LIMITS = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_UNSIGNED_LIMITS = {"int": (0, 2**32 - 1), "long": (0, 2**64 - 1)}
_LARGEST_FLOAT = 3.4028235e38
_KINDS = {
    "float": "float",
    "real_t": "float",
    "double": "double",
    "boolean": "boolean",
    "Shape(tuple)": "shape",
    "Shape": "shape",
    "tuple": "numbers",
}
"""The kinds of other types, by the first word of the declaration."""

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Parameter(NamedTuple):
    """One attribute that an operator declares.

    Attributes
    ----------
    kind : str
        ``"int"``, ``"float"``, ``"double"``, ``"boolean"``, ``"shape"``, ``"numbers"``,
        ``"choice"`` or ``"other"``.
    choices : tuple of str
        The values of a ``"choice"``, including ``"None"`` where it may be absent.
    optional_none : bool
        Whether the text ``"None"`` is a valid value.
    default : str or None
        As an attribute spells it; None where the parameter is required.
    limits : tuple of int or None
        The smallest and the largest integer that the type admits.
    type_text : str
        The declaration.
    bounds : tuple of (float or None)
        The least and the largest value that the operator admits.
    """

    name: str
    kind: str
    choices: tuple[str, ...]
    optional_none: bool
    required: bool
    default: str | None
    limits: tuple[int, int] | None
    type_text: str
    bounds: Bounds = UNBOUNDED

    def accepts(self, value: str) -> bool:
        """Whether ``value`` can be read as this parameter's type, and is within its bounds."""
        return self._has_type(value) and (self.bounds == UNBOUNDED or self._is_within(value))

    @property
    def description(self) -> str:
        """The declaration, with the bounds."""
        least, most = self.bounds
        if least is None and most is None:
            return self.type_text
        limit = f"at most {most}" if least is None else f"at least {least}"
        limit = limit if None in self.bounds else f"from {least} to {most}"
        return f"{self.type_text}, {limit}"

    def _has_type(self, value: str) -> bool:
        if self.optional_none and value == "None":
            return True
        if self.limits is not None:
            least, most = self.limits
            fits = (_OPTIONAL_INTEGER if self.optional_none else _INTEGER).fullmatch(value)
            return bool(fits) and least <= int(value.strip().rstrip("L")) <= most
        if self.kind in ("float", "double"):
            return self._accepts_real(value)
        if self.kind == "boolean":
            return value.lower() in _BOOLEANS
        if self.kind == "shape":
            return bool(_TUPLE.fullmatch(value)) or bool(_INTEGER.fullmatch(value))
        if self.kind == "numbers":
            return bool(_NUMBERS.fullmatch(value))
        if self.kind == "choice":
            return value in self.choices
        return True

    def _is_within(self, value: str) -> bool:
        least, most = self.bounds
        if self.kind == "shape":
            sizes = [int(size) for size in re.findall(r"[+-]?\d+", value)]
            return least is None or all(size >= least for size in sizes)
        text = value.strip()
        number = float(text.rstrip("fFL") if text[-1:] in "fFL" and text[-2:-1].isdigit() else text)
        return not ((least is not None and number < least) or (most is not None and number > most))

    def _accepts_real(self, value: str) -> bool:
        if not _REAL.fullmatch(value):
            return False
        if not any(character.isdigit() for character in value):
            return not self.optional_none  # infinity, or no number
        most = math.inf if self.kind == "double" else _LARGEST_FLOAT
        number = abs(float(value.rstrip("fF")))
        return number <= most and number != math.inf


def is_true(value: str | None) -> bool:
    """Whether a boolean attribute is true; anything that is no boolean counts as false."""
    return value is not None and _BOOLEANS.get(value.lower(), False)


@cache
def declared(name: str, type_text: str, bounds: Bounds = UNBOUNDED) -> Parameter:
    """Parse a declaration such as ``"int (non-negative), optional, default=1"``."""
    default = None
    head, found, tail = type_text.partition("default=")
    if found:
        default = tail.strip().strip("'")
    choices: tuple[str, ...] = ()
    limits = None
    word = head.split(" ")[0].rstrip(",")
    if head.startswith("{"):
        kind = "choice"
        choices = tuple(c.strip().strip("'") for c in head[1 : head.rindex("}")].split(","))
    elif word in _LIMITS:
        kind = "int"
        limits = (_UNSIGNED_LIMITS if "non-negative" in head else _LIMITS)[word]
    elif head.startswith("tuple of <Shape"):
        kind = "other"
    else:
        kind = _KINDS.get(word, "other")
    return Parameter(
        name,
        kind,
        choices,
        optional_none=kind in ("shape", "numbers") or "or None" in head or default == "None",
        required="required" in head,
        default=default,
        limits=limits,
        type_text=type_text,
        bounds=bounds,
    )


_NO_ATTRS: Mapping[str, str] = {}


class Operator:
    """One operator. Its methods take the attributes of a node, text by name.

    Attributes
    ----------
    name : str
        The registered name; aliases share the operator.
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
        self.declared_inputs: tuple[str, ...] = tuple(facts["inputs"])
        """All inputs that the operator may have with any attributes."""
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
        self.takes_any_number = "variadic" in facts
        """Whether the number of inputs is free."""
        self.variadic: str | None = None
        if self.takes_any_number:
            self.variadic = self._repeated.counting if self._repeated else facts["variadic"] or None

    def __repr__(self) -> str:
        return f"<Operator {self.name}>"

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The declared attributes, in MXNet's order."""
        bounds = self._bounds
        return {n: declared(n, text, bounds.get(n, UNBOUNDED)) for n, text in self._types.items()}

    def default(self, name: str) -> str | None:
        """Return the default value of an attribute as text; None if it has no default.

        The text is as declared: ``"0"`` and ``"1"`` for booleans, ``"None"`` for an absent
        value, ``"[]"`` for an empty tuple.
        """
        text = self._types.get(name)
        return None if text is None else declared(name, text).default

    def input_names(self, attrs: Mapping[str, str] = _NO_ATTRS) -> tuple[str, ...]:
        """Return the names of a node's inputs, in order.

        Empty where the attributes do not determine them (``Custom``). Raises `UnsupportedError` if
        an attribute declares more inputs than a graph can have.
        """
        if self.takes_any_number:
            return self._repeated_names(attrs)
        if not self._conditions:
            return self.declared_inputs
        conditions, get = self._conditions, self._getter(attrs)
        return tuple(
            name
            for name in self.declared_inputs
            if name not in conditions or holds(conditions[name], get)
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
        step = len(self._repeated.each)
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
        repeated, after = self._repeated[1:] if self._repeated else (("arg",), ())
        return (*(f"{name}{i}" for i in range(number) for name in repeated), *after)
