"""Libraries of tests/plugins in both hosts: built with either header, run by one script."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import environment
from environment import ROOT, Environment

__all__ = ["build_plugin", "run_script"]

PLUGINS = ROOT / "tests" / "plugins"


def build_plugin(name: str, header: str, mxnet: Environment) -> Path:
    """Compile a library against the header of ``"passlib"`` or of ``"mxnet"``."""
    sources, include = [PLUGINS / f"{name}.cc"], [ROOT / "include"]
    if header == "mxnet":
        sources.append(mxnet.package / "src" / "lib_api.cc")
        include = [mxnet.package / "include", mxnet.package / "include" / "mxnet"]
    return environment.build(f"interop_{name}_{header}", sources, include)


def run_script(script: Path, python: Path | str, module: str, library: Path) -> Any:
    """Run a script on a library in the host that ``module`` names; give the JSON it prints."""
    command = [python, script, module, library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
