"""The operators of MXNet and NNVM that mergeEqualNodes treats as functions of their inputs."""

from __future__ import annotations

import re

from passlib.families.nnvm.lowering import load_table as load_nnvm_table
from passlib.families.nnvm.lowering.layers import table as nnvm_table
from passlib.library.registry import find_operator
from passlib.mxnet import schema
from places import ROOT

IMPURE = re.compile(
    r"update|^_random_(?!pdf)|^_sample_|_image_random_|uniform_sample$|_shuffle$"
    r"|^_npi_(bernoulli|choice|exponential|gamma|gumbel|logistic|multinomial|normal|normal_n"
    r"|pareto|random_randint|rayleigh|uniform|uniform_n|weibull)$"
    r"|^_(cond|foreach|while_loop|copyto|CrossDeviceCopy|NoGradient|set_value|cvimread|sg_.*)$"
    r"|^(Custom|Dropout|RNN|LeakyReLU|multi_lars|reset_arrays)$"
)


def listed(name: str) -> set[str]:
    source = (ROOT / "cpp/passes/facts/known_operators.cc").read_text("utf-8")
    found = re.search(rf'{name}\[\] = R"names\((.*?)\)names"', source, re.S)
    assert found is not None
    return set(found[1].split())


def test_known_operators_are_those_of_the_registry() -> None:
    expected = set()
    for name in schema.names():
        operator = schema.find(name)
        assert operator is not None
        if find_operator(operator.name) is not None:
            continue  # of a library that another test loaded
        names = (operator.name, *operator.aliases)
        if not operator.mutable_inputs() and not any(map(IMPURE.search, names)):
            expected.update(names)
    assert listed("kMXNet") == expected
    assert listed("kRandom").isdisjoint(expected)
    assert listed("kRandom") <= set(schema.names())
    load_nnvm_table()
    own = {name for name in nnvm_table.operators() if name not in expected}
    assert own - {"batch_norm", "dropout", "tvm_op"} == listed("kNNVM")
