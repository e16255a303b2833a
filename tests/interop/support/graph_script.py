"""Graphs with operators of tests/plugins/graph_operators.cc, run in MXNet or in passlib.

Usage: python graph_script.py {mxnet,passlib} LIBRARY

Prints one JSON object: outputs, gradients and states, by name of the graph.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np

mx = importlib.import_module(sys.argv[1])

RANDOM = np.random.default_rng(0)
FOUND = {}


def number(*shape):
    """Draw an array."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def note(name, symbol, arrays, wanted=(), steps=2):
    """Run a graph a few times, also backward if gradients are wanted, and record the results."""
    arrays = {key: mx.nd.array(array) for key, array in arrays.items()}
    gradients = {key: mx.nd.zeros(arrays[key].shape) for key in wanted}
    states = symbol.list_auxiliary_states()
    bound = symbol.bind(
        mx.cpu(),
        {key: arrays[key] for key in symbol.list_arguments()},
        args_grad=gradients,
        grad_req=dict.fromkeys(wanted, "write"),
        aux_states={key: arrays[key] for key in states},
    )
    found = FOUND[name] = []
    for _ in range(steps):
        outputs = bound.forward(is_train=bool(wanted))
        found.append([output.asnumpy().tolist() for output in outputs])
        if wanted:
            bound.backward([mx.nd.array(number(*output.shape)) for output in outputs])
            found.append([gradients[key].asnumpy().tolist() for key in wanted])
    found.append([arrays[key].asnumpy().tolist() for key in states])


def mixed():
    """Run graphs that mix built-in operators with the library's."""
    x, y = mx.sym.var("x"), mx.sym.var("y")
    hidden = mx.sym.tp_linear(mx.sym.relu(x), mx.sym.var("w"), num_hidden=4)
    note("linear", mx.sym.sigmoid(hidden), {"x": number(2, 3), "w": number(4, 3)})
    body = mx.sym.Convolution(x, num_filter=3, kernel=(3, 3), name="c")
    body = mx.sym.Flatten(mx.sym.tp_scale(body, factor=0.3))
    shapes = {
        "x": (2, 3, 8, 8),
        "c_weight": (3, 3, 3, 3),
        "c_bias": (3,),
        "fc_weight": (4, 108),
        "fc_bias": (4,),
    }
    body = mx.sym.FullyConnected(body, num_hidden=4, name="fc")
    note("convolution", body, {key: number(*shape) for key, shape in shapes.items()})
    scaled = mx.sym.tp_scale(x)
    diamond = mx.sym.tp_product(mx.sym.relu(scaled), scaled - y)
    note("diamond", diamond, {"x": number(2, 3), "y": number(2, 3)})
    halves = mx.sym.tp_halves(x, name="h")
    heads = mx.sym.Group([x, halves, mx.sym.exp(halves[0]), mx.sym.tp_scale(x), x])
    note("heads", heads, {"x": number(5)})


def keeping():
    """Run graphs whose operators write to auxiliary states or have a state of their own."""
    x, total = mx.sym.var("x"), mx.sym.var("total")
    accumulated = mx.sym.tp_accumulate(x, total)
    around = mx.sym.Group([mx.sym.exp(total), accumulated, total + 1, total])
    note("accumulate", around, {"x": number(4), "total": number(4)}, steps=3)
    counted = mx.sym.tp_counter(mx.sym.tp_counter(x))
    note("counter", mx.sym.relu(counted) + mx.sym.tp_counter(x), {"x": number(4)}, steps=3)


def nested():
    """Run nodes with a subgraph, with and without further inputs."""
    a, b = mx.sym.var("a0"), mx.sym.var("b0")
    inner = mx.sym.Group([mx.sym.log(mx.sym.exp(a) + b), mx.sym.exp(b)])
    graph = json.loads(inner.tojson())
    del graph["attrs"]
    for extra in range(3):
        names = ["x", "y", "z0", "z1"][: 2 + extra]
        nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
        edges = [[i, 0, 0] for i in range(len(names))]
        node = {"op": "tp_subgraph", "name": "_op0", "inputs": edges, "subgraphs": [graph]}
        if extra:
            node["attrs"] = {"__ext_extra_inputs__": str(extra)}
        last = {"op": "relu", "name": "last", "inputs": [[len(names), 0, 0]]}
        whole = {
            "nodes": [*nodes, node, last],
            "arg_nodes": list(range(len(names))),
            "node_row_ptr": [*range(len(names) + 1), len(names) + 2, len(names) + 3],
            "heads": [[len(names) + 1, 0, 0], [len(names), 1, 0]],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
        arrays = {"x": abs(number(5)), "y": abs(number(5)), "z0": number(1), "z1": number(1)}
        note(
            f"subgraph with {extra} more inputs",
            mx.sym.load_json(json.dumps(whole)),
            {name: arrays[name] for name in names},
        )


def backwards():
    """Compute gradients of graphs of the library's operators."""
    a, b = mx.sym.var("a"), mx.sym.var("b")
    halves = mx.sym.tp_halves(mx.sym.tp_product(a, b))
    squared = mx.sym.tp_product(halves[0], halves[0])
    other = mx.sym.tp_product(mx.sym.tp_scale(halves[1], factor=-3), a)
    outputs = mx.sym.Group([mx.sym.tp_product(squared, b), other, halves[1]])
    note("gradient", outputs, {"a": number(6), "b": number(6)}, ("a", "b"))
    counted = mx.sym.tp_counter(mx.sym.tp_scale(mx.sym.tp_counter(a)))
    note("gradient of states", counted, {"a": number(6)}, ("a",))
    beside = mx.sym.tp_product(a, mx.sym.exp(b))
    note("gradient beside exp", beside, {"a": number(6), "b": number(6)}, ("a",))


mx.library.load(sys.argv[2], False)
mixed()
keeping()
nested()
backwards()
print(json.dumps(FOUND))
