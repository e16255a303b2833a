"""Which nodes of an ONNX model a runtime accepts: tables of its operators, types and ranks."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.forms import other_form
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.dialects.onnx.soundness.model import versions_of
from passlib.errors import FormatError, UnsupportedError, listed
from passlib.files.optional import require

_TABLES: Final = Path(__file__).with_name("tables")
_OPSET: Final = "opset="
_BODIES: Final = "passlib.bodies"

_Type = tuple[str, "int | None", Any, "bool | None"]
"""A type as text, the rank of a tensor, a TypeProto, and whether the value is a constant.

Each is as far as it is known.
"""

_UNKNOWN: Final[_Type] = "", None, None, None

Known = Mapping[str, _Type]
"""Types of values by name."""


@dataclass(frozen=True)
class Refusal:
    """A node that a target does not accept.

    Attributes
    ----------
    node, op : str
        Name, or the first output where the node has none, and operator.
    place : str
        The function that the node is in; empty for the main graph and its nested graphs.
    reason : str
    """

    node: str
    op: str
    place: str
    reason: str

    def __str__(self) -> str:
        where = f" in function {self.place}" if self.place else ""
        return f"{self.node} ({self.op}){where}: {self.reason}"


@dataclass(frozen=True)
class _Value:
    """An input or output: its name and type variable in the schema; what is known of its value."""

    role: str
    variable: str
    type: str
    rank: int | None
    is_constant: bool | None = None


@dataclass(frozen=True)
class _Kernel:
    """Meanings, types and ranks that a target accepts of an operator; one of its kernels.

    Attributes
    ----------
    since, until : int or None
        The operator sets that gave the operator the meanings that this computes. As in ONNX
        Runtime: without `until` only the meaning of `since`; without both any.
    types : dict of str to list of str
        Element types by type variable of the schema, or by name of an input or output.
    ranks : dict of str to list of int
        Numbers of axes by name of an input or output.
    constants : list of str
        Inputs that must be constants.
    without : list of str
        Inputs and outputs that must not be given.
    attributes : dict of str to list
        Values of attributes; of a list, those of its elements. Others are free.
    notes : list of str
        What else must hold, for readers.
    """

    since: int | None = None
    until: int | None = None
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ranks: Mapping[str, Sequence[int]] = field(default_factory=dict)
    constants: Sequence[str] = ()
    without: Sequence[str] = ()
    attributes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def computes(self, version: int) -> bool:
        if self.since is None or version == self.since:
            return True
        return self.until is not None and self.since < version <= self.until

    def objections(self, values: Sequence[_Value], casts: Mapping[str, str]) -> list[str]:
        found = []
        wrong = set()
        for value in values:
            for key in (value.role, value.variable):
                allowed = self.types.get(key)
                kinds = {value.type, casts.get(value.type, "")}
                if allowed is None or not value.type or not kinds.isdisjoint(allowed):
                    continue
                if (key, value.type) not in wrong:
                    found.append(f"{value.role} is {value.type}, not {_one_of(allowed)}")
                wrong.add((key, value.type))
            ranks = self.ranks.get(value.role)
            if ranks is not None and value.rank is not None and value.rank not in ranks:
                found.append(f"{value.role} has rank {value.rank}, not {_one_of(ranks)}")
            if value.role in self.without:
                found.append(f"{value.role} must not be given")
            if value.role in self.constants and value.is_constant is False:
                found.append(f"{value.role} must be a constant")
        return found

    def objections_to_attributes(self, node: Any) -> list[str]:
        value_of = require("onnx.helper", extra="onnx").get_attribute_value
        found = []
        for attribute in node.attribute:
            allowed = self.attributes.get(attribute.name)
            if allowed is None or attribute.ref_attr_name:
                continue
            if not allowed:
                found.append(f"attribute {attribute.name} must not be given")
                continue
            given = value_of(attribute)
            for each in given if isinstance(given, list) else [given]:
                text = each.decode(errors="replace") if isinstance(each, bytes) else each
                if text not in allowed:
                    found.append(f"{attribute.name} is {text}, not {_one_of(allowed)}")
                    break
        return found


def _one_of(items: Sequence[object]) -> str:
    *texts, last = map(str, items)
    return f"{', '.join(texts)} or {last}" if texts else last


class Target:
    """A runtime, as far as a table tells what it accepts.

    Attributes
    ----------
    name, version, source, date : str
        What the table is of, and where and when it was read.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.name, self.version, self.source, self.date = (
            str(table.get(key, "")) for key in ("name", "version", "source", "date")
        )
        self._functions = table.get("functions", False)
        self._casts = dict(table.get("casts", {}))
        self._free = frozenset(table.get("free", ()))
        self._operators = {
            name: [_Kernel(**each) for each in entry.get("kernels", [{}])]
            for name, entry in table["operators"].items()
        }
        self._parameters = {
            name: (entry.get("inputs", ()), entry.get("outputs", ()))
            for name, entry in table["operators"].items()
        }

    @classmethod
    def load(cls, name: str) -> Target | OperatorSet:
        """Return the target of a name, of ``opset=N``, or of a table in a file.

        Raises
        ------
        UnsupportedError
            There is no such target.
        FormatError
            The file is no table.
        """
        if name.startswith(_OPSET):
            return OperatorSet(name)
        path = _TABLES / f"{name}.json"
        if not path.is_file():
            path = Path(name)
        if not path.is_file():
            known = sorted(each.stem for each in _TABLES.glob("*.json"))
            raise UnsupportedError(
                f"no target {name!r}: the targets are {listed(known)}, {_OPSET}N, and a file"
            )
        try:
            return cls(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"{path}: not a table of a target, see docs/targets.md: {error!r}"
            ) from error

    def objection(self, node: Any, version: int, values: Sequence[_Value]) -> str:
        """Return why the target refuses a node; an empty text if it does not.

        ``version``: the version of the operator's domain that the model imports.
        """
        name = qualified(node)
        if name in self._free:
            return ""
        kernels = self._operators.get(name, [])
        known = schema.schema_of(node.op_type, node.domain, version)
        if not kernels:
            return f"{self.name} does not have it"
        meaning = version if known is None else int(known.since_version)
        fitting = [each for each in kernels if each.computes(meaning)]
        if not fitting:
            versions = sorted({each.since for each in kernels if each.since is not None})
            return f"{self.name} has it as in version {_one_of(versions)}, not {meaning}"
        objections = [
            each.objections(values, self._casts) + each.objections_to_attributes(node)
            for each in fitting
        ]
        if not all(objections):
            return ""
        shortest = min(objections, key=len)
        if len(shortest) == 1 and len(fitting) > 1:
            return self._merged(fitting, values) or shortest[0]
        return "; ".join(shortest)

    def expands(self, node: Any) -> bool:
        """Tell whether an operator that it lacks is computed by the body that ONNX defines."""
        functions = self._functions
        return functions if isinstance(functions, bool) else qualified(node) in functions

    def notes(self, node: Any, version: int) -> list[str]:
        """Return what else must hold for a node that the target accepts."""
        known = schema.schema_of(node.op_type, node.domain, version)
        meaning = version if known is None else int(known.since_version)
        kernels = self._operators.get(qualified(node), [])
        return [note for each in kernels if each.computes(meaning) for note in each.notes]

    def _merged(self, kernels: Sequence[_Kernel], values: Sequence[_Value]) -> str:
        """Return an objection to what no kernel of several takes."""
        names = {key for each in kernels for key in each.types}
        types = {
            key: sorted({t for each in kernels for t in each.types.get(key, ())})
            for key in names
            if all(key in each.types for each in kernels)
        }
        return "; ".join(_Kernel(types=types).objections(values, self._casts))

    def parameters(self, node: Any, version: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the names and type variables of inputs and outputs."""
        return self._parameters.get(qualified(node), ((), ()))


class OperatorSet:
    """A version of ONNX's operator set as a target."""

    def __init__(self, name: str, *, has_forms: bool = True, refused: Collection[str] = ()) -> None:
        number = name.removeprefix(_OPSET)
        if not number.isdigit() or not 1 <= int(number) <= schema.newest():
            raise UnsupportedError(
                f"no target {name!r}: package onnx knows {_OPSET}1 to {_OPSET}{schema.newest()}"
            )
        self.name, self._version = name, int(number)
        self.version = self.source = self.date = ""
        self._has_forms = has_forms
        self._refused = frozenset(refused)

    @classmethod
    def of(cls, version: int, refused: Collection[str] | None = ()) -> OperatorSet:
        """Return a set whose operators may have other attributes, inputs and types.

        ``refused``: operators that are refused nevertheless; None for those of other forms.
        """
        return cls(f"{_OPSET}{version}", has_forms=refused is None, refused=refused or ())

    def operators_only(self) -> OperatorSet:
        """Return the same set, whose operators may have other attributes, inputs and types."""
        return OperatorSet.of(self._version)

    def objection(self, node: Any, version: int, values: Sequence[_Value]) -> str:
        """Return why a node has no equal one in the operator set; see `Target.objection`."""
        if schema.plain(node.domain):
            return ""
        known = schema.schema_of(node.op_type, "", self._version)
        if known is None:
            own = schema.schema_of(node.op_type, "", version)
            since = "" if own is None else f": {node.op_type} is new in {_first(node.op_type)}"
            return f"not in operator set {self._version}{since}"
        if node.op_type in self._refused:
            return f"{node.op_type} cannot be converted"
        if not self._has_forms:
            return ""
        found = [
            f"attribute {each.name} is not in operator set {self._version}"
            for each in node.attribute
            if each.name not in known.attributes
        ]
        for what, count, most in (
            ("inputs", len(node.input), known.max_input),
            ("outputs", len(node.output), known.max_output),
        ):
            if count > most:
                found.append(f"{count} {what}, of which operator set {self._version} has {most}")
        types = {
            each.type_param_str: _plain(each.allowed_type_strs) for each in known.type_constraints
        }
        return "; ".join([*found, *_Kernel(types=types).objections(values, {})])

    def expands(self, node: Any) -> bool:
        """Return False: each operator must be in the set."""
        return False

    def notes(self, node: Any, version: int) -> list[str]:
        """Return nothing: an operator set has no notes."""
        return []

    def parameters(self, node: Any, version: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return nothing: those of the schema are used."""
        return (), ()


def _first(op: str) -> int:
    defs: Any = require("onnx.defs", extra="onnx")
    found = (s.since_version for s in defs.get_all_schemas_with_history() if s.name == op)
    return min(found, default=0)


def qualified(node: Any) -> str:
    """Return the operator of a node, with its domain unless that is ONNX's own."""
    domain = schema.plain(node.domain)
    return f"{domain}::{node.op_type}" if domain else str(node.op_type)


def _plain(types: Sequence[str]) -> list[str]:
    return [each.replace("tensor(", "", 1).replace(")", "", 1) for each in types]


def refusals(
    model: Any, target: Target | OperatorSet, notes: dict[tuple[str, str], int] | None = None
) -> list[Refusal]:
    """Return the nodes that a target refuses, in the order of the model.

    What is not known, such as types in bodies of functions, is not refused.

    Parameters
    ----------
    model : onnx.ModelProto
    notes : dict, optional
        Gets the notes of the table on accepted nodes: number of nodes by operator and text.
    """
    functions = {(each.domain, each.name) for each in model.functions}
    typed = inferred(model)
    bodies = [("", typed.graph, typed.opset_import)]
    bodies += [(each.name, each, each.opset_import) for each in typed.functions]
    found = []
    for place, body, imports in bodies:
        versions = versions_of(imports)
        for node, known in walk(body):
            if (node.domain, node.op_type) in functions:
                continue
            reason = objection(node, versions, target, known)
            if reason and target.expands(node):
                reason = _of_body(node, imports, known, target, reason)
            if reason:
                name = node.name or next(filter(None, node.output), "")
                found.append(Refusal(name, qualified(node), place, reason))
            elif notes is not None:
                for note in target.notes(node, versions.get(schema.plain(node.domain), 1)):
                    key = qualified(node), note
                    notes[key] = notes.get(key, 0) + 1
    return found


def objection(
    node: Any, versions: Mapping[str, int], target: Target | OperatorSet, known: Known
) -> str:
    """Return why a target refuses a node; an empty text if it does not.

    ``versions``: of the operator sets that the model imports.
    """
    version = versions.get(schema.plain(node.domain), 1)
    return target.objection(node, version, list(_values_of(node, version, target, known)))


def _of_body(
    node: Any, imports: Any, known: Known, target: Target | OperatorSet, reason: str
) -> str:
    """Return what the target refuses of the body that ONNX defines for an operator.

    ``reason``: why it refuses the operator itself, which holds if there is no body.
    """
    versions = versions_of(imports)
    own = schema.schema_of(node.op_type, node.domain, versions.get(schema.plain(node.domain), 1))
    if own is None or not (own.has_function or own.has_context_dependent_function):
        return reason
    onnx = require("onnx", extra="onnx")
    types = []
    alone = onnx.ModelProto(ir_version=onnx.IR_VERSION, opset_import=imports)
    for name in node.input:
        kind = known.get(name, _UNKNOWN)[2] if name else onnx.TypeProto()
        if kind is None:
            return ""
        types.append(kind.SerializeToString())
        if name and all(each.name != name for each in alone.graph.input):
            alone.graph.input.add(name=name).type.CopyFrom(kind)
    body = body_of(own, node, versions, types)
    if body is None:
        return reason
    if not body.node:  # it depends on a type that is not known
        return ""
    call = alone.graph.node.add()
    call.CopyFrom(node)
    call.domain = body.domain = _BODIES
    call.op_type = body.name = "body"
    alone.functions.append(body)
    alone.opset_import.add(domain=_BODIES, version=1)
    for name in filter(None, node.output):
        alone.graph.output.add(name=name)
    made = require("onnx.inliner", extra="onnx").inline_local_functions(alone)
    inner = refusals(made, target)
    return f"{reason}, nor {inner[0].op} of its body: {inner[0].reason}" if inner else ""


def body_of(
    own: Any,
    node: Any,
    versions: Mapping[str, int],
    types: Sequence[bytes],
    *,
    any_set: bool = False,
) -> Any:
    """Return the function that ONNX defines an operator by; None if there is none.

    As in ONNX Runtime, the operators of a body that does not depend on the node must not have got
    another meaning since.

    Parameters
    ----------
    own : onnx.defs.OpSchema
    versions : dict of str to int
        Of the operator sets that the model imports.
    types : sequence of bytes
        Serialized types of the inputs.
    any_set : bool
        Also take a body whose operators look and mean the same in the sets of the model.
    """
    newest = versions.get("", 1)
    bodies = [(version, False) for version in own.function_opset_versions]
    bodies += [(version, True) for version in own.context_dependent_function_opset_versions]
    older = [each for each in bodies if each[0] <= newest]
    # One that does not depend on the node comes first.
    order = sorted(older, key=lambda each: (each[1], -each[0]))
    order = [*order, *(each for each in bodies if each not in older)] if any_set else order[:1]
    for version, is_varying in order:
        if is_varying:
            try:
                content = own.get_context_dependent_function_with_opset_version(
                    version, node.SerializeToString(), list(types)
                )
            except (RuntimeError, ValueError):  # of a node that is not as ONNX requires
                continue
        else:
            content = own.get_function_with_opset_version(version)
        body = require("onnx", extra="onnx").FunctionProto.FromString(content)
        if _fits(body, versions, any_set, is_varying):
            return body
    return None


def _fits(body: Any, versions: Mapping[str, int], any_set: bool, is_varying: bool) -> bool:
    if is_varying and not any_set:
        return True
    imports = versions_of(body.opset_import)
    for each in (each for graph in graphs_within(body) for each in graph.node):
        name = schema.plain(each.domain)
        sets = imports.get(name, 1), versions.get(name, 1)
        then, now = (schema.schema_of(each.op_type, name, of) for of in sets)
        if then is None or now is None:
            return False
        if then.since_version != now.since_version and (
            not any_set or name or other_form(each, *sets)
        ):
            return False
    return True


def walk(body: Any) -> Iterator[tuple[Any, Known]]:
    """Iterate over the nodes of a graph or function and of its nested graphs.

    Result: each node, and the types of all values that it can read.
    """
    pending: list[tuple[Any, ChainMap[str, _Type]]] = [(body, ChainMap())]
    while pending:
        graph, outer = pending.pop()
        known = outer.new_child(_types(graph))
        _mark_constants(graph, known)
        inner = []
        for node in graph.node:
            yield node, known
            for attribute in node.attribute:
                graphs = [attribute.g] if attribute.HasField("g") else attribute.graphs
                inner += [(each, known) for each in graphs]
        pending += reversed(inner)


def _types(graph: Any) -> dict[str, _Type]:
    """Return the types and ranks of the values of a graph; nothing for a function."""
    found: dict[str, _Type] = {}
    if not hasattr(graph, "initializer"):
        return found
    make = require("onnx.helper", extra="onnx").make_tensor_type_proto
    for tensor in graph.initializer:
        kind = make(tensor.data_type, list(tensor.dims))
        found[tensor.name] = (_element(tensor.data_type), len(tensor.dims), kind, True)
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type
        has_rank = kind.HasField("tensor_type") and kind.tensor_type.HasField("shape")
        rank = len(kind.tensor_type.shape.dim) if has_rank else None
        found[value.name] = (_text(kind), rank, kind, False)
    return found


def _mark_constants(graph: Any, known: ChainMap[str, _Type]) -> None:
    """Tell values that are computed from constants only; nothing for a function."""
    if not hasattr(graph, "initializer"):
        return
    for node in graph.node:
        inputs = [known.get(name, _UNKNOWN)[3] for name in node.input if name]
        if any(each.HasField("g") or each.graphs for each in node.attribute):
            inputs.append(None)
        is_constant = False if False in inputs else None if None in inputs else True
        for name in filter(known.get, node.output):
            known[name] = (*known[name][:3], is_constant)


@cache
def _element(code: int) -> str:
    data_type = require("onnx", extra="onnx").TensorProto.DataType
    return str(data_type.Name(code)).lower() if code else ""


def _text(kind: Any) -> str:
    """Return a type as text, such as ``float16`` or ``seq(float)``; empty if it is not known."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        name = _element(getattr(kind, which).elem_type)
        return name if which == "tensor_type" or not name else f"sparse_tensor({name})"
    if which in ("sequence_type", "optional_type"):
        inner = _text(getattr(kind, which).elem_type)
        return f"{'seq' if which == 'sequence_type' else 'optional'}({inner})" if inner else ""
    return ""


def _values_of(
    node: Any, version: int, target: Target | OperatorSet, known: Known
) -> Iterator[_Value]:
    """Iterate over the inputs and outputs of a node, with the types that are known."""
    own = schema.schema_of(node.op_type, node.domain, version)
    lists = target.parameters(node, version)
    if own is not None:
        inputs, outputs = own.inputs, own.outputs
        lists = ([(p.name, p.type_str) for p in inputs], [(p.name, p.type_str) for p in outputs])
    for parameters, names in zip(lists, (node.input, node.output), strict=True):
        for number, name in enumerate(names):
            if name and parameters:
                role, variable = parameters[min(number, len(parameters) - 1)]
                kind, rank, _, is_constant = known.get(name, _UNKNOWN)
                yield _Value(str(role), str(variable), kind, rank, is_constant)
