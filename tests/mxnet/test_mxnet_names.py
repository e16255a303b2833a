"""The public names of MXNet 1.9.1: the page in docs/ is true, and most are in passlib."""

from __future__ import annotations

import pytest

from mxnet_names import NAMES, OPERATOR_SPACES, PAGE, is_present, is_training, page, registered
from passlib.mxnet.lowering import load_table
from passlib.mxnet.nd.sampling import OPERATORS
from passlib.mxnet.schema import find

MOSTLY = [space for space in NAMES if space.startswith(("nd", "sym", "init", "base", "viz"))]


def test_page_is_up_to_date() -> None:
    wanted = page().rstrip() + "\n"
    assert PAGE.read_text("utf-8") == wanted, "run python tests/support/mxnet_names.py"


@pytest.mark.parametrize("space", MOSTLY)
def test_nearly_all_names_that_do_not_train_are_present(space: str) -> None:
    names = [name for name in NAMES[space] if not is_training(space, name)]
    absent = [name for name in names if not is_present(space, name)]
    assert len(absent) <= max(1, 0.05 * len(names)), absent


def test_nearly_all_operators_of_arrays_run() -> None:
    """A function that exists and can only raise an error is not enough."""
    lowered = {*load_table().operators(), *OPERATORS, "cast_storage"}
    functions = {
        (space, name): operator.name
        for space in OPERATOR_SPACES
        if space.startswith("nd") and space in NAMES
        for name in NAMES[space]
        if not is_training(space, name)
        and (operator := find(registered(space, name) or "")) is not None
    }
    refused = sorted({name for name in functions.values() if name not in lowered})
    assert len(functions) > 300
    assert len([n for n in functions.values() if n not in lowered]) <= 0.1 * len(functions), refused
