"""Optimizes one model, from file to file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from passlib import dialects
from passlib.errors import InputError, PasslibError, counted, listed, no_input, short_repr
from passlib.files.regular import replacing
from passlib.graph.plain import operators_of
from passlib.library.pipeline import Step
from passlib.model import Model, load
from passlib.passes import Dump, Instrument, Pipeline, PipelineResult, Verify
from passlib.passes.standard.groups import more_layers
from passlib.workbench.certifying import Certify
from passlib.workbench.comparison import DRAWN, Check, Comparison, Reference, drawn
from passlib.workbench.numbers import Tolerance
from passlib.workbench.trace import run_limited
from passlib.workbench.unstable import unstable_step


@short_repr
@dataclass(frozen=True)
class Request:
    """Options of an optimization besides the pipeline, as JSON values.

    Attributes
    ----------
    verify_each : bool
        Check the graph after each step.
    check : int or None
        Compare the outputs on this number of random inputs.
    check_each : bool
        Compare the outputs after each step.
    shapes : mapping of str to shape, or None
        Shapes of inputs that the model does not declare.
    inputs : str or None
        Path of an .npz file with the inputs of comparisons.
    shared : bool
        Whether other models get their inputs from this file, too.
    dump : str or None
        Folder for the model after each step.
    report : str or None
        Path of the HTML report.
    certify : str or None
        Path of the certificate, see docs/proof.md.
    rewrite_limit : int or None
        Maximum number of rewrites.
    opset : int or None
        Version of ONNX's operators to which the model is converted first.
    libraries : tuple of str, or None
        Paths of the libraries and Python files that processes load; by default the files that
        define the passes.
    overrides : bool
        Whether the passes of these files may replace others of the same name.

    Examples
    --------
    >>> from passlib.workbench import Request
    >>> Request(check=2, shapes={"x": (1, 3)}).verify_each
    False
    """

    verify_each: bool = False
    check: int | None = None
    check_each: bool = False
    rtol: float | None = None
    atol: float | None = None
    shapes: Mapping[str, Sequence[int | None]] | None = None
    inputs: str | None = None
    shared: bool = False
    dump: str | None = None
    report: str | None = None
    certify: str | None = None
    rewrite_limit: int | None = None
    opset: int | None = None
    libraries: tuple[str, ...] | None = None
    overrides: bool = False


def _sizes(of_path: int, read: int, files: Sequence[str]) -> dict[str, int] | None:
    """Return the bytes of a model before and after; None if they are not known.

    Parameters
    ----------
    of_path : int
        Bytes of the file that was given.
    read : int
        Bytes of the model's files; 0 if they are not known.
    files : sequence of str
        Those written, the graph's first. Data files that are kept are not among them.
    """
    if not files:
        return None
    if len(files) == 1 and read in (0, of_path):
        return _pair(of_path, Path(files[0]).stat().st_size) if of_path else None
    made = load(files[0]) if read else None
    return None if made is None else _pair(read, _bytes_read(made))


def _bytes_read(model: Model) -> int:
    return dialects.find(model.dialect).bytes_read(model.data(whole=False))


def optimize(
    path: str,
    output: str,
    pipeline: Pipeline,
    request: Request,
    instruments: Sequence[Instrument] = (),
) -> dict[str, Any]:
    """Load a model, run a pipeline, compare the outputs on request, and save the result.

    The result is not saved if outputs differ.

    Parameters
    ----------
    instruments : sequence of Instrument
        Called before those of the request.

    Returns
    -------
    dict
        JSON values, see docs/json.md.

    Raises
    ------
    PasslibError
        The model cannot be loaded, a pass failed, or the request does not fit the model.
    """
    started = time.perf_counter()
    of_path = Path(path).stat().st_size if Path(path).is_file() else 0
    model = load(path)
    size = _bytes_read(model)
    pipeline.check(model.dialect)
    doubts = dialects.find(model.dialect).doubts(model.symbol)
    given = (
        None
        if request.inputs is None
        else load_inputs(request.inputs, model, shared=request.shared)
    )
    looking = [*instruments, *_instruments(request, model, given)]
    certify = Certify()
    if request.certify is not None:
        looking.append(certify)
    more: dict[str, Any] = {}
    first = model if request.opset is None else model.with_opset(request.opset)
    if request.rewrite_limit is None:
        result = pipeline.run(first, looking)
    else:
        result, kept, count = run_limited(first, pipeline, request.rewrite_limit, looking)
        more["rewrites"] = {"applied": kept, "total": count}
    if any(step.name == "simplify" for step in pipeline.steps if isinstance(step, Step)):
        found = more_layers(result.model)
        more["more_layers"] = found and {"opset": found[0], "fewer_operators": found[1]}
    differences, comparison = _judged(request, model, result.model, given)
    if comparison is not None:
        differences = [str(output) for output in comparison.outputs if not output.equal]
        differences += _unstable(request, model, pipeline, given) if differences else []
        largest = max((output.share for output in comparison.outputs), default=0.0)
        more["checked"] = {"input_sets": len(comparison.inputs), "share": largest}
        more["not_covered"] = list(comparison.not_covered)
    files = [] if differences else list(result.model.save(output))
    sizes = _sizes(of_path, size, files)
    more |= {
        "changed": result.modified or first is not model,
        "warnings": doubts,
        "bytes": sizes,
        "differences": differences,
    }
    facts = {**_facts(path, output, model, result), **more}
    if request.certify is not None and files:
        certify.save(path, files[0], request.certify)
        facts["certificate"] = request.certify
        files.append(request.certify)
    if request.report is not None:
        facts["report"] = str(_write_report(request.report, path, result, comparison))
        files.append(facts["report"])
    facts["seconds"] = time.perf_counter() - started
    facts["files"] = [str(Path(file).absolute()) for file in files]
    return facts


def load_inputs(path: str, *models: Model, shared: bool = False) -> dict[str, Any]:
    """Return the input arrays of the first model from an .npz file.

    The other models may have more inputs.

    Parameters
    ----------
    shared : bool
        The file may have arrays for models that are not given.

    Raises
    ------
    PasslibError
        The file is not an .npz file of arrays.
    InputError
        An array is for no input of the models.
    """
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, TypeError, AttributeError, EOFError, BadZipFile) as error:
        why = "; text must be an array of str" if "Object arrays" in str(error) else ""
        raise PasslibError(
            f"{path}: not an .npz file of arrays{why}; write one with numpy.savez(FILE, NAME=array)"
        ) from error
    names = list(dict.fromkeys(name for model in models for name in model.inputs))
    missing = [name for name in models[0].inputs if name not in arrays]
    others = [name for name in arrays if name not in names]
    if missing and others:
        raise InputError(
            f"{path}: there is no array for input {listed(missing)} of the model, but one for "
            f"{listed(others)}"
        )
    if others and not shared:
        raise InputError(f"{path}: {no_input(others, names)}")
    return {name: array for name, array in arrays.items() if name in names}


def _instruments(request: Request, model: Model, given: dict[str, Any] | None) -> list[Instrument]:
    found: list[Instrument] = []
    if request.dump is not None:
        found.append(Dump(request.dump))
    if request.verify_each:
        found.append(Verify())
    if request.check_each:
        tolerance = Tolerance(request.rtol, request.atol)
        # Draw inputs now: later failures are attributed to a pass.
        inputs = drawn(model, given, request.check or DRAWN, request.shapes)
        found.append(Check(inputs, tolerance=tolerance))
    return found


def _judged(
    request: Request, before: Model, after: Model, given: dict[str, Any] | None
) -> tuple[list[str], Comparison | None]:
    """Return differences of the interface; without any, the comparison of the outputs."""
    if request.check is None:
        return [], None
    tolerance = Tolerance(request.rtol, request.atol)
    reference = Reference(before, given, request.check, tolerance, request.shapes)
    changes = reference.interface_changes(after)
    return changes, None if changes else reference.judge(after)


def _unstable(
    request: Request, model: Model, pipeline: Pipeline, given: dict[str, Any] | None
) -> list[str]:
    """Return a sentence if another run of the pipeline is right, or makes another model."""
    found, results = unstable_step(pipeline, model)
    if found:
        return [found]
    verdicts = [_judged(request, model, result, given)[1] for result in results]
    if any(each is not None and each.equal for each in verdicts):
        return ["the pipeline is unstable: the results of another run agree"]
    return []


def _pair(before: Any, after: Any) -> dict[str, Any]:
    return {"before": before, "after": after}


def _facts(path: str, output: str, model: Model, result: PipelineResult) -> dict[str, Any]:
    before, after = operators_of(model.symbol.graph), operators_of(result.model.symbol.graph)
    return {
        "model": path,
        "output": output,
        "operators": {op: _pair(before[op], after[op]) for op in sorted(before | after)},
        "nodes": _pair(before.total(), after.total()),
        "steps": [
            {
                "step": step.text,
                "pass": step.name,
                "seconds": step.seconds,
                "changed_nodes": step.changed_nodes,
                "modified": step.modified,
            }
            for step in result.steps
        ],
    }


def _write_report(
    target: str, path: str, result: PipelineResult, comparison: Comparison | None
) -> Path:
    tables = []
    if comparison is not None:
        rows = [
            (each.name, each.what or "equal", f"{each.absolute:.3g}", f"{each.share:.3g}")
            for each in comparison.outputs
        ]
        columns = ("output", "result", "absolute", "of tolerance")
        title = f"Numbers, on {counted(len(comparison.inputs), 'input')}"
        tables.append({"title": title, "columns": columns, "rows": rows})
    place = Path(target)
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place) as made:
        made.write_text(result.to_html(Path(path).name, tables), "utf-8")
    return place
