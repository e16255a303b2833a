"""Checks of an ONNX file, which report all problems instead of the first one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.dialects.onnx import schema, tensors
from passlib.dialects.onnx.attributes import INPUTS_ALSO, is_graph
from passlib.dialects.onnx.nested import copy_of, empty, used_by
from passlib.dialects.onnx.reading import EXTERNAL, Folder, map_file, parse_model, read
from passlib.dialects.onnx.soundness.model import check_model, complaint_about
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.files.optional import require


class LateInput(NamedTuple):
    """A value that a node uses before it is computed.

    Attributes
    ----------
    node, source : int
        Numbers of the node, and of the later one that computes the value.
    name : str
        Of the value.
    """

    node: int
    source: int
    name: str


def late_inputs(graph: Any, known: Collection[str]) -> list[LateInput]:
    """Find the values that nodes of a graph use before they are computed.

    Result: in the order of the nodes. A node that uses its own output is not among them.

    Parameters
    ----------
    graph : onnx.GraphProto
        Without those nested in it, whose uses of its values count as uses by the node that has
        them.
    known : collection of str
        Its inputs and initializers.
    """
    computed = {name: n for n, node in enumerate(graph.node) for name in node.output if name}
    return [
        LateInput(number, source, name)
        for number, node in enumerate(graph.node)
        for name in used_by(node)
        if (source := computed.get(name, -1)) > number and name not in known
    ]


_PROGRAM: Final = Path(__file__).with_name("checker_child.py")

_MEMORY: Final = 2 << 30
"""Bytes of address space for the child, besides eight times the file."""

_SECONDS: Final = 120
"""Seconds for the child, besides one for each 10 MB."""

_WAIT: Final = 4
"""Times as long on the clock: the machine may be busy."""


@dataclass
class Findings:
    """The messages of ONNX's checker.

    Attributes
    ----------
    nodes : dict of int to str
        By number of the node; those without a message are sound.
    model : str
        About the whole model.
    types : str
        Of strict type inference, which runs if there is no message about the model.
    failed : str
        Why the child process gave no results at all.
    """

    nodes: dict[int, str] = field(default_factory=dict)
    model: str = ""
    types: str = ""
    failed: str = ""


def check(path: Path, nodes: Sequence[bytes], imports: Mapping[str, int], version: int) -> Findings:
    """Run ONNX's checker over single nodes, and over a model.

    Parameters
    ----------
    path : Path
        Of the model.
    nodes : sequence of bytes
        Serialized.
    imports : mapping of str to int
        Versions of operator sets by domain.
    version : int
        Of the file format.
    """
    size = path.stat().st_size
    seconds = _SECONDS + size // 10_000_000
    order = {
        "path": os.fspath(path.absolute()),
        "sys_path": [os.fspath(Path(entry).absolute()) for entry in sys.path],
        "imports": dict(imports),
        "ir_version": version,
        "sizes": list(map(len, nodes)),
        "memory": _MEMORY + 8 * size,
        "seconds": seconds,
    }
    # Preloaded tools, such as sanitizers, reserve more address space than the limit.
    environment = {key: text for key, text in os.environ.items() if key != "LD_PRELOAD"}
    found = Findings()
    try:
        done = subprocess.run(
            [sys.executable, "-I", os.fspath(_PROGRAM)],
            input=b"".join((json.dumps(order).encode(), b"\n", *nodes)),
            capture_output=True,
            env=environment,
            timeout=_WAIT * seconds,
            check=False,
        )
        output, end = done.stdout, _end_of(done.returncode, seconds)
    except subprocess.TimeoutExpired as error:
        output, end = error.stdout or b"", f"took more than {_WAIT * seconds} s"
    except OSError as error:
        found.failed = f"no process for ONNX's checker can be started: {error}"
        return found
    _collect(output, end, len(nodes), found)
    return found


def _end_of(code: int, seconds: int) -> str:
    """Return how a process ended, if not by itself."""
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return f"was ended, possibly after its {seconds} s of processor time"
    if code < 0:
        return f"crashed ({signal.Signals(-code).name})"
    return f"ended with code {code}" if code else ""


def _collect(output: bytes, end: str, count: int, found: Findings) -> None:
    """Sort the lines of the child; the check after the last line is the one that ended it."""
    lines = [line for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
    results: list[tuple[str, str]] = [tuple(json.loads(line)) for line in lines]
    for name, message in results:
        _put(name, message, found)
    if not end:
        return
    if not results:
        found.failed = f"the process for ONNX's checker {end} before any check"
        return
    done = len(results) - 1
    broken = f"node {done}" if done < count else "model" if done == count else "types"
    _put(broken, f"the process of ONNX's checker {end} here", found)
    if broken == "types":
        found.model = found.types


def _put(name: str, message: str, found: Findings) -> None:
    if not message:
        return
    if name.startswith("node "):
        found.nodes[int(name[5:])] = message
    elif name == "model":
        found.model = message
    elif name == "types":
        found.types = message


_MOST = (1 << 31) - 1
"""The highest version number that ONNX's checker accepts."""

_OF_RUNTIME: Final = """
    DisentangledAttention_TRT EfficientNMS_TRT LayerNormalization MeanVarianceNormalization
    MemcpyFromHost MemcpyToHost MultilevelCropAndResize_TRT PyramidROIAlign_TRT
    SimplifiedLayerNormalization ThresholdedRelu
"""
"""Operators that ONNX Runtime has in all sets of ONNX's own, where ONNX has them later or never."""

_REMOVED: Final = """
    Affine Crop DynamicSlice GRUUnit GivenTensorFill ImageScaler ParametricSoftplus Scale ScaledTanh
"""
"""Experimental operators that ONNX removed. ONNX Runtime has them up to this set:"""

_LAST_EXPERIMENTAL: Final = 9

_NO_OPERATOR = "No Op registered for"


def validate(path: Path) -> list[Problem]:
    """Check a file and report all its problems.

    passlib's own checks come first. ONNX's checker runs in a separate process, with limits of
    memory and time, on each node and on the whole model; objections to the model are reported if
    nothing else is, those of its strict type inference as warnings. Result: in the order of the
    file; places are paths in the message, such as ``graph.node[3]``.
    """
    try:
        model, payloads = parse_model(map_file(path))
    except FormatError as error:
        return [Problem("error", os.fspath(path), str(error))]
    own = _Check(model, path, payloads)
    problems = own.run()
    if any(problem.severity == "error" for problem in problems):
        return problems
    return problems + _as_a_whole(path, model, own)


def _as_a_whole(path: Path, model: Any, own: _Check) -> list[Problem]:
    """Return the problems of checks that stop at the first: passlib's reader and ONNX's checker."""
    try:
        read(path)
        check_model(model)
    except (FormatError, GraphError, UnsupportedError) as error:
        return [Problem("error", "graph", str(error))]
    findings = own.findings
    if findings.failed:
        return [Problem("error", "model", findings.failed)]
    if findings.model:
        # The checker stops at the first: what is a warning already would be reported again.
        return [] if own.excused(findings.model) else [Problem("error", "model", findings.model)]
    return [Problem("warning", "model", findings.types)] if findings.types else []


_Names = tuple[Set[str], ...]
"""The names defined in a graph and in each of those around it, of which none is copied."""


def _is_among(name: str, scopes: _Names) -> bool:
    return any(name in names for names in scopes)


class _Check:
    """The checks that continue after a problem."""

    def __init__(self, model: Any, path: Path, payloads: dict[int, np.ndarray[Any, Any]]) -> None:
        self._model = model
        self._folder = Folder(path.parent)
        self._payloads = payloads
        self._problems: list[Problem] = []
        self._path = path
        self._imports: dict[str, int] = {}
        self._functions = {(f.domain, f.name) for f in model.functions}
        self._nodes: list[bytes] = []
        self._excused: list[str] = []
        self._pending: list[tuple[int, str, Any]] = []
        """Of each node for ONNX's checker, where its problem belongs in the list, and its place."""
        self.findings = Findings()
        """Of ONNX's checker."""

    def run(self) -> list[Problem]:
        self._check_model()
        self._check_graph(self._model.graph, "graph", ())
        version = min(max(self._model.ir_version, 0), _MOST)
        imports = self._imports or {"": 1}
        self.findings = check(self._path, self._nodes, imports, version)
        for number, message in sorted(self.findings.nodes.items(), reverse=True):
            position, place, node = self._pending[number]
            what = _title(node)
            problem = Problem("error", place, f"{what}: {message}")
            if (
                _NO_OPERATOR in message
                and node.op_type in _OF_RUNTIME.split()
                and not schema.plain(node.domain)
            ):
                text = f"{what}: {message}; ONNX Runtime has it"
                problem = Problem("warning", place, text)
                self._excused.append(f"{_NO_OPERATOR} {node.op_type} ")
            self._problems.insert(position, problem)
        return self._problems

    def excused(self, message: str) -> bool:
        """Whether a message of ONNX's checker about the model is one of the warnings."""
        return any(text in message for text in self._excused)

    def _error(self, place: str, message: str) -> None:
        self._problems.append(Problem("error", place, message))

    def _warn(self, place: str, message: str) -> None:
        self._problems.append(Problem("warning", place, message))

    def _check_model(self) -> None:
        onnx: Any = require("onnx", extra="onnx")
        model = self._model
        if not model.HasField("ir_version"):
            self._error("ir_version", "the version of the file format is missing")
        elif not 0 < model.ir_version <= _MOST:
            self._error("ir_version", f"there is no version {model.ir_version}")
        elif model.ir_version > onnx.IR_VERSION:
            self._warn(
                "ir_version",
                f"version {model.ir_version} is newer than {onnx.IR_VERSION}, the newest that the "
                "installed onnx knows",
            )
        versions: dict[str, int] = {}
        for number, entry in enumerate(model.opset_import):
            domain = schema.plain(entry.domain)
            if domain in versions:
                same = versions[domain] == entry.version
                report = self._warn if same else self._error
                report(f"opset_import[{number}]", f"domain {entry.domain!r} occurs twice")
            if not 0 < entry.version <= _MOST:
                self._error(f"opset_import[{number}]", f"there is no version {entry.version}")
            elif not domain and entry.version > schema.newest():
                self._warn(
                    f"opset_import[{number}]",
                    f"version {entry.version} is newer than {schema.newest()}, the newest that the "
                    "installed onnx knows",
                )
            versions[domain] = entry.version
            self._imports[entry.domain] = min(max(entry.version, 0), _MOST)
        if model.ir_version >= schema.NAMED_SINCE and not model.opset_import:
            self._error("opset_import", "no operator set is imported")
        keys = [entry.key for entry in model.metadata_props]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                self._error(f"metadata_props[{number}]", f"key {key!r} occurs twice")

    def _check_graph(self, graph: Any, place: str, outer: _Names) -> None:
        known: set[str] = set()
        defaults = set()
        for number, tensor in enumerate(graph.initializer):
            where = f"{place}.initializer[{number}]"
            if tensor.name in defaults:
                self._error(where, f"{tensor.name!r} is defined twice")
            defaults.add(tensor.name)
            payload = self._payloads.get(number) if place == "graph" else None
            self._check_tensor(tensor, where, payload)
        defaults.update(sparse.values.name for sparse in graph.sparse_initializer)
        for number, value in enumerate(graph.input):
            where = f"{place}.input[{number}]"
            if not value.name:
                self._error(where, "the input has no name")
            elif value.name in known:
                self._error(where, f"{value.name!r} is defined twice")
            known.add(value.name)
        if place == "graph" and 0 < self._model.ir_version < INPUTS_ALSO:
            for number, tensor in enumerate(graph.initializer):
                if tensor.name not in known:
                    self._warn(
                        f"graph.initializer[{number}]",
                        f"{tensor.name!r} is no input, as files of IR version "
                        f"{self._model.ir_version} require; ONNX Runtime takes it nevertheless",
                    )
                    self._excused.append(f"{tensor.name} in initializer but not in graph input")
        known |= defaults
        late = late_inputs(graph, known)
        if late:
            self._warn(*_describe(late, graph, place))
            self._excused.append("must be topologically sorted")
        # An input that only a cycle computes is found by the reader, which sorts the nodes.
        within = (*outer, {name for node in graph.node for name in node.output}) if late else outer
        for number, node in enumerate(graph.node):
            self._check_node(node, f"{place}.node[{number}]", known, within)
        if not graph.output:
            self._error(f"{place}.output", "the graph has no outputs")
        for number, value in enumerate(graph.output):
            if value.name and not _is_among(value.name, (known, *outer)):
                self._error(f"{place}.output[{number}]", f"nothing computes {value.name!r}")

    def _check_node(self, node: Any, place: str, known: set[str], outer: _Names) -> None:
        what = _title(node)
        inside = (known, *outer)
        for slot, name in enumerate(node.input):
            if name and not _is_among(name, inside):
                self._error(place, f"{what}: input {slot}, {name!r}, is not defined before it")
        self._check_schema(node, place, what)
        labels: set[str] = set()
        for value in node.attribute:
            label = f"{place}.attribute[{value.name!r}]"
            if value.name in labels:
                self._error(label, f"{what}: the attribute occurs twice")
            labels.add(value.name)
            if value.HasField("t"):
                self._check_tensor(value.t, label, None)
            if value.HasField("g"):
                self._check_graph(value.g, label, inside)
            for number, graph in enumerate(value.graphs):
                self._check_graph(graph, f"{label}[{number}]", inside)
        for name in node.output:
            if name and name in known:
                self._error(place, f"{what}: its output {name!r} is defined twice")
            known.add(name)

    def _check_schema(self, node: Any, place: str, what: str) -> None:
        named = {schema.plain(domain) for domain in self._imports}
        if self._model.ir_version >= schema.NAMED_SINCE and schema.plain(node.domain) not in named:
            self._error(place, f"{what}: operator set {node.domain!r} is not imported")
            return
        if (node.domain, node.op_type) in self._functions:
            return
        if not schema.plain(node.domain) and node.op_type in _REMOVED.split():
            version = max(self._imports.get("", 1), self._imports.get("ai.onnx", 1))
            report = self._warn if version <= _LAST_EXPERIMENTAL else self._error
            report(
                place,
                f"{what}: ONNX has removed this experimental operator; ONNX Runtime has it up to "
                f"set {_LAST_EXPERIMENTAL}",
            )
            return
        if any(map(is_graph, node.attribute)):
            return  # the checker would check the nested graphs without the names around them
        message = complaint_about(node, self._imports or {"": 1})
        if message:
            self._error(place, f"{what}: {message}")
            return
        self._pending.append((len(self._problems), place, node))
        self._nodes.append(_without_external(node).SerializeToString())

    def _check_tensor(self, tensor: Any, place: str, payload: Any) -> None:
        def look() -> object:
            if tensor.data_location == EXTERNAL:
                return self._folder.array(tensor.SerializeToString(), repr(tensor.name))
            return tensors.to_array(tensor, repr(tensor.name), payload)

        for message in _complaints(look):
            self._error(place, message)
        if tensors.kind_of(tensor) in ("?", "undefined"):
            self._error(place, f"{tensor.name!r}: ONNX has no element type {tensor.data_type}")


def _describe(late: list[LateInput], graph: Any, place: str) -> tuple[str, str]:
    """Return place and message of the warning about nodes that come before their inputs."""
    first = late[0]
    node, source = graph.node[first.node], graph.node[first.source]
    count = len({found.node for found in late})
    others = f" ({count} nodes come too early)" if count > 1 else ""
    who = "passlib and ONNX Runtime sort" if place == "graph" else "passlib sorts"
    but = "" if place == "graph" else "; ONNX Runtime refuses this order in nested graphs"
    message = (
        f"{_title(node)}: {first.name!r} is computed by a later node, {first.source} "
        f"({_title(source)}){others}; {who} the nodes{but}"
    )
    return f"{place}.node[{first.node}]", message


def _title(node: Any) -> str:
    return f"{node.op_type} {node.name!r}" if node.name else str(node.op_type)


def _without_external(node: Any) -> Any:
    """Empty the tensors with external data, which the checker could not find."""
    if all(value.t.data_location != EXTERNAL for value in node.attribute if value.HasField("t")):
        return node
    made = copy_of(node)
    for value in made.attribute:
        if value.HasField("t") and value.t.data_location == EXTERNAL:
            empty(value.t)
    return made


def _complaints(action: Callable[[], object]) -> Iterator[str]:
    try:
        action()
    except FormatError as error:
        yield str(error)
