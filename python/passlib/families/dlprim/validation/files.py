"""Checking the files of a model."""

from __future__ import annotations

from pathlib import Path

from passlib.dialects.model_checks import file_problem
from passlib.dialects.problem import Problem
from passlib.errors import FormatError, PasslibError
from passlib.families.dlprim.findings import Findings
from passlib.families.dlprim.reading.files import network_path, read_stated, weights_path
from passlib.families.dlprim.reading.weights import read_weights
from passlib.families.dlprim.validation.network import check_network
from passlib.files.regular import check_whole


def validate(path: Path) -> list[Problem]:
    """Check a network and its weights; see `Dialect.validate`."""
    findings = Findings()
    file = network_path(path)
    try:
        check_whole(file)
        network = read_stated(file, findings)
    except FormatError as error:
        return [file_problem(file, error)]
    if findings.failed:
        return findings.problems
    check_network(network, findings)
    weights = weights_path(path)
    if weights is not None:
        try:
            read_weights(weights, network.parameters)
        except (PasslibError, OSError) as error:
            findings.problems.append(file_problem(weights, error))
    return findings.problems
