"""The names that users import: those of passlib, and those of MXNet's modules."""

from __future__ import annotations

import subprocess
import sys

import pytest

import passlib

# Names that scripts written for MXNet use, by module.
NAMES = {
    "attribute": "AttrScope current",
    "context": "Context cpu cpu_pinned current_context gpu num_gpus",
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
