"""Contexts: names of devices, and the refusal of GPUs."""

from __future__ import annotations

import pickle
import threading

import pytest

from passlib import nd
from passlib.arrays.context import require_host
from passlib.context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from passlib.errors import UnsupportedError


@pytest.mark.parametrize(
    ("made", "text", "number"),
    [
        (cpu(), "cpu(0)", 1),
        (cpu(2), "cpu(2)", 1),
        (gpu(1), "gpu(1)", 2),
        (cpu_pinned(), "cpu_pinned(0)", 3),
        (Context("cpu_shared", 4), "cpu_shared(4)", 5),
        (Context(gpu(3)), "gpu(3)", 2),
    ],
)
def test_fields(made: Context, text: str, number: int) -> None:
    assert repr(made) == str(made) == text
    assert made.device_typeid == number
    assert f"{made.device_type}({made.device_id})" == text
    assert pickle.loads(pickle.dumps(made)) == made


def test_equality_and_hash() -> None:
    assert cpu() == cpu(0)
    assert hash(cpu()) == hash(cpu(0))
    assert len({cpu(), cpu(0), cpu(1), gpu()}) == 3
    assert cpu() != "cpu(0)"


@pytest.mark.parametrize(
    ("kind", "number", "words"), [("tpu", 0, "tpu.*cpu, gpu"), ("cpu", -1, "-1")]
)
def test_no_such_device(kind: str, number: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Context(kind, number)


def test_with_statements_nest_and_survive_exceptions() -> None:
    assert current_context() == cpu(0)
    with cpu(1):
        with cpu(2):
            assert current_context() == cpu(2)
            assert nd.zeros(1).context == cpu(2)
        assert current_context() == cpu(1)
        with pytest.raises(ValueError, match="tpu"), cpu(2):
            Context("tpu")
        assert current_context() == cpu(1)
    assert current_context() == cpu(0)


def test_each_thread_has_its_own_current_context() -> None:
    seen: list[Context] = []
    with cpu(1):
        thread = threading.Thread(target=lambda: seen.append(current_context()))
        thread.start()
        thread.join()
    assert seen == [cpu(0)]


def test_there_is_no_gpu() -> None:
    assert num_gpus() == 0
    with pytest.raises(UnsupportedError, match=r"a model was requested on gpu\(1\).*cpu\(\)"):
        require_host(gpu(1), "a model")
    with gpu(), pytest.raises(UnsupportedError, match="CPU only"):
        require_host(None, "a model")
    assert require_host(None, "a model") == cpu()
