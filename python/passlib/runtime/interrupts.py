"""Signals while ONNX Runtime computes: Ctrl-C ends a computation in the main thread.

Python runs its handlers in the main thread, between two steps of its own code, thus not before
ONNX Runtime returns. Another thread, which the signal wakes, tells ONNX Runtime to stop.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


def interruptible(
    compute: Callable[..., Result],
    arguments: tuple[Any, ...],
    make_options: Callable[[], Any],
    translate: Callable[[Exception], Exception],
) -> Result:
    """Call ONNX Runtime so that SIGINT ends the call, if this is the main thread.

    The call ends before its next node. If the program's handler of the signal raises nothing, it is
    made again, and the handler runs at once when further signals come. ``compute``: gets the
    arguments, and then the options. ``make_options``: returns new options,
    ``onnxruntime.RunOptions``. ``translate``: returns the exception to be raised for one of ONNX
    Runtime's.

    Raises
    ------
    KeyboardInterrupt
        Or what else the program's handler of SIGINT raises.
    Exception
        What ``translate`` returns.
    """
    if threading.get_ident() != threading.main_thread().ident:
        try:
            return compute(*arguments, make_options())
        except Exception as error:
            raise translate(error) from error
    watcher = _the_watcher()
    options = make_options()
    outer = watcher.running, watcher.before
    before: list[int] = []
    try:
        # In one step of Python's, after which the handler may raise.
        before.extend(map(watcher.install, (watcher.writer,)))
        watcher.running, watcher.before = options, before[0]
        return compute(*arguments, options)
    except Exception as error:
        failure = error
    finally:
        watcher.running, watcher.before = outer
        for descriptor in before:
            watcher.install(descriptor)
    # Here the handler has run, and did not raise.
    try:
        if not options.terminate:
            raise translate(failure) from failure
    finally:
        del failure  # which refers to this frame
    return _in_thread(compute, arguments, make_options(), translate)


class _Watcher:
    """A thread that reads what Python's C code writes when a signal comes.

    Attributes
    ----------
    writer : int
        The descriptor to which that is written.
    running : onnxruntime.RunOptions or None
        Of what the main thread computes.
    before : int
        The descriptor that the program had set, which gets the same bytes; -1 for none.
    """

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        self.install = partial(signal.set_wakeup_fd, warn_on_full_buffer=False)
        self.running: Any = None
        self.before = -1
        threading.Thread(target=self._watch, name="passlib signals", daemon=True).start()

    def _watch(self) -> None:
        while signals := os.read(self._reader, 64):
            running, before = self.running, self.before
            if running is not None and signal.SIGINT in signals:
                running.terminate = True
            if before >= 0:
                with suppress(OSError):  # the program has closed it
                    os.write(before, signals)

    def close_in_child(self) -> None:
        """Let go of the pipe, which a forked child shares with its parent."""
        descriptor = self.install(-1)
        if descriptor != self.writer:
            self.install(descriptor)
        os.close(self._reader)
        os.close(self.writer)


_watcher: _Watcher | None = None


def _the_watcher() -> _Watcher:
    global _watcher  # noqa: PLW0603 (one a process)
    if _watcher is None:
        _watcher = _Watcher()
    return _watcher


def _renew() -> None:
    """Forget the watcher in a forked child, which does not have its thread."""
    global _watcher  # noqa: PLW0603 (one a process)
    if _watcher is not None:
        _watcher.close_in_child()
    _watcher = None


os.register_at_fork(after_in_child=_renew)


def _in_thread(
    compute: Callable[..., Result],
    arguments: tuple[Any, ...],
    options: Any,
    translate: Callable[[Exception], Exception],
) -> Result:
    """Make a call in another thread, so that this one runs handlers of signals meanwhile."""
    results: list[Result] = []
    failures: list[Exception] = []
    # Up to Python 3.11, a thread whose join() is interrupted counts as ended.
    running = threading.Lock()
    running.acquire()

    def work() -> None:
        try:
            results.append(compute(*arguments, options))
        except Exception as error:
            failures.append(error)
        finally:
            running.release()

    threading.Thread(target=work, name="passlib run", daemon=True).start()
    try:
        running.acquire()
    except BaseException:
        options.terminate = True
        running.acquire()
        raise
    if failures:
        raise translate(failures[0]) from failures.pop()
    return results[0]
