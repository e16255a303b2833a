"""Cases of operators on images, regions and boxes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    yield from resizing()
    yield from cropping()
    yield from regions()
    yield from sampling()
    yield from boxes()
    yield from detection()
    yield from images()
    yield from deformable()


def resizing() -> Iterator[Case]:
    data = real(2, 3, 4, 6)
    for scale in (1, 2, 3):
        yield case("UpSampling", data, scale=scale, sample_type="nearest", num_args=1)
    for scale in (2, 3, 4):
        kernel = 2 * scale - scale % 2
        yield case(
            "UpSampling", data, real(3, 1, kernel, kernel), scale=scale, sample_type="bilinear",
            num_filter=3, num_args=2,
        )  # fmt: skip
    several = (data, real(2, 3, 2, 3), real(2, 3, 8, 12))
    for mode in ("concat", "sum"):
        yield case(
            "UpSampling", *several, scale=2, sample_type="nearest", num_args=3,
            multi_input_mode=mode,
        )  # fmt: skip
    resize = "_contrib_BilinearResize2D"
    for corners in (True, False):
        for height, width in ((4, 6), (7, 9), (2, 3), (1, 1), (1, 8), (5, 2)):
            yield case(resize, data, height=height, width=width, align_corners=corners)
        for scale in (0.5, 0.7, 1.6, 2.0, 3.0):
            yield case(
                resize, data, scale_height=scale, scale_width=scale + 0.4, align_corners=corners
            )
        yield case(resize, data, real(1, 1, 5, 3), mode="like", align_corners=corners)
    odd = real(1, 2, 5, 4)
    for mode in ("to_even_down", "to_even_up", "to_odd_down", "to_odd_up"):
        yield case(resize, odd, mode=mode)
    for scale in (0.5, 0.75, 2.0, 2.3):
        yield case(resize, odd, mode="odd_scale", scale_height=scale, scale_width=scale)
    yield case(resize, odd.astype("float64"), height=7, width=7)


def cropping() -> Iterator[Case]:
    data = real(2, 3, 5, 7)
    yield case("Crop", data, num_args=1, h_w=(2, 3))
    yield case("Crop", data, num_args=1, h_w=(2, 3), offset=(3, 1))
    yield case("Crop", data, num_args=1, h_w=(2, 4), center_crop=True)
    like = real(1, 1, 4, 2)
    yield case("Crop", data, like, num_args=2)
    yield case("Crop", data, like, num_args=2, offset=(1, 4))
    yield case("Crop", data, like, num_args=2, center_crop=True)


def regions() -> Iterator[Case]:
    data = real(2, 4, 8, 8)
    rois = of(
        [0, 0, 0, 7, 7],
        [1, 1, 2, 5, 6],
        [0, 2.4, 2.6, 6.5, 3.5],
        [1, 3, 3, 3, 3],
        [0, 5, 5, 12, 12],
        [1, 9, 9, 12, 12],
    )
    for size in ((1, 1), (2, 2), (3, 2), (7, 7)):
        for scale in (1.0, 0.5):
            yield case("ROIPooling", data, rois, pooled_size=size, spatial_scale=scale)
            for aligned in (False, True):
                for ratio in (-1, 2):
                    yield case(
                        "_contrib_ROIAlign", data, rois[[0, 1, 2, 4]], pooled_size=size,
                        spatial_scale=scale, sample_ratio=ratio, aligned=aligned,
                    )  # fmt: skip
    yield case("_contrib_ROIAlign", data, rois[:2], pooled_size=(2, 2), spatial_scale=1.0)


def sampling() -> Iterator[Case]:
    data = real(2, 3, 5, 6)
    matrix = of([1, 0, 0, 0, 1, 0], [0.8, -0.3, 0.1, 0.2, 1.3, -0.4])
    for shape in ((5, 6), (3, 4), (2, 7)):
        yield case("GridGenerator", matrix, transform_type="affine", target_shape=shape)
        yield case(
            "SpatialTransformer", data, matrix, target_shape=shape, transform_type="affine",
            sampler_type="bilinear",
        )  # fmt: skip
    for one, shape in ((of([1, 2, 3, 4, 5, 6]), (2, 2)), (real(1, 6, high=9), (4, 3))):
        yield case("GridGenerator", one, transform_type="affine", target_shape=shape)
    options = {"transform_type": "affine", "sampler_type": "bilinear"}
    for array, count, shape in (
        (real(2, 1, 1, 4), 2, (3, 3)), (data, 2, (2, 2)), (real(1, 4, 6, 3), 1, (2, 5)),
        (real(1, 1, 7, 7), 1, (7, 7)),
    ):  # fmt: skip
        yield case(
            "SpatialTransformer", array, matrix[-count:], target_shape=shape, **options,
            cudnn_off=True,
        )  # fmt: skip
    wide = (data.astype("float64"), matrix.astype("float64"))
    yield case("SpatialTransformer", *wide, target_shape=(3, 4), **options)
    yield case("GridGenerator", real(2, 2, 5, 6), transform_type="warp")
    for scale in (0.9, 1.0, 1.7):
        grid = real(2, 2, 4, 3, low=-scale, high=scale)
        yield case("BilinearSampler", data, grid)


def rows(count: int, classes: int = 3, batch: tuple[int, ...] = ()) -> np.ndarray:
    """Rows of class, score and corners, scores all different."""
    state = np.random.RandomState(count)
    shape = (*batch, count)
    scores = (state.permutation(int(np.prod(shape))).reshape(shape) + 1) / (np.prod(shape) + 2)
    start, size = state.rand(*shape, 2) * 4, state.rand(*shape, 2) * 3 + 0.5
    kind = state.randint(0, classes, shape)
    columns = [kind[..., None], scores[..., None], start, start + size]
    return np.concatenate(columns, axis=-1).astype("float32")


def boxes() -> Iterator[Case]:
    data = rows(12)
    for attributes in (
        {},
        {"overlap_thresh": 0.2},
        {"overlap_thresh": 0.0},
        {"overlap_thresh": 0.2, "id_index": 0},
        {"overlap_thresh": 0.2, "id_index": 0, "force_suppress": True},
        {"overlap_thresh": 0.2, "id_index": 0, "background_id": 1},
        {"overlap_thresh": 0.2, "background_id": 1},
        {"overlap_thresh": 0.2, "valid_thresh": 0.5},
        {"valid_thresh": 2.0},
        {"overlap_thresh": 0.1, "topk": 4},
        {"overlap_thresh": 0.1, "topk": 40, "id_index": 0},
        {"overlap_thresh": 0.2, "out_format": "center"},
        {"overlap_thresh": 0.2, "in_format": "center"},
        {"overlap_thresh": 0.2, "in_format": "center", "out_format": "center"},
    ):
        yield case("_contrib_box_nms", data, **attributes)
    yield case("_contrib_box_nms", rows(5, batch=(2, 3)), overlap_thresh=0.2, id_index=0, topk=3)
    other = rows(7)[:, [2, 3, 4, 5, 0, 1]]
    yield case(
        "_contrib_box_nms", other, coord_start=0, score_index=5, id_index=4, overlap_thresh=0.1
    )
    yield case("_contrib_box_nms", rows(6)[:, 1:], coord_start=1, score_index=0, topk=1)
    corner = data[:, 2:]
    for form in ("corner", "center"):
        yield case("_contrib_box_iou", corner[:4], corner[2:7], format=form)
        yield case("_contrib_box_iou", corner.reshape(3, 4, 4), corner[:2], format=form)
    yield case("_contrib_box_iou", np.zeros((2, 4), "float32"), corner[:2])
    offsets, anchors = real(2, 6, 4, low=-1, high=1), rows(6)[None, :, 2:]
    for form in ("corner", "center"):
        yield case("_contrib_box_decode", offsets, anchors, format=form)
        yield case(
            "_contrib_box_decode", offsets, anchors, format=form, std0=0.1, std1=0.2, std2=0.3,
            std3=0.4, clip=0.1,
        )  # fmt: skip
    samples = of([1, -1, 0, 1], [0.4, 0.6, 1, 0])
    matches = of([0, 1, 2, 1], [2, 0, 1, 0])
    boxed = rows(3, batch=(2,))[..., 2:]
    anchors = rows(4, batch=(2,))[..., 2:]
    encoded = "_contrib_box_encode"
    means, spread = of(0, 0.1, 0.2, 0.3), of(0.1, 0.1, 0.2, 0.2)
    yield case(encoded, samples, matches, anchors, boxed, means, spread)
    yield case(encoded, samples, matches, anchors, boxed, -means, spread * 30)
    yield case(encoded, 1 - samples, matches * 0, anchors, boxed, means, spread)
    yield case(encoded, samples, matches[::-1].copy(), anchors * 0.1, boxed, means, spread)
    single = (samples[:1], matches[:1], anchors[:1], boxed[:1])
    yield case(encoded, *single, means, spread)
    yield case(encoded, *(array[:, :1] for array in single), means, spread)


def detection() -> Iterator[Case]:
    data = np.zeros((1, 3, 2, 3), "float32")
    for attributes in (
        {},
        {"sizes": (0.5, 0.25), "ratios": (1, 2)},
        {"sizes": (0.5,), "ratios": (2, 1, 0.5), "clip": True},
        {"sizes": (0.9, 0.3), "ratios": (3,), "steps": (0.3, 0.4), "offsets": (0.1, 0.2)},
    ):
        yield case("_contrib_MultiBoxPrior", data, **attributes)
        deep = np.zeros((1, 2, 3, 2, 4), "float32")
        yield case("_contrib_MultiBoxPrior", deep, **attributes)
    state = np.random.RandomState(7)
    scores = state.dirichlet(np.ones(4), (2, 9)).transpose(0, 2, 1).astype("float32")
    offsets = real(2, 36, low=-1, high=1)
    start, size = state.rand(1, 9, 2) * 0.6, state.rand(1, 9, 2) * 0.4 + 0.1
    anchors = np.concatenate([start, start + size], axis=-1).astype("float32")
    for attributes in (
        {},
        {"threshold": 0.5},
        {"nms_threshold": 0.1},
        {"nms_threshold": 0.1, "force_suppress": True},
        {"nms_threshold": 0.1, "force_suppress": True, "nms_topk": 4},
        {"clip": False, "variances": (0.2, 0.3, 0.4, 0.1)},
        {"nms_threshold": 0.1, "nms_topk": 3, "threshold": 0.4},
        {"nms_threshold": 0.0, "threshold": 0.4},
    ):
        yield case("_contrib_MultiBoxDetection", scores, offsets, anchors, **attributes)


def images() -> Iterator[Case]:
    picture = whole(4, 5, 3, low=0, high=256, dtype="uint8")
    scaled = real(3, 4, 5, low=0, high=1)
    for data in (picture, picture[None], picture.astype("float32")):
        yield case("_image_to_tensor", data)
        yield case("_image_crop", data, x=1, y=2, width=3, height=2)
        yield case("_image_crop", data, x=-1, y=2, width=3, height=2)
        yield case("_image_crop", data, x=-6, y=2, width=11, height=1)
    even = whole(4, 6, 3, low=0, high=256, dtype="uint8")
    for data in (even, even.astype("float32")):
        yield case("_image_flip_left_right", data)
        yield case("_image_flip_top_bottom", data)
    for data in (scaled, scaled[None]):
        yield case("_image_normalize", data, mean=(0.5, 0.4, 0.3), std=(0.1, 0.2, 0.3))
        yield case("_image_normalize", data, mean=0.5, std=0.2)
        yield case("_image_normalize", data, mean=(0.1, 0.2, 0.3), std=(0.5,))


def deformable() -> Iterator[Case]:
    data = real(2, 4, 5, 6)
    weight, bias = real(6, 4, 3, 3), real(6)
    size = {"kernel": (3, 3), "num_filter": 6}
    operator = "_contrib_ModulatedDeformableConvolution"
    for reach in (0.4, 3.0):
        offset, mask = real(2, 18, 3, 4, low=-reach, high=reach), real(2, 9, 3, 4, low=0, high=1)
        yield case(operator, data, offset, mask, weight, bias, **size)
    grouped = real(2, 36, 3, 3), real(2, 18, 3, 3, low=0)
    yield case(
        operator, data, *grouped, real(6, 2, 3, 3), **size, num_group=2, num_deformable_group=2,
        no_bias=True, stride=(2, 2), pad=(1, 1),
    )  # fmt: skip
    offset, mask = real(2, 18, 5, 6), real(2, 9, 5, 6, low=-1, high=2)
    yield case(operator, data, offset, mask, weight, bias, **size, pad=(1, 1))
    offset, mask = real(2, 18, 1, 2), real(2, 9, 1, 2)
    yield case(operator, data, offset, mask, weight, bias, **size, dilate=(2, 2))
    offset, mask = real(2, 12, 4, 3), real(2, 6, 4, 3)
    options = {"kernel": (2, 3), "num_filter": 2, "stride": (1, 2), "pad": (0, 1)}
    yield case(operator, data, offset, mask, real(2, 4, 2, 3), real(2), **options)
