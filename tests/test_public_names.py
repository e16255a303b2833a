"""The names that users import: those of passlib, and those of MXNet's modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import onnx_models
import passlib

# Names that scripts written for MXNet use, by module.
NAMES = {
    "attribute": "AttrScope current",
    "context": "Context cpu cpu_pinned current_context gpu num_gpus",
    "contrib": "nd ndarray sym symbol",
    "executor": "Executor bind simple_bind",
    "gluon": "Parameter ParameterDict SymbolBlock nn",
    "library": "load loaded find_backend load_standard Library",
    "model": "Model load load_checkpoint load_params save_checkpoint",
    "name": "NameManager Prefix current",
    "nd": "NDArray CSRNDArray RowSparseNDArray array arange empty full load load_frombuffer ones "
    "save waitall zeros contrib sparse",
    "nn": "Parameter ParameterDict SymbolBlock",
    "base": "_LIB MXNetError SymbolHandle c_str c_str_array check_call mx_uint py_str",
    "init": "Bilinear Constant Initializer Load Mixed Normal One Orthogonal Uniform Xavier Zero",
    "initializer": "InitDesc Initializer MSRAPrelu LSTMBias FusedRNN create register",
    "ndarray": "NDArray array zeros contrib random linalg sparse",
    "random": "seed uniform normal randint shuffle multinomial",
    "test_utils": "assert_almost_equal almost_equal default_context same rand_ndarray",
    "util": "np_shape is_np_shape set_np_shape use_np_shape getenv",
    "viz": "print_summary plot_network",
    "visualization": "print_summary plot_network",
    "autograd": "record pause predict_mode is_training backward",
    "optimizer": "SGD Adam",
    "module": "Module",
    "symbol": "Symbol Group Variable var load load_json zeros ones full arange eye maximum minimum "
    "pow contrib linalg image random sparse FullyConnected Convolution Activation",
}


def test_dir_lists_public_names_and_no_others() -> None:
    names = dir(passlib)
    dunder = {name for name in names if name.startswith("__") and name.endswith("__")}
    assert set(names) - dunder == set(passlib.__all__)
    assert names == sorted(set(names))
    assert "__version__" in dunder


def test_every_public_name_exists() -> None:
    assert len(set(passlib.__all__)) == len(passlib.__all__)
    assert [name for name in passlib.__all__ if not hasattr(passlib, name)] == []


@pytest.mark.parametrize("name", ["Symbol", "Node", "Entry", "Problem", "Library", "Model"])
def test_classes_are_exported(name: str) -> None:
    assert name in passlib.__all__
    assert isinstance(getattr(passlib, name), type)


@pytest.mark.parametrize("name", ["annotations", "_version", "_core", "graph", "lowering"])
def test_internal_names_are_not_listed(name: str) -> None:
    assert name not in dir(passlib)
    assert name not in passlib.__all__


@pytest.mark.sample(6)
@pytest.mark.parametrize("module", NAMES)
def test_module_is_imported_on_its_own(module: str) -> None:
    names = NAMES[module].split()
    code = (
        f"import passlib.{module}\n"
        f"missing = [name for name in {names!r} if not hasattr(passlib.{module}, name)]\n"
        "assert not missing, missing\n"
        f"from passlib.{module} import {', '.join(names)}\n"
        f"from passlib import {module} as found\n"
        f"assert found is passlib.{module}\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_names_of_one_thing_are_one_thing() -> None:
    assert passlib.sym is passlib.symbol
    assert passlib.attribute.AttrScope is passlib.AttrScope
    assert passlib.context.cpu is passlib.cpu
    assert passlib.context.Context is passlib.Context
    assert passlib.gluon.SymbolBlock is passlib.nn.SymbolBlock
    assert passlib.symbol.Symbol is passlib.Symbol
    assert passlib.library.Library is passlib.Library
    assert passlib.model.load is passlib.load
    assert passlib.nd is passlib.ndarray
    assert passlib.init is passlib.initializer
    assert passlib.rnd is passlib.random
    assert passlib.MXNetError is passlib.base.MXNetError is passlib.PasslibError


def test_the_package_imports_its_modules_when_they_are_used() -> None:
    code = "import sys, passlib; print({'numpy', 'passlib.model'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


SMALL = {
    "load": ("passlib.load(path)", "mxnet dialects.onnx.validation"),
    "inspect": (
        "from passlib.cli import main\nmain(['inspect', path])",
        "mxnet model library dialects.onnx.lowering.model dialects.onnx.writing.saving",
    ),
    "simplify": ("passlib.simplify(path)", "mxnet runtime.export.model workbench"),
}


@pytest.mark.parametrize("name", SMALL)
def test_what_is_not_used_is_not_imported(name: str, tmp_path: Path) -> None:
    statement, left_out = SMALL[name]
    path = onnx_models.save(onnx_models.CHAIN, tmp_path / "m.onnx")
    code = f"import sys, passlib\npath = sys.argv[1]\n{statement}\n"
    code += f"names = {{'passlib.' + name for name in {left_out.split()!r}}} | {{'onnxruntime'}}\n"
    code += "print(names & {*sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.endswith("set()\n")


ARRAY = """
import numpy as np
from passlib.arrays import NDArray
a = np.zeros((2, 3)).view(NDArray)
"""
EVALUATED = """
from passlib.arrays.creation import ones
from passlib.symbol import var
a = var('x').eval(x=ones((2, 3)))[0]
"""


@pytest.mark.parametrize("code", [ARRAY, EVALUATED], ids=["array", "symbol"])
def test_arrays_have_their_methods_without_nd(code: str) -> None:
    """An import of one room alone must not leave arrays with NumPy's methods of the same name."""
    code += "\nprint(a.reshape((-3,)).shape, a.slice_axis(axis=1, begin=0, end=1).shape)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "(6,) (2, 1)\n", run.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'optimise'"):
        passlib.optimise  # noqa: B018
    assert passlib.dialects.names()


def test_second_names_are_the_same_modules() -> None:
    code = (
        "import sys, passlib.ndarray, passlib.init, passlib.visualization as v, passlib.nd\n"
        "assert passlib.ndarray is passlib.nd is sys.modules['passlib.ndarray']\n"
        "assert passlib.nd.__spec__.name == 'passlib.mxnet.nd'\n"
        "assert passlib.init is passlib.initializer and v is passlib.viz\n"
        "import passlib.optimizer\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_mxnet_has_its_names_in_one_package() -> None:
    """``import passlib.mxnet as mx`` instead of ``import passlib as mx``."""
    code = (
        "import passlib.mxnet as mx, passlib, sys\n"
        "from passlib.mxnet.model import load_checkpoint\n"
        "import passlib.symbol.composition\n"
        f"names = {sorted(NAMES.keys() - {'passes'})!r}\n"
        "assert all(getattr(mx, name) is getattr(passlib, name) for name in names)\n"
        "assert mx.sym is mx.symbol and mx.rnd is mx.random and mx.nd.NDArray is mx.NDArray\n"
        "assert mx.AttrScope is passlib.AttrScope and mx.cpu is passlib.cpu\n"
        "assert passlib.symbol.composition is passlib.mxnet.symbol.composition\n"
        "from passlib.dialects.ark import lower_ranks\n"
        "from passlib.families import ark\n"
        "assert ark.lower_ranks is lower_ranks\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
