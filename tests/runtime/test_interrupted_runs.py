"""Ctrl-C while ONNX Runtime computes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, os, queue, signal, sys, threading, time
import numpy as np
import passlib
from onnx import parser

model = passlib.load(parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
own (int64 n, float[2] x) => (float[2] y) <bool go = {1}> {
  y = Loop(n, go, x) <body = body (int64 i, bool c, float[2] a) => (bool d, float[2] b)
    { d = Identity(c) b = Neg(a) }>
}'''))
x = np.ones(2, np.float32)
received = []

def run(trips):
    (y,) = model.run({"n": np.array(trips), "x": x}).values()
    return y.tolist()

def interrupt_after(*delays):
    def send():
        for delay in delays:
            time.sleep(delay)
            os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()

def raising(*_):
    raise TimeoutError

def counting(*_):
    received.append("received")
    if len(received) == 2:
        raise TimeoutError

def trips_of(seconds):
    run(2)
    trips, taken = 1000, 0
    while taken < seconds / 10:
        trips *= 2
        start = time.perf_counter()
        run(trips)
        taken = time.perf_counter() - start
    return 2 * int(trips * seconds / taken / 2)

def endless(handler, *delays):
    signal.signal(signal.SIGINT, handler)
    run(2)
    interrupt_after(*delays)
    try:
        run(10 ** 15)
    except (KeyboardInterrupt, TimeoutError) as error:
        print(type(error).__name__, repr(error.__context__), *received)
    assert signal.getsignal(signal.SIGINT) is handler and signal.set_wakeup_fd(-1) == -1
    print(run(3))

def twice():
    endless(signal.default_int_handler, 0.3)
    endless(signal.default_int_handler, 0.3)

def bound():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arrays = {"n": np.array(10 ** 15), "go": np.array(True), "x": x}
    executor = passlib.executor.bind(model.symbol, passlib.cpu(), arrays)
    interrupt_after(0.3)
    try:
        executor.forward()
    except KeyboardInterrupt:
        print("KeyboardInterrupt")

def harmless(handler):
    trips = trips_of(3)  # the machine may be faster by then
    signal.signal(signal.SIGINT, handler)
    interrupt_after(0.3)
    print(run(trips), *received)

def in_a_thread():
    trips = trips_of(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = queue.SimpleQueue()
    threading.Thread(target=lambda: results.put(run(trips))).start()
    interrupt_after(0.3)
    try:
        results.get()
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
    print(results.get())

def in_a_loop():
    trips = trips_of(1)
    async def main():
        loop = asyncio.get_running_loop()
        came = asyncio.Event()
        loop.add_signal_handler(signal.SIGINT, came.set)
        interrupt_after(0.3)
        print(run(trips))
        await asyncio.wait_for(came.wait(), 10)
        loop.call_later(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        came.clear()
        await asyncio.wait_for(came.wait(), 10)
        print("came twice")
    asyncio.run(main())

def after_a_fork():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    passlib.nd.relu(passlib.nd.array(x))  # runs without threads of ONNX Runtime's
    if os.fork() == 0:
        endless(signal.default_int_handler, 0.3)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0
    endless(signal.default_int_handler, 0.3)

eval(sys.argv[1])
"""

INTERRUPTED = ["KeyboardInterrupt None", "[-1.0, -1.0]"]
CASES = {
    "twice()": INTERRUPTED * 2,
    "bound()": ["KeyboardInterrupt"],
    "endless(raising, 0.3)": ["TimeoutError None", "[-1.0, -1.0]"],
    "endless(counting, 0.3, 0.5)": ["TimeoutError None received received", "[-1.0, -1.0]"],
    "harmless(signal.SIG_IGN)": ["[1.0, 1.0]"],
    "harmless(counting)": ["[1.0, 1.0] received"],
    "in_a_thread()": ["KeyboardInterrupt", "[1.0, 1.0]"],
    "in_a_loop()": ["[1.0, 1.0]", "came twice"],
    "after_a_fork()": INTERRUPTED * 2,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("call", CASES)
def test_interrupt(call: str) -> None:
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT, call],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert (child.stdout.splitlines(), child.returncode) == (CASES[call], 0), child.stderr
