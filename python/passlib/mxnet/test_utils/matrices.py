"""Matrices of known properties, and functions of arrays element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passlib.arrays import random
from passlib.arrays.creation import array

Matrix = np.ndarray[Any, Any]


def assign_each(the_input: Matrix, function: Callable[[Any], Any] | None) -> Matrix:
    """Return an array of NumPy with a function applied to each element; a copy without one.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assign_each
    >>> assign_each(np.array([1.0, 4.0]), lambda number: number + 1)
    array([2., 5.])
    """
    if function is None:
        return np.array(the_input)
    found = np.array([function(x) for x in the_input.flat])
    return np.asarray(found.reshape(the_input.shape))


def assign_each2(input1: Matrix, input2: Matrix, function: Callable[..., Any] | None) -> Matrix:
    """Return an array of NumPy with a function applied to each pair of elements.

    Without a function it is a copy of the first array.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assign_each2
    >>> assign_each2(np.array([1.0, 4.0]), np.array([2.0, 2.0]), max)
    array([2., 4.])
    """
    if function is None:
        return np.array(input1)
    pairs = zip(input1.flat, input2.flat, strict=True)
    return np.asarray(np.array([function(x, y) for x, y in pairs]).reshape(input1.shape))


def collapse_sum_like(a: Matrix, shape: Sequence[int]) -> Matrix:
    """Sum over the axes along which ``shape`` would be broadcast to that of ``a``.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import collapse_sum_like
    >>> collapse_sum_like(np.ones((2, 3)), (1, 3))
    array([[2., 2., 2.]])
    """
    added = a.ndim - len(shape)
    axes = [i for i in range(a.ndim) if i < added or (shape[i - added] == 1 != a.shape[i])]
    return np.asarray(a.sum(axis=tuple(axes)).reshape(tuple(shape)))


def get_identity_mat_batch(size: int) -> Any:
    """Return two identity matrices, in an array of shape (2, size, size).

    Examples
    --------
    >>> from passlib.test_utils import get_identity_mat_batch
    >>> get_identity_mat_batch(3).shape
    (2, 3, 3)
    """
    return array(np.stack([np.eye(size)] * 2))


def new_orthonormal_matrix_2d(n: int) -> Matrix:
    """Return a random matrix (n, n) whose inverse is its transpose.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import new_orthonormal_matrix_2d
    >>> matrix = new_orthonormal_matrix_2d(3)
    >>> np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-5)
    True
    """
    drawn = random.draw(lambda generator: generator.uniform(-1, 1, (n, n)))
    return np.asarray(np.linalg.qr(drawn)[0])


def new_sym_matrix_with_real_eigvals_2d(n: int) -> Matrix:
    """Return a random symmetric matrix (n, n).

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import new_sym_matrix_with_real_eigvals_2d
    >>> matrix = new_sym_matrix_with_real_eigvals_2d(3)
    >>> np.allclose(matrix, matrix.T)
    True
    """
    turned = new_orthonormal_matrix_2d(n)
    return np.asarray(turned @ np.diag(_eigenvalues(n)) @ turned.T)


def new_matrix_with_real_eigvals_2d(n: int) -> Matrix:
    """Return a random matrix (n, n) with n different real eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import new_matrix_with_real_eigvals_2d
    >>> values = np.linalg.eigvals(new_matrix_with_real_eigvals_2d(3))
    >>> np.allclose(values.imag, 0, atol=1e-5)
    True
    """
    turned = new_orthonormal_matrix_2d(n)
    upper = np.triu(random.draw(lambda generator: generator.uniform(-1, 1, (n, n))), 1)
    return np.asarray(turned @ (np.diag(_eigenvalues(n)) + upper) @ turned.T)


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> Matrix:
    """Return random symmetric matrices in the last two axes of this shape.

    Examples
    --------
    >>> from passlib.test_utils import new_sym_matrix_with_real_eigvals_nd
    >>> new_sym_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _stacked(new_sym_matrix_with_real_eigvals_2d, shape)


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> Matrix:
    """Return random matrices with real eigenvalues in the last two axes of this shape.

    Examples
    --------
    >>> from passlib.test_utils import new_matrix_with_real_eigvals_nd
    >>> new_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _stacked(new_matrix_with_real_eigvals_2d, shape)


def _eigenvalues(n: int) -> Matrix:
    """Draw numbers between 1 and -1 that differ by at least 1 / n."""
    parts = random.draw(lambda generator: generator.uniform(0, 0.5, n))
    return np.asarray(2 * (np.arange(n) + parts) / max(n, 1) - 1)


def _stacked(make: Callable[[int], Matrix], shape: Sequence[int]) -> Matrix:
    count = int(np.prod(tuple(shape)[:-2]))
    matrices = [make(shape[-1]) for _ in range(count)]
    return np.asarray(matrices, np.float64).reshape(tuple(shape))
