"""inlineFunctions: replaces calls of local functions of ONNX models by the functions' bodies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.calls import Call, Key, call_of, key_of, values_of
from passlib.dialects.onnx.nested import graphs_within, refill, sealed
from passlib.errors import FormatError, UnsupportedError, did_you_mean, listed
from passlib.files.optional import require
from passlib.graph.names import NameSource
from passlib.library.backends import NamedPipeline, register_pipeline
from passlib.library.declared import Declaration, Option, OptionError, names_of
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.model.edits import content_of, of_content
from passlib.model.loading import AnyModel, as_model

Watch = Callable[[Step, Model, Callable[[], Model]], Model]

_MOST_NODES: Final = 1_000_000
"""Bodies within bodies can grow without bound."""


def inline_functions(model: AnyModel, *, names: Collection[str] | None = None) -> Model:
    """Return an ONNX model with the bodies of local functions in place of their calls.

    It is the pass ``inlineFunctions``. Functions that nothing calls any more are removed. Values
    and nodes of a body get the name of the call as a prefix.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    names : collection of str, optional
        The functions, as ``name`` or ``domain.name``, with all overloads (default: all functions).

    Raises
    ------
    PasslibError
        The model cannot be loaded, or has no such function; or an operator of a function differs
        between the operator sets of the function and the model.

    Examples
    --------
    >>> import passlib
    >>> passlib.inline_functions("model.onnx").save("flat.onnx")  # doctest: +SKIP
    """
    found = as_model(model)
    return found.optimize_for("inlineFunctions", names=sorted(names_of("names", names)))


class WholeModel(NamedPipeline):
    """A pass that changes the message of an ONNX model, functions included."""

    def check(self, options: Mapping[str, Any]) -> None:
        """Check options; the declaration knows all."""

    def run(self, model: Model, options: Mapping[str, Any], watch: Any = None) -> Model:
        """Return the changed model; the same object if nothing changes."""
        body = partial(self._changed, model, dict(options))
        made: Model = body() if watch is None else watch(Step(self.declaration.name), model, body)
        return made

    def change(self, proto: Any, options: Mapping[str, Any]) -> bool:
        """Change an ``onnx.ModelProto``; return whether there was anything to do."""
        raise NotImplementedError

    def _changed(self, model: Model, options: Mapping[str, Any]) -> Model:
        onnx: Any = require("onnx", extra="onnx")
        content = content_of(model)
        proto = onnx.ModelProto.FromString(content)
        if not self.change(proto, options):
            return model
        return of_content(model, sealed(proto, content.weights))


class _Inlining(WholeModel):
    def change(self, proto: Any, options: Mapping[str, Any]) -> bool:
        if not proto.functions:
            if options.get("names"):
                _check_names(options["names"], ())
            return False
        return _Inliner(proto, options.get("names") or ()).run()


def _check_names(names: Collection[str], keys: Collection[Key]) -> None:
    known = dict.fromkeys(text for key in keys for text in (key.name, f"{key.domain}.{key.name}"))
    for name in names:
        if name not in known:
            have = f"the functions are {listed([key.title for key in keys])}"
            raise OptionError(
                f"option 'names': there is no function {name!r}"
                f"{did_you_mean(name, known, 1)}; {have if keys else 'the model has none'}",
                "names",
            )


class _Inliner:
    def __init__(self, proto: Any, names: Collection[str]) -> None:
        self._proto = proto
        self._functions = {key_of(each): each for each in proto.functions}
        _check_names(names, self._functions)
        self._chosen = {
            key
            for key in self._functions
            if not names or {key.name, f"{key.domain}.{key.name}"} & set(names)
        }
        self._matched: set[tuple[Key | None, Key]] = set()
        self._sets = {schema.plain(each.domain): each.version for each in proto.opset_import}
        self._bodies = [proto.graph] + [
            body for each in proto.training_info for body in (each.initialization, each.algorithm)
        ]

    def run(self) -> bool:
        """Inline the chosen functions, those of bodies first; return whether any was called."""
        order = self._order()
        self._check_size(order)
        changed = False
        for key in order:
            changed |= self._expand(self._functions[key])
        for body in self._bodies:
            while self._expand(body):
                changed = True
        changed |= self._remove_unused()
        return changed

    def _calls(self, body: Any) -> Iterator[Key]:
        for graph in graphs_within(body):
            for node in graph.node:
                key = call_of(node)
                if key in self._functions:
                    yield key

    def _order(self) -> list[Key]:
        """Return the functions, each after those that it calls."""
        calls = {key: list(dict.fromkeys(self._calls(f))) for key, f in self._functions.items()}
        waiting = {key: len(found) for key, found in calls.items()}
        callers = defaultdict(list)
        for key, found in calls.items():
            for each in found:
                callers[each].append(key)
        order = [key for key, count in waiting.items() if not count]
        for key in order:
            for caller in callers[key]:
                waiting[caller] -= 1
                if not waiting[caller]:
                    order.append(caller)
        if len(order) < len(calls):
            stuck = next(key for key in calls if key not in set(order))
            raise FormatError(f"function {stuck.title} calls itself, which ONNX does not allow")
        return order

    def _check_size(self, order: Sequence[Key]) -> None:
        """Check how many nodes there will be, before any is made. ``order``: see `_order`."""
        sizes: dict[Key | None, int] = {}
        bodies = [
            *((key, self._functions[key]) for key in order),
            *((None, b) for b in self._bodies),
        ]
        for key, body in bodies:
            size = sum(len(graph.node) for graph in graphs_within(body))
            for called in self._calls(body):
                if called not in self._chosen:
                    continue
                size += sizes[called]
                if size > _MOST_NODES:
                    raise UnsupportedError(
                        f"inlining makes more than {_MOST_NODES} nodes, at function "
                        f"{called.title}; choose other functions with names="
                    )
            sizes[key] = size

    def _expand(self, body: Any) -> bool:
        """Replace the calls in a graph or a function, nested graphs included."""
        found = [
            graph
            for graph in graphs_within(body)
            if any(self._is_due(body, node) for node in graph.node)
        ]
        if not found:
            return False
        names = NameSource(set(values_of(body)))
        titles = NameSource({node.name for graph in graphs_within(body) for node in graph.node})
        for graph in reversed(found):  # a change of a graph replaces those nested in it
            nodes = []
            for node in graph.node:
                if not self._is_due(body, node):
                    nodes.append(node)
                    continue
                key = call_of(node)
                function = self._functions[key]
                self._match_sets(body, key, function)
                nodes += Call(node, key, function, names, titles).nodes()
            refill(graph.node, nodes)
        return True

    def _is_due(self, body: Any, node: Any) -> bool:
        """Whether a node of a graph or a function is a call to replace.

        In a function, one that passes an attribute on waits until the caller's is known: if that is
        absent, the default of the function called here counts.
        """
        key = call_of(node)
        if key not in self._chosen:
            return False
        if not hasattr(body, "opset_import"):
            return True
        defaults = {each.name for each in self._functions[key].attribute_proto}
        return not any(
            each.name in defaults and each.ref_attr_name in body.attribute
            for each in node.attribute
        )

    def _match_sets(self, body: Any, key: Key, function: Any) -> None:
        """Check that operators of a function are the same in the graph that gets them."""
        is_function = hasattr(body, "opset_import")
        place = (key_of(body) if is_function else None, key)
        if place in self._matched:
            return
        self._matched.add(place)
        own = {schema.plain(each.domain): each.version for each in function.opset_import}
        sets = self._sets
        if is_function:
            sets = {schema.plain(each.domain): each.version for each in body.opset_import}
        for domain, version in own.items():
            if domain not in sets:
                target = body if is_function else self._proto
                target.opset_import.add(domain=domain, version=version)
                sets[domain] = version
        differing = {domain for domain, version in own.items() if sets[domain] != version}
        if not differing:
            return
        for graph in graphs_within(function):
            for node in graph.node:
                domain = schema.plain(node.domain)
                if domain not in differing or call_of(node) in self._functions:
                    continue
                before = schema.schema_of(node.op_type, domain, own[domain])
                after = schema.schema_of(node.op_type, domain, sets[domain])
                since = [each and each.since_version for each in (before, after)]
                if since[0] != since[1] or before is None:
                    raise UnsupportedError(
                        f"function {key.title} is of operator set {own[domain]} of "
                        f"{domain or 'ONNX'}, and {node.op_type} differs in {sets[domain]}, that "
                        "of its caller; convert one of them first, or inline other functions with "
                        "names="
                    )

    def _remove_unused(self) -> bool:
        """Remove the chosen functions that nothing calls any more."""
        reached: set[Key] = set()
        pending = list(self._bodies)
        while pending:
            new = set(self._calls(pending.pop())) - reached
            reached |= new
            pending += [self._functions[key] for key in new]
        kept = [
            function
            for key, function in self._functions.items()
            if key in reached or key not in self._chosen
        ]
        changed = len(kept) < len(self._functions)
        refill(self._proto.functions, kept)
        bodies = [*self._bodies, *self._proto.functions]
        used = {schema.plain(n.domain) for graph in graphs_within(*bodies) for n in graph.node}
        left = {key_of(each).domain for each in self._proto.functions}
        gone = {key.domain for key in self._functions} - left
        imports = [each for each in self._proto.opset_import
                   if schema.plain(each.domain) not in gone - used]  # fmt: skip
        refill(self._proto.opset_import, imports)
        return changed


register_pipeline(
    _Inlining(
        Declaration(
            "inlineFunctions",
            "Replace calls of local functions by their bodies.",
            ("onnx",),
            (
                Option(
                    "names", "text", (),
                    "Functions, as name or domain.name; empty for all.", is_list=True,
                ),
            ),
        ),
        exact=True,
    )
)  # fmt: skip
