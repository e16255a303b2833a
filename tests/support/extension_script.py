"""A typical script for MXNet's extensions, which runs on MXNet and passlib.

Usage: python extension_script.py {mxnet,passlib} OPERATORS SUBGRAPHS PASSES MORE-OPERATORS FOLDER

The libraries are those of example/lib_custom_op, example/lib_subgraph and example/lib_pass, and
extension_operators.cc of tests/plugins. Uses what the six test scripts of MXNet's example
libraries use, gradients of MXNet's own operators excepted. Prints one JSON object with the
results, by name of the step.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np

mx = importlib.import_module(sys.argv[1])
nn = importlib.import_module(f"{sys.argv[1]}.gluon").nn
base = importlib.import_module(f"{sys.argv[1]}.base")
test_utils = importlib.import_module(f"{sys.argv[1]}.test_utils")

FOUND = {}
FOLDER = sys.argv[6]


def note(step, value):
    """Record the result of a step: numbers of arrays, or operators of a symbol."""
    if isinstance(value, mx.sym.Symbol):
        nodes = json.loads(value.tojson())["nodes"]
        FOUND[step] = [[node["op"], node["name"], node.get("attrs", {})] for node in nodes]
    elif isinstance(value, (list, tuple)):
        FOUND[step] = [array.asnumpy().tolist() for array in value]
    else:
        FOUND[step] = value.asnumpy().tolist()


def operators():
    """Call operators on arrays, bind them, and run them backward."""
    a = mx.nd.array([[1, 2], [3, 4]])
    b = mx.nd.array([[5, 6], [7, 8]])
    note("nd.my_gemm", mx.nd.my_gemm(a, b))
    note("nd.state_gemm", mx.nd.state_gemm(a, b, test_kw=100))
    s = mx.sym.Variable("s")
    t = mx.sym.Variable("t")
    for name, symbol in (
        ("my_gemm", mx.sym.my_gemm(s, t)),
        ("state_gemm", mx.sym.state_gemm(s, t, test_kw=200)),
        ("chained", mx.sym.state_gemm(mx.sym.my_gemm(s, t), t, name="second")),
    ):
        note(f"{name} symbol", symbol)
        in_grad = [mx.nd.empty((2, 2)), mx.nd.empty((2, 2))]
        exe = symbol.bind(ctx=mx.cpu(), args={"s": a, "t": b}, args_grad=in_grad)
        note(f"{name} forward", exe.forward(is_train=True))
        out_grad = mx.nd.array([[1, -1], [2, 0.5]])
        exe.backward([out_grad])
        note(f"{name} gradients", in_grad)
        note(f"{name} grad_dict", [exe.grad_dict["s"], exe.grad_dict["t"]])
    mixed = mx.sym.exp(mx.sym.my_gemm(mx.sym.log(s), t)) * 0.001
    exe = mixed.bind(ctx=mx.cpu(), args={"s": a, "t": b})
    note("between built-in operators", exe.forward())
    FOUND["inferred shapes"] = [
        list(map(list, shapes)) for shapes in mixed.infer_shape(s=(2, 3), t=(3, 4))
    ]
    FOUND["arguments"] = mixed.list_arguments()


def partition(backend):
    """Partition a symbol with and without shapes, reject subgraphs, and partition in Gluon."""
    a = mx.sym.var("a")
    b = mx.sym.var("b")
    sym = mx.sym.log(mx.sym.exp(a + b))
    args = {"a": mx.nd.ones((3, 2)), "b": mx.nd.ones((3, 2))}

    def run(step, symbol, arrays):
        note(f"{backend} {step} symbol", symbol)
        note(f"{backend} {step}", symbol.bind(ctx=mx.cpu(), args=arrays, grad_req="null").forward())

    run("not partitioned", sym, args)
    run("with shapes", sym.optimize_for(backend, args), args)
    run("without shapes", sym.optimize_for(backend, myOpt="yellow"), args)
    run("rejected", sym.optimize_for(backend, reject=True), args)

    inputs = [mx.nd.ones((3, 2)), mx.nd.ones((3, 2))]
    block = nn.SymbolBlock(sym, [a, b])
    block.initialize()
    block.optimize_for(*inputs, backend=backend)
    note(f"{backend} block", block(*inputs))
    prefix = f"{FOLDER}/{backend}"
    block.export(prefix)
    block.optimize_for(*inputs, backend="addInputPass", clear=False)
    note(f"{backend} block with one more input", block(*inputs))
    again = nn.SymbolBlock.imports(f"{prefix}-symbol.json", ["a", "b"], None)
    note(f"{backend} imported", again(*inputs))

    hybrid = nn.SymbolBlock(sym, [a, b])
    hybrid.initialize()
    hybrid.hybridize(backend=backend, backend_opts={"dedup_subgraph": True})
    note(f"{backend} hybridized", hybrid(*inputs))


def partition_with_a_parameter(backend):
    """Partition around a parameter whose variable states its shape."""
    a = mx.sym.var("a")
    b = mx.sym.var("b", shape=(3, 2))
    sym = mx.sym.log(mx.sym.exp(a + b))
    arrays = {"a": mx.nd.ones((3, 2)), "b": 2 * mx.nd.ones((3, 2))}
    partial = sym.optimize_for(backend, args={"b": arrays["b"]})
    note(f"{backend} partial symbol", partial)
    note(f"{backend} partial", partial.bind(ctx=mx.cpu(), args=arrays).forward())
    block = nn.SymbolBlock(sym, [a])
    block.initialize("ones")
    block.optimize_for(arrays["a"], backend=backend)
    note(f"{backend} block with a parameter", block(arrays["a"]))
    prefix = f"{FOLDER}/{backend}-parameter"
    block.export(prefix)
    again = nn.SymbolBlock.imports(f"{prefix}-symbol.json", ["a"], f"{prefix}-0000.params")
    note(f"{backend} imported with a parameter", again(arrays["a"]))


def imported_names():
    """Use the names that scripts import from MXNet's modules, next to those of libraries."""
    wanted = ["_LIB", "check_call", "mx_uint", "c_str", "c_str_array", "SymbolHandle", "py_str"]
    assert [name for name in wanted if not hasattr(base, name)] == []
    device = mx.gpu() if mx.context.num_gpus() else test_utils.default_context()
    a = mx.nd.array([[1, 2], [3, 4]], ctx=device)
    b = mx.nd.array([[5, 6], [7, 8]], ctx=device)
    product = mx.nd.my_gemm(a, b)
    test_utils.assert_almost_equal(product, np.dot(a.asnumpy(), b.asnumpy()), rtol=1e-5, atol=1e-5)
    assert test_utils.same(product.asnumpy(), mx.nd.dot(a, b).asnumpy())
    note("functions of arrays", [mx.nd.log(mx.nd.exp(a + b)), (product - 1).clip(0, 40).flatten()])
    note("compressed rows", a.tostype("csr") * 2)
    try:
        mx.nd.my_gemm(a, mx.nd.ones((3, 3)))
    except base.MXNetError:
        note("refused by the library", mx.nd.ones((1,)))
    s, t = mx.sym.var("s"), mx.sym.var("t")
    exe = mx.sym.my_gemm(s, t).simple_bind(ctx=device, grad_req="null", s=(2, 2), t=(2, 2))
    exe.arg_dict["s"][:] = a
    exe.arg_dict["t"][:] = b
    note("simple_bind", exe.forward())
    exe.copy_params_from({"s": b})
    note("with copied parameters", exe.forward(t=a))
    graph = mx.sym.log(mx.sym.exp(s + mx.sym.var("t", init=mx.init.Constant(2))))
    prefix = f"{FOLDER}/checkpoint"
    mx.model.save_checkpoint(prefix, 3, graph, {"t": b}, {})
    loaded, arguments, states = mx.model.load_checkpoint(prefix, 3)
    assert (list(arguments), states) == (["t"], {})
    block = nn.SymbolBlock(loaded, [mx.sym.var("s")])
    block.initialize(mx.init.Zero())
    block.collect_params()["t"].set_data(arguments["t"])
    block.optimize_for(a, backend="myProp", myOpt="green", clear=True)
    note("block of a checkpoint", block(a))
    mx.nd.waitall()


def sparse():
    """Transpose matrices of both sparse kinds, on arrays and bound, with and without a state."""
    dense = mx.nd.array([[1, 3, 0, 2, 1], [0, 1, 0, 0, 0], [0, 2, 4, 5, 3], [0, 0, 0, 0, 0]])
    for kind, stem in (("csr", "transposecsr"), ("row_sparse", "transposerowsp")):
        matrix = dense.tostype(kind)
        parts = ("data", "indices", "indptr")[: 3 if kind == "csr" else 2]

        def stored(array, parts=parts):
            return [getattr(array, part) for part in parts]

        note(f"{kind} given", stored(matrix))
        note(f"{kind} transposed", stored(getattr(mx.nd, f"my_{stem}")(matrix)))
        turned = getattr(mx.nd, f"my_state_{stem}")(matrix, test_kw=100)
        note(f"{kind} transposed with a state", stored(turned))
        d = mx.sym.Variable("d")
        plain = getattr(mx.sym, f"my_{stem}")(d).bind(ctx=mx.cpu(), args={"d": matrix})
        note(f"{kind} bound", stored(plain.forward()[0]))
        kept = getattr(mx.sym, f"my_state_{stem}")(d, test_kw=200)
        kept = kept.bind(ctx=mx.cpu(), args={"d": matrix})
        kept.forward()
        note(f"{kind} bound with a state", stored(kept.forward()[0]))


def rectify():
    """Draw an array on a device and rectify it."""
    drawn = mx.nd.uniform(shape=(40, 25), ctx=mx.cpu()) - 0.5
    result = mx.nd.my_relu(drawn)
    expected = np.maximum(drawn.asnumpy(), 0)
    FOUND["rectified"] = bool((result.asnumpy() == expected).all() and (expected > 0).any())
    if not mx.context.num_gpus():
        try:
            mx.nd.my_relu(mx.nd.uniform(shape=(4, 5), ctx=mx.gpu())).wait_to_read()
        except base.MXNetError:
            FOUND["without a GPU"] = "MXNetError"


def passes():
    """Run a pass on a symbol and in Gluon, and export what it made."""
    a, b = mx.sym.var("a"), mx.sym.var("b")
    sym = mx.sym.log(mx.sym.exp(a + b))
    args, aux = {"a": mx.nd.ones((3, 2)), "b": mx.nd.ones((3, 2))}, {}
    for step, made in (
        ("with shapes", sym.optimize_for("myPass", args, aux)),
        ("without shapes", sym.optimize_for("myPass", myOpt="yellow")),
        ("dropNoOps", mx.sym.identity(sym).optimize_for("dropNoOps", args, aux)),
    ):
        note(f"pass {step} symbol", made)
        note(f"pass {step}", made.bind(ctx=mx.cpu(), args=args).forward())
    inputs = [mx.nd.ones((3, 2)), mx.nd.ones((3, 2))]
    block = nn.SymbolBlock(sym, [a, b])
    block.initialize()
    block.hybridize(backend="myPass")
    note("pass hybridized", block(*inputs))
    block = nn.SymbolBlock(sym, [a, b])
    block.initialize()
    block.optimize_for(*inputs, backend="myPass")
    block.export(f"{FOLDER}/modified")
    again = nn.SymbolBlock.imports(f"{FOLDER}/modified-symbol.json", ["a", "b"], None)
    note("pass imported", again(*inputs))


def main():
    """Load the libraries and run all steps."""
    for library in sys.argv[2:6]:
        mx.library.load(library)
    operators()
    for backend in ("myProp", "mySelect"):
        partition(backend)
        partition_with_a_parameter(backend)
    imported_names()
    sparse()
    rectify()
    passes()
    sys.stdout.write(json.dumps(FOUND) + "\n")


if __name__ == "__main__":
    main()
