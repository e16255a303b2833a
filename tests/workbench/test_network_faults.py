"""``bisect`` and ``reduce`` find twelve kinds of faults in whole networks without help."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
import real_models
from network_faults import KINDS, plant_in
from network_models import nested, resnet50, saved, with_noise, with_second_output
from passlib.passes.isolation import IsolatedError
from passlib.workbench import Differs, Guilty, PipelineFails, bisect, drawn, reduce

COUNTS = (1, 200)
"""Right rewrites of the pass."""

CRASH = "crash on one operator"
RANDOM = "merged random numbers"


def recogniser() -> onnx.ModelProto:
    """Return PP-OCR's recogniser of text, with the input of its last Softmax as an output too."""
    path = real_models.find("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")
    model = onnx.load(path)
    last = next(node for node in reversed(model.graph.node) if node.op_type == "Softmax")
    return with_second_output(model, last.input[0])


NETWORKS: dict[str, tuple[Callable[[], onnx.ModelProto], dict[str, Any]]] = {
    "ResNet-50": (lambda: resnet50(width=16), {"image": (1, 3, 32, 32)}),
    "PP-OCR rec": (recogniser, {"x": (1, 3, 48, 64)}),
}
"""Networks, with the shapes of their inputs."""


def named(found: Guilty) -> set[str]:
    """Return the names of nodes, weights and outputs in the guilty rewrites."""
    texts = [t for each in found.rewrites for t in (*each.removed, *each.added, *each.changed)]
    return {word.strip("():,") for text in texts for word in text.split()}


def is_merged(candidate: pl.Model, given: Mapping[str, Any]) -> bool:
    """Whether two random tensors are the same."""
    return not np.any(np.asarray(candidate.run(given)["noise"]))


class Merges:
    """Whether a pipeline makes one of random tensors that differ, in what is left of a model."""

    def __init__(self, pipeline: pl.Pipeline) -> None:
        self._pipeline = pipeline

    def __call__(self, candidate: pl.Model, given: Mapping[str, Any]) -> bool:
        after = self._pipeline.run(candidate).model
        before, values = candidate.run(given), after.run(given)
        return any(
            np.any(np.asarray(before[name])) and not np.any(np.asarray(values[name]))
            for name in before
        )


@dataclass(frozen=True)
class Case:
    """A model in a file, its inputs, and the pass with the fault."""

    kind: str
    model: pl.Model
    inputs: Mapping[str, Any]
    count: int
    folder: Path

    def check(self) -> None:
        """Bisect and reduce, check what is found, and log the figures."""
        planted = plant_in(self.model, self.kind, self.count, self.folder)
        pipeline = pl.Pipeline(["removeDeadNodes", planted.name])
        found = self._bisected(pipeline)
        assert (found.step, found.number) == (planted.name, 2)
        assert found.runs <= 2 * math.log2(max(found.number_of_rewrites, 1)) + 10
        if self.kind == CRASH:
            assert isinstance(found.error.__cause__, IsolatedError)
            assert found.error.__cause__.how == "SIGABRT"
        else:
            assert found.error is None
            assert found.number_of_rewrites >= min(self.count, 100)
            assert len(found.rewrites) == 1
            assert named(found) & {*planted.guilty}
        if self.kind == RANDOM:
            shows: Any = Merges(pipeline)
        else:
            crashes = self.kind == CRASH
            shows = PipelineFails(pipeline, self.model, self.inputs, isolate=crashes)
        small = reduce(self.model, shows, self.inputs)
        assert small.nodes <= 5
        files = small.model.save(self.folder / "small.onnx")
        onnx.checker.check_model(files[0], full_check=True)
        assert shows(pl.load(files[0]), small.inputs)
        logging.getLogger(__name__).info(
            "%s: %d rewrites, %d runs; %d -> %d nodes, %d runs, %d bytes",
            self.kind,
            found.number_of_rewrites,
            found.runs,
            small.nodes_before,
            small.nodes,
            small.runs,
            Path(files[0]).stat().st_size,
        )

    def _bisected(self, pipeline: pl.Pipeline) -> Guilty:
        if self.kind == RANDOM:
            return bisect(self.model, pipeline, lambda c: is_merged(c, self.inputs))
        failing = Differs(self.model, self.inputs)
        return bisect(self.model, pipeline, failing, isolate=self.kind == CRASH)


def loaded(proto: onnx.ModelProto, kind: str, folder: Path) -> pl.Model:
    pl.library.load_standard()
    return pl.load(saved(with_noise(proto) if kind == RANDOM else proto, folder / "model.onnx"))


@pytest.mark.sample(5)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_networks(kind: str, network: str, count: int, tmp_path: Path) -> None:
    make, shapes = NETWORKS[network]
    model = loaded(make(), kind, tmp_path)
    case = Case(kind, model, drawn(model, None, 1, shapes)[0], count, tmp_path)
    case.check()


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_nested_graphs(kind: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((2, 8, 6, 6)).astype(np.float32)
    inputs = {"x": x, "choice": np.array(True)}
    case = Case(kind, loaded(nested(), kind, tmp_path), inputs, 200, tmp_path)
    case.check()
