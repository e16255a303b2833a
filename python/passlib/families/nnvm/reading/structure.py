"""The checks of a graph object: its nodes, edges, lists of numbers, attributes, nested graphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from passlib.dialects.json_text import JsonNumber
from passlib.families.nnvm import storage
from passlib.families.nnvm.schema import TVM_OPERATOR, declared_outputs
from passlib.graph.node import MOST_OUTPUTS, VARIABLE
from passlib.graph.ordering import stuck_items

LIMIT = 2**31
"""Node numbers, output numbers and versions are below this in every program that reads them."""


class Finding(NamedTuple):
    """An error or a warning."""

    severity: Literal["error", "warning"]
    place: str
    message: str
    unsound: bool = False
    """Whether the file is well formed and its graph contradicts itself."""
    bearable: bool = False
    """Whether the graph can be read and written nevertheless."""


Report = Callable[[Finding], None]
"""Receives findings one by one."""


def is_integer(value: Any) -> bool:
    """Whether a parsed value is a non-negative integer of 31 bits."""
    return type(value) is int and 0 <= value < LIMIT


def integers(value: Any) -> bool:
    """Whether a parsed value is a list of integers."""
    return isinstance(value, list) and all(type(item) is int for item in value)


def describe_type(value: Any) -> str:
    """Describe a parsed value for messages by its JSON type, or itself if it is short."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the number {getattr(value, 'text', value)}"


PER_ENTRY = {
    "shape": "list_shape",
    "dltype": "list_str",
    "dtype": "list_int",
    "storage_id": "list_int",
    "device_index": "list_int",
    "storage_inplace_index": "list_int",
    "storage_scope": "list_str",
    "layout": "list_layout",
}
"""Attributes with a value for each output of each node, and their types."""

_NEEDED = ("dltype", "storage_id", "shape")
"""The attributes that TVM's graph executor needs."""

_READ = frozenset((*_NEEDED, "device_index", "storage_scope"))
_SKIPPED = ("list_int", "size_t")
"""Types of other attributes, which TVM's graph executor skips."""

_ELEMENT = re.compile(r"(bool|handle|(custom\[\w+\]|int|uint|float|bfloat|e\dm\d_float)\d+)\w*")
"""Names of element types in TVM."""


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _size(value: Any) -> bool:
    if isinstance(value, JsonNumber):  # unsigned 64-bit integers
        return value.text.isdigit() and int(value.text[:21]) < 1 << 64
    return type(value) is int and value >= 0


VALUE_TYPES: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: type(value) is int,
    "size_t": _size,
    "str": lambda value: isinstance(value, str),
    "list_int": integers,
    "list_str": _strings,
    "list_layout": _strings,
    "list_shape": lambda value: isinstance(value, list) and all(map(integers, value)),
}
"""The check of the value, by known type."""


def is_per_entry(name: str, pair: list[Any], entries: int) -> bool:
    """Whether an attribute has a value for each of the graph's entries.

    An attribute of unknown name does if it is a list with as many values.
    """
    if name in PER_ENTRY:
        return True
    return isinstance(pair[1], list) and pair[0].startswith("list_") and len(pair[1]) == entries


def examine_attributes(
    value: Any, where: str, entries: int | None, report: Report, *, executable: bool
) -> bool:
    """Check the attributes of a graph, and return whether they can be edited with its nodes.

    ``where`` is their path in the file, ``entries`` the number of all outputs of all nodes if the
    file states it; ``executable`` whether this is a graph for TVM's executor.
    """
    fine = True

    def error(place: str, message: str) -> None:
        nonlocal fine
        fine = False
        report(Finding("error", place, message))

    if not isinstance(value, dict):
        error(where, f"must be an object, not {describe_type(value)}")
        return False
    for name, pair in value.items():
        place = f"{where}.{name}"
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            error(place, "must be a pair of a type and a value")
            continue
        kind, content = pair
        wanted = PER_ENTRY.get(name, kind)
        if kind != wanted:
            error(f"{place}[0]", f"is of type {kind!r}, must be {wanted!r}")
            continue
        if executable and name not in _READ and kind not in _SKIPPED:
            message = f"is {kind!r}, but TVM's graph executor skips only {' and '.join(_SKIPPED)}"
            report(Finding("error", f"{place}[0]", message, bearable=True))
        elif kind not in VALUE_TYPES:
            report(Finding("warning", f"{place}[0]", f"{kind!r} is not a known type; kept"))
        if kind in VALUE_TYPES and not VALUE_TYPES[kind](content):
            error(f"{place}[1]", f"is not of type {kind!r}")
        elif name in PER_ENTRY:
            if entries is not None and len(content) != entries:
                error(f"{place}[1]", f"has {len(content)} values for {entries} outputs of nodes")
            entries = len(content) if entries is None else entries
    if executable and fine:
        for name in _NEEDED:
            if name not in value:
                message = "is missing, and TVM's graph executor needs it"
                report(Finding("error", f"{where}.{name}", message, bearable=True))
        for i, dtype in enumerate(value["dltype"][1] if "dltype" in value else ()):
            if not _ELEMENT.fullmatch(dtype):
                what = f"{dtype!r} is unknown" if dtype else "is not stated"
                message = f"{what}, and TVM's graph executor needs it"
                report(Finding("warning", f"{where}.dltype[1][{i}]", message))
        for i, shape in enumerate(value["shape"][1] if "shape" in value else ()):
            if any(size < 0 for size in shape):
                report(Finding("warning", f"{where}.shape[1][{i}]", "has a negative size"))
    return fine


TVM_NODE_KEYS = frozenset(("op", "name", "inputs", "attr", "attrs", "control_deps"))
"""The keys of a node that the executor reads."""

TVM_GRAPH_KEYS = ("nodes", "arg_nodes", "node_row_ptr", "heads", "attrs")
"""The keys of a graph that the executor reads."""

TVM_LAST_KEY = "metadata"
"""The key at which the executor stops reading."""

_CALL_ATTRIBUTES = ("func_name", "num_inputs", "num_outputs", "flatten_data")


def examine_call(node: Mapping[str, Any], outputs: int | None) -> Iterator[tuple[str, str]]:
    """Yield the faults of a ``tvm_op`` whose inputs are a list, each with its path in the node.

    ``outputs`` is its number of outputs by ``node_row_ptr``, if that was read.
    """
    place = "attr" if "attr" in node and "attrs" not in node else "attrs"
    attributes, inputs = node.get(place, {}), len(node["inputs"])
    if not isinstance(attributes, dict) or not all(
        isinstance(value, str) for value in attributes.values()
    ):
        return
    for name in _CALL_ATTRIBUTES:
        if name not in attributes:
            yield place, f"a tvm_op needs the attribute {name}"
    if attributes.get("func_name") == "":
        yield f"{place}.func_name", "is empty, but a tvm_op calls a function"
    flatten = attributes.get("flatten_data", "0")
    if flatten not in ("0", "1"):
        yield f"{place}.flatten_data", f"must be '0' or '1', not {flatten!r}"
    stated = attributes.get("num_inputs")
    if stated is not None and stated != str(inputs):
        yield f"{place}.num_inputs", f"is {stated!r}, but there are {inputs} inputs"
    stated = attributes.get("num_outputs")
    count = declared_outputs(TVM_OPERATOR, attributes)
    if stated is not None and not count:
        yield f"{place}.num_outputs", f"{stated!r} is not a number of outputs"
    elif count and outputs is not None and outputs != count:
        yield f"{place}.num_outputs", f"is {stated!r}, but node_row_ptr states {outputs}"


ATTRIBUTE_KEYS = ("param", "attr", "attrs")
"""Keys of a node under which programs store its attributes; a later one takes precedence."""

GRAPH_ATTRIBUTE_KEYS = ("attrs", "attr")
"""Keys of a graph for its typed attributes; a file has at most one of them."""

BACKWARD_SOURCE = "backward_source_id"
"""Key up to MXNet 0.8: the number of the node whose gradient this node computes, or -1."""

_PLAIN_KEYS = frozenset(("op", "name", "inputs", *ATTRIBUTE_KEYS))
_NODE_KEYS = _PLAIN_KEYS | {"control_deps", "subgraphs", BACKWARD_SOURCE}
_MEAN_OUTPUTS = 64
_GRAPH_KEYS = frozenset(("nodes", "arg_nodes", "node_row_ptr", "heads", *GRAPH_ATTRIBUTE_KEYS))


def examine(root: Any, report: Report, path: str = "", *, warnings: bool = True) -> None:
    """Check a graph object, and report all findings in the order of the file.

    ``path`` is its place in the file: empty, or a path that ends in a dot. ``warnings`` asks for
    checks that are slow and yield only warnings.
    """
    if not isinstance(root, dict):
        place = path.rstrip(".") or "the file"
        report(Finding("error", place, f"a graph is an object, not {describe_type(root)}"))
        return
    _Examiner(root, report, path, warnings=warnings).run()


def control_dependencies(node: Mapping[str, Any]) -> list[int]:
    """Return the control dependencies of a node that was examined."""
    return list(node.get("control_deps", ()))


class _Examiner:
    def __init__(self, root: dict[str, Any], report: Report, path: str, *, warnings: bool) -> None:
        self.root = root
        self.warnings = warnings
        self.report = report
        self.path = path
        self.nodes: list[Any] = []
        self.rows: list[int] | None = None
        self.executable = False
        self.has_errors = False

    def error(self, place: str, message: str, *, unsound: bool = False) -> None:
        self.has_errors = True
        self.report(Finding("error", self.path + place, message, unsound))

    def fault(self, place: str, message: str) -> None:
        """Report an error that does not keep the graph from being read."""
        self.report(Finding("error", self.path + place, message, bearable=True))

    def warn(self, place: str, message: str) -> None:
        self.report(Finding("warning", self.path + place, message))

    def run(self) -> None:
        for key in ("nodes", "arg_nodes", "heads"):
            if key not in self.root:
                self.error(key, "is missing, but every graph has it")
        nodes = self.root.get("nodes", [])
        if not isinstance(nodes, list):
            self.error("nodes", f"must be a list, not {describe_type(nodes)}")
            return
        self.nodes = nodes
        self.executable = any(isinstance(n, dict) and n.get("op") == TVM_OPERATOR for n in nodes)
        self.rows = self._row_pointers()
        for place, node in enumerate(nodes):
            if not self._is_plain(place, node):
                self._node(place, node)
            elif node["op"] == TVM_OPERATOR:
                self._call(f"nodes[{place}]", place, node)
        self._arg_nodes()
        self._heads()
        self._graph_keys()
        if self.has_errors:
            return
        self._cycles_and_names()
        self._attributes()

    def _graph_keys(self) -> None:
        keys = list(self.root)
        for place, key in enumerate(keys):
            if self.executable and key == TVM_LAST_KEY:
                for other in keys[place + 1 :]:
                    if other in TVM_GRAPH_KEYS:
                        self.fault(key, f"must be last: TVM's graph executor would skip {other}")
            elif self.executable and key not in TVM_GRAPH_KEYS:
                self.fault(key, "is not a key that TVM's graph executor reads; kept")
            elif key not in _GRAPH_KEYS:
                self.warn(key, "is not a key of the format; kept")

    def _row_pointers(self) -> list[int] | None:
        if "node_row_ptr" not in self.root:
            return None
        rows = self.root["node_row_ptr"]
        if not integers(rows):
            self.error("node_row_ptr", "must be a list of integers")
        elif len(rows) != len(self.nodes) + 1:
            wanted = len(self.nodes) + 1
            self.error("node_row_ptr", f"has {len(rows)} numbers, not {wanted} (nodes and an end)")
        elif rows[0] != 0:
            self.error("node_row_ptr[0]", f"must be 0, not {rows[0]}")
        else:
            for i in range(len(self.nodes)):
                # One node may have very many outputs, but not every node.
                most = MOST_OUTPUTS + _MEAN_OUTPUTS * len(rows)
                if not rows[i] <= rows[i + 1] <= most:
                    self.error(f"node_row_ptr[{i + 1}]", f"{rows[i + 1]} cannot follow {rows[i]}")
                    return None
                node, count = self.nodes[i], rows[i + 1] - rows[i]
                if count != 1 and isinstance(node, dict) and node.get("op") == VARIABLE:
                    message = f"states {count} outputs for node {i}, but a variable has one"
                    self.fault(f"node_row_ptr[{i + 1}]", message)
            return list(rows)
        return None

    def _is_plain(self, place: int, node: Any) -> bool:
        """Whether a node needs no closer check, as most nodes of large files."""
        if not isinstance(node, dict) or not node.keys() <= _PLAIN_KEYS:
            return False
        op, inputs, rows = node.get("op"), node.get("inputs"), self.rows
        if type(op) is not str or not op or type(node.get("name")) is not str:
            return False
        if self.executable and ("param" in node or (op == VARIABLE and len(node) > 3)):
            return False
        for key in ATTRIBUTE_KEYS:
            if key in node:
                value = node[key]
                if not isinstance(value, dict) or not all(type(v) is str for v in value.values()):
                    return False
        if not isinstance(inputs, list) or (inputs and op == VARIABLE) or rows is None:
            return inputs == [] and rows is None
        for entry in inputs:
            if not isinstance(entry, list) or len(entry) not in (2, 3):
                return False
            for number in entry:
                if type(number) is not int or not 0 <= number < LIMIT:
                    return False
            maker = entry[0]
            if maker >= place or entry[1] >= rows[maker + 1] - rows[maker]:
                return False
        return True

    def _node(self, place: int, node: Any) -> None:
        where = f"nodes[{place}]"
        if not isinstance(node, dict):
            self.error(where, f"a node is an object, not {describe_type(node)}")
            return
        for key in ("op", "name"):
            if key not in node:
                self.error(f"{where}.{key}", "is missing")
            elif not isinstance(node[key], str):
                self.error(f"{where}.{key}", f"must be a string, not {describe_type(node[key])}")
        if node.get("op") == "":
            self.error(f"{where}.op", "is empty, but every node has an operator")
        for key, value in node.items():
            if key in ATTRIBUTE_KEYS:
                self._node_attributes(f"{where}.{key}", value)
            if self.executable and key not in TVM_NODE_KEYS:
                self.fault(f"{where}.{key}", "is not a key that TVM's graph executor reads; kept")
            elif key not in _NODE_KEYS:
                self.warn(f"{where}.{key}", "is not a key of the format; kept")
        if self.executable and node.get("op") == VARIABLE:
            for key in ("attr", "attrs"):
                if key in node:
                    message = "TVM's graph executor reads them as those of a tvm_op, and fails"
                    self.fault(f"{where}.{key}", message)
        source = node.get(BACKWARD_SOURCE, -1)
        if source != -1 and not (is_integer(source) and source < len(self.nodes)):
            message = f"{describe_type(source)} is neither -1 nor the number of a node"
            self.fault(f"{where}.{BACKWARD_SOURCE}", message)
        inputs = node.get("inputs")
        if isinstance(inputs, list):
            for slot, entry in enumerate(inputs):
                self._entry(f"{where}.inputs[{slot}]", entry, place)
            if inputs and node.get("op") == VARIABLE:
                self.error(f"{where}.inputs", "a variable has no inputs", unsound=True)
        elif "inputs" not in node:
            self.error(f"{where}.inputs", "is missing")
        else:
            self.error(f"{where}.inputs", f"must be a list of entries, not {describe_type(inputs)}")
        self._control(where, place, node.get("control_deps", []))
        subgraphs = node.get("subgraphs", [])
        if not isinstance(subgraphs, list):
            self.error(f"{where}.subgraphs", f"must be a list, not {describe_type(subgraphs)}")
        else:
            for i, nested in enumerate(subgraphs):
                if not isinstance(nested, dict):
                    self.error(f"{where}.subgraphs[{i}]", "a graph is an object")
                    continue
                path = f"{self.path}{where}.subgraphs[{i}]."
                examiner = _Examiner(nested, self.report, path, warnings=self.warnings)
                examiner.run()
                self.has_errors |= examiner.has_errors
        if node.get("op") == TVM_OPERATOR and isinstance(inputs, list):
            self._call(where, place, node)

    def _node_attributes(self, where: str, attributes: Any) -> None:
        if not isinstance(attributes, dict):
            self.error(where, f"must be an object, not {describe_type(attributes)}")
            return
        for key, value in attributes.items():
            if not isinstance(value, str):
                self.error(f"{where}.{key}", f"attributes are strings, not {describe_type(value)}")

    def _entry(self, where: str, entry: Any, user: int | None) -> None:
        if not (isinstance(entry, list) and len(entry) in (2, 3) and all(map(is_integer, entry))):
            self.error(where, "an entry is two or three integers: node, output, version")
            return
        node, output = entry[0], entry[1]
        if node >= len(self.nodes):
            self.error(where, f"there is no node {node}, only {len(self.nodes)}", unsound=True)
            return
        if self.rows is not None:
            count = self.rows[node + 1] - self.rows[node]
            if output >= count:
                self.error(where, f"node {node} has no output {output}, only {count}", unsound=True)
        elif output >= MOST_OUTPUTS:
            self.error(where, f"no node has an output {output}", unsound=True)
        if user is not None and node >= user:
            # NNVM sorts the nodes that it reads, TVM's executor runs them as listed.
            report = self.fault if self.executable else self.warn
            report(where, f"node {node} comes later, where a runtime that follows the list fails")

    def _control(self, where: str, place: int, dependencies: Any) -> None:
        if not isinstance(dependencies, list):
            self.error(f"{where}.control_deps", "must be a list of node numbers")
            return
        for i, node in enumerate(dependencies):
            if not is_integer(node) or node >= len(self.nodes):
                message = f"{describe_type(node)} is not the number of a node"
                self.error(f"{where}.control_deps[{i}]", message, unsound=type(node) is int)
            elif node == place:
                self.error(f"{where}.control_deps[{i}]", "depends on itself", unsound=True)

    def _call(self, where: str, place: int, node: dict[str, Any]) -> None:
        outputs = None if self.rows is None else self.rows[place + 1] - self.rows[place]
        for faulty, message in examine_call(node, outputs):
            self.fault(f"{where}.{faulty}", message)

    def _arg_nodes(self) -> None:
        if "arg_nodes" not in self.root:
            return
        arguments = self.root["arg_nodes"]
        if not isinstance(arguments, list):
            self.error("arg_nodes", f"must be a list, not {describe_type(arguments)}")
            return
        seen = set()
        for i, place in enumerate(arguments):
            where = f"arg_nodes[{i}]"
            if not is_integer(place) or place >= len(self.nodes):
                message = f"{describe_type(place)} is not the number of a node"
                self.error(where, message, unsound=type(place) is int)
                continue
            node = self.nodes[place]
            if isinstance(node, dict) and node.get("op") != VARIABLE:
                self.error(where, f"node {place} is not a variable", unsound=True)
            if place in seen:
                self.warn(where, f"node {place} is in the list twice")
            seen.add(place)
        for place, node in enumerate(self.nodes):
            if isinstance(node, dict) and node.get("op") == VARIABLE and place not in seen:
                self.warn("arg_nodes", f"lacks node {place}, which is a variable")

    def _heads(self) -> None:
        heads = self.root.get("heads", [])
        if not isinstance(heads, list):
            self.error("heads", f"must be a list, not {describe_type(heads)}")
            return
        for i, entry in enumerate(heads):
            self._entry(f"heads[{i}]", entry, None)
        if "heads" in self.root and not heads:
            self.error("heads", "is empty, but a graph has outputs", unsound=True)

    def _cycles_and_names(self) -> None:
        needs = [
            [entry[0] for entry in node["inputs"]] + control_dependencies(node)
            for node in self.nodes
        ]
        if any(needed and max(needed) >= place for place, needed in enumerate(needs)):
            for place in stuck_items(needs):
                name = self.nodes[place]["name"]
                self.error(
                    f"nodes[{place}]", f"node {name!r} depends on itself, in a cycle", unsound=True
                )
        first: dict[str, int] = {}
        for place, node in enumerate(self.nodes):
            if node["op"] != VARIABLE:
                continue
            before = first.setdefault(node["name"], place)
            if before != place:
                self.error(
                    f"nodes[{place}].name",
                    f"variable {before} is also named {node['name']!r}",
                    unsound=True,
                )

    def _attributes(self) -> None:
        present = [key for key in GRAPH_ATTRIBUTE_KEYS if key in self.root]
        if len(present) == 2:
            self.error("attr", "the graph has both attrs and attr")
        if self.executable and not self.path:
            for key in ("attrs", "node_row_ptr"):
                if key not in self.root:
                    self.fault(key, "is missing, and TVM's graph executor needs it")
        if not present:
            return
        key = present[0]
        value = self.root[key]
        entries = None if self.rows is None else self.rows[-1]
        fine = examine_attributes(
            value, f"{self.path}{key}", entries, self.report, executable=self.executable
        )
        self.has_errors |= not fine
        if self.warnings and fine and self.executable and self.rows is not None:
            for message in storage.overlaps(self.nodes, self.root["heads"], self.rows, value):
                self.warn(f"{key}.storage_id", message)
