"""Work in a process of its own, which may crash."""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Callable
from typing import Final, TypeVar, cast

from passlib.errors import PasslibError

_T = TypeVar("_T")

_CRASHES: Final = (
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
)


class CrashError(PasslibError):
    """A process that ran a model crashed or exited."""


def survived(work: Callable[[], _T]) -> _T:
    """Call a function in a forked process; return its result or raise its error.

    Raises
    ------
    CrashError
        The process crashed or exited.
    """
    reader, writer = os.pipe()
    number = os.fork()
    if not number:
        os.close(reader)
        _answer(work, writer)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as stream:
            content = stream.read()
    except BaseException:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)
        raise
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    if code:
        how = f"exit status {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
        raise CrashError(f"the process that tested the model ended with {how}")
    result, error = pickle.loads(content)
    if error is not None:
        raise error
    return cast("_T", result)


def _answer(work: Callable[[], object], writer: int) -> None:
    code = 1
    # Garbage of the caller stays: the end of a session of ONNX Runtime waits for threads that this
    # process does not have.
    gc.freeze()
    try:
        for number in _CRASHES:  # the caller reports them
            signal.signal(number, signal.SIG_DFL)
        try:
            answer = pickle.dumps((work(), None))
        except (PasslibError, OSError) as error:
            error.__cause__ = None
            answer = pickle.dumps((None, error))
        with os.fdopen(writer, "wb") as stream:
            stream.write(answer)
        code = 0
    finally:
        os._exit(code)
