"""``passlib opt``: runs passes on models."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passlib import dialects
from passlib.cli.options import (
    add_check,
    add_inputs,
    add_json,
    add_passes,
    add_timeout,
    fixed_for,
    pipeline_of,
    require_check,
    shapes_of,
    texts_for,
    tolerance_of,
    whole,
)
from passlib.cli.outputs import require_file, require_folder, require_model, require_page
from passlib.cli.status import DIFFERENT, FAILED_PASS, FINE, UsageError
from passlib.cli.streams import report
from passlib.cli.tables import print_gaps, print_json, print_table
from passlib.errors import counted, printable, sized

if TYPE_CHECKING:
    from passlib.passes import Pipeline
    from passlib.workbench.batch import Outcome
    from passlib.workbench.optimizing import Request

DESCRIPTION = "Run passes on models and save the results (default: simplify)."
EXAMPLE = "passlib opt model.onnx -o out.onnx --check --report out.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # The list of all options follows.
    parser.usage = "%(prog)s [options] -o OUT MODEL [MODEL ...]"
    parser.add_argument("models", nargs="+", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="output file, or folder for several models",
    )
    add_passes(parser)
    parser.add_argument(
        "--opset", type=whole, metavar="N", help="convert to this version of ONNX's operators first"
    )
    parser.add_argument(
        "--verify-each", action="store_true", help="check the graph after each pass"
    )
    add_check(parser, "compare results on N random inputs (default: 3)")
    parser.add_argument("--check-each", action="store_true", help="compare results after each step")
    add_inputs(parser)
    parser.add_argument("--time", action="store_true", help="print the time of each pass")
    parser.add_argument("--dump", metavar="DIR", help="save the model after each step")
    parser.add_argument("--report", metavar="HTML", help="write an HTML page of the changes")
    parser.add_argument(
        "--certify", metavar="JSON", help="write a certificate for passlib check-certificate"
    )
    parser.add_argument(
        "--rewrite-limit", type=whole, metavar="N", help="keep only the first N rewrites"
    )
    parser.add_argument("--isolate", action="store_true", help="run in a separate process")
    add_timeout(parser, "time limit of that process in seconds")
    parser.add_argument("--jobs", type=whole, metavar="N", help="process N models in parallel")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="use the workers of this dask scheduler"
    )
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline on each model and print the changes."""
    is_batch = len(arguments.models) > 1 or arguments.scheduler or arguments.jobs is not None
    # Loading a library may crash: leave it to the separate processes, if any.
    is_here = not (is_batch or arguments.isolate or arguments.timeout)
    common = pipeline_of(arguments, is_loading=is_here, is_fixed=False)
    pipelines, requests = {}, {}
    for path in arguments.models:
        fixed = texts_for(path, arguments.fix_shape, arguments.models)
        pipelines[path] = fixed_for(common, fixed)
        requests[path] = _request(arguments, path, fixed, is_here=is_here)
    pipeline, request = pipelines[arguments.models[0]], requests[arguments.models[0]]
    if is_here or not arguments.library:
        pipeline.check()
    else:
        from passlib.workbench.batch import check_isolated

        check_isolated(pipeline, arguments.models[0], request, arguments.timeout)
    if arguments.certify is not None:
        _require_certifiable(arguments, is_here=is_here)
    if is_batch:
        return _run_batch(arguments, pipelines, requests)
    # Keep the output of libraries out of the JSON.
    with redirect_stdout(sys.stderr if arguments.json else sys.stdout):
        facts = _run_one(arguments, pipeline, request)
    for doubt in facts["warnings"]:
        report("passlib opt", f"warning: {facts['model']}: {doubt}")
    if facts["differences"]:
        differences = "; ".join(facts["differences"])
        report(
            "passlib opt",
            f"{facts['model']}: results differ: {differences}; {facts['output']} is not written",
        )
    if arguments.json:
        status = "different" if facts["differences"] else "done"
        print_json([{"status": status, "error": "; ".join(facts["differences"]), **facts}])
    elif not arguments.quiet:
        _print(facts, with_time=arguments.time)
    return DIFFERENT if facts["differences"] else FINE


def _require_certifiable(arguments: argparse.Namespace, *, is_here: bool) -> None:
    """Check that a certificate can be written, or raise a UsageError."""
    require_file("--certify", arguments.certify)
    if not is_here:
        raise UsageError("--certify: takes one model, and neither --isolate nor --timeout")
    if arguments.opset is not None or arguments.rewrite_limit is not None:
        raise UsageError("--certify: does not go with --opset or --rewrite-limit")


def _request(
    arguments: argparse.Namespace, path: str, fixed: Sequence[str], *, is_here: bool
) -> Request:
    """Return the request for one model. ``fixed``: its texts of ``--fix-shape``."""
    from passlib.workbench.optimizing import Request

    require_check(arguments)
    if arguments.check is None and not arguments.check_each:
        for name in ("shape", "inputs", "rtol", "atol", "exact"):
            if getattr(arguments, name) not in (None, [], False):
                hint = "; --fix-shape sets the shape of an input" if name == "shape" else ""
                raise UsageError(f"--{name} needs --check or --check-each{hint}")
    if arguments.rewrite_limit is not None and arguments.rewrite_limit < 0:
        raise UsageError("--rewrite-limit: must be at least 0")
    tolerance = tolerance_of(arguments)
    files = [*arguments.library, *arguments.rules]
    return Request(
        verify_each=arguments.verify_each,
        check=arguments.check,
        check_each=arguments.check_each,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        shapes=shapes_of([*fixed, *texts_for(path, arguments.shape, arguments.models)]),
        inputs=arguments.inputs and str(Path(arguments.inputs).absolute()),
        shared=len(arguments.models) > 1,
        dump=arguments.dump and str(Path(arguments.dump).absolute()),
        report=arguments.report and str(Path(arguments.report).absolute()),
        certify=arguments.certify and str(Path(arguments.certify).absolute()),
        rewrite_limit=arguments.rewrite_limit,
        opset=arguments.opset,
        libraries=None if is_here else tuple(str(Path(p).absolute()) for p in files),
        overrides=arguments.override,
    )


def _run_one(arguments: argparse.Namespace, pipeline: Pipeline, request: Request) -> dict[str, Any]:
    from passlib.workbench.batch import Job, run_isolated_job
    from passlib.workbench.optimizing import optimize

    path, output = arguments.models[0], arguments.output
    require_model("-o", output, dialects.recognise(path).name)
    if arguments.report is not None:
        require_page("--report", arguments.report, makes_folder=True)
    if arguments.dump is not None:
        require_folder("--dump", arguments.dump)
    if not (arguments.isolate or arguments.timeout):
        from passlib.cli.progress import steps_shown

        with steps_shown(pipeline) as instruments:
            return optimize(path, output, pipeline, request, instruments)
    job = Job.of(pipeline, path, output, request, arguments.timeout)
    return {**run_isolated_job(job), "model": path, "output": output}


def _run_batch(
    arguments: argparse.Namespace,
    pipelines: Mapping[str, Pipeline],
    requests: Mapping[str, Request],
) -> int:
    from passlib.cli.progress import models_shown
    from passlib.workbench.batch import batch, dask_executor, is_remote

    if arguments.jobs is not None and arguments.jobs < 1:
        raise UsageError("--jobs: must be at least 1")
    if not is_remote(arguments.output):
        require_folder("-o", arguments.output)
        if Path(arguments.output).suffix == ".onnx":
            raise UsageError(f"-o {arguments.output}: several models need a folder, not a file")
    if arguments.report is not None:
        require_folder("--report", arguments.report)
    executor = dask_executor(arguments.scheduler) if arguments.scheduler else None
    with models_shown(len(arguments.models)) as progress:
        outcomes = batch(
            arguments.models,
            pipelines.__getitem__,
            arguments.output,
            executor,
            jobs=arguments.jobs or 1,
            timeout=arguments.timeout,
            request=requests.__getitem__,
            progress=progress,
        )
    if arguments.json:
        print_json([outcome.as_dict() for outcome in outcomes])
    elif not arguments.quiet:
        _print_batch(outcomes)
    for outcome in outcomes:
        for doubt in outcome.warnings:
            report("passlib opt", f"warning: {outcome.model}: {doubt}")
        if outcome.error:
            error = outcome.error.removeprefix(f"{outcome.model}: ")
            report("passlib opt", f"{outcome.model}: {error}")
    states = {outcome.status for outcome in outcomes}
    return FAILED_PASS if "failed" in states else DIFFERENT if "different" in states else FINE


def _print(facts: dict[str, Any], *, with_time: bool) -> None:
    rows = [
        (op, *pair.values(), "" if pair["before"] == pair["after"] else "*")
        for op, pair in facts["operators"].items()
    ]
    total = ("total", *facts["nodes"].values(), "")
    print_table(("operator", "before", "after", ""), [*rows, total])
    if with_time:
        seconds: dict[str, float] = {}
        for step in facts["steps"]:
            seconds[step["pass"]] = seconds.get(step["pass"], 0) + step["seconds"]
        slowest = sorted(seconds.items(), key=lambda item: -item[1])
        total = ("total", f"{1000 * sum(seconds.values()):.1f} ms")
        print_table(("", ""), [*((name, f"{1000 * s:.1f} ms") for name, s in slowest), total])
    if "checked" in facts and not facts["differences"]:
        inputs, largest = facts["checked"].values()
        on = counted(inputs, "input")
        sys.stdout.write(
            f"results agree on {on}; largest difference {largest:.3g} of the tolerance\n"
        )
        print_gaps(facts["not_covered"])
    if "rewrites" in facts:
        sys.stdout.write("rewrites: {applied} of {total}\n".format(**facts["rewrites"]))
    if facts.get("more_layers"):
        opset, fewer = facts["more_layers"].values()
        sys.stdout.write(f"--opset {opset} would fuse layers: {counted(fewer, 'operator')} fewer\n")
    for name in ("certificate", "report"):
        if name in facts:
            sys.stdout.write(f"{printable(facts[name])}\n")
    if not facts["differences"]:
        nothing = "nothing to simplify" if "more_layers" in facts else "nothing to change"
        summary = _summary(facts) if facts["changed"] else nothing
        output, seconds = printable(facts["output"]), facts["seconds"]
        sys.stdout.write(f"wrote {output}: {summary}, in {seconds:.1f} s\n")


def _summary(facts: dict[str, Any]) -> str:
    """Say what became of the model."""
    before, after = facts["nodes"].values()
    sizes = f", {' -> '.join(map(sized, facts['bytes'].values()))}" if facts["bytes"] else ""
    return f"{before:,} -> {after:,} operators{sizes}"


def _print_batch(outcomes: list[Outcome]) -> None:
    """Print a line for each model, the sums, and how many models had each result."""
    rows: list[tuple[Any, ...]] = [
        (each.model, each.status, *(each.nodes or ("", "")),
         "" if each.earlier else round(each.seconds, 1), _why(each))
        for each in outcomes
    ]  # fmt: skip
    pairs = [each.nodes for each in outcomes if each.nodes]
    seconds = round(sum(each.seconds for each in outcomes if not each.earlier), 1)
    rows.append(("total", "", *map(sum, zip(*pairs or [(0, 0)], strict=True)), seconds, ""))
    print_table(("model", "result", "before", "after", "seconds", "reason"), rows)
    counts = [(sum(e.status == s for e in outcomes), s) for s in ("done", "different", "failed")]
    skipped = sum(each.earlier for each in outcomes)
    more = f"; {skipped} skipped, unchanged since an earlier run" if skipped else ""
    sys.stdout.write(", ".join(f"{count} {word}" for count, word in counts if count) + f"{more}\n")


_LONGEST_REASON = 60


def _why(outcome: Outcome) -> str:
    """Say in a few words why a model failed or was skipped; the errors follow in full."""
    skipped = "skipped: unchanged since an earlier run" if outcome.earlier else ""
    text = outcome.error.removeprefix(f"{outcome.model}: ").partition("\n")[0]
    short = text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."
    return "; ".join(filter(None, (skipped, short)))
