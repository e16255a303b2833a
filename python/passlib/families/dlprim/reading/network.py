"""From JSON to a network, checked and defaulted as by the original parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib._core import JsonObject
from passlib.dialects.json_text import JsonNumber
from passlib.families.dlprim import options
from passlib.families.dlprim.network import (
    MAX_RANK,
    NAMES,
    SECTIONS,
    Findings,
    Input,
    Network,
    Operator,
    Output,
    Spec,
    parameter_names,
)
from passlib.families.dlprim.schema import ALIASES, OPERATORS, RENAMED
from passlib.families.dlprim.shapes import infer
from passlib.lowering.types import Misfit

_TEXT = frozenset((str,))


def spelled(value: Any) -> str:
    """Spell a JSON value for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, JsonNumber):
        return value.text
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


class _OptionReader:
    """Reads options; those of equal text only once, since networks repeat their layers."""

    def __init__(self, text: bytes, findings: Findings) -> None:
        self._text = text
        self._findings = findings
        self._known: dict[tuple[str, bytes], dict[str, str]] = {}

    def read(self, place: str, op: str, json: Any) -> dict[str, str] | None:
        """Return the attributes of a node of a known operator; None after reporting an error."""
        if not isinstance(json, JsonObject):
            return self._read(place, op, json)
        key = op, self._text[json.start : json.end]
        known = self._known.get(key)
        if known is not None:
            return known
        count = len(self._findings.problems)
        attributes = self._read(place, op, json)
        # Findings are repeated for each operator, so only clean options are kept.
        if attributes is not None and len(self._findings.problems) == count:
            self._known[key] = attributes
        return attributes

    def _read(self, place: str, op: str, json: Any) -> dict[str, str] | None:
        place = f"{place}.options"
        if not isinstance(json, dict):
            if json is not None:
                self._findings.warn(place, "is not an object: ignored")
            json = {}
        known = OPERATORS[op].options
        attributes: dict[str, str] = {}
        failed = False
        for key, value in json.items():
            if key not in known:
                self._findings.warn(f"{place}.{key}", f"{op} has no such option: ignored")
            if options.is_hidden(key):
                continue
            try:
                text = options.attribute(key, known.get(key), value)
            except options.OptionError as error:
                self._findings.malformed(f"{place}.{key}", str(error))
                failed = True
                continue
            if text is not None:
                attributes[key] = text
            else:
                default = spelled(known[key].default)
                message = f"has the wrong type: ignored, the default is {default}"
                self._findings.warn(f"{place}.{key}", message)
        if op == "Reduction" and "dims" in json:
            failed |= self._reduction(place, json, attributes)
        missing = [n for n, o in known.items() if o.required and n not in json]
        for key in missing:
            self._findings.malformed(f"{place}.{key}", f"is required by {op}")
        return None if failed or missing else attributes

    def _reduction(self, place: str, json: Mapping[str, Any], attributes: dict[str, str]) -> bool:
        """Report axes that Reduction cannot have; return whether there are any."""
        if "start_axis" in json:
            self._findings.malformed(place, "dims and start_axis exclude each other")
            return True
        if attributes.get("dims", "[]") == "[]":
            self._findings.malformed(f"{place}.dims", "must be a list of at least one axis")
            return True
        return False


_MISSING: Any = object()
_FIELDS = frozenset(SECTIONS)
_INPUT_FIELDS = frozenset(("name", "shape", "dtype"))
_OPERATOR_FIELDS = frozenset(("name", "type", "inputs", "outputs", "params", "frozen", "options"))
_OUTPUT_FIELDS = frozenset(("name", "loss_weight"))


def read_network(text: bytes, root: Any, findings: Findings) -> Network:
    """Read a network as far as possible.

    ``root`` is the text as parsed by `json_text.parse`. The network is complete if ``findings``,
    which receives everything that is wrong, has no errors.
    """
    return _Reader(text, findings).read(root)


class _Reader:
    def __init__(self, text: bytes, findings: Findings) -> None:
        self._findings = findings
        self._options = _OptionReader(text, findings)
        self._tensors: dict[str, Spec | None] = {}
        self._absent: set[str] = set()
        self._parameters: dict[str, Spec] = {}
        self._operators: dict[str, str] = {}

    def read(self, root: Any) -> Network:
        if not isinstance(root, JsonObject):
            self._findings.malformed("the file", "is not a JSON object")
            root = {}
        self._report_unknown("", root, _FIELDS)
        parts = {}
        for key in SECTIONS:
            parts[key] = root.get(key, _MISSING)
            if not isinstance(parts[key], list):
                self._findings.malformed(key, "is required, and must be a list")
                parts[key] = []
        inputs = [self._input(f"inputs[{i}]", item) for i, item in enumerate(parts["inputs"])]
        operators = [
            self._operator(f"operators[{i}]", item) for i, item in enumerate(parts["operators"])
        ]
        outputs: dict[str, Output] = {}
        for i, item in enumerate(parts["outputs"]):
            output = self._output(f"outputs[{i}]", item)
            if output is None:
                continue
            if output.loss_weight is not None or output.name not in outputs:
                outputs[output.name] = output
        return Network(
            tuple(item for item in inputs if item is not None),
            tuple(item for item in operators if item is not None),
            tuple(outputs.values()),
        )

    def _required(self, place: str, json: Mapping[str, Any], field: str) -> str | None:
        """Return a required string; None after reporting an error."""
        value = json.get(field)
        if isinstance(value, str):
            return value
        self._findings.malformed(f"{place}.{field}", "is required, and must be a string")
        return None

    def _optional(
        self, place: str, json: Mapping[str, Any], field: str, default: str | bool
    ) -> Any:
        """Return a string or Boolean; the default if it is absent or of another type."""
        value = json.get(field, default)
        if isinstance(value, type(default)):
            return value
        wanted = "true or false" if isinstance(default, bool) else "a string"
        message = f"must be {wanted}: ignored, the default is {spelled(default)}"
        self._findings.warn(f"{place}.{field}", message)
        return default

    def _names(self, place: str, json: Mapping[str, Any], field: str) -> tuple[str, ...]:
        """Return a list of strings; an empty one if it is absent or of another type."""
        if field not in json:
            return ()
        value = json[field]
        if isinstance(value, list) and _TEXT.issuperset(map(type, value)):
            return tuple(value)
        message = "must be a list of strings: ignored, the default is an empty list"
        self._findings.warn(f"{place}.{field}", message)
        return ()

    def _report_unknown(self, place: str, json: Mapping[str, Any], known: frozenset[str]) -> None:
        """Warn of fields that the format does not have."""
        if json.keys() <= known:
            return
        for key in json:
            if key not in known:
                where = f"{place}.{key}" if place else key
                self._findings.warn(where, "unknown field: ignored")

    def _input(self, place: str, json: Any) -> Input | None:
        if not isinstance(json, JsonObject):
            self._findings.malformed(place, "must be an object")
            return None
        self._report_unknown(place, json, _INPUT_FIELDS)
        name = self._optional(place, json, "name", "data")
        dtype = self._optional(place, json, "dtype", "float")
        spec = self._input_spec(place, json.get("shape", _MISSING), dtype)
        if spec is None:
            self._tensors.setdefault(name, None)
            return None
        if name in self._tensors:
            self._findings.unsound(place, f"tensor {name!r} is already defined")
        self._tensors[name] = spec
        return Input(place, name, spec, json)

    def _input_spec(self, place: str, shape: Any, dtype: str) -> Spec | None:
        if not isinstance(shape, list) or not all(options.is_integer(size) for size in shape):
            self._findings.malformed(
                f"{place}.shape", "is required, and must be a list of integers"
            )
            return None
        sizes = tuple(int(size) for size in shape)
        if not 1 <= len(sizes) <= MAX_RANK or min(sizes) < 1:
            message = f"is {list(sizes)}, but must have 1 to {MAX_RANK} sizes of at least 1"
            self._findings.unsound(f"{place}.shape", message)
            return None
        if dtype not in NAMES:
            message = f"is {dtype!r}, but must be one of {', '.join(NAMES)}"
            self._findings.malformed(f"{place}.dtype", message)
            return None
        return Spec(NAMES[dtype], sizes)

    def _operator(self, place: str, json: Any) -> Operator | None:
        if not isinstance(json, JsonObject):
            self._findings.malformed(place, "must be an object")
            return None
        self._report_unknown(place, json, _OPERATOR_FIELDS)
        name = self._required(place, json, "name")
        kind = self._required(place, json, "type")
        frozen = self._optional(place, json, "frozen", False)
        inputs = self._names(place, json, "inputs")
        outputs = self._names(place, json, "outputs")
        params = self._names(place, json, "params")
        if name is None or kind is None:
            self._declare(outputs)
            return None
        if name in self._operators:
            message = f"operator {name!r} is already defined, at {self._operators[name]}"
            self._findings.unsound(f"{place}.name", message)
        self._operators.setdefault(name, place)
        if kind not in OPERATORS:
            hint = f"; it is now called {RENAMED[kind]}" if kind in RENAMED else ""
            message = f"unknown operator {kind!r} of {name!r}{hint}"
            self._findings.unsupported(f"{place}.type", message)
            self._declare(outputs)
            return None
        attributes = self._options.read(place, kind, json.get("options", {}))
        specs = self._input_specs(place, inputs)
        output, parameter_specs = self._infer(place, name, kind, attributes, specs)
        self._outputs(place, name, kind, inputs, outputs, output)
        count = len(parameter_specs) if output is not None else len(params)
        if len(params) > count:
            message = (
                f"{_who(name, kind)} has {count} parameters, but {len(params)} names are given"
            )
            self._findings.unsound(f"{place}.params", message)
        parameters = parameter_names(name, params[:count], count)
        self._declare_parameters(place, parameters, parameter_specs)
        return Operator(
            place,
            name,
            kind,
            inputs,
            outputs,
            params,
            parameters,
            frozen,
            attributes or {},
            output,
            parameter_specs,
            json,
        )

    def _input_specs(self, place: str, inputs: Sequence[str]) -> list[Spec] | None:
        known = [spec for name in inputs if (spec := self._tensors.get(name)) is not None]
        if len(known) == len(inputs):
            return known
        for index, name in enumerate(inputs):
            if name not in self._tensors and name not in self._absent:
                message = f"tensor {name!r} is not defined before this operator"
                self._findings.unsound(f"{place}.inputs[{index}]", message)
                self._absent.add(name)  # reported once; a later operator may define it
        return None

    def _infer(
        self,
        place: str,
        operator: str,
        kind: str,
        attributes: Mapping[str, str] | None,
        specs: Sequence[Spec] | None,
    ) -> tuple[Spec | None, tuple[Spec, ...]]:
        if attributes is None or specs is None:
            return None, ()
        try:
            return infer(kind, tuple(attributes.items()), tuple(specs))
        except Misfit as error:
            self._findings.unsound(place, f"{_who(operator, kind)} {error}")
            return None, ()

    def _outputs(
        self,
        place: str,
        operator: str,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        spec: Spec | None,
    ) -> None:
        if len(outputs) != 1:
            message = f"{_who(operator, kind)} has 1 output, but {len(outputs)} names are given"
            self._findings.unsound(f"{place}.outputs", message)
            self._declare(outputs)
            return
        (name,) = outputs
        if name not in self._tensors:
            self._tensors[name] = spec
            return
        known, who = self._tensors[name], _who(operator, kind)
        if name not in inputs:
            message = f"tensor {name!r} is already defined, and {who} does not work on it in place"
            self._findings.unsound(f"{place}.outputs[0]", message)
        elif None not in (known, spec) and known != spec:
            message = f"{who} cannot write {spec} in place of {name!r}, which is {known}"
            self._findings.unsound(f"{place}.outputs[0]", message)
        elif kind in ALIASES:
            self._findings.warn(f"{place}.outputs[0]", f"{who} has no effect in place")

    def _declare(self, outputs: Sequence[str]) -> None:
        for name in outputs:
            self._tensors.setdefault(name, None)

    def _declare_parameters(self, place: str, names: Sequence[str], specs: Sequence[Spec]) -> None:
        for name, spec in zip(names, specs, strict=False):
            known = self._parameters.setdefault(name, spec)
            if known != spec:
                message = f"parameter {name!r} must be {spec} here, but is {known} elsewhere"
                self._findings.unsound(f"{place}.params", message)

    def _output(self, place: str, json: Any) -> Output | None:
        name: Any = json
        weight: Any = None
        if isinstance(json, JsonObject):
            self._report_unknown(place, json, _OUTPUT_FIELDS)
            name = self._required(place, json, "name")
            if name is None:
                return None
            if "loss_weight" in json:
                weight = json["loss_weight"]
                if not options.is_float(weight):
                    self._findings.malformed(f"{place}.loss_weight", "must be a number")
                    return None
        elif not isinstance(json, str):
            self._findings.malformed(place, "must be an object or the name of a tensor")
            return None
        if name not in self._tensors:
            self._findings.unsound(place, f"tensor {name!r} is not defined")
            return None
        return Output(place, name, weight, json)


def _who(operator: str, kind: str) -> str:
    return f"{operator!r} ({kind})"
