"""Validation: everything wrong or suspicious in the files of a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from passlib.dialects.model_checks import file_problem
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError, PasslibError
from passlib.families.dlprim import options
from passlib.families.dlprim.network import (
    FLOAT,
    SECTIONS,
    Findings,
    Network,
    Operator,
    Spec,
    is_loss,
)
from passlib.families.dlprim.reading.document import network_path, read_stated, weights_path
from passlib.families.dlprim.reading.weights import read_weights
from passlib.families.dlprim.schema import ALIASES, OPERATORS
from passlib.files.regular import check_whole

_NEED_PROBABILITIES = ("SoftmaxWithLoss", "NLLLoss")
_LABEL = "int32"
_POINTWISE = frozenset(
    ("Abs", "Activation", "BatchNorm", "Elementwise", "Hardtanh", "Softmax", "Threshold")
)


def check_network(network: Network, findings: Findings) -> None:
    """Report what is suspicious in a network without errors, and sort all findings by place."""
    for place, message in _warnings(network):
        findings.warn(place, message)
    findings.problems.sort(key=lambda problem: _position(problem.place))


def _position(place: str) -> tuple[int, int]:
    """Return a sort key: places in the order of reading, the file as a whole first."""
    section, bracket, rest = place.partition("[")
    if not bracket or section not in SECTIONS:
        return -1, 0
    number = rest.partition("]")[0]
    return SECTIONS.index(section), int(number) if number.isdigit() else 0


def _warnings(network: Network) -> Iterator[tuple[str, str]]:
    yield from _unread(network)
    yield from _lost(network)
    yield from _shared(network)
    producers: dict[str, Operator] = {}
    contents: dict[str, Operator | None] = {}
    specs = {item.name: item.spec for item in network.inputs}
    for operator in network.operators:
        yield from _operator(operator, contents, specs)
        content = contents.get(operator.inputs[0]) if operator.type in ALIASES else operator
        for name in operator.outputs:
            producers[name] = operator
            contents[name] = content
            if operator.output is not None:
                specs[name] = operator.output
    yield from _losses(network, producers)
    yield from _gradients(network)


def _operator(
    operator: Operator, contents: dict[str, Operator | None], specs: dict[str, Spec]
) -> Iterator[tuple[str, str]]:
    place, who = operator.place, f"{operator.name!r} ({operator.type})"
    if operator.frozen and not operator.parameters:
        yield f"{place}.frozen", f"{who} has no parameters to freeze"
    in_place = set(operator.inputs) & set(operator.outputs)
    if in_place and operator.type not in _POINTWISE | ALIASES:
        yield f"{place}.outputs[0]", f"{who} overwrites its input while reading it"
    first = contents.get(operator.inputs[0]) if operator.inputs else None
    if first is not None and operator.type in _NEED_PROBABILITIES and first.type == "Softmax":
        log = options.read(first.type, first.attributes)["log"]
        if operator.type == "SoftmaxWithLoss" or not log:
            wanted = "scores" if operator.type == "SoftmaxWithLoss" else "logarithms"
            yield f"{place}.inputs[0]", f"{who} expects {wanted}, but receives a Softmax"
    label = OPERATORS[operator.type].integer_input
    for index, name in enumerate(operator.inputs):
        spec = specs.get(name)
        if spec is None or spec.dtype == FLOAT or operator.type in ALIASES:
            continue
        if index != label:
            yield f"{place}.inputs[{index}]", f"{who} computes on float, but receives {spec.dtype}"
        elif spec.dtype != _LABEL:
            message = f"{who} expects a label of float or {_LABEL}, but receives {spec.dtype}"
            yield f"{place}.inputs[{index}]", message
    if operator.type == "BatchNorm" and operator.output is not None:
        values = operator.output.elements // operator.output.shape[1]
        if values == 1 and not options.read("BatchNorm", operator.attributes)["use_global_stats"]:
            yield place, f"{who} has only one value for each feature: training divides by zero"
    if operator.type == "Parameter":
        trainable = options.read("Parameter", operator.attributes)["is_trainable"]
        if not trainable:
            yield (
                f"{place}.options.is_trainable",
                f"{who} fails in the original program unless true",
            )


def _unread(network: Network) -> Iterator[tuple[str, str]]:
    read = {name for operator in network.operators for name in operator.inputs}
    read.update(output.name for output in network.outputs)
    for item in network.inputs:
        if item.name not in read:
            yield item.place, f"input {item.name!r} is never read"
    for operator in network.operators:
        for name in operator.outputs:
            if name not in read:
                yield f"{operator.place}.outputs[0]", f"tensor {name!r} is never read"


def _lost(network: Network) -> Iterator[tuple[str, str]]:
    """Find results written in place and never read, under any name of the memory."""
    memory: dict[str, str] = {}
    unread: dict[str, Operator] = {}
    for operator in network.operators:
        for name in operator.inputs:
            unread.pop(memory.get(name, name), None)
        for name in operator.outputs:
            if operator.type in ALIASES:
                source = operator.inputs[0]
                memory[name] = memory.get(source, source)
            elif name in operator.inputs:
                unread[memory.get(name, name)] = operator
    for output in network.outputs:
        unread.pop(memory.get(output.name, output.name), None)
    for operator in unread.values():
        message = (
            f"the result that {operator.name!r} writes to {operator.outputs[0]!r} is never read"
        )
        yield f"{operator.place}.outputs[0]", message


def _shared(network: Network) -> Iterator[tuple[str, str]]:
    users: dict[str, Operator] = {}
    for operator in network.operators:
        for name in dict.fromkeys(operator.parameters):
            first = users.setdefault(name, operator)
            if first.type != operator.type:
                message = f"parameter {name!r} is shared with {first.name!r}, a {first.type}"
                yield f"{operator.place}.params", message


def _losses(network: Network, producers: dict[str, Operator]) -> Iterator[tuple[str, str]]:
    for output in network.outputs:
        producer = producers.get(output.name)
        known = producer is not None and OPERATORS[producer.type].loss
        if is_loss(output.name) and not known:
            kind = "an input" if producer is None else f"a {producer.type}"
            message = f"{output.name!r} is a loss by its name, but comes from {kind}"
            yield output.place, message


def _gradients(network: Network) -> Iterator[tuple[str, str]]:
    """Find Thresholds, whose gradient is zero, between parameters and a loss."""
    readers: defaultdict[str, list[int]] = defaultdict(list)
    trainable: set[str] = set()
    between = []
    for number, operator in enumerate(network.operators):
        if _is_trained(operator) or trainable.intersection(operator.inputs):
            trainable.update(operator.outputs)
            if operator.type == "Threshold":
                between.append(number)
        for name in operator.inputs:
            readers[name].append(number)
    leads = {output.name for output in network.outputs if output.is_loss}
    for number in range(len(network.operators) - 1, -1, -1):
        operator = network.operators[number]
        if leads.intersection(operator.outputs):
            leads.update(operator.inputs)
            if number in between:
                message = f"{operator.name!r} (Threshold) blocks the gradient of parameters"
                yield operator.place, message


def _is_trained(operator: Operator) -> bool:
    """Whether training changes parameters of an operator, running statistics excluded."""
    if operator.type == "Parameter":
        chosen: bool = options.read("Parameter", operator.attributes)["is_trainable"]
        return chosen and not operator.frozen
    kept = 2 if operator.type == "BatchNorm" else 0
    return len(operator.parameters) > kept and not operator.frozen


def validate(path: Path) -> list[Problem]:
    """Check a network and its weights; see `Dialect.validate`."""
    findings = Findings()
    file = network_path(path)
    try:
        check_whole(file)
        network = read_stated(file, findings)
    except FormatError as error:
        return [file_problem(file, error)]
    if findings.failed:
        return findings.problems
    check_network(network, findings)
    weights = weights_path(path)
    if weights is not None:
        try:
            read_weights(weights, network.parameters)
        except (PasslibError, OSError) as error:
            findings.problems.append(file_problem(weights, error))
    return findings.problems
