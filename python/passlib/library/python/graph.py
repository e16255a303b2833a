"""The graph that a pass in Python changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import passlib._core as _core
from passlib.dialects import Dialect
from passlib.graph.plain import PlainGraph
from passlib.library.call import Call
from passlib.library.python.parameters import Parameters


class Graph(_core.EditableRoot):
    """A graph in the core's own form, with the verbs of the header.

    ``nodes`` lists the nodes as stored, ``sorted()`` each after its inputs, ``find(name)`` returns
    one or None. ``outputs`` is a tuple of values, which can be set. ``add_node(op, inputs, attrs,
    name=, num_outputs=)``, ``add_variable(name, attrs)``, ``connect(value, node, input)``,
    ``set_inputs(node, values)``, ``replace(value, by)`` and ``remove(*nodes)`` change the graph.
    ``absorb(node, number, given)`` moves the nodes of a nested graph of a node to the node's own
    graph, where the variables of the nested graph in ``given`` become other values, and returns
    the nested graph's outputs; the node, which is left without that graph, has to be removed.

    A node has ``op``, ``name``, ``attrs``, ``inputs``, ``outputs``, ``output(index)``, ``users``,
    ``is_used``, ``subgraphs``, ``control_deps``, ``num_outputs`` and ``is_variable``. A value,
    which is one output of a node, has ``node``, ``index``, ``uses``, ``only_use``, ``is_output``,
    ``shape`` and ``dtype``.

    Attributes
    ----------
    dialect : str
        The family of models that the graph belongs to.
    args, aux : Parameters
        Weights and auxiliary states by name, as read-only arrays. Assign an array to change one.
    attributes : dict of str to str
        The graph's own attributes, as JSON by key.
    own_attributes : dict of str to str
        What the dialect keeps with the graph. A pass reads them only.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def name_by_place(graph: pl.Graph) -> None:
    ...     for place, node in enumerate(graph.sorted()):
    ...         node.attrs["__place__"] = str(place)
    >>> y = pl.sym.relu(pl.sym.var("x"), name="y").optimize_for("name_by_place")
    >>> y.attr("__place__")
    '1'
    """

    def __init__(self, source: _core.Graph, editor: str, dialect: Dialect, call: Call) -> None:
        # Only a graph with inferred types is a copy that can be used up.
        known = call.types_known
        super().__init__(source, editor, types_known=known, consume=known, types=call.types)
        assert isinstance(call.args, Parameters)
        assert isinstance(call.aux, Parameters)
        self.dialect = dialect.name
        self.args, self.aux = call.args, call.aux
        self.attributes = dict(call.attributes)
        self._family = dialect
        self.own_attributes = dict(call.own_attributes)

    def __repr__(self) -> str:
        return f"<graph of a model of {self.dialect}>"

    def plain(self, values: Sequence[_core.EditableValue] | None = None) -> PlainGraph:
        """Return a copy of the graph as it is now, which can be run and inferred.

        Parameters
        ----------
        values : sequence of EditableValue, optional
            The outputs of the copy, by default those of the graph. The copy has no nodes that
            these do not need.

        Returns
        -------
        PlainGraph
            Nodes keep their names.
        """
        attributes = {**self.attributes, **self.own_attributes}
        if values is not None:
            attributes = self._family.selected(attributes)
        heads = self.outputs if values is None else values
        return PlainGraph.of_native(self.part(heads), attributes, self._family)

    @property
    def parameters(self) -> tuple[Parameters, Parameters]:
        """`args` and `aux`."""
        return self.args, self.aux

    def add_parameter(self, name: str, array: Any, *, aux: bool = False) -> _core.EditableNode:
        """Add a variable with its array.

        Parameters
        ----------
        name : str
            Must be free.
        array : array
            Its value, which is copied.
        aux : bool
            Whether it is an auxiliary state rather than a weight.

        Returns
        -------
        EditableNode

        Raises
        ------
        GraphError
            There is a node of this name.
        PassResultError
            ``optimize_for`` was given no dictionary for it.
        """
        parameters = self.aux if aux else self.args
        node = self.add_variable(name)
        try:
            parameters[name] = array
        except BaseException:
            self.remove(node)
            raise
        return node

    def is_parameter(self, node: _core.EditableNode) -> bool:
        """Whether a node is a variable with an array in `args` or `aux`."""
        return node.is_variable and (node.name in self.args or node.name in self.aux)
