"""The helpers of `passlib.test_utils`: generators, matrices, surroundings."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from passlib import nd
from passlib import test_utils as utils
from passlib.errors import UnsupportedError


@pytest.fixture
def uniform() -> Any:
    generator = np.random.default_rng(5)
    return lambda count: nd.array(generator.uniform(0, 2, count), dtype="float64")


def test_generators_are_verified(uniform: Any) -> None:
    buckets, chances = utils.gen_buckets_probs_with_ppf(lambda x: 2 * x, 4)
    assert buckets == [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5), (1.5, 2.0)]
    assert chances == [0.25] * 4
    found = utils.verify_generator(uniform, buckets, chances, nsamples=2000, nrepeat=4)
    assert len(found) == 4
    skewed = [0.3, 0.3, 0.2, 0.2]
    with pytest.raises(AssertionError, match="0 of 3 tests of the generator succeed"):
        utils.verify_generator(uniform, buckets, skewed, nsamples=4000, nrepeat=3)
    with pytest.raises(ValueError, match="4 buckets and 3"):
        utils.chi_square_check(uniform, buckets, chances[:3])


@pytest.mark.parametrize(
    ("freedom", "statistic", "chance"),
    [
        (1, 3.841, 0.05), (1, 6.635, 0.01), (2, 5.991, 0.05), (2, 9.210, 0.01),
        (5, 11.070, 0.05), (5, 15.086, 0.01), (10, 18.307, 0.05), (29, 42.557, 0.05),
    ],
)  # fmt: skip
def test_chances_are_those_of_printed_tables(freedom: int, statistic: float, chance: float) -> None:
    """One bucket differs from the others by what gives the statistic."""
    count = freedom + 1
    each = 1_000_000
    gap = np.sqrt(statistic * each * freedom / count)
    counts = np.full(count, each - gap / freedom)
    counts[0] = each + gap
    samples = np.repeat(np.arange(count), np.round(counts).astype(int))
    found, _, _ = utils.chi_square_check(
        lambda _: samples, list(range(count)), [1 / count] * count, len(samples)
    )
    assert found == pytest.approx(chance, rel=0.01)


def test_moments_are_checked(uniform: Any) -> None:
    assert utils.mean_check(uniform, 1, np.sqrt(1 / 3), 4000)
    assert not utils.mean_check(uniform, 1.2, np.sqrt(1 / 3), 4000)
    generator = np.random.default_rng(1)
    assert utils.var_check(lambda count: generator.normal(3, 2, count), 2, 4000)
    assert not utils.var_check(lambda count: generator.normal(3, 2, count), 2.5, 4000)


def test_matrices() -> None:
    turned = utils.new_orthonormal_matrix_2d(5)
    np.testing.assert_allclose(turned @ turned.T, np.eye(5), atol=1e-12)
    for matrix in utils.new_sym_matrix_with_real_eigvals_nd((2, 4, 4)):
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    many = utils.new_matrix_with_real_eigvals_nd((2, 3, 4, 4))
    assert many.shape == (2, 3, 4, 4)
    values = np.linalg.eigvals(many)
    assert np.abs(values.imag).max() < 1e-6
    assert np.abs(many - np.swapaxes(many, 2, 3)).max() > 1e-3
    assert utils.get_identity_mat_batch(3).shape == (2, 3, 3)


def test_functions_of_elements() -> None:
    data = np.arange(24.0).reshape(2, 3, 4)
    assert utils.assign_each(data, lambda x: x + 1).tolist() == (data + 1).tolist()
    assert utils.assign_each2(data, data, lambda a, b: a - 2 * b).tolist() == (-data).tolist()
    assert utils.assign_each(data, None) is not data
    np.testing.assert_array_equal(
        utils.collapse_sum_like(data, (3, 1)), data.sum(axis=(0, 2))[:, None]
    )
    assert utils.collapse_sum_like(data, (2, 3, 4)).tolist() == data.tolist()


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
    empty = utils.create_sparse_array_zd((3, 4), "row_sparse", 0.0)
    assert not empty.asnumpy().any()
    assert empty.size == 12
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
    batches = utils.DummyIter(iter([1, 2]))
    assert [next(batches), next(batches), batches.next()] == [1, 1, 1]
    assert utils.is_op_runnable()
    assert not utils.has_tvm_ops()
    with pytest.raises(UnsupportedError, match="download: passlib downloads nothing"):
        utils.download("https://example.org")
