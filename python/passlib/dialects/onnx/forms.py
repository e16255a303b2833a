"""Nodes that are the same in two versions of ONNX's own operator set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import refill

_OTHER_MEANING: Final[Mapping[str, tuple[int, ...]]] = {
    **dict.fromkeys(("Add", "Div", "Gemm", "Mul", "Pow", "Sub"), (7,)),
    "BatchNormalization": (9,),
    "DFT": (20,),
    "Dropout": (12,),
    "GridSample": (20,),
    "GroupNormalization": (21,),
    "Hardmax": (13,),
    "LogSoftmax": (13,),
    "Resize": (11,),
    "RoiAlign": (16,),
    "Scan": (9,),
    "Softmax": (13,),
    "TopK": (10, 11),
    "Upsample": (9,),
}
"""Sets that changed the meaning of nodes which look the same.

All other attributes that a set added have no effect where they have their default.
"""

_SINCE: Final[Mapping[tuple[str, str, bytes], int]] = {
    ("Pad", "mode", b"wrap"): 19,
    ("Resize", "coordinate_transformation_mode", b"half_pixel_symmetric"): 19,
    ("ScatterElements", "reduction", b"max"): 18,
    ("ScatterElements", "reduction", b"min"): 18,
    ("ScatterND", "reduction", b"max"): 18,
    ("ScatterND", "reduction", b"min"): 18,
}
"""The sets that added values of attributes."""


def other_form(node: Any, present: int, target: int) -> str:
    """Return why a node would change in another version of ONNX's set; types are not judged.

    An empty text if it would not, without the attributes that `drop_defaults` removes.

    Parameters
    ----------
    node : onnx.NodeProto
    present, target : int
        The version of the model, and the other one.
    """
    name = node.op_type
    before, after = (schema.schema_of(name, "", version) for version in (present, target))
    if before is None or after is None or after.deprecated:
        return f"{name} is not in operator set {target}"
    if before.since_version == after.since_version:
        return ""
    low, high = sorted((present, target))
    if any(low < version <= high for version in _OTHER_MEANING.get(name, ())):
        return f"{name} has another meaning in operator set {target}"
    for each in node.attribute:
        if _SINCE.get((name, each.name, each.s), 0) > target:
            return f"{each.name}={each.s.decode()!r} is not in operator set {target}"
        if each.name not in after.attributes and not _is_default(each, before):
            return f"attribute {each.name} is not in operator set {target}"
    for key in before.attributes.keys() & after.attributes.keys():
        old, new = (each.attributes[key].default_value for each in (before, after))
        if old != new and all(each.name != key for each in node.attribute):
            return f"attribute {key} has another default in operator set {target}"
    for what, names, least, most in (
        ("inputs", node.input, after.min_input, after.max_input),
        ("outputs", node.output, after.min_output, after.max_output),
    ):
        if not least <= len(names) <= most:
            return f"{len(names)} {what} do not fit operator set {target}"
    return ""


def drop_defaults(node: Any, present: int, target: int) -> None:
    """Remove attributes that the target version lacks and that have their default."""
    before, after = (schema.schema_of(node.op_type, "", version) for version in (present, target))
    if before is None or after is None:
        return
    kept = [each for each in node.attribute
            if each.name in after.attributes or not _is_default(each, before)]  # fmt: skip
    if len(kept) < len(node.attribute):
        refill(node.attribute, kept)


def _is_default(attribute: Any, own: Any) -> bool:
    found = own.attributes.get(attribute.name)
    if found is not None and attribute.name == "dilations":  # whose default has no text
        return set(attribute.ints) <= {1}
    field = {1: "f", 2: "i", 3: "s"}.get(attribute.type)
    if found is None or field is None or found.default_value.type != attribute.type:
        return False
    return bool(getattr(attribute, field) == getattr(found.default_value, field))
