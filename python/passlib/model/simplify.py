"""`passlib.simplify`: a model, or a file, with fewer operators."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from passlib.library.pipeline.cost import CostName
from passlib.model.loading import load
from passlib.model.model import Model


def simplify(
    model: Model | str | os.PathLike[str] | bytes | Any,
    *,
    exact: bool = False,
    cost: CostName = "nodes",
    max_growth: int | None = None,
    max_rounds: int = 16,
    skip: Collection[str] = (),
    fixed: Mapping[str, Sequence[int | None]] | None = None,
) -> Model:
    """Return a model with fewer operators that computes the same.

    The standard passes run one after another, round by round, and a step is kept only if the cost
    falls. Open sizes stay open, and outputs keep their names.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        What is no `Model` is loaded, see `passlib.load`.
    exact : bool
        Run only passes that keep every bit of the results. Otherwise operators are also folded
        into the weights of linear layers, which changes results by rounding.
    cost : {"nodes", "bytes", "flops", "traffic"}
        The number of operators, nested graphs included; the size of the weights; or, with open
        sizes taken for 1 and nested graphs left out, an estimate of the arithmetic operations of
        one run, or of the bytes that operators read and write. The number of operators and the
        size of the weights decide between equals.
    max_growth : int, optional
        By how many bytes the weights may grow in all; by default by a hundredth, and at most by
        1 MB. Each operator that is gone makes room for 64 bytes more.
    max_rounds : int
        At most so many rounds are run.
    skip : collection of str
        Standard passes that are left out.
    fixed : mapping of str to shape, optional
        Sizes of the inputs of an ONNX model, which the result states; ``None`` in a shape leaves a
        size open. Computations with them become constants.

    Returns
    -------
    Model

    Raises
    ------
    PasslibError
        The model cannot be loaded, or a pass failed; or a name in ``fixed`` is no input, its shape
        contradicts the model's, or the model is of another dialect.
    ValueError
        ``cost`` is something else.

    Examples
    --------
    >>> import passlib
    >>> passlib.simplify("model.onnx").save("smaller.onnx")  # doctest: +SKIP
    """
    found = model if isinstance(model, Model) else load(model)
    return found.simplify(
        exact=exact,
        cost=cost,
        max_growth=max_growth,
        max_rounds=max_rounds,
        skip=skip,
        fixed=fixed,
    )
