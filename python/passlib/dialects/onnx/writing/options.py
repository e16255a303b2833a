"""Options of saving ONNX models: the data file, and the operator set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count
from typing import Any, Final, NamedTuple

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import INPUTS_ALSO
from passlib.dialects.onnx.expansion import expand
from passlib.dialects.onnx.forms import other_form
from passlib.dialects.onnx.nested import (
    copy_of,
    external_tensors,
    graphs_within,
    put_inside,
    refill,
)
from passlib.dialects.onnx.reading import EXTERNAL, Folder, Held, location_of, set_location
from passlib.dialects.onnx.soundness.acceptance import check_accepted
from passlib.dialects.onnx.soundness.inference import (
    inferred,
    unsafe_to_infer,
    without_weights,
)
from passlib.dialects.onnx.soundness.model import check_model, versions_of
from passlib.dialects.onnx.targets import OperatorSet
from passlib.dialects.onnx.tensors import ELEMENT_TYPES, to_bytes
from passlib.dialects.onnx.writing.adapting import adapt, hide, show
from passlib.dialects.onnx.writing.assembly import Assembled
from passlib.errors import GraphError, UnsupportedError, listed
from passlib.files.optional import require

COMPARED: Final = 28
"""The newest operator set whose changes were compared with ONNX Runtime."""


class Conversion(NamedTuple):
    """A model that is taken from one version of ONNX's own operator set to another one."""

    model: Any
    present: int
    target: int

    def crosses(self, version: int) -> bool:
        """Whether one of both versions is before an operator set, and the other is not."""
        return (self.present < version) != (self.target < version)

    @property
    def is_upward(self) -> bool:
        """Whether the version rises."""
        return self.present < self.target

    def check(self) -> None:
        """Refuse nodes that would compute something else.

        Raises
        ------
        UnsupportedError
            Names the node.
        """
        for graph in graphs_within(self.model.graph):
            around = _Around(self.model, graph)
            for node in graph.node:
                if schema.plain(node.domain):
                    continue
                reason = self._objection(node, around)
                if reason:
                    name = node.name or next(iter(node.output), "")
                    raise UnsupportedError(
                        f"node {name!r} ({node.op_type}): operator set {self.present} cannot be "
                        f"taken to {self.target}: {reason}; save the model without opset"
                    )

    def _objection(self, node: Any, around: _Around) -> str:
        versions = _versions(node.op_type)
        for version in versions:
            if version > COMPARED and self.crosses(version):
                return f"the operator changed in set {version}, which passlib does not know"
        for operator, version, rule in _RULES:
            # Upsample becomes Resize in set 10.
            same = node.op_type == operator or (node.op_type, operator) == ("Upsample", "Resize")
            if same and self.crosses(version):
                reason = rule(node, around, self.is_upward)
                if reason:
                    return reason
        return ""


def _versions(operator: str) -> list[int]:
    versions = range(COMPARED + 1, schema.newest() + 1)
    found = {version: schema.schema_of(operator, "", version) for version in versions}
    return [version for version, own in found.items() if own and own.since_version == version]


class _Around:
    """A graph around its nodes: who computes values, who uses them, and their sizes."""

    def __init__(self, model: Any, graph: Any) -> None:
        self._model = model
        self._graph = graph

    @cached_property
    def makers(self) -> dict[str, str]:
        """The operators that compute values, by name."""
        return {name: node.op_type for node in self._graph.node for name in node.output}

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """The operators that use values, by name."""
        found: dict[str, list[str]] = {}
        for node in self._graph.node:
            for name in node.input:
                found.setdefault(name, []).append(node.op_type)
        return found

    @cached_property
    def used(self) -> set[str]:
        """The values that a node or an output uses, in nested graphs as well."""
        graphs = list(graphs_within(self._model.graph))
        found = {name for graph in graphs for node in graph.node for name in node.input}
        found.update(value.name for graph in graphs for value in graph.output)
        return found - {""}

    @cached_property
    def types(self) -> dict[str, Any]:
        """The tensor types of values, as far as inference knows them."""
        model = self._model
        with suppress(GraphError):
            model = inferred(copy_of(model))
        return {
            value.name: value.type.tensor_type
            for graph in graphs_within(model.graph)
            for value in (*graph.input, *graph.value_info, *graph.output)
        }

    @cached_property
    def shapes(self) -> dict[str, list[int | None]]:
        """The sizes of values, as far as inference knows them; None for an unknown size."""
        return {
            name: [
                each.dim_value if each.HasField("dim_value") else None for each in kind.shape.dim
            ]
            for name, kind in self.types.items()
            if kind.HasField("shape")
        }

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The ranks of values, as far as inference knows them."""
        return {name: len(sizes) for name, sizes in self.shapes.items()}


def _attribute(node: Any, name: str, preset: int) -> int:
    return next((int(each.i) for each in node.attribute if each.name == name), preset)


def _is_last(node: Any, around: _Around, preset: int) -> bool:
    axis = _attribute(node, "axis", preset)
    return axis == -1 or axis + 1 == around.ranks.get(node.input[0])


def _softmax(node: Any, around: _Around, upward: bool) -> str:
    hard = node.op_type == "Hardmax"
    if upward and not hard:
        return ""
    if not _is_last(node, around, 1 if upward else -1):
        return (
            "before set 13 the axis and those after it are one, and it is not known to be the last"
        )
    if hard:
        return ""
    users = around.users.get(node.output[0], ())
    if around.makers.get(node.input[0]) == "Flatten" or "Reshape" in users:
        return "ONNX's converter would remove the Flatten before it and a Reshape after it"
    return ""


def _dropout(node: Any, around: _Around, upward: bool) -> str:
    if len(node.output) > 1 and node.output[1] in around.used:
        return "its second result, the mask, has another meaning from set 12 on"
    return ""


def _broadcast(node: Any, around: _Around, upward: bool) -> str:
    axis = _attribute(node, "axis", 0)
    if not upward or not axis:
        return ""
    ranks = [around.ranks.get(name) for name in node.input]
    if ranks[0] is not None and ranks[1] is not None and axis == ranks[0] - ranks[1]:
        return ""
    return f"ONNX's converter takes a second input that begins at axis {axis} for one at axis 0"


def _pooling(node: Any, around: _Around, upward: bool) -> str:
    if not _attribute(node, "ceil_mode", 0):
        return ""
    sizes = around.shapes.get(node.input[0], [])[2:]
    lists = {each.name: list(each.ints) for each in node.attribute}
    kernel = lists.get("kernel_shape", [])
    automatic = any(each.name == "auto_pad" and each.s != b"NOTSET" for each in node.attribute)
    if automatic or len(kernel) != len(sizes):
        return ""
    count = len(sizes)
    pads = lists.get("pads", [0] * 2 * count)
    strides, steps = (lists.get(name, [1] * count) for name in ("strides", "dilations"))
    for axis, size in enumerate(sizes):
        if size is None:
            continue
        first = size + pads[axis]
        room = first + pads[axis + count] - (kernel[axis] - 1) * steps[axis] - 1
        if -(-room // strides[axis]) * strides[axis] >= first:
            return "before set 22 there is a last window that begins in the padding"
    return ""


_INTEGERS: Final = frozenset(code for code, name in ELEMENT_TYPES.items() if "int" in name)


def _integers(node: Any, around: _Around, upward: bool) -> str:
    # ONNX's function for ReduceLogSumExp cuts log(exp(2)), which is less than 2, to 1.
    # The result has the type of the input, which is not in `types` if that is a weight.
    names = (node.input[0], node.output[0])
    kinds = {around.types[name].elem_type for name in names if name in around.types}
    return "" if _INTEGERS.isdisjoint(kinds) else "it takes no integers from set 28 on"


def _axes(node: Any, around: _Around, upward: bool) -> str:
    # `_integers` would not see what ONNX's function makes of the node.
    return "its axes are not constant" if len(node.input) > 1 and node.input[1] else ""


_Rule = Callable[[Any, _Around, bool], str]

_RULES: Final[tuple[tuple[str, int, _Rule], ...]] = (
    *((name, 7, _broadcast) for name in ("Add", "Div", "Mul", "Pow", "Sub")),
    *((name, 22, _pooling) for name in ("AveragePool", "LpPool", "MaxPool")),
    ("Dropout", 12, _dropout),
    ("Hardmax", 13, _softmax),
    ("LogSoftmax", 13, _softmax),
    ("ReduceLogSum", 13, _axes),
    ("ReduceLogSum", 28, _integers),
    ("ReduceLogSumExp", 13, _axes),
    ("ReduceLogSumExp", 28, _integers),
    ("Resize", 11, lambda *_: "it takes other elements from set 11 on"),
    ("Softmax", 13, _softmax),
)
"""Operators, the sets in which they changed, and the test for nodes that would change.

All other changes up to `COMPARED` were found to keep the numbers, or are refused by ONNX's
converter or checker: ``make sweep-opsets`` compares them.
"""


_NEGATIVE_AXES: Final = 11
"""The first operator set whose operators count axes from the end, too."""


def _count_from_front(conversion: Conversion, result: Any) -> None:
    ranks = _Around(conversion.model, conversion.model.graph).ranks
    for graph in graphs_within(result.graph):
        for node in graph.node:
            own = schema.schema_of(node.op_type, "", conversion.target)
            if schema.plain(node.domain) or own is None:
                continue
            for each in node.attribute:
                axes = {"axis": [each.i], "axes": list(each.ints)}.get(each.name, [])
                preset = own.attributes.get(each.name)
                # Operators such as TopK, whose default is -1, count from the end in every set.
                if min(axes, default=0) >= 0 or preset is None or preset.default_value.i < 0:
                    continue
                rank = ranks.get(node.input[0])
                if rank is None:
                    raise UnsupportedError(
                        f"node {_name(node)!r} ({node.op_type}): before operator set "
                        f"{_NEGATIVE_AXES} no axis is counted from the end, and the rank of "
                        f"{node.input[0]!r} is not known; save the model without opset"
                    )
                if node.op_type == "Unsqueeze":  # which states axes of its result
                    rank += len(axes)
                axes = [axis + rank if axis < 0 else axis for axis in axes]
                if each.name == "axis":
                    each.i = axes[0]
                else:
                    each.ints[:] = axes


def repair(conversion: Conversion, result: Any) -> None:
    """Do in a converted model what ONNX's converter has left out.

    ``conversion``: with the model before.
    """
    if not conversion.is_upward and conversion.crosses(_NEGATIVE_AXES):
        _count_from_front(conversion, result)
    if not (conversion.is_upward and conversion.crosses(21)):
        return
    before = {
        node.output[0]: list(node.input)
        for graph in graphs_within(conversion.model.graph)
        for node in graph.node
        if node.op_type == "GroupNormalization" and not schema.plain(node.domain)
    }
    if not before:
        return
    names = {name for graph in graphs_within(result.graph) for node in graph.node
             for name in (*node.input, *node.output, node.name)}  # fmt: skip
    for graph in graphs_within(result.graph):
        nodes: list[Any] = []
        for node in graph.node:
            if before.get(next(iter(node.output), "")) == list(node.input):
                stem = f"{node.output[0]}_by_channel"
                while any(name.startswith(stem) for name in names):
                    stem += "_"
                nodes += _spread(node, stem)
            nodes.append(node)
        if len(nodes) > len(graph.node):
            refill(graph.node, nodes)


def _spread(node: Any, stem: str) -> Iterator[Any]:
    """Let a GroupNormalization take a scale and a bias for each channel, not for each group.

    Each number is repeated for the channels of its group, by nodes whose names begin with ``stem``.
    """
    helper: Any = require("onnx.helper", extra="onnx")

    def made(operator: str, what: str, *inputs: str, **attributes: Any) -> Any:
        name = f"{stem}_{what}"
        return helper.make_node(operator, inputs, [name], name=name, **attributes)

    groups = _attribute(node, "num_groups", 1)
    names = {"channels": f"{stem}_channels", "size": f"{stem}_size", "shape": f"{stem}_shape"}
    yield made("Shape", "channels", node.input[0], start=1, end=2)
    yield made("Constant", "groups", value_ints=[groups])
    yield made("Div", "size", names["channels"], f"{stem}_groups")
    yield made("Constant", "one", value_ints=[1])
    yield made("Concat", "shape", f"{stem}_one", names["size"], axis=0)
    yield made("Constant", "flat", value_ints=[-1])
    yield made("Constant", "last", value_ints=[1])
    for place, what in ((1, "scale"), (2, "bias")):
        yield made("Unsqueeze", f"{what}_column", node.input[place], f"{stem}_last")
        yield made("Expand", f"{what}_repeated", f"{stem}_{what}_column", names["shape"])
        yield made("Reshape", what, f"{stem}_{what}_repeated", f"{stem}_flat")
        node.input[place] = f"{stem}_{what}"


HELD: Final = 1 << 16
"""Weights of so many bytes or more are held next to a message."""

_locations: Final = count(1)


def hold(assembled: Assembled, folder: Folder) -> Held:
    """Return the large weights, which the messages state as external data from now on.

    All others are put inside. ``assembled``: its messages change. ``folder``: of the model as it
    was read.
    """
    held = {}
    graphs = list(graphs_within(assembled.model.graph))
    in_graphs = sum(len(graph.initializer) for graph in graphs)
    for number, tensor in _weights(assembled.model):
        data = assembled.arrays.get(number)
        is_array = data is not None
        if data is None and tensor.data_location == EXTERNAL and number < in_graphs:
            data = folder.array(tensor.SerializeToString(), repr(tensor.name))
        if data is None:
            if tensor.data_location == EXTERNAL:
                put_inside([tensor], folder)
        elif data.nbytes < HELD or tensor.data_type not in ELEMENT_TYPES:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = to_bytes(data)
        else:
            was_in_file = _is_from_file(tensor, folder)
            is_changed = is_array and assembled.external.get(number) is not False
            # Weights that nobody changed can be told by their location.
            if not isinstance(folder, Held) or is_changed:
                location = f"{_FROM_FILE if was_in_file else ''}weight {next(_locations)}"
                set_location(tensor, location, 0, data.nbytes)
            held[location_of(tensor)] = data
    return Held(held, folder.mapped)


_FROM_FILE: Final = "file/"


def _is_from_file(tensor: Any, folder: Folder) -> bool:
    """Whether a weight is in a data file, or was in one before it was held."""
    if tensor.data_location != EXTERNAL:
        return False
    return not isinstance(folder, Held) or location_of(tensor).startswith(_FROM_FILE)


def _weights(model: Any) -> Iterator[tuple[int, Any]]:
    """Iterate over initializers, those of the main graph first, and other external tensors."""
    # Held in a list, because ids of wrappers are unique only while the wrappers live.
    found = [tensor for graph in graphs_within(model.graph) for tensor in graph.initializer]
    known = set(map(id, found))
    found += [tensor for tensor in external_tensors(model) if id(tensor) not in known]
    yield from enumerate(found)


_OLDEST_FORMAT: Final = 3
"""The oldest IR version that ONNX's converter reads."""

_OLDEST_ADAPTED: Final = 7
"""The oldest operator set between which and newer ones passlib itself converts operators."""


def converted(assembled: Assembled, opset: int, original: Callable[[], Any]) -> Assembled | None:
    """Convert a model to another version of ONNX's own operator set, and check the result.

    Result: the same weights, types of values and annotations; other nodes where operators differ.
    None for a model that has the version. ``assembled``: is consumed. ``original``: of the file
    that the model was loaded from. Raises `TypeError` if the version is no whole number;
    `UnsupportedError` if the package onnx does not know the version, or its converter cannot
    convert the model; the message names the node or the part of the model; `GraphError` if a node
    does not have the form that its operator requires.
    """
    model = assembled.model
    _check_version(opset)
    present = versions_of(model.opset_import).get("")
    if present is None:
        raise UnsupportedError(
            "the model imports no version of ONNX's own operator set; save it without opset"
        )
    if present == opset:
        return None
    _check_convertible(model)
    check_model(model)
    _check_inferable(model)
    given = without_weights(model, assembled.arrays)
    if model.ir_version >= INPUTS_ALSO:
        # The converter would take values that callers may replace for constants.
        fed = {value.name for value in given.graph.input}
        refill(given.graph.initializer, [t for t in given.graph.initializer if t.name not in fed])
    # Initializers need not be inputs, as ONNX Runtime permits in all versions.
    given.ir_version = max(given.ir_version, INPUTS_ALSO)
    before = copy_of(given)
    if min(present, opset) >= _OLDEST_ADAPTED:
        expand(given, OperatorSet.of(opset))
        adapt(given, present, opset)
    conversion = Conversion(given, present, opset)
    conversion.check()
    result = _through_converter(conversion, model, set())
    repair(conversion, result)
    made = _joined(assembled, result)
    try:
        try:
            check_accepted(made.model, made.held, original)
        except GraphError:
            # Inference of the new version may find that outputs have not the shapes of the file.
            if not _restate_shapes(made.model, result):
                raise
            check_accepted(made.model, made.held, original)
    except GraphError as error:
        check_accepted(before, {}, original)  # was it a pass?
        found = str(error).rpartition("made of it: ")[2]
        raise UnsupportedError(_reason(found, given, present, opset)) from error
    return made


def _restate_shapes(model: Any, converted: Any) -> bool:
    """State the shapes that facts have of outputs that contradict them; return whether any do.

    ``converted``: the same model, with all small weights.
    """
    bare = copy_of(converted)
    for value in bare.graph.output:
        value.ClearField("type")
    try:
        known = {value.name: value.type.tensor_type for value in inferred(bare).graph.output}
    except GraphError:
        return False
    pairs = [(value.type.tensor_type, known[value.name]) for value in model.graph.output]
    wrong = [(kind, found) for kind, found in pairs if found.HasField("shape")
             and not _same_sizes(kind.shape.dim, found.shape.dim)]  # fmt: skip
    if any(kind.elem_type != found.elem_type for kind, found in wrong):
        return False  # an operator that is another one
    for kind, found in wrong:
        kind.CopyFrom(found)
    return bool(wrong)


def _same_sizes(stated: Sequence[Any], known: Sequence[Any]) -> bool:
    return len(stated) == len(known) and all(
        one.dim_value == other.dim_value
        for one, other in zip(stated, known, strict=True)
        if one.HasField("dim_value") and other.HasField("dim_value")
    )


def _through_converter(conversion: Conversion, model: Any, hidden: set[str]) -> Any:
    """Return what ONNX's converter makes of a model.

    Operators that it does not know, but that stay the same, are hidden from it; others are replaced
    by those that ONNX defines them by. ``model``: the one that messages are about. ``hidden``:
    operators to hide; grows.
    """
    inference: Any = require("onnx.shape_inference", extra="onnx")
    converter: Any = require("onnx.version_converter", extra="onnx")
    given, opset = conversion.model, conversion.target
    failures = (inference.InferenceError, converter.ConvertError)
    replaced: set[str] = set()
    is_adapted = min(conversion.present, opset) >= _OLDEST_ADAPTED

    def inner(body: Any) -> Any:
        return _through_converter(Conversion(body, conversion.present, opset), model, hidden)

    while True:
        known = set(hidden)
        try:
            shown = hide(given, hidden, conversion.present, opset, inner) if is_adapted else given
            result = converter.convert_version(shown, opset)
        except (*failures, RuntimeError, ValueError, IndexError) as error:
            text = str(error)
            if not is_adapted:
                raise UnsupportedError(_reason(text, model, conversion.present, opset)) from error
            named = set(re.findall(r"\b[A-Z]\w*", text))
            graphs = graphs_within(given.graph)
            found = named & {node.op_type for graph in graphs for node in graph.node}
            lacking = re.search(r"No Adapter (?:From|To) Version \$?\d+ for (\w+)", text)
            if lacking and lacking[1] not in known:
                hidden.add(lacking[1])
                continue
            if not found <= replaced or not replaced:
                replaced |= found
                if expand(given, OperatorSet.of(opset, refused=found or None)):
                    if is_adapted:
                        adapt(given, conversion.present, opset)
                    conversion.check()
                    continue
            raise UnsupportedError(_reason(text, model, conversion.present, opset)) from error
        except MemoryError as error:
            raise GraphError("converting this model needs more memory than there is") from error
        show(result, conversion.present, opset)
        return result


def _check_version(opset: Any) -> None:
    if isinstance(opset, bool) or not isinstance(opset, int):
        raise TypeError(f"opset is {opset!r}, but must be a whole number, such as 17")
    newest = int(require("onnx.defs", extra="onnx").onnx_opset_version())
    if not 1 <= opset <= newest:
        raise UnsupportedError(f"opset is {opset}; it can be 1 to {newest}")


def _check_convertible(model: Any) -> None:
    """Refuse what ONNX's converter would lose without a word."""
    hint = "save it without opset"
    if model.ir_version < _OLDEST_FORMAT:
        raise UnsupportedError(
            f"ONNX's converter does not read IR version {model.ir_version}; {hint}"
        )
    if model.functions:
        name = model.functions[0].name
        raise UnsupportedError(f"ONNX's converter has no functions, such as {name!r}; {hint}")
    if model.training_info:
        raise UnsupportedError(f"ONNX's converter has no training information; {hint}")
    for graph in graphs_within(model.graph):
        for sparse in graph.sparse_initializer:
            raise UnsupportedError(
                f"ONNX's converter has no sparse initializers, such as {sparse.values.name!r}; "
                f"{hint}"
            )


def _check_inferable(model: Any) -> None:
    node = unsafe_to_infer(model)
    if node is not None:
        raise UnsupportedError(
            f"node {_name(node)!r} ({node.op_type}): ONNX's converter needs the types of its "
            "inputs, which are not known, or have too many axes; state them as value_info, or "
            "save the model without opset"
        )


def _reason(text: str, model: Any, present: int, opset: int) -> str:
    """Return the message of a failed conversion, with the node, or those that it can be about."""
    text = text.rpartition("failed: ")[2].strip().partition("\n")[0]
    named = re.search(r"(?:\bfor|\bof|operator) '?([A-Z]\w*)", text)
    nodes = [node for graph in graphs_within(model.graph) for node in graph.node]
    about = [node for node in nodes if named and node.op_type == named[1]][:1]
    if not about:
        stated = re.search(r"\bAttribute (\w+)", text)
        differing = [node for node in nodes if _differs(node, present, opset)]
        about = [node for node in differing
                 if stated and any(each.name == stated[1] for each in node.attribute)]  # fmt: skip
        # Constants rarely are the reason.
        about = about or sorted(differing, key=lambda node: bool(node.op_type == "Constant"))
    if len(about) == 1 and "No Adapter" in text:
        text = other_form(about[0], present, opset) or text
    titles = [f"{_name(node)!r} ({node.op_type})" for node in about]
    where = f"node {titles[0]}: " if len(titles) == 1 else ""
    others = f"; its operators that differ are those of {listed(titles, 4)}" if titles[1:] else ""
    return (
        f"{where}ONNX's converter cannot take version {present} of ONNX's operator set to version "
        f"{opset}: {text}{others}"
    )


def _differs(node: Any, present: int, opset: int) -> bool:
    """Whether the operator of a node is another one in two versions of ONNX's operator set."""
    defs: Any = require("onnx.defs", extra="onnx")
    if schema.plain(node.domain):
        return False
    try:
        found = {defs.get_schema(node.op_type, v).since_version for v in (present, opset)}
    except defs.SchemaError:
        return True
    return len(found) > 1


def _name(node: Any) -> str:
    return str(node.name or next(iter(node.output), ""))


def _joined(assembled: Assembled, result: Any) -> Assembled:
    """Put the converted nodes into the model, whose other parts the converter may have changed."""
    assembled.edited = True
    model = assembled.model
    stated = {value.name for graph in graphs_within(model.graph) for value in graph.value_info}
    for graph in graphs_within(result.graph):
        # The converter states types that it inferred, some of them wrongly.
        refill(graph.value_info, [value for value in graph.value_info if value.name in stated])
    _join_initializers(assembled, result.graph)
    _restore_metadata(model.graph, result.graph)
    del model.graph.node[:]
    model.graph.node.extend(result.graph.node)
    values = {value.name for value in (*result.graph.input, *result.graph.initializer)}
    values.update(name for node in result.graph.node for name in node.output)
    types = [value for value in model.graph.value_info if value.name in values]
    refill(model.graph.value_info, types)
    for entry in model.opset_import:
        if not schema.plain(entry.domain):
            entry.version = versions_of(result.opset_import)[""]
    helper: Any = require("onnx.helper", extra="onnx")
    least = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = max(model.ir_version, least)
    return assembled


def _restore_metadata(before: Any, after: Any) -> None:
    """Give nodes, and nested graphs and their values, the metadata that the converter loses.

    A node is the one that computes the same value.
    """
    pending = [(before, after)]
    while pending:
        old, new = pending.pop()
        makers = {name: node for node in old.node for name in node.output if name}
        for node in new.node:
            maker = next((makers[name] for name in node.output if name in makers), None)
            if maker is None:
                continue
            refill(node.metadata_props, maker.metadata_props)
            bodies = {each.name: each.g for each in maker.attribute if each.HasField("g")}
            pending += [
                (bodies[each.name], each.g)
                for each in node.attribute
                if each.HasField("g") and each.name in bodies
            ]
        if new is after:
            continue  # the main graph stays but for its nodes
        refill(new.metadata_props, old.metadata_props)
        refill(new.quantization_annotation, old.quantization_annotation)
        stated = {value.name: value for value in (*old.input, *old.output, *old.value_info)}
        for value in (*new.input, *new.output, *new.value_info):
            if value.name in stated:
                refill(value.metadata_props, stated[value.name].metadata_props)


def _join_initializers(assembled: Assembled, graph: Any) -> None:
    """Remove the initializers that the converter made attributes of, and add its new ones."""
    own = assembled.model.graph.initializer
    before = {tensor.name for tensor in own}
    left = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}
    kept = [number for number, tensor in enumerate(own) if tensor.name in left]
    tensors = [own[number] for number in kept]
    tensors += [tensor for tensor in graph.initializer if tensor.name not in before]
    place = {old: new for new, old in enumerate(kept)}
    arrays, external = assembled.arrays, assembled.external
    assembled.arrays = {place[n]: array for n, array in arrays.items() if n in place}
    assembled.external = {place[n]: changed for n, changed in external.items() if n in place}
    refill(own, tensors)
