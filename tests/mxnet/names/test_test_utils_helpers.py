"""The helpers of `passlib.test_utils`: comparisons, sparse arrays, surroundings."""

from __future__ import annotations

import os

import numpy as np
import pytest

from passlib import nd
from passlib import test_utils as utils
from passlib.errors import UnsupportedError


def test_a_share_of_the_elements_may_differ() -> None:
    one, other = np.array([1.0, 2, 3]), np.array([1.0, 2, 4])
    utils.assert_almost_equal_with_err(one, other, etol=0.5)
    for share in (0.1, None):
        with pytest.raises(AssertionError, match=r"at \(2,\)"):
            utils.assert_almost_equal_with_err(one, other, etol=share)
    utils.checkShapes(one, other)
    with pytest.raises(AssertionError, match="differ"):
        utils.checkShapes(one, one[:2])
    text = "Location of maximum error: (2,), a=3.00000000, b=4.00000000"
    assert utils.locationError(one, other, (2,), ("a", "b"), True) == text
    half = np.ones(2, np.float16)
    assert utils.get_tolerance(half, None, {np.dtype(np.float16): 0.5}) == 0.5
    assert utils.get_tolerance(half, 0.3, {}) == 0.3
    assert utils.default_numeric_eps()[np.dtype(np.float32)] == 2**-9


def test_sparse_arrays() -> None:
    matrix = utils.rand_ndarray((4, 30), "csr", 1.0)
    before, columns = matrix.asnumpy(), matrix.indices.asnumpy().tolist()
    utils.shuffle_csr_column_indices(matrix)
    assert matrix.indices.asnumpy().tolist() != columns
    np.testing.assert_array_equal(matrix.asnumpy(), before)
    assert nd.sparse.csr_matrix([[7.0]]).asscalar() == 7.0


def test_retry() -> None:
    calls: list[int] = []

    @utils.retry(3)
    def fails(times: int) -> int:
        calls.append(1)
        assert len(calls) > times
        return len(calls)

    assert fails(2) == 3
    calls.clear()
    with pytest.raises(AssertionError):
        fails(3)
    assert len(calls) == 3
    with pytest.raises(ValueError, match="positive"):
        utils.retry(0)


def test_surroundings(capfd: pytest.CaptureFixture[str]) -> None:
    with utils.discard_stderr():
        os.write(2, b"unseen")
    os.write(2, b"seen")
    assert capfd.readouterr().err == "seen"
    with pytest.raises(UnsupportedError, match="download: passlib downloads nothing"):
        utils.download("https://example.org")
