"""Many models, one process each."""

from __future__ import annotations

from passlib.workbench.batch.job import Job, Outcome
from passlib.workbench.batch.optimizing import Request, load_inputs, optimize
from passlib.workbench.batch.remote import is_remote
from passlib.workbench.batch.running import (
    batch,
    check_isolated,
    dask_executor,
    run_isolated_job,
)

__all__ = [
    "Job",
    "Outcome",
    "Request",
    "batch",
    "check_isolated",
    "dask_executor",
    "is_remote",
    "load_inputs",
    "optimize",
    "run_isolated_job",
]
