"""Operators without a lowering say why."""

from __future__ import annotations

import pytest

from mxnet_graph import graph_of
from operator_table import PAGE, classes, text
from passlib.errors import GraphError, UnsupportedError
from passlib.mxnet.inference.infer import infer
from passlib.mxnet.lower import lower
from passlib.mxnet.lowering.refused import REFUSED


@pytest.mark.parametrize(
    ("operator", "reason"),
    [*REFUSED.items(), ("sgd_mom_update", "belongs to training"), ("nonsense", "library")],
)
def test_the_error_names_the_reason(operator: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"node 'op' \({operator}\).*{reason}"):
        lower(graph_of(operator, ["a"]), {}, {})


def test_mistakes_in_attributes_of_refused_operators_are_named_by_inference() -> None:
    graph = graph_of("_cvimdecode", ["a"], {"flag": "-1"})
    with pytest.raises(GraphError, match=r"'flag' .* cannot be '-1'"):
        infer(graph, {"a": (2,)})
    with pytest.raises(UnsupportedError, match="no decoder of image files"):
        lower(graph, {}, {})


def test_every_operator_of_the_registry_is_in_one_class() -> None:
    assert not {name: members for name, members in classes().items() if len(members) != 1}


def test_the_page_of_operators_is_that_of_the_code() -> None:
    assert PAGE.read_text("utf-8") == text()
