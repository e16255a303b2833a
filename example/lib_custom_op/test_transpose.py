"""Load libtranspose_lib.so and transpose matrices, dense and in compressed rows."""

from __future__ import annotations

from pathlib import Path

import passlib as pl


def describe(matrix: pl.nd.CSRNDArray) -> None:
    """Print what a matrix in compressed rows stores."""
    parts = (matrix.data, matrix.indices, matrix.indptr)
    values, columns, starts = (part.asnumpy().tolist() for part in parts)
    print(f"{matrix.shape} stores {values} in the columns {columns}; rows start at {starts}")


def main() -> None:
    """Run the example."""
    library = pl.library.load(Path(__file__).parent / "libtranspose_lib.so")
    print(f"{Path(library.path).name} has the operator {', '.join(library.ops)}")
    dense = pl.nd.array([[0, 7, 0], [8, 0, 9]])
    print("dense:", pl.nd.my_transpose(dense).tolist())
    sparse = dense.tostype("csr")
    describe(sparse)
    describe(pl.nd.my_transpose(sparse))
    turned = pl.sym.my_transpose(pl.sym.my_transpose(pl.sym.var("x")))
    (twice,) = turned.eval(x=sparse)
    print("twice:", twice.stype, twice.asnumpy().tolist())
    try:
        pl.nd.my_transpose(dense.tostype("row_sparse"))
    except pl.PasslibError as error:
        print(error)


if __name__ == "__main__":
    main()
