"""Passes as steps of other tools."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import passlib.library.loading as libraries
import passlib.model.loading as loading


def __getattr__(name: str) -> Any:
    """Return the class `Passlib` for Olive, which asks for it by this name."""
    if name == "Passlib":
        return _pass_of_olive()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def onnx_ir_pass(steps: Any = "simplify", /, **options: Any) -> Any:
    """Return a pass, or a pipeline, as a pass of the package onnx-ir.

    The result is an ``onnx_ir.passes.PassBase``, alone or in an ``onnx_ir.passes.Sequential``. It
    leaves the given model as it is and returns another one. The model crosses as a message of at
    most 2 GB.

    Parameters
    ----------
    steps : str, list or Pipeline
        As of `Model.optimize_for`.
    **options
        Of the pass.

    Raises
    ------
    ImportError
        The package onnx-ir is not installed.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> import passlib as pl
    >>> graph = pl.sym.exp(pl.sym.log(pl.sym.var("x")))
    >>> model = pl.Model(graph).to_onnx_proto(shapes={"x": (2,)})
    >>> result = pl.workbench.onnx_ir_pass("removeDeadNodes")(ir.from_proto(model))
    >>> result.modified, len(result.model.graph)
    (False, 2)
    """
    import onnx_ir as ir

    class Pass(ir.passes.FunctionalPass):
        """Runs passes of passlib."""

        def call(self, model: Any) -> Any:
            proto = ir.to_proto(model)
            before = loading.load(proto)
            after = before.optimize_for(steps, **options).to_onnx_proto()
            modified = after != before.to_onnx_proto()
            return ir.passes.PassResult(ir.from_proto(after), modified=modified)

    return Pass()


@cache
def _pass_of_olive() -> Any:
    from olive.model import ONNXModelHandler
    from olive.model.utils import resolve_onnx_path
    from olive.passes import Pass
    from olive.passes.pass_config import PassConfigParam

    class Passlib(Pass):  # type: ignore[misc]  # Olive has no types
        """Runs a pass or a pipeline on an ONNX model."""

        @classmethod
        def _default_config(cls, accelerator_spec: Any) -> dict[str, Any]:
            del accelerator_spec
            return {
                "steps": PassConfigParam(
                    type_=str,
                    default_value="simplify",
                    description="A pass, or several as text: mergeEqualNodes, toHalf{keep_io=true}",
                ),
                "libraries": PassConfigParam(
                    type_=list[str], default_value=[], description="Paths of libraries to load."
                ),
            }

        def _run_for_config(self, model: Any, config: Any, output_model_path: str) -> Any:
            for library in config.libraries:
                libraries.load(library, verbose=False)
            path = Path(resolve_onnx_path(output_model_path, Path(model.model_path).name))
            path.parent.mkdir(parents=True, exist_ok=True)
            made = loading.load(model.model_path).optimize_for(config.steps)
            if len(made.save(path)) == 1:
                return ONNXModelHandler(model_path=str(path))
            return ONNXModelHandler(model_path=str(path.parent), onnx_file_name=path.name)

    return Passlib
