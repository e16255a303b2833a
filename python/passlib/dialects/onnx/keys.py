"""Keys of attributes by which graphs refer to the ONNX file that they came from."""

from __future__ import annotations

ABSENT = "__absent__"
"""Name of the variable that stands for an omitted optional input."""

DOCUMENT = "__document__"
"""Key of the graph's attribute that holds the document."""

ID = "__id__"
"""Place of a node in the file: ``12``, in nested graphs ``12.body.3``, ``initializer.0``."""

DOMAIN = "__domain__"
OVERLOAD = "__overload__"

FORMAL = "__formal_inputs__"
"""Number of inputs of a node with nested graphs that are the operator's own."""

CAPTURED = "__captured_inputs__"
"""Number of inputs after those, for values that its nested graphs capture."""

OUTER = "__outer__"
"""The input of the enclosing node that a variable of a nested graph stands for."""

OPAQUE = "__opaque__"
"""Element type of a constant that NumPy cannot represent."""

_DEFAULT = "__default__"
"""``True`` on an initializer that is the default of an input, which may be fed other values.

Up to IR version 3 every initializer is listed as an input, so none is marked.
"""

INPUTS_ALSO = 4
"""Before this file version, each initializer is an input of the graph as well."""

OWN_KEYS = frozenset((ID, DOMAIN, OVERLOAD, FORMAL, CAPTURED, OUTER, OPAQUE, _DEFAULT))
