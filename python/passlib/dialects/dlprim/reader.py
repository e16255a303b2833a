"""From JSON to a network, with all that the original parser checks and lets pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib.dialects.dlprim import options
from passlib.dialects.dlprim.findings import Findings
from passlib.dialects.dlprim.network import (
    SECTIONS,
    Input,
    Network,
    Operator,
    Output,
    parameter_names,
)
from passlib.dialects.dlprim.schema import ALIASES, OPERATORS, RENAMED
from passlib.dialects.dlprim.shape_rules import Misfit
from passlib.dialects.dlprim.shapes import infer_cached
from passlib.dialects.dlprim.types import MAX_RANK, NAMES, Spec
from passlib.dialects.json_text import JsonNumber, JsonObject

__all__ = ["read_network"]

_MISSING: Any = object()
_FIELDS = frozenset(SECTIONS)
_INPUT_FIELDS = frozenset(("name", "shape", "dtype"))
_OPERATOR_FIELDS = frozenset(("name", "type", "inputs", "outputs", "params", "frozen", "options"))
_OUTPUT_FIELDS = frozenset(("name", "loss_weight"))
_TEXT = frozenset((str,))


def read_network(text: bytes, root: Any, findings: Findings) -> Network:
    """Read a network, as far as it can be read.

    Parameters
    ----------
    text : bytes
    root : object
        What `json_text.parse` made of the file.
    findings : Findings
        Receives everything that is wrong.

    Returns
    -------
    Network
        Complete if ``findings`` has no errors.
    """
    return _Reader(text, findings).read(root)


class _Reader:
    def __init__(self, text: bytes, findings: Findings) -> None:
        self._text = text
        self._findings = findings
        self._read_options: dict[tuple[str, bytes], dict[str, str]] = {}
        self._tensors: dict[str, Spec | None] = {}
        self._absent: set[str] = set()
        self._parameters: dict[str, Spec] = {}
        self._operators: dict[str, str] = {}

    def read(self, root: Any) -> Network:
        if not isinstance(root, JsonObject):
            self._findings.malformed("the file", "is no JSON object")
            root = {}
        self._unknown("", root, _FIELDS)
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

    def _input(self, place: str, json: Any) -> Input | None:
        if not isinstance(json, JsonObject):
            self._findings.malformed(place, "must be an object")
            return None
        self._unknown(place, json, _INPUT_FIELDS)
        name = self._optional(place, json, "name", "data", "a text", str)
        dtype = self._optional(place, json, "dtype", "float", "a text", str)
        shape = json.get("shape", _MISSING)
        if not isinstance(shape, list) or not all(options.is_integer(size) for size in shape):
            self._findings.malformed(f"{place}.shape", "is required: a list of whole numbers")
            self._tensors.setdefault(name, None)
            return None
        sizes = tuple(int(size) for size in shape)
        if not 1 <= len(sizes) <= MAX_RANK or min(sizes) < 1:
            message = f"is {list(sizes)}: 1 to {MAX_RANK} sizes of at least 1 are possible"
            self._findings.unsound(f"{place}.shape", message)
            self._tensors.setdefault(name, None)
            return None
        if dtype not in NAMES:
            known = ", ".join(NAMES)
            self._findings.malformed(f"{place}.dtype", f"{dtype!r} is none of {known}")
            self._tensors.setdefault(name, None)
            return None
        if name in self._tensors:
            self._findings.unsound(place, f"there is a tensor {name!r} already")
        spec = Spec(NAMES[dtype], sizes)
        self._tensors[name] = spec
        return Input(place, name, spec, json)

    def _operator(self, place: str, json: Any) -> Operator | None:
        if not isinstance(json, JsonObject):
            self._findings.malformed(place, "must be an object")
            return None
        self._unknown(place, json, _OPERATOR_FIELDS)
        name = self._required(place, json, "name")
        kind = self._required(place, json, "type")
        frozen = self._optional(place, json, "frozen", False, "true or false", bool)
        inputs = self._names(place, json, "inputs")
        outputs = self._names(place, json, "outputs")
        params = self._names(place, json, "params")
        if name is None or kind is None:
            self._declare(outputs)
            return None
        if name in self._operators:
            message = f"there is an operator {name!r} already, {self._operators[name]}"
            self._findings.unsound(f"{place}.name", message)
        self._operators.setdefault(name, place)
        if kind not in OPERATORS:
            hint = f"; it is called {RENAMED[kind]} now" if kind in RENAMED else ""
            message = f"unknown operator {kind!r} of {name!r}{hint}"
            self._findings.unsupported(f"{place}.type", message)
            self._declare(outputs)
            return None
        attributes = self._cached_options(place, kind, json.get("options", {}))
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

    def _cached_options(self, place: str, kind: str, json: Any) -> dict[str, str] | None:
        """Read options, of equal text only once, as networks repeat their layers."""
        if not isinstance(json, JsonObject):
            return self._options(place, kind, json)
        key = kind, self._text[json.start : json.end]
        known = self._read_options.get(key)
        if known is not None:
            return known
        count = len(self._findings.problems)
        attributes = self._options(place, kind, json)
        # What there is to say is to be said of each operator.
        if attributes is not None and len(self._findings.problems) == count:
            self._read_options[key] = attributes
        return attributes

    def _options(self, place: str, kind: str, json: Any) -> dict[str, str] | None:
        place = f"{place}.options"
        if not isinstance(json, dict):
            if json is not None:
                self._findings.warn(place, "is no object, and passed over")
            json = {}
        known = OPERATORS[kind].options
        attributes: dict[str, str] = {}
        failed = False
        for key, value in json.items():
            if key not in known:
                self._findings.warn(f"{place}.{key}", f"{kind} has no such option: passed over")
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
                default = known[key].default
                message = f"has the wrong type: passed over, {_spelled(default)} is taken"
                self._findings.warn(f"{place}.{key}", message)
        if kind == "Reduction" and "dims" in json:
            failed |= self._reduction(place, json, attributes)
        missing = [n for n, o in known.items() if o.required and n not in json]
        for key in missing:
            self._findings.malformed(f"{place}.{key}", f"is required by {kind}")
        return None if failed or missing else attributes

    def _reduction(self, place: str, json: Mapping[str, Any], attributes: dict[str, str]) -> bool:
        if "start_axis" in json:
            self._findings.malformed(place, "dims and start_axis exclude each other")
            return True
        if attributes.get("dims", "[]") == "[]":
            self._findings.malformed(f"{place}.dims", "must be a list of one axis or more")
            return True
        return False

    def _input_specs(self, place: str, inputs: Sequence[str]) -> list[Spec] | None:
        known = [spec for name in inputs if (spec := self._tensors.get(name)) is not None]
        if len(known) == len(inputs):
            return known
        for index, name in enumerate(inputs):
            if name not in self._tensors and name not in self._absent:
                message = f"there is no tensor {name!r} before this operator"
                self._findings.unsound(f"{place}.inputs[{index}]", message)
                self._absent.add(name)  # to be said once; an operator may give it later
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
            return infer_cached(kind, tuple(attributes.items()), tuple(specs))
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
        known = self._tensors[name]
        who = _who(operator, kind)
        if name not in inputs:
            message = f"there is a tensor {name!r} already, which {who} does not work on in place"
            self._findings.unsound(f"{place}.outputs[0]", message)
        elif None not in (known, spec) and known != spec:
            message = f"{who} cannot write {spec} in place of {name!r}, which is {known}"
            self._findings.unsound(f"{place}.outputs[0]", message)
        elif kind in ALIASES:
            self._findings.warn(f"{place}.outputs[0]", f"{who} does nothing in place")

    def _declare(self, outputs: Sequence[str]) -> None:
        for name in outputs:
            self._tensors.setdefault(name, None)

    def _declare_parameters(self, place: str, names: Sequence[str], specs: Sequence[Spec]) -> None:
        for name, spec in zip(names, specs, strict=False):
            known = self._parameters.setdefault(name, spec)
            if known != spec:
                message = f"parameter {name!r} is {known} elsewhere, and must be {spec} here"
                self._findings.unsound(f"{place}.params", message)

    def _output(self, place: str, json: Any) -> Output | None:
        name: Any = json
        weight: Any = None
        if isinstance(json, JsonObject):
            self._unknown(place, json, _OUTPUT_FIELDS)
            name = self._required(place, json, "name")
            if name is None:
                return None
            if "loss_weight" in json:
                weight = json["loss_weight"]
                if not options.is_float(weight):
                    self._findings.malformed(f"{place}.loss_weight", "must be a number")
                    return None
        elif not isinstance(json, str):
            self._findings.malformed(place, "must be the name of a tensor or an object")
            return None
        if name not in self._tensors:
            self._findings.unsound(place, f"there is no tensor {name!r}")
            return None
        return Output(place, name, weight, json)

    def _required(self, place: str, json: Mapping[str, Any], field: str) -> str | None:
        value = json.get(field)
        if isinstance(value, str):
            return value
        self._findings.malformed(f"{place}.{field}", "is required: a text")
        return None

    def _optional(
        self, place: str, json: Mapping[str, Any], field: str, default: Any, wanted: str, kind: type
    ) -> Any:
        value = json.get(field, default)
        if isinstance(value, kind):
            return value
        message = f"must be {wanted}: passed over, {_spelled(default)} is taken"
        self._findings.warn(f"{place}.{field}", message)
        return default

    def _names(self, place: str, json: Mapping[str, Any], field: str) -> tuple[str, ...]:
        if field not in json:
            return ()
        value = json[field]
        if isinstance(value, list) and _TEXT.issuperset(map(type, value)):
            return tuple(value)
        message = "must be a list of texts: passed over, an empty list is taken"
        self._findings.warn(f"{place}.{field}", message)
        return ()

    def _unknown(self, place: str, json: Mapping[str, Any], known: frozenset[str]) -> None:
        if json.keys() <= known:
            return
        for key in json:
            if key not in known:
                where = f"{place}.{key}" if place else key
                self._findings.warn(where, "no such field: passed over")


def _who(operator: str, kind: str) -> str:
    return f"{operator!r} ({kind})"


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, JsonNumber):
        return value.text
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
