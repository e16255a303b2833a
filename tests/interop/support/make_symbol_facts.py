"""Ask a real MXNet 1.9.1 for facts about the model files, and freeze the answers.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/make_symbol_facts.py tests/data/mxnet/models \\
        tests/data/mxnet/symbols.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))
from symbol_facts import facts

if __name__ == "__main__":
    models = sorted(Path(sys.argv[1]).glob("*-symbol.json"))
    table = {
        path.name.replace("-symbol.json", ""): facts(mx.sym.load(str(path))) for path in models
    }
    Path(sys.argv[2]).write_text(json.dumps(table, indent=1) + "\n", "utf-8")
