"""`Match`: the view of a rule in Python on one match, and the replacement that it returns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects import find
from passlib.library.python import Graph

Value = _core.EditableValue


class Match:
    """A match of a pattern; it is valid until the rule returns.

    ``m.x`` and ``m["x"]`` are the value named ``x`` in the pattern: None for an absent optional
    input, a tuple of values for a variadic input. A value has ``node``, ``shape``, ``dtype`` and
    ``uses``; shapes and dtypes need ``shapes=True``.

    Attributes
    ----------
    graph : EditableGraph
        The graph with the match, possibly a nested graph.
    attrs : dict of str to str
        The attributes bound by the pattern, without the ``$``.
    nodes : list of EditableNode
        The matched nodes in topological order.
    results : tuple of EditableValue
        The results of the pattern, in its order.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.rewrite("Activation[act_type=relu](x)", dialects=["mxnet"])
    ... def shorter_relu(m: pl.Match) -> object:
    ...     return m.op("relu", m.x)
    >>> y = pl.sym.Activation(pl.sym.var("x"), act_type="relu", name="y")
    >>> y.optimize_for("shorter_relu").nodes()[-1].op
    'relu'
    """

    def __init__(self, native: _core.PatternMatch, whole: Graph, made: list[str]) -> None:
        self._native = native
        self._whole = whole
        self._made = made
        self.graph = native.graph
        self.attrs: dict[str, str] = native.attrs
        self.nodes = native.nodes
        self.results = native.results

    def __getitem__(self, name: str) -> Any:
        return self._native.value(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_native":  # as copy.copy does
            raise AttributeError(name)
        try:
            return self._native.value(name)
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def op(
        self, op: str, /, *inputs: Value | None, num_outputs: int = 1, **attributes: object
    ) -> Any:
        """Add a node, named after the replaced result; return its output, or a tuple of outputs.

        Parameters
        ----------
        op : str
            The operator; with the domain for other ONNX domains, as in ``"com.microsoft::Gelu"``.
        *inputs : EditableValue or None
            None for an omitted optional input.
        num_outputs : int
            Also sets the attribute of this name, of operators such as ONNX's Split (opset 18) and
            MXNet's SliceChannel.
        **attributes
            Strings, numbers, booleans, or lists of them, which are written as the dialect does.
        """
        texts = {
            key: attribute_text(value, self._whole.dialect) for key, value in attributes.items()
        }
        if num_outputs != 1 and self._states_outputs(op):
            texts["num_outputs"] = str(num_outputs)
        return self._native.op(op, inputs, texts, num_outputs)

    def _states_outputs(self, op: str) -> bool:
        """Whether an attribute of the operator states the number of outputs."""
        if self._whole.dialect == "onnx":
            return op == "Split" and self.operator_set() >= 18
        return find(self._whole.dialect).count_outputs(op, {"num_outputs": "7"}) == 7

    def attributes(self, value: Value) -> dict[str, str]:
        """Return the attributes of a value's node, without internal ones such as ``__id__``."""
        return {
            key: text
            for key, text in value.node.attrs.items()
            if not (len(key) > 4 and key.startswith("__") and key.endswith("__"))
        }

    def array(self, value: Value) -> np.ndarray[Any, Any]:
        """Return the array of a parameter, read-only.

        Raises
        ------
        KeyError
            The value is not a parameter with an array.
        """
        name = value.node.name
        if value.node.is_variable:
            for arrays in self._whole.parameters:
                if name in arrays:
                    return arrays[name]
        raise KeyError(f"{name!r} is not a parameter with an array")

    def broadcasts(self, value: Value, target: Value) -> bool:
        """Whether a value is known to broadcast to another one's shape without enlarging it."""
        given, whole = self._shape(value), self._shape(target)
        if given is None or (given and (whole is None or len(given) > len(whole))):
            return False
        ends = (whole or ())[len(whole or ()) - len(given) :]
        return all(
            size == 1 or (size is not None and size == end)
            for size, end in zip(given, ends, strict=True)
        )

    def operator_set(self, domain: str = "") -> int:
        """Return the opset of a domain in an ONNX model; 0 if the model does not import it."""
        sets = json.loads(self._whole.attributes.get("opset_import", "{}"))
        names = ("", "ai.onnx") if domain in ("", "ai.onnx") else (domain,)
        return max((int(sets[name]) for name in names if name in sets), default=0)

    def _shape(self, value: Value) -> tuple[int | None, ...] | None:
        try:
            shape: tuple[int | None, ...] | None = self.array(value).shape
        except KeyError:
            shape = value.shape
        return shape

    def parameter(self, suffix: str, array: Any) -> Value:
        """Add a parameter, named after the replaced result.

        A match in a nested graph of an ONNX model adds it to the model and captures it.

        Parameters
        ----------
        suffix : str
            Suffix of the name: ``add_bias`` for ``bias``.
        array : array
            Its value, which is copied.

        Raises
        ------
        UnsupportedError
            The match is in a nested graph of a dialect other than ONNX, or the dialect has no
            arrays of this dtype.
        PassResultError
            ``optimize_for`` was called without a dictionary of parameters.
        """
        made = np.array(array, order="C")
        native = made.astype(made.dtype.newbyteorder("="), copy=False)
        value = self._native.variable(suffix, native, dtypes.code(made.dtype))
        self._whole.args[value.node.name] = made
        self._made.append(value.node.name)
        return value

    def give(self, returned: object) -> None:
        """Replace the results with the return value of a rule.

        Raises
        ------
        TypeError
            It is neither None, nor a value, nor one value for each result.
        """
        if returned is None:
            return
        if isinstance(returned, Mapping):
            for name, value in returned.items():
                self._native.replace(name, _value(value))
        elif isinstance(returned, Sequence) and not isinstance(returned, (str, bytes)):
            if len(returned) != len(self.results):
                raise TypeError(
                    f"the pattern has {len(self.results)} results, and the rule returned "
                    f"{len(returned)} values"
                )
            for position, value in enumerate(returned):
                self._native.replace(position, _value(value))
        else:
            self._native.replace(None, _value(returned))


def _value(value: object) -> Value:
    if isinstance(value, Value):
        return value
    raise TypeError(
        f"a rule must return None or a replacement such as m.op(...), not {type(value).__name__}"
    )


def attribute_text(value: object, dialect: str) -> str:
    """Format an attribute like the dialect: ``(1, 1)`` in MXNet and NNVM, else ``[1, 1]``."""
    named = dialect in ("mxnet", "nnvm")
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)) if named else str(int(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        items = [attribute_text(item, dialect) for item in value]
        if named:
            return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
        return "[" + ", ".join(items) + "]"
    if isinstance(value, (int, float, np.integer, np.floating)):
        return str(value)
    raise TypeError(
        f"an attribute must be a string, a number or a list, not {type(value).__name__}"
    )
