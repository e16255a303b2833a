"""``passlib opt``: passes on models."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

from passlib.cli.options import add_inputs, add_json, inputs_of, shapes_of
from passlib.cli.pipelines import add_passes, pipeline_of
from passlib.cli.status import DIFFERENT, FINE, UsageError
from passlib.cli.tables import print_json, print_table
from passlib.model import Model, load
from passlib.passes import Dump, Instrument, Pipeline, PipelineResult, Timing, Verify

__all__ = ["DESCRIPTION", "EXAMPLE", "add_arguments", "run"]

DESCRIPTION = "Run passes on models and save the results. Without --passes: the standard passes."
EXAMPLE = 'passlib opt model.onnx -o out.onnx --passes "mergeEqualNodes, removeDeadNodes" --check'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="file; of several models a folder"
    )
    add_passes(parser)
    parser.add_argument(
        "--verify-each", action="store_true", help="check the graph after each step"
    )
    parser.add_argument(
        "--check", type=int, nargs="?", const=3, metavar="N", help="compare numbers on N inputs"
    )
    parser.add_argument("--check-each", action="store_true", help="compare after each step")
    add_inputs(parser)
    parser.add_argument("--time", action="store_true", help="print the time of each pass")
    parser.add_argument("--dump", metavar="DIR", help="save the model after each step")
    parser.add_argument("--isolate", action="store_true", help="run in a process of its own")
    parser.add_argument("--timeout", type=float, metavar="S", help="of the isolated process")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline on each model, and print a table of operators."""
    pipeline = pipeline_of(arguments)
    pipeline.check()
    if arguments.check is not None and arguments.check < 1:
        raise UsageError("--check: at least 1 input is needed")
    several = len(arguments.models) > 1
    folder = Path(arguments.output)
    reports = []
    status = FINE
    for path in arguments.models:
        target = folder / Path(path).name if several else folder
        if several:
            folder.mkdir(parents=True, exist_ok=True)
        model = load(path)
        pipeline.check(model.dialect)
        timing = Timing()
        # What libraries print must not stand in the JSON.
        with redirect_stdout(sys.stderr if arguments.json else sys.stdout):
            result = _run(arguments, pipeline, model, timing)
        differences = _differences(arguments, model, result.model)
        if differences:
            sys.stderr.write(f"passlib opt: {path}: results differ: {'; '.join(differences)}\n")
            status = DIFFERENT
        else:
            result.model.save(target)
        report = _report(path, target, model, result)
        if arguments.json:
            reports.append(report)
        else:
            _print(report, timing if arguments.time else None, title=several)
    if arguments.json:
        print_json(reports)
    return status


def _run(
    arguments: argparse.Namespace, pipeline: Pipeline, model: Model, timing: Timing
) -> PipelineResult:
    instruments = _instruments(arguments)
    if not (arguments.isolate or arguments.timeout):
        return pipeline.run(model, [timing, *instruments])
    if instruments:
        raise UsageError("--isolate does not go with --dump, --verify-each and --check-each")
    result = pipeline.run(model, isolate=True, timeout=arguments.timeout)
    for step in result.steps:
        timing.add(step)
    return result


def _instruments(arguments: argparse.Namespace) -> list[Instrument]:
    instruments: list[Instrument] = []
    if arguments.dump:
        instruments.append(Dump(arguments.dump))
    if arguments.verify_each:
        instruments.append(Verify())
    if arguments.check_each:
        from passlib.workbench import Check, Tolerance

        tolerance = Tolerance(arguments.rtol, arguments.atol)
        given, shapes = inputs_of(arguments), shapes_of(arguments.shape)
        instruments.append(Check(given, tolerance=tolerance, shapes=shapes))
    return instruments


def _differences(arguments: argparse.Namespace, before: Model, after: Model) -> list[str]:
    if arguments.check is None:
        return []
    from passlib.workbench import compare

    found = compare(
        before,
        after,
        inputs_of(arguments),
        arguments.check,
        rtol=arguments.rtol,
        atol=arguments.atol,
        shapes=shapes_of(arguments.shape),
    )
    return [str(output) for output in found.outputs if not output.equal]


def _report(path: str, target: Path, model: Model, result: PipelineResult) -> dict[str, object]:
    before, after = _counts(model), _counts(result.model)
    operators = {op: [before[op], after[op]] for op in sorted(before | after)}
    return {
        "model": path,
        "output": str(target),
        "operators": operators,
        "nodes": [before.total(), after.total()],
        "steps": [
            {
                "step": step.text,
                "seconds": step.seconds,
                "changed nodes": step.changed_nodes,
                "modified": step.modified,
            }
            for step in result.steps
        ],
    }


def _counts(model: Model) -> Counter[str]:
    return Counter({op: n for op, n in model.symbol.graph.operators().items() if op != "null"})


def _print(report: dict[str, object], timing: Timing | None, *, title: bool) -> None:
    if title:
        sys.stdout.write(f"{report['model']} -> {report['output']}\n")
    operators, nodes = report["operators"], report["nodes"]
    assert isinstance(operators, dict)
    assert isinstance(nodes, list)
    rows = [(op, *pair, "" if pair[0] == pair[1] else "*") for op, pair in operators.items()]
    print_table(("operator", "before", "after", ""), [*rows, ("total", *nodes, "")])
    if timing is not None:
        sys.stdout.write(f"{timing}\n")
