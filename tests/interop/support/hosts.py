"""Libraries of tests/plugins in both hosts: built with either header, run by one script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import environment
from environment import Environment
from places import ROOT, TESTS

PLUGINS = TESTS / "plugins"
SCRIPTS = TESTS / "interop" / "support"


def build_plugin(name: str, header: str, mxnet: Environment) -> Path:
    """Compile a library against the header of ``"passlib"`` or of ``"mxnet"``."""
    sources, include = [PLUGINS / f"{name}.cc"], [ROOT / "include"]
    if header == "mxnet":
        sources.append(mxnet.package / "src" / "lib_api.cc")
        include = [mxnet.package / "include", mxnet.package / "include" / "mxnet"]
    return environment.build(f"interop_{name}_{header}", sources, include)


def run_plugin(script: str, name: str, header: str, host: str, mxnet: Environment) -> Any:
    """Run a script on a library in ``"passlib"`` or ``"mxnet"``, and return the JSON it prints."""
    python = sys.executable if host == "passlib" else mxnet.python
    command = [python, SCRIPTS / script, host, build_plugin(name, header, mxnet)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
