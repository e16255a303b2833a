"""Passes as steps of other tools."""

from __future__ import annotations

from typing import Any

import passlib.model.loading as loading


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
