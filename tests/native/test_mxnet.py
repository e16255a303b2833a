"""MXNet's models in libpasslib and passlib-opt, against the Python package."""

from __future__ import annotations

import ctypes
import json
import os
import random
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from file_mutations import damaged, rearranged
from legacy_cases import GRAPHS
from native_command import TOOL, run
from passlib.dialects.weights.npz import write_npz
from passlib.dialects.weights.params import read_list, write_list
from passlib.files.source import Source
from passlib.mxnet.schema import Operator, registry
from passlib.mxnet.schema.operator import HIDDEN, Parameter
from places import DATA, SHARED, TESTS
from plugin_build import CXX, LIBRARY, compile_to

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="needs make native")

IN_PYTHON = ("foldConstants", "removeNoOps", "foldLinear", "cancelTransposes", "mergeConcats")
"""Standard passes that only the Python package runs on MXNet's models."""

SKIP = f"{{skip=[{', '.join(IN_PYTHON)}]}}"

MODELS = sorted(
    path for data in (DATA, SHARED) for path in (data / "mxnet" / "models").glob("*-symbol.json")
)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def by_both(
    model: Path, steps: str, tmp_path: Path, *words: str | Path
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the files that the command writes, and those that the Python package writes."""
    folders = tmp_path / "native", tmp_path / "python"
    for folder in folders:
        folder.mkdir()
    found = run(model, "-o", folders[0] / "net-symbol.json", "--passes", steps, "--quiet", *words)
    assert found == (0, "", "")
    loaded = passlib.load(model)
    made = passlib.Pipeline(steps).run(loaded).model if steps else loaded
    made.save(folders[1] / "net-symbol.json")
    return files_of(folders[0]), files_of(folders[1])


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parts[-4]}-{path.stem}")
@pytest.mark.parametrize(
    "steps",
    [
        "removeDeadNodes",
        "mergeEqualNodes{parameters=true}",
        "mergeEqualWeights, foldBatchNormalization",
        f"clean{SKIP}",
        f"simplify{SKIP}",
    ],
)
def test_same_bytes(path: Path, steps: str, tmp_path: Path) -> None:
    found, expected = by_both(path, steps, tmp_path)
    assert found == expected


def test_simplify_skips_what_is_in_python(tmp_path: Path) -> None:
    """Without names to skip, the pipelines run those passes that are here."""
    path = DATA / "mxnet/models/mobilenet0.25-symbol.json"
    for steps in ("clean", "simplify"):
        outs = tmp_path / steps / "net-symbol.json", tmp_path / f"{steps}-skip" / "net-symbol.json"
        for out, text in zip(outs, (steps, steps + SKIP), strict=True):
            out.parent.mkdir()
            assert run(path, "-o", out, "--passes", text, "--quiet").status == 0
        assert files_of(outs[0].parent) == files_of(outs[1].parent)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Passes that read and change weights, loaded here as well."""
    paths = []
    for name in ("weights", "on_demand", "tensors"):
        path = tmp_path_factory.mktemp("libraries") / f"{name}.so"
        compile_to(path, (*CXX, *LIBRARY), [TESTS / "plugins" / f"{name}.cc"])
        passlib.library.load(str(path), replace=True)
        paths.append(path)
    return paths


@pytest.mark.parametrize("steps", ["removeDeadNodes, mergeEqualNodes", f"clean{SKIP}"])
def test_loops(steps: str, tmp_path: Path) -> None:
    """Nested graphs are changed, and count as in the Python package."""
    x, state, weight = map(passlib.sym.var, ("x", "state", "weight"))

    def body(data: Any, carried: Any) -> tuple[Any, Any]:
        first, second = (passlib.sym.identity(data * weight) for _ in range(2))
        return first + second + carried, first

    out, last = passlib.sym.contrib.foreach(body, x, state)
    model = passlib.Model(passlib.sym.Group([out, last]), {"weight": passlib.nd.ones((3,))})
    (tmp_path / "model").mkdir()
    model.save(tmp_path / "model" / "net")
    found, expected = by_both(tmp_path / "model" / "net-symbol.json", steps, tmp_path)
    assert found == expected


def _weighted(folder: Path) -> Path:
    """Save a layer and a normalization, whose states are auxiliary."""
    data = passlib.sym.var("data")
    layer = passlib.sym.FullyConnected(data, num_hidden=3, name="fc")
    head = passlib.sym.BatchNorm(layer, fix_gamma=False, name="bn")
    values = np.arange(1, 7, dtype=np.float32)
    args = {
        "fc_weight": values.reshape(3, 2),
        "fc_bias": values[:3],
        "bn_gamma": values[:3],
        "bn_beta": values[3:],
    }
    aux = {"bn_moving_mean": values[:3], "bn_moving_var": values[3:]}
    model = passlib.Model(
        head,
        {n: passlib.nd.array(a) for n, a in args.items()},
        {n: passlib.nd.array(a) for n, a in aux.items()},
    )
    model.save(folder / "net")
    return folder / "net-symbol.json"


@pytest.mark.parametrize(
    "steps",
    [
        "scaleInPlace{name=fc_weight, factor=3}",
        "scaleInPlace{name=bn_moving_var, factor=3}",
        "appendScale{name=more, value=2}",
        "appendBatchNorm{channels=3}",
        "dropBias{name=fc}",
        "addOrphan",
        "allocateAndRemove{name=other}",
        'onDemandScale{weight=fc_weight, factors="[2, 3, 4]"}',
        "onDemandScale{weight=bn_moving_var, into=bn_gamma}",
        "onDemandLook",
        "doubleTwice",
    ],
)
def test_passes_of_libraries(steps: str, libraries: list[Path], tmp_path: Path) -> None:
    """They see weights and states, and change, add and remove them."""
    words = [word for library in libraries for word in ("-l", library)]
    folder = tmp_path / "model"
    folder.mkdir()
    found, expected = by_both(_weighted(folder), steps, tmp_path, *words)
    assert found == expected


def test_pass_fails(libraries: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out-symbol.json"
    steps = "scaleAndFail{name=fc_weight, factor=3}"
    found = run(_weighted(tmp_path), "-o", out, "-l", libraries[0], "--passes", steps)
    assert found.status == 2
    assert "failed on purpose" in found.errors
    assert not out.exists()


def _drawn(source: random.Random, parameter: Parameter) -> str:
    """Return a value of an attribute, often an invalid one."""
    if parameter.choices:
        return source.choice(parameter.choices)
    if parameter.kind == "boolean":
        return source.choice(("True", "False", "1", "0", "true", "x"))
    if parameter.kind in ("shape", "numbers"):
        return source.choice(("(2, 2)", "[3]", "2", "()", "(1,2,3,4)", "(1,)"))
    return source.choice(("0", "1", "2", "3", "+2", " 2 ", "None", "x"))


def _attributes(source: random.Random, operator: Operator) -> dict[str, str]:
    drawn = {
        name: _drawn(source, parameter)
        for name, parameter in operator.parameters.items()
        if source.random() < 0.6
    }
    if operator.variadic:
        drawn[operator.variadic] = str(source.randrange(4))
    for hidden in HIDDEN:
        if source.random() < 0.05:
            drawn[hidden] = "1"
        if operator.declared_inputs and source.random() < 0.05:
            drawn[f"{source.choice(operator.declared_inputs)}_{hidden}"] = "2"
    return drawn


def _all_operators(seed: int, version: int) -> dict[str, Any]:
    """Return a graph of every operator, some of whose inputs are missing in old versions."""
    source = random.Random(seed)
    nodes: list[dict[str, Any]] = []
    heads = []
    for name in sorted(registry.names()):
        operator = registry.find(name)
        assert operator is not None
        attributes = _attributes(source, operator)
        count = len(operator.input_names(attributes))
        first = len(nodes)
        for _ in range(count if version == 10901 else source.randrange(count + 1)):
            own = {source.choice(HIDDEN): "3"} if source.random() < 0.1 else {}
            nodes.append({"op": "null", "name": f"v{len(nodes)}", "attr": own, "inputs": []})
        inputs = [[number, 0, 0] for number in range(first, len(nodes))]
        key = source.choice(("attr", "attrs", "param"))
        nodes.append({"op": name, "name": f"{name}{len(nodes)}", key: attributes, "inputs": inputs})
        heads.append([len(nodes) - 1, 0, 0])
    variables = [number for number, node in enumerate(nodes) if node["op"] == "null"]
    graph: dict[str, Any] = {"nodes": nodes, "arg_nodes": variables, "heads": heads}
    if version != 800:
        graph["attrs"] = {"mxnet_version": ["int", version]}
    return graph


class TestReading:
    @pytest.mark.parametrize("version", [800, 850, 900, 904, 905, 10500, 10901])
    @pytest.mark.parametrize("seed", range(3))
    def test_operators(self, seed: int, version: int, tmp_path: Path) -> None:
        """Inputs, outputs and states of every operator, and upgrades of old files."""
        path = tmp_path / "old-symbol.json"
        path.write_text(json.dumps(_all_operators(10 * seed + version, version)))
        found, expected = by_both(path, "", tmp_path)
        assert found == expected

    @pytest.mark.parametrize("name", GRAPHS)
    def test_old_files(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "old-symbol.json"
        path.write_text(json.dumps(GRAPHS[name]))
        found, expected = by_both(path, "", tmp_path)
        assert found == expected

    def test_names(self, tmp_path: Path) -> None:
        """A model is found by its graph, its prefix or its weights, of the newest epoch."""
        symbol = _weighted(tmp_path)
        newer = passlib.load(symbol).with_weights({"fc_bias": passlib.nd.ones((3,))})
        newer.save(tmp_path / "net", epoch=12)
        for given, epoch in (("net", 12), ("net-symbol.json", 12), ("net-0000.params", 0)):
            folder = tmp_path / f"of-{given}"
            folder.mkdir()
            assert run(tmp_path / given, "-o", folder / "net", "--passes", "").status == 0
            weights = f"net-{epoch:04d}.params"
            assert files_of(folder) == {
                "net-symbol.json": symbol.read_bytes(),
                weights: (tmp_path / weights).read_bytes(),
            }

    def test_over_itself(self, tmp_path: Path) -> None:
        symbol = _weighted(tmp_path)
        before = passlib.load(symbol)
        steps = "foldBatchNormalization"
        assert run(symbol, "-o", symbol, "--passes", steps, "--quiet") == (0, "", "")
        assert sorted(files_of(tmp_path)) == ["net-0000.params", "net-symbol.json"]
        (tmp_path / "python").mkdir()
        passlib.Pipeline(steps).run(before).model.save(tmp_path / "python" / "net")
        assert (
            passlib.load(symbol).symbol.tojson()
            == passlib.load(tmp_path / "python" / "net").symbol.tojson()
        )

    @pytest.mark.parametrize(
        "arrays",
        [
            {"arg:fc_weight": np.ones((3, 2), np.float16), "arg:fc_bias": np.ones(3, bool)},
            {"arg:fc_weight": np.array(2.5, np.float64), "aux:bn_moving_var": np.zeros((0, 3))},
            {"fc_weight": np.ones((3, 2), np.int8), "bn_moving_var": np.ones(3, np.uint64)},
            {"arg:bn_moving_mean": np.ones(3, np.float32), "aux:fc_bias": np.ones(1, np.int64)},
            {"arg:unused": np.ones(3), **{f"arg:{n}": np.ones(3) for n in (
                "fc_weight", "fc_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var")}},
            {},
        ],
    )  # fmt: skip
    def test_weights(self, arrays: Mapping[str, Any], tmp_path: Path) -> None:
        (tmp_path / "model").mkdir()
        path = _weighted(tmp_path / "model")
        write_list(path.with_name("net-0000.params"), list(arrays.values()), list(arrays))
        found, expected = by_both(path, "mergeEqualNodes", tmp_path)
        assert found == expected

    def test_weights_of_old_versions(self, tmp_path: Path) -> None:
        (tmp_path / "model").mkdir()
        path = _weighted(tmp_path / "model")
        one = struct.pack("<ii", 1, 0) + struct.pack("<i", 0) + struct.pack("<2f", 1, 2)
        first = struct.pack("<2I", 1, 2) + one
        second = struct.pack("<Iiq", 0xF993FAC8, 1, 2) + one
        names = b"".join(struct.pack("<Q", len(n)) + n for n in (b"arg:fc_bias", b"arg:bn_beta"))
        content = struct.pack("<QQQ", 0x112, 0, 2) + first + second + struct.pack("<Q", 2) + names
        path.with_name("net-0000.params").write_bytes(content)
        found, expected = by_both(path, "", tmp_path)
        assert found == expected
        assert len(read_list(Source.open(tmp_path / "native" / "net-0000.params"))[0]) == 2


def _npz(path: Path) -> None:
    write_npz(path, {"arg:fc_bias": np.ones(3, np.float32)})


def _sparse(path: Path) -> None:
    rows = passlib.nd.sparse.row_sparse_array(([[1.0, 2.0]], [1]), shape=(3, 2))
    passlib.nd.save(str(path), {"arg:fc_weight": rows})


def _foreign(path: Path) -> None:
    write_list(path, [np.ones(3)], ["arg:other"])


def _nameless(path: Path) -> None:
    write_list(path, [np.ones(3)])


def _twice(path: Path) -> None:
    write_list(path, [np.ones(3), np.ones(3)], ["arg:fc_bias", "aux:fc_bias"])


ONE = (
    '{"nodes":[{"op":"null","name":"x","inputs":[]}],"heads":[[0,0,0]],"arg_nodes":[0],"attrs":%s}'
)
"""A graph of one variable, with attributes of its own."""


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "status", "message"),
        [
            (_npz, 1, "this is an .npz archive, which native hosts do not read"),
            (_sparse, 1, "array 0 is row_sparse, which native hosts do not read"),
            (_foreign, 3, "1 of 1 weights belong to no variable of the graph: other"),
            (_nameless, 3, "the 1 arrays in it have no names"),
            (_twice, 3, "fc_bias is in the file twice, as an argument and as an auxiliary"),
            (lambda path: path.write_bytes(b""), 3, "it begins with nothing, not like"),
            (lambda path: path.write_bytes(b"\x12\x01" + bytes(6) + bytes(4)), 3, "reserved word"),
        ],
    )
    def test_weights(self, make: Any, status: int, message: str, tmp_path: Path) -> None:
        path = _weighted(tmp_path)
        weights = path.with_name("net-0000.params")
        make(weights)
        found = run(path, "-o", tmp_path / "out", "--passes", "")
        assert found.status == status
        assert message in found.errors
        if status == 3:
            with pytest.raises(passlib.PasslibError) as caught:
                passlib.load(path)
            assert message in str(caught.value)

    @pytest.mark.parametrize(
        ("steps", "message"),
        [
            ("fuseLayers", "pass 'fuseLayers' is for models of onnx, and this one is of mxnet"),
            *((name, "is not in native hosts for models of mxnet yet") for name in IN_PYTHON),
        ],
    )
    def test_passes(self, steps: str, message: str, tmp_path: Path) -> None:
        found = run(_weighted(tmp_path), "-o", tmp_path / "out", "--passes", steps)
        assert found.status == 1
        assert message in found.errors

    @pytest.mark.parametrize(
        ("model", "out", "message"),
        [
            ("net-0003.params", "out", "there are no weights of epoch 3; those saved are 0"),
            ("net", "out.onnx", ".onnx is a suffix of ONNX, and the model would be written as MXN"),
            ("net", "out.params", ".params is the suffix of a weight file"),
            ("net", "nowhere/out", "nowhere/out-symbol.json"),
            ("nothing-symbol.json", "out", "nothing-symbol.json"),
        ],
    )
    def test_files(self, model: str, out: str, message: str, tmp_path: Path) -> None:
        _weighted(tmp_path)
        found = run(tmp_path / model, "-o", tmp_path / out, "--passes", "")
        assert found.status == 1
        assert message in found.errors
        assert sorted(files_of(tmp_path)) == ["net-0000.params", "net-symbol.json"]

    def test_no_pipes(self, tmp_path: Path) -> None:
        found = run(_weighted(tmp_path), "-o", "-")
        assert found.status == 1
        assert "'-', standard input or output, is not supported" in found.errors

    def test_stale_weights(self, tmp_path: Path) -> None:
        """A model without weights is not saved beside those of another one."""
        symbol = _weighted(tmp_path)
        bare = tmp_path / "bare-symbol.json"
        bare.write_bytes(symbol.read_bytes())
        before = files_of(tmp_path)
        found = run(bare, "-o", symbol, "--passes", "")
        assert found.status == 1
        assert "the model has no weights, but loading it will take those of" in found.errors
        assert files_of(tmp_path) == before

    def test_half_a_save(self, tmp_path: Path) -> None:
        symbol = _weighted(tmp_path)
        weights = tmp_path / "net-0000.params"
        states = {symbol.name: [[1, 2, 3], [4, 5, 6]], weights.name: [[1, 2, 3], [4, 5, 6]]}
        stamp = tmp_path / ".passlib-0123456789abcdef.stamp"
        stamp.write_text(json.dumps(states))
        found = run(symbol, "-o", tmp_path / "out", "--passes", "")
        assert found.status == 3
        assert "a save was interrupted, and the files of this model are now of two" in found.errors

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"nodes": [', "the text ends"),
            ('{"nodes": [], "heads": [[3, 0, 0]], "arg_nodes": []}', "head"),
            (ONE % '{"mxnet_version":["int","x"]}', '"mxnet_version" must be ["int", number]'),
            (ONE % "[1]", "the top-level 'attrs' must be an object"),
        ],
    )
    def test_graphs(self, text: str, message: str, tmp_path: Path) -> None:
        path = tmp_path / "x-symbol.json"
        path.write_text(text)
        found = run(path, "-o", tmp_path / "out", "--passes", "")
        assert found.status == 3
        assert found.errors.startswith(f"passlib-opt: {path}: ")
        assert message in found.errors
        with pytest.raises(passlib.FormatError) as caught:
            passlib.load(path)
        assert message in str(caught.value)


@pytest.mark.parametrize("what", ["symbol", "weights"])
def test_damaged_files(what: str, tmp_path: Path) -> None:
    """Damaged files are refused or read, as by the Python package, and never end the command."""
    path = _weighted(tmp_path)
    target = path if what == "symbol" else path.with_name("net-0000.params")
    original = target.read_bytes()
    accepted = 0
    for seed in range(int(os.environ.get("PASSLIB_FUZZ_EXAMPLES", "60"))):
        source = random.Random(seed)
        change = rearranged if what == "symbol" and seed % 2 else damaged
        target.write_bytes(change(original, source))
        out = tmp_path / str(seed)
        out.mkdir()
        found = run(path, "-o", out / "a-symbol.json", "--passes", "", "--quiet")
        assert found.status in (0, 1, 3), (seed, found)
        try:
            loaded = passlib.load(path)
        except passlib.PasslibError:
            assert found.status != 0, seed
            continue
        if found.status == 1:
            assert "native hosts" in found.errors, (seed, found)
            continue
        assert found.status == 0, (seed, found)
        loaded.save(out / "b-symbol.json")
        made = files_of(out)
        assert {name: made[name.replace("b", "a", 1)] for name in made if name[0] == "b"} == {
            name: content for name, content in made.items() if name[0] == "b"
        }, seed
        accepted += 1
    assert accepted > 0


class Info(ctypes.Structure):
    """passlib_array_info."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("type", ctypes.c_int32),
        ("dim_count", ctypes.c_size_t),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
        ("byte_count", ctypes.c_size_t),
    )


class TestLibrary:
    """The C interface."""

    @pytest.fixture
    def library(self) -> Any:
        (path,) = TOOL.parents[1].glob("lib*/libpasslib.so")
        found = ctypes.CDLL(str(path))
        for name in ("model_load", "edit_begin", "edit_find"):
            getattr(found, f"passlib_{name}").restype = ctypes.c_void_p
        for name in ("model_dialect", "error_message"):
            getattr(found, f"passlib_{name}").restype = ctypes.c_char_p
        found.passlib_model_output_count.restype = ctypes.c_size_t
        return found

    def load(self, library: Any, path: Path) -> Any:
        return ctypes.c_void_p(library.passlib_model_load(os.fsencode(path), None))

    @pytest.mark.parametrize("seed", range(3))
    def test_names_of_outputs(self, library: Any, seed: int, tmp_path: Path) -> None:
        path = tmp_path / "all-symbol.json"
        path.write_text(json.dumps(_all_operators(seed, 10901)))
        model = self.load(library, path)
        names = []
        for number in range(library.passlib_model_output_count(model)):
            text = ctypes.c_char_p()
            place = ctypes.c_size_t(number)
            assert library.passlib_model_output(model, place, None, ctypes.byref(text), None)
            assert text.value is not None
            names.append(text.value.decode())
        assert names == passlib.load(path).outputs
        library.passlib_model_free(model)

    def test_edit(self, library: Any, tmp_path: Path) -> None:
        """A renamed state keeps its array, and the order of the nodes is MXNet's."""
        path = _weighted(tmp_path)
        model = self.load(library, path)
        assert library.passlib_model_dialect(model) == b"mxnet"
        edit = ctypes.c_void_p(library.passlib_edit_begin(model, None))
        node = ctypes.c_void_p(library.passlib_edit_find(edit, b"bn_moving_var"))
        assert library.passlib_edit_rename(edit, node, b"variance", None)
        assert library.passlib_edit_finish(edit, None)
        info = Info(size=ctypes.sizeof(Info))
        assert library.passlib_model_weight(model, b"variance", ctypes.byref(info), None)
        assert (info.type, info.dim_count, info.dims[0], info.byte_count) == (1, 1, 3, 12)
        assert library.passlib_model_save(model, os.fsencode(tmp_path / "out"), None)
        library.passlib_model_free(model)
        made = passlib.load(tmp_path / "out")
        expected = passlib.load(path).rename({"bn_moving_var": "variance"})
        assert made.symbol.tojson() == expected.symbol.tojson()
        assert list(made.aux) == ["bn_moving_mean", "variance"]
        assert made.aux["variance"].asnumpy().tolist() == [4, 5, 6]

    def test_over_its_own_files(self, library: Any, tmp_path: Path) -> None:
        """The weights, which are mapped from the file that is replaced, stay."""
        path = _weighted(tmp_path)
        before = files_of(tmp_path)
        model = self.load(library, path)
        for _ in range(2):
            assert library.passlib_model_save(model, os.fsencode(path), None)
            assert files_of(tmp_path) == before
        library.passlib_model_free(model)

    def test_no_bytes(self, library: Any, tmp_path: Path) -> None:
        model = self.load(library, _weighted(tmp_path))
        error, data, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        arguments = map(ctypes.byref, (data, size, error))
        assert not library.passlib_model_serialize(model, *arguments)
        assert b"save it as files" in library.passlib_error_message(error)
        library.passlib_error_free(error)
        library.passlib_model_free(model)
