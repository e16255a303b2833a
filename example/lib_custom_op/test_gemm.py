"""Load libgemm_lib.so and multiply matrices: at once, in a graph, and backward."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import passlib as pl


def compute_at_once(a: pl.nd.NDArray, b: pl.nd.NDArray) -> None:
    """Call the operators on arrays."""
    print("a * b =", pl.nd.my_gemm(a, b).tolist())
    print("a * b =", pl.nd.state_gemm(a, b, verbose=True).tolist())


def compute_in_a_graph(a: pl.nd.NDArray, b: pl.nd.NDArray) -> None:
    """Run an operator between built-in ones, which ONNX Runtime computes."""
    left, right = pl.sym.var("left"), pl.sym.var("right")
    product = pl.sym.state_gemm(pl.sym.sqrt(left), right, name="gemm", verbose=True)
    total = pl.sym.sum(product * 2)
    print(total.infer_shape(left=a.shape, right=b.shape))
    executor = total.bind(pl.cpu(), {"left": a, "right": b})
    for _ in range(2):  # both calls use one state
        print("2 * sum(sqrt(a) * b) =", executor.forward()[0].tolist())
    print("and with NumPy:       ", float(2 * (np.sqrt(a) @ b).sum()))


def compute_gradients(a: pl.nd.NDArray, b: pl.nd.NDArray) -> None:
    """Run two products that share a matrix forward and backward."""
    left, right = pl.sym.var("left"), pl.sym.var("right")
    square = pl.sym.my_gemm(pl.sym.my_gemm(left, right), right)
    gradients = {"left": pl.nd.zeros(a.shape), "right": pl.nd.zeros(b.shape)}
    executor = square.bind(pl.cpu(), {"left": a, "right": b}, args_grad=gradients)
    executor.forward(is_train=True)
    executor.backward([pl.nd.ones(a.shape)])
    for name, gradient in gradients.items():
        print(f"gradient of {name}: {gradient.tolist()}")


def main() -> None:
    """Run the example."""
    library = pl.library.load(Path(__file__).parent / "libgemm_lib.so")
    print(f"{Path(library.path).name} has the operators {', '.join(library.ops)}")
    a = pl.nd.array([[1, 4], [9, 16]])
    b = pl.nd.array([[5, 6], [7, 8]])
    compute_at_once(a, b)
    compute_in_a_graph(a, b)
    compute_gradients(a, b)
    try:
        pl.nd.my_gemm(a, pl.nd.ones((3, 3)))
    except pl.PasslibError as error:
        print(error)


if __name__ == "__main__":
    main()
