"""Ask a real MXNet 1.9.1 for densities, counts, sequence losses, matchings, slopes, images.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_statistics.py tests/data/mxnet

writes ``statistics_cases.jsonl.gz`` and ``statistics_cases.npz``, in the form that cases_tensor.py
describes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import frozen_cases
from cases_tensor_spec import Case, case, of, real, whole


def cases() -> Iterator[Case]:
    """Yield every case."""
    yield from densities()
    yield from histograms()
    yield from alignments()
    yield from matchings()
    yield from images()
    yield from slopes()
    yield from events()
    yield from factors()


def events() -> Iterator[Case]:
    for batch, kinds, times in ((1, 2, 3), (3, 2, 4), (2, 1, 5), (4, 3, 1)):
        for lengths in (np.full(batch, times), np.arange(batch) % times + 1):
            yield case(
                "_contrib_hawkesll", real(batch, kinds, low=0.5), real(kinds, low=0.1, high=0.9),
                real(kinds, low=0.5), real(batch, kinds, low=0, high=1),
                real(batch, times, low=0.1), whole(batch, times, low=0, high=kinds, dtype="int32"),
                lengths.astype("float32"), real(batch, low=10, high=12),
            )  # fmt: skip


def factors() -> Iterator[Case]:
    for shape in ((2, 3), (3, 3), (1, 4), (2, 2, 5), (1, 1), (4, 6), (2, 3, 3, 3), (5, 5)):
        yield case("_linalg_gelqf", real(*shape), tolerance=1e-4)
    yield case("_linalg_gelqf", real(3, 4, dtype="float64"))
    yield case("_linalg_gelqf", of([3, 0, 0], [1, 2, 0]))
    yield case("_linalg_gelqf", of([-1, 0], [0, -2]))


def slopes() -> Iterator[Case]:
    for data, gamma in (
        ((2, 3, 4), (1, 3)), ((2, 3, 4), (2, 3)), ((2, 3), (2, 3)), ((2, 3), (2, 1)),
        ((2, 3, 4, 5), (3,)), ((2, 3, 4), (2, 1)), ((2, 3, 4), (1, 1)), ((2, 3, 3), (2, 3)),
        ((4,), (4,)), ((4,), (1,)),
    ):  # fmt: skip
        yield case("LeakyReLU", real(*data), real(*gamma), act_type="prelu")


def densities() -> Iterator[Case]:
    shapes = (((2,), (2, 5)), ((2, 3), (2, 3, 4)), ((3,), (3, 2, 2)), ((1,), (1, 1)))
    for parameters, samples in shapes:
        positive, second = (real(*parameters, low=low, high=3) for low in (0.5, 0.7))
        spread, share = real(*samples, low=0.2, high=4), real(*parameters, low=0.1, high=0.9)
        counts = whole(*samples, low=0, high=9)
        rows: tuple[tuple[str, np.ndarray, tuple[np.ndarray, ...]], ...] = (
            ("uniform", spread, (positive - 2, positive + second)),
            ("normal", real(*samples), (real(*parameters), second)),
            ("exponential", spread, (positive,)),
            ("gamma", spread, (positive, second)),
            ("poisson", counts, (positive,)),
            ("negative_binomial", counts, (np.ceil(positive), share)),
            ("generalized_negative_binomial", counts, (positive, second)),
        )
        for name, sample, values in rows:
            for logarithm in (False, True):
                yield case(f"_random_pdf_{name}", sample, *values, is_log=logarithm, tolerance=2e-4)
        points = real(*samples, 3, low=0.1, high=1)
        points /= points.sum(axis=-1, keepdims=True)
        for logarithm in (False, True):
            alpha = real(*parameters, 3, low=0.5, high=3)
            yield case("_random_pdf_dirichlet", points, alpha, is_log=logarithm, tolerance=2e-4)


def histograms() -> Iterator[Case]:
    for data in (real(50), real(3, 4, 5), whole(30), of(-2, 0, 2)):
        for count, ends in ((5, (-2, 2)), (1, (-1, 1)), (8, (0, 3))):
            yield case("_histogram", data, bin_cnt=count, range=ends)
        for edges in (of(-2, 0, 1, 2), of(-1, 1), of(0, 0.5, 3)):
            yield case("_histogram", data, edges)


def alignments() -> Iterator[Case]:
    data = real(7, 3, 5)
    first = of([1, 2, 2], [3, 0, 0], [4, 1, 0])
    last = of([0, 1, 1], [2, -1, -1], [3, 0, -1])
    lengths = {"data": of(7, 4, 6), "label": of(3, 1, 2)}
    for blank, labels in (("first", first), ("last", last)):
        yield case("CTCLoss", data, labels, blank_label=blank)
        yield case("CTCLoss", data * 4, labels, blank_label=blank)
        yield case(
            "CTCLoss", data, labels, lengths["data"], use_data_lengths=True, blank_label=blank
        )
        yield case(
            "CTCLoss", data, labels, lengths["label"], use_label_lengths=True, blank_label=blank
        )
        yield case(
            "CTCLoss", data, labels, lengths["data"], lengths["label"], use_data_lengths=True,
            use_label_lengths=True, blank_label=blank,
        )  # fmt: skip
    yield case("CTCLoss", real(4, 1, 3), of([1]))
    yield case("CTCLoss", real(9, 2, 4), of([1, 1, 2, 3], [3, 2, 0, 0]))


def matchings() -> Iterator[Case]:
    for shape in ((3, 2), (2, 4), (2, 3, 3), (1, 1), (2, 2, 2, 3)):
        count = int(np.prod(shape))
        order = np.random.RandomState(count).permutation(count)
        scores = ((order + 1) / (count + 1)).reshape(shape).astype("float32")
        yield case("_contrib_bipartite_matching", scores, threshold=1e-12)
        yield case("_contrib_bipartite_matching", scores, threshold=0.5)
        yield case("_contrib_bipartite_matching", scores, threshold=0.6, is_ascend=True)
        yield case("_contrib_bipartite_matching", scores, threshold=0.1, topk=1)


def images() -> Iterator[Case]:
    picture = whole(6, 8, 3, low=0, high=256, dtype="uint8")
    for data in (picture, real(6, 8, 3), real(5, 7, 1)):
        exact = 1 if data.dtype == np.uint8 else None
        for how in ((4, 3), (8, 6), (11, 9), (5,)):
            yield case("_image_resize", data, size=how, tolerance=exact)
        yield case("_image_resize", data, size=(4,), keep_ratio=True, tolerance=exact)
    for width, height in ((4, 3), (16, 12), (3, 9), (8, 6), (1, 1), (9, 2), (5, 5), (8, 1)):
        yield case("_cvimresize", picture, w=width, h=height, tolerance=1)
    for kind in (0, 1, 4):
        for top, bot, left, right in ((1, 1, 0, 2), (0, 0, 0, 0), (2, 3, 1, 1)):
            yield case(
                "_cvcopyMakeBorder", picture, top=top, bot=bot, left=left, right=right, type=kind,
                value=7,
            )  # fmt: skip
    for alpha in ((0.1, 0.2, 0.3), (0, 0, 0), (-1, 0.5, 2), (0.01, -0.02, 0.05)):
        for data in (real(4, 5, 3, low=0, high=200), picture):
            yield case(
                "_image_adjust_lighting",
                data,
                alpha=alpha,
                tolerance=1 if data is picture else None,
            )


if __name__ == "__main__":
    frozen_cases.main(
        __doc__, "statistics_cases", (sys.modules[__name__],), default=2e-5, narrow=max
    )
