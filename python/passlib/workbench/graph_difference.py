"""Differences between the graphs and weights of two models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from passlib.errors import printable, short_repr
from passlib.graph.node import VARIABLE
from passlib.model import Model
from passlib.model.loading import AnyModel, as_model
from passlib.pages import (
    Side,
    content_of,
    document,
    framed,
    node_changes,
    pair_nodes,
    weight_changes,
)


@short_repr
@dataclass(frozen=True)
class NodeChange:
    """A node of both models, with its differences.

    Attributes
    ----------
    name, op : str
        In the second model.
    changes : tuple of str
        Texts such as ``"attribute axis: 1 -> 2"``.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> before = pl.Model(pl.sym.sum(x, axis=0, name="y"))
    >>> after = pl.Model(pl.sym.sum(x, axis=1, name="y"))
    >>> pl.workbench.diff(before, after).changed[0].changes
    ('attribute axis: 0 -> 1',)
    """

    name: str
    op: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return printable(f"~ {self.name} ({self.op}): {'; '.join(self.changes)}")


@short_repr
@dataclass(frozen=True)
class ModelDifference:
    """The result of `diff`.

    Attributes
    ----------
    removed, added : tuple of (str, str)
        Name and operator of nodes in only one model; the operator of variables is "null".
    weights : tuple of (str, str)
        Name and difference.
    outputs : tuple of str
        Differences of the outputs.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> before = pl.Model(pl.sym.exp(x, name="y"))
    >>> found = pl.workbench.diff(before, pl.Model(pl.sym.relu(before.symbol, name="z")))
    >>> found.equal, found.added
    (False, (('z', 'relu'),))
    """

    removed: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, str], ...]
    changed: tuple[NodeChange, ...]
    weights: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    before: Model = field(repr=False, compare=False)
    after: Model = field(repr=False, compare=False)

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not (self.removed or self.added or self.changed or self.weights or self.outputs)

    def as_dict(self) -> dict[str, Any]:
        """Return the differences for JSON."""
        outputs = {"before": list(self.before.outputs), "after": list(self.after.outputs)}
        return {
            "removed": [_as_dict(*each) for each in self.removed],
            "added": [_as_dict(*each) for each in self.added],
            "changed": [
                _as_dict(each.name, each.op) | {"changes": list(each.changes)}
                for each in self.changed
            ],
            "weights": [{"name": name, "change": what} for name, what in self.weights],
            "outputs": outputs if self.outputs else None,
        }

    def to_html(self, title: str = "difference") -> str:
        """Return a self-contained HTML page with an overlay of both models."""
        return document(title, self._content())

    def _repr_html_(self) -> str:
        return framed("difference", self._content())

    def _content(self) -> dict[str, Any]:
        return content_of(_side(self.after), _side(self.before))

    def __str__(self) -> str:
        lines = [f"- {_title(name, op)}" for name, op in self.removed]
        lines += [f"+ {_title(name, op)}" for name, op in self.added]
        lines += map(str, self.changed)
        lines += [f"~ weight {printable(name)}: {what}" for name, what in self.weights]
        lines += [f"~ outputs: {printable(what)}" for what in self.outputs]
        counts = (
            (len(self.removed), "removed"),
            (len(self.added), "added"),
            (len(self.changed), "changed"),
        )
        nodes = ", ".join(f"{count} {word}" for count, word in counts)
        return "\n".join([*lines, f"nodes: {nodes}; weights: {len(self.weights)} changed"])


def _as_dict(name: str, op: str) -> dict[str, Any]:
    return {"name": name, "operator": None if op == VARIABLE else op}


def diff(a: AnyModel, b: AnyModel) -> ModelDifference:
    """Compare the nodes and weights of two models.

    Nodes are paired by name, in order of occurrence; the rest by operator, attributes and paired
    inputs. Nodes of ONNX files without names are paired by the names of their values. Attributes
    that begin with two underscores are ignored, except the declared shapes and dtypes of variables.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> model = pl.Model(pl.sym.exp(x, name="a") + pl.sym.exp(x, name="b"))
    >>> pl.workbench.diff(model, model.optimize_for("mergeEqualNodes")).removed
    (('b', 'exp'),)
    """
    a, b = as_model(a), as_model(b)
    first, second = a.symbol.nodes(), b.symbol.nodes()
    old = pair_nodes(a.symbol, b.symbol)
    added, changed = [], []
    for node in second:
        if node not in old:
            added.append((node.name, node.op))
            continue
        changes = tuple(map(str, node_changes(old[node], node, old)))
        if changes:
            changed.append(NodeChange(node.name, node.op, changes))
    kept = {id(node) for node in old.values()}
    removed = [(node.name, node.op) for node in first if id(node) not in kept]
    before, after = a.outputs, b.outputs
    return ModelDifference(
        tuple(removed),
        tuple(added),
        tuple(changed),
        tuple(weight_changes({**a.args, **a.aux}, {**b.args, **b.aux}).items()),
        () if before == after else (f"{', '.join(before)} -> {', '.join(after)}",),
        a,
        b,
    )


def _title(name: str, op: str) -> str:
    return printable(f"{name} (variable)" if op == "null" else f"{name} ({op})")


def _side(model: Model) -> Side:
    return Side(model.symbol, {**model.args, **model.aux})
