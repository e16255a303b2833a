"""Nodes to begin with for operators of which onnx's tests have none, and words of attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

_F: Final = np.float32
_ML: Final = "ai.onnx.ml"
_ROW: Final = np.arange(6, dtype=_F).reshape(2, 3)
_IMAGE: Final = np.arange(2 * 2 * 9 * 10, dtype=_F).reshape(2, 2, 9, 10)

WORDS: Final[Mapping[str, Sequence[str]]] = {
    "approximate": ("none", "tanh"),
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "coordinate_transformation_mode": (
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
        "half_pixel_symmetric", "output_half_pixel", "tf_half_pixel_for_nn",
    ),
    "direction": ("forward", "reverse", "bidirectional", "RIGHT", "LEFT"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "mode": ("constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "bilinear", "DCR",
             "CRD", "avg", "max", "fast"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "norm": ("MAX", "L1", "L2"),
    "padding_mode": ("zeros", "border", "reflection"),
    "post_transform": ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"),
    "reduction": ("none", "add", "mul", "max", "min", "mean", "sum"),
    "aggregate_function": ("AVERAGE", "SUM", "MIN", "MAX"),
    "cast_to": ("TO_FLOAT", "TO_INT64", "TO_STRING"),
}  # fmt: skip

_TREE: Final = {
    "nodes_falsenodeids": [2, 0, 0], "nodes_featureids": [0, 0, 0], "nodes_hitrates": [1.0] * 3,
    "nodes_missing_value_tracks_true": [0] * 3, "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_nodeids": [0, 1, 2], "nodes_treeids": [0] * 3, "nodes_truenodeids": [1, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0],
}  # fmt: skip
_SUPPORT: Final = {
    "coefficients": [1.0, -1.0], "kernel_params": [0.1, 0.0, 3.0], "kernel_type": "RBF",
    "rho": [0.2], "support_vectors": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
}  # fmt: skip

EXTRA: Final[Sequence[tuple[str, str, Mapping[str, Any], Sequence[Any]]]] = (
    ("", "RandomNormal", {"shape": [2, 3]}, []),
    ("", "RandomUniform", {"shape": [2, 3], "dtype": 11}, []),
    ("", "RandomNormalLike", {}, [_ROW]),
    ("", "RandomUniformLike", {"dtype": 11}, [_ROW]),
    ("", "Multinomial", {"sample_size": 4}, [_ROW]),
    ("", "GlobalLpPool", {"p": 2}, [_IMAGE]),
    ("", "MaxRoiPool", {"pooled_shape": [2, 2]}, [_IMAGE, np.array([[0, 0, 0, 4, 4]], _F)]),
    ("", "AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1],
                         "ceil_mode": 1}, [_IMAGE]),
    ("", "AveragePool", {"kernel_shape": [2], "strides": [3], "ceil_mode": 1}, [_IMAGE[0]]),
    ("", "MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1],
                     "ceil_mode": 1}, [_IMAGE]),
    ("", "MaxPool", {"kernel_shape": [2], "strides": [3], "ceil_mode": 1}, [_IMAGE[0]]),
    ("", "MaxPool", {"kernel_shape": [2, 3], "strides": [2, 3], "dilations": [2, 1],
                     "auto_pad": "SAME_UPPER"}, [_IMAGE]),
    ("", "LpPool", {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1]}, [_IMAGE]),
    ("", "Conv", {"strides": [2, 2], "auto_pad": "SAME_LOWER", "dilations": [2, 1]},
     [_IMAGE, np.ones((3, 2, 2, 3), _F)]),
    ("", "ConvTranspose", {"strides": [2, 3], "dilations": [2, 1], "output_padding": [1, 1]},
     [_IMAGE, np.ones((2, 3, 2, 3), _F)]),
    ("", "ConvTranspose", {"strides": [2, 3], "auto_pad": "SAME_UPPER"},
     [_IMAGE, np.ones((2, 3, 2, 3), _F)]),
    ("", "Upsample", {"mode": "nearest"}, [_IMAGE, np.array([1, 1, 2.6, 1.3], _F)]),
    ("", "Resize", {"mode": "nearest"}, [_IMAGE, None, np.array([1, 1, 2.6, 0.7], _F)]),
    ("", "Resize", {"mode": "linear"}, [_IMAGE, None, None, np.array([2, 2, 7, 3])]),
    ("", "STFT", {}, [np.ones((1, 128, 1), _F), np.array(8), np.ones(16, _F), np.array(16)]),
    ("", "STFT", {}, [np.ones((2, 64, 1), _F), np.array(8), None, np.array(16)]),
    ("", "STFT", {"onesided": 0}, [np.ones((2, 64, 1), _F), np.array(8), np.ones(16, _F)]),
    ("", "BatchNormalization", {}, [_IMAGE, *[np.ones(2, _F)] * 4]),
    ("", "Slice", {}, [_ROW, np.array([0]), np.array([2**63 - 1]), np.array([1]), np.array([-1])]),
    ("", "Flatten", {"axis": -1}, [_IMAGE]),
    (_ML, "TreeEnsembleClassifier", {**_TREE, "class_ids": [0, 1], "class_nodeids": [1, 2],
     "class_treeids": [0, 0], "class_weights": [1.0, 1.0], "classlabels_int64s": [0, 1]}, [_ROW]),
    (_ML, "TreeEnsembleRegressor", {**_TREE, "n_targets": 1, "target_ids": [0, 0],
     "target_nodeids": [1, 2], "target_treeids": [0, 0], "target_weights": [1.0, 2.0]}, [_ROW]),
    (_ML, "SVMRegressor", {**_SUPPORT, "n_supports": 2}, [_ROW]),
    (_ML, "SVMClassifier", {**_SUPPORT, "classlabels_ints": [0, 1], "vectors_per_class": [1, 1]},
     [_ROW]),
    (_ML, "LinearClassifier", {"classlabels_ints": [0, 1, 2], "coefficients": [1.0] * 9,
                               "intercepts": [0.0] * 3}, [_ROW]),
    (_ML, "LinearRegressor", {"coefficients": [1.0] * 6, "intercepts": [0.0] * 2, "targets": 2},
     [_ROW]),
    (_ML, "CategoryMapper", {"cats_int64s": [0, 1], "cats_strings": ["a", "b"]},
     [np.array(["a", "b"], object)]),
    (_ML, "CategoryMapper", {"cats_int64s": [0, 1], "cats_strings": ["a", "b"]},
     [np.array([1, 0])]),
    (_ML, "Scaler", {"offset": [0.0, 1.0, 2.0], "scale": [1.0, 2.0, 3.0]}, [_ROW]),
    (_ML, "Imputer", {"imputed_value_floats": [1.0], "replaced_value_float": 0.0}, [_ROW]),
    (_ML, "Normalizer", {"norm": "L2"}, [_ROW]),
    (_ML, "FeatureVectorizer", {"inputdimensions": [3, 3]}, [_ROW, _ROW]),
    (_ML, "OneHotEncoder", {"cats_int64s": [0, 1, 2]}, [np.array([[0, 1], [2, 3]])]),
)  # fmt: skip
