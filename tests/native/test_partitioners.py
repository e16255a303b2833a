"""Partitioners in passlib-opt, against ``passlib opt``: files, what they print, and errors."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx.parser
import pytest

import passlib
from commands import passlib_command
from native_command import PREFIX, TOOL, Run, run
from partition_graphs import CHAIN, graph_text
from places import DATA, ROOT
from plugin_build import CXX, LIBRARY, compile_to

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="needs make native")

Plugin = Callable[[str], Path]

ONNX = {
    "weights": """g (float[2, 3] x) => (float[2, 3] y, float[2, 3] b) <float[3] w = {1, 2, 3}>
        { a = Relu(x) b = Exp(a) c = Add(b, w) d = Exp(c) y = Add(d, b) }""",
    "no_weights": """g (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) b = Exp(a) y = Tanh(b) }""",
    "parts": """g (float[2, 4] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}>
        { a, b = Split<axis = 1>(x) c = Exp(a) d = Exp(b) e = Relu(d) f = Add(c, e)
          y = Add(f, w) }""",
    "branches": """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}>
        { a = Exp(x)
          b = If(c) <then_branch = t () => (float[2] p) { p = Exp(a) },
                     else_branch = e () => (float[2] q) { q = Add(a, w) }>
          d = Relu(b) y = Exp(d) }""",
}

NORMALIZED = graph_text(
    [
        ("null", "x", []),
        *[("null", f"bn_{name}", []) for name in ("gamma", "beta", "moving_mean", "moving_var")],
        ("BatchNorm", "bn", [0, 1, 2, (3, 0, 1), (4, 0, 1)], {"output_mean_var": "True"}),
        ("exp", "e", [5]),
        ("SliceChannel", "cut", [6], {"num_outputs": "2"}),
        ("exp", "e1", [(7, 0)]),
        ("relu", "r", [(7, 1)]),
        ("elemwise_add", "sum", [8, 9]),
        ("exp", "e2", [(5, 1)]),
    ],
    [10, 11],
)


MODELS = (*ONNX, "chain", "normalized", "mobilenet0.25", "lstm_lm")


@pytest.fixture
def models(tmp_path: Path) -> dict[str, Path]:
    """Models of both dialects, by name."""
    found = {}
    for name, text in ONNX.items():
        found[name] = tmp_path / f"{name}.onnx"
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>{text}')
        found[name].write_bytes(model.SerializeToString())
    for name, text in {"chain": CHAIN, "normalized": NORMALIZED}.items():
        symbol = passlib.sym.load_json(text)
        states = symbol.list_auxiliary_states()
        arrays = {
            each: passlib.nd.arange(2) + i
            for i, each in enumerate([*symbol.list_arguments(), *states])
            if each not in ("a", "x")
        }
        if name == "chain":
            arrays = {"b": passlib.nd.ones((2, 4))}
        args = {each: array for each, array in arrays.items() if each not in states}
        aux = {each: arrays[each] for each in states}
        passlib.Model(symbol, args, aux).save(tmp_path / name)
        found[name] = tmp_path / f"{name}-symbol.json"
    for name in ("mobilenet0.25", "lstm_lm"):
        found[name] = DATA / "mxnet" / "models" / f"{name}-symbol.json"
    return found


@pytest.fixture
def library(plugin: Plugin, tmp_path: Path) -> Plugin:
    """Return the path of a library: a plugin, or the one of the tutorial."""

    def find(name: str) -> Path:
        if name != "subgraph_lib":
            return plugin(name)
        path = tmp_path / f"{name}.so"
        compile_to(path, (*CXX, *LIBRARY), [ROOT / "example" / "lib_subgraph" / f"{name}.cc"])
        return path

    return find


STEP = re.compile(r"passlib-opt: step \d+ of the pipeline, .*?, failed: ")


def both(model: Path, out: Path, *words: str | Path) -> tuple[list[Run], list[dict[str, bytes]]]:
    """Run both commands; return what they said and the files that they wrote."""
    name = f"out{'.onnx' if model.suffix == '.onnx' else '-symbol.json'}"
    runs, files = [], []
    for command in ("native", "python"):
        folder = out / command
        folder.mkdir(parents=True)
        arguments = (model, "-o", folder / name, "--quiet", *words)
        if command == "native":
            runs.append(run(*arguments))
            continue
        done = passlib_command("opt", *arguments)
        errors = done.stderr.replace("passlib opt: ", "passlib-opt: ").replace("\\n", "\n")
        if STEP.search(errors) and not STEP.search(runs[0].errors):
            # The Python package needs the model of a step before the next one, a native host at
            # the end.
            runs.append(Run(runs[0].status, done.stdout, STEP.sub("passlib-opt: ", errors)))
        else:
            runs.append(Run(done.returncode, done.stdout, errors))
    for command in ("native", "python"):
        folder = out / command
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    return runs, files


def without_graphs(printed: str) -> str:
    """Return the lines that are no graph."""
    return "\n".join(line for line in printed.splitlines() if not line.startswith("{"))


OPS = "Exp,Relu,Add,Split,If,exp,BatchNorm,SliceChannel,Convolution,Embedding"
ATTRS = "body=subgraph[0],__domain__=own,__note__=k"
"""Attributes that let ONNX files have the node of a subgraph."""

STEPS = [
    *[
        ("partitioners", steps.replace("OPS", f'ops="{OPS}"').replace("BODY", f'attrs="{ATTRS}"'))
        for steps in (
            "partitionSupported{OPS, show=1}",
            "partitionReviewed{OPS, show=1}",
            "partitionReviewed{OPS, show=1, BODY}",
            "partitionReviewed{OPS, BODY, dedup_subgraph=True}",
            'partitionReviewed{OPS, BODY, reject="0"}',
            "partitionReviewed{ops=none, show=1}",
            'partitionReviewed{ops="tanh,Tanh", BODY}, partitionReviewed{OPS, BODY}',
            "partitionReviewed{OPS, BODY}, removeDeadNodes, mergeEqualNodes",
            "repeat<3>(partitionReviewed{OPS, BODY})",
            "partitionSelected{OPS, show=1}",
            "partitionSelected{OPS, drop=e1}",
            'partitionTwice{OPS, more_ops="tanh,Tanh,relu,_partition", show=1, BODY}',
            "besidePartitioners",
        )
    ],
    *[
        ("subgraph_lib", steps)
        for steps in (
            "myProp",
            "myProp{reject=True}",
            "myProp{verbose=True, dedup_subgraph=True}",
            "myProp, addInputPass",
            "mySelect",
            "mySelect{min_length=1}",
            "mySelect{min_length=no}",
        )
    ],
    *[
        ("onnx_subgraphs", steps)
        for steps in (
            'cutOut{ops="Exp,Relu,Add"}',
            'cutOut{ops="Relu,Split,Add"}, removeDeadNodes',
            "useDoubled{of=Relu}",
            "useDoubled{of=Exp}, mergeEqualNodes",
            "useDoubled{of=Split}",
            'useDoubled{of=Add}, cutOut{ops="Relu"}',
        )
    ],
    ("all_kinds_2", "expTo2"),
    ("careless", "carelessParts"),
    *[
        ("bad_partitioners", f'{name}{{how="{how}"}}')
        for name, how in (
            ("badSupported", "fail"),
            ("badSupported", "fail silently"),
            ("badSupported", "throw"),
            ("badSupported", "throw a number"),
            ("badSupported", "shrink"),
            ("badSupported", "nonsense"),
            ("badSelected", "fail"),
            ("badSelected", "throw"),
            ("badSelected", "make none"),
            ("badSelected", "throw in Select"),
            ("badSelected", "throw in SelectInput"),
            ("badSelected", "throw in SelectOutput"),
            ("badSelected", "throw in Filter"),
            ("badSelected", "keep one twice"),
            ("badSelected", "keep a stranger"),
            ("badSelected", "keep nonsense"),
            ("badSelected", "keep too many"),
            ("badSelected", "keep the ends"),
            ("badReviewed", "review fails"),
            ("badReviewed", "review throws"),
            ("badReviewed", "review text"),
            ("badReviewed", "review forgets"),
            ("badReviewed", "review"),
            ("badWithoutFunctions", ""),
            ("badWithoutStrategies", ""),
        )
    ],
    ("bad_partitioners", "badSupported"),
]
"""Libraries, with pipelines of their partitioners."""


@pytest.mark.sample(60)
@pytest.mark.parametrize(("name", "steps"), STEPS, ids=[steps for _, steps in STEPS])
@pytest.mark.parametrize("model", MODELS)
def test_same(
    name: str, steps: str, model: str, models: dict[str, Path], library: Plugin, tmp_path: Path
) -> None:
    """Both commands write the same files, print the same and fail with the same error."""
    runs, files = both(models[model], tmp_path / "out", "-l", library(name), "--passes", steps)
    if models[model].suffix == ".json":
        # Only the Python package shows types of MXNet's operators to libraries.
        runs = [each._replace(printed=without_graphs(each.printed)) for each in runs]
    assert runs[0] == runs[1]
    assert files[0] == files[1]


class PassInfo(ctypes.Structure):
    """The struct passlib_pass_info."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        *[(name, ctypes.c_char_p) for name in ("name", "description", "source")],
        ("option_count", ctypes.c_size_t),
        *[
            (name, ctypes.c_int)
            for name in (
                "is_exact",
                "is_declared",
                "supports_onnx",
                "is_partitioner",
                "enters_functions",
            )
        ],
    )


def listed(library: Path) -> dict[str, tuple[int, int, str]]:
    """Return what the C interface says of the passes of a library, by name."""
    api = ctypes.CDLL(str(next(PREFIX.glob("lib*/**/libpasslib.so"))))
    api.passlib_session_new.restype = ctypes.c_void_p
    api.passlib_session_pass_count.restype = ctypes.c_size_t
    session = ctypes.c_void_p(api.passlib_session_new(None, None))
    assert api.passlib_session_load(session, bytes(library), 0, None)
    found = {}
    for number in range(api.passlib_session_pass_count(session)):
        info = PassInfo(ctypes.sizeof(PassInfo))
        assert api.passlib_session_pass(session, ctypes.c_size_t(number), ctypes.byref(info), None)
        if info.source == bytes(library):
            found[info.name.decode()] = (
                info.is_partitioner,
                info.is_declared,
                info.description.decode(),
            )
    api.passlib_session_free(session)
    return found


def test_listed(plugin: Plugin) -> None:
    """The command and the C interface list partitioners as ``passlib passes`` does."""
    path = plugin("partitioners")
    printed = run("--list-passes", "-l", path).printed
    library = listed(path)
    done = passlib_command("passes", "-l", path, "--json")
    for entry in json.loads(done.stdout):
        if entry["library"] != str(path):
            continue
        name = entry["name"]
        expected = (entry["is_partitioner"], entry["options"] is not None, entry["description"])
        assert library.pop(name) == expected
        assert passlib_command("passes", "-l", path, name).stdout in printed
    assert not library


def test_names(plugin: Plugin, models: dict[str, Path], tmp_path: Path) -> None:
    """Errors name partitioners, and --skip knows them."""
    words = ("-l", plugin("partitioners"), "--passes")
    model, out = models["chain"], tmp_path / "out-symbol.json"
    found = run(model, "-o", out, *words, "partitionNothing")
    assert found.status == 1
    assert "there is no pass or partitioner 'partitionNothing' (pipelines: simplify" in found.errors
    assert "; partitioners: partitionSupported, partitionReviewed, " in found.errors
    steps = "partitionSupported{ops=exp}, besidePartitioners"
    assert run(model, "-o", out, "--quiet", *words, steps, "--skip", "partitionSupported") == (
        0,
        "",
        "",
    )
    assert "_partition" not in out.read_text()
    again = tmp_path / "again.so"
    shutil.copy(plugin("partitioners"), again)
    found = run(model, "-o", out, *words, "partitionTwice", "-l", again)
    assert "is already registered by" in found.errors
