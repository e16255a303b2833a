"""Hand-written symbol files, valid and invalid, as writers other than MXNet 1.9.1 may make."""

from __future__ import annotations

import json
from typing import Any

Graph = dict[str, Any]

FILES: dict[str, str] = {}


def variable(name: str, **more: Any) -> Graph:
    return {"op": "null", "name": name, "inputs": [], **more}


def operator(op: str, name: str, inputs: list[list[int]], **more: Any) -> Graph:
    return {"op": op, "name": name, "inputs": inputs, **more}


def graph(nodes: list[Graph], heads: list[list[int]] | None = None, **more: Any) -> Graph:
    variables = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    last = [[len(nodes) - 1, 0, 0]] if heads is None else heads
    whole = {"nodes": nodes, "arg_nodes": variables, "heads": last, "attrs": version(10901), **more}
    return {key: value for key, value in whole.items() if value is not None}


def version(number: int) -> Graph:
    return {"mxnet_version": ["int", number]}


def relu(name: str, producer: int, **more: Any) -> Graph:
    return operator("relu", name, [[producer, 0, 0]], **more)


def convolution(name: str, inputs: list[list[int]], **attrs: str) -> Graph:
    plain = {"kernel": "(1, 1)", "num_filter": "2", "no_bias": "True"}
    return operator("Convolution", name, inputs, attrs={**plain, **attrs})


X, Y = variable("x"), variable("y")
SIMPLE = graph([X, relu("r", 0)])
TEXT = json.dumps(SIMPLE)
SPLIT = operator("SliceChannel", "s", [[0, 0, 0]], attrs={"num_outputs": "3"})
NORM = operator("BatchNorm", "bn", [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1]])
STATES = [variable(name) for name in ("x", "gamma", "beta", "mean", "var")]
LOOP_ATTRS = {
    "in_data_locs": "(0,)",
    "in_state_locs": "(1,)",
    "num_args": "3",
    "num_out_data": "1",
    "num_outputs": "2",
    "remain_locs": "()",
}
BODY = {
    "nodes": [variable("item"), variable("state"), operator("elemwise_add", "a", [[0, 0], [1, 0]])],
    "arg_nodes": [0, 1],
    "node_row_ptr": [0, 1, 2, 3],
    "heads": [[2, 0, 0], [2, 0, 0]],
}
LOOP = operator("_foreach", "loop", [[0, 0, 0], [1, 0, 0]], attrs=LOOP_ATTRS, subgraphs=[BODY])
CAST = {"dtype": "float16"}

GRAPHS: dict[str, Graph] = {
    # Edges.
    "pairs_as_entries": graph([X, operator("relu", "r", [[0, 0]])], [[1, 0]]),
    "pairs_and_triples": graph([X, operator("elemwise_add", "a", [[0, 0], [0, 0, 0]])]),
    "forward_references": graph([relu("r", 2), Y, X], [[0, 0, 0]], arg_nodes=[1, 2]),
    "backward_order": graph([relu("c", 1), relu("b", 2), relu("a", 3), X], [[0, 0, 0]]),
    "unreachable": graph([X, relu("r", 0), relu("dead", 0), Y], [[1, 0, 0]]),
    "unreachable_broken": graph([X, relu("r", 0), operator("relu", "d", [])], [[1, 0, 0]]),
    "same_input_twice": graph([X, operator("elemwise_mul", "m", [[0, 0, 0], [0, 0, 0]])]),
    "versions_of_states": graph([*STATES, NORM]),
    "versions_elsewhere": graph([X, operator("relu", "r", [[0, 0, 7]])], [[1, 0, 3]]),
    "heads_repeated": graph([X, relu("r", 0)], [[1, 0, 0], [1, 0, 0], [0, 0, 0]]),
    "variable_as_head": graph([X]),
    "several_outputs": graph([X, SPLIT], [[1, 2, 0], [1, 0, 0]]),
    "middle_output": graph([X, SPLIT, operator("relu", "r", [[1, 1, 0]])]),
    "hidden_output": graph([*STATES, NORM], [[5, 1, 0]]),
    "variables_out_of_order": graph([Y, X, operator("elemwise_sub", "d", [[1, 0, 0], [0, 0, 0]])]),
    "null_with_inputs": graph([X, operator("null", "n", [[0, 0, 0]]), relu("r", 1)]),
    "self_edge_of_unused": graph([X, relu("r", 0), relu("loop", 2)], [[1, 0, 0]]),
    # Keys.
    "legacy_attr": graph(
        [X, operator("clip", "c", [[0, 0, 0]], attr={"a_min": "0", "a_max": "1"})]
    ),
    "legacy_param": graph(
        [X, operator("clip", "c", [[0, 0, 0]], param={"a_min": "0", "a_max": "1"})]
    ),
    "attr_and_param": graph(
        [
            X,
            operator(
                "clip",
                "c",
                [[0, 0, 0]],
                param={"a_min": "0", "a_max": "1"},
                attr={"a_min": "0.5", "__note__": "n"},
            ),
        ]
    ),
    "attrs_and_attr": graph(
        [
            X,
            operator(
                "clip",
                "c",
                [[0, 0, 0]],
                attrs={"a_min": "0", "a_max": "1"},
                attr={"a_max": "5", "__note__": "n"},
            ),
        ]
    ),
    "empty_attrs": graph([variable("x", attrs={}), relu("r", 0, attrs={})]),
    "backward_source": graph([X, relu("r", 0, backward_source_id=-1)]),
    "backward_source_positive": graph([X, relu("r", 0, backward_source_id=0)]),
    "control_dependencies": graph([X, relu("a", 0), relu("b", 0, control_deps=[1])]),
    "control_dependencies_order": graph(
        [X, Y, relu("a", 1), relu("b", 0, control_deps=[2, 0])], [[3, 0, 0]]
    ),
    "control_dependencies_empty": graph([X, relu("a", 0, control_deps=[])]),
    "subgraphs_empty": graph([X, relu("a", 0, subgraphs=[])]),
    "foreach": graph([X, Y, LOOP], [[2, 0, 0], [2, 1, 0]]),
    "no_row_pointers": SIMPLE,
    "wrong_row_pointers": graph([X, relu("r", 0)], node_row_ptr=[0, 5, 9]),
    "short_row_pointers": graph([X, relu("r", 0)], node_row_ptr=[0]),
    "no_argument_nodes": graph([X, relu("r", 0)], arg_nodes=[]),
    "some_argument_nodes": graph(
        [X, Y, operator("elemwise_add", "a", [[0, 0, 0], [1, 0, 0]])], arg_nodes=[1]
    ),
    "repeated_argument_nodes": graph([X, relu("r", 0)], arg_nodes=[0, 0]),
    "operator_as_argument_node": graph([X, relu("r", 0)], arg_nodes=[0, 1]),
    "no_arg_nodes_key": graph([X, relu("r", 0)], arg_nodes=None),
    "no_heads_key": {key: value for key, value in SIMPLE.items() if key != "heads"},
    "no_heads": graph([X, relu("r", 0)], []),
    "unknown_key": graph([X, relu("r", 0)], metadata={"a": 1}),
    "unknown_node_key": graph([X, relu("r", 0, comment="c")]),
    # Versions.
    "no_version": graph([X, relu("r", 0)], attrs=None),
    "empty_version": graph([X, relu("r", 0)], attrs={}),
    **{
        f"version_{number}": graph(
            [X, operator("argmax", "a", [[0, 0]], attrs={"axis": "-1"})], attrs=version(number)
        )
        for number in (700, 800, 900, 904, 905, 10000, 10500, 10901, 10902, 20000)
    },
    "other_attributes": graph(
        [X, relu("r", 0)],
        attrs={**version(10901), "a": ["str", "text"], "b": ["list_int", [1, 2]], "c": ["int", 3]},
    ),
    "attribute_of_unknown_type": graph(
        [X, relu("r", 0)], attrs={**version(10901), "a": ["float", 1]}
    ),
    "version_as_text": graph([X, relu("r", 0)], attrs={"mxnet_version": ["str", "10901"]}),
    # Names and texts.
    "unicode": json.loads(json.dumps(graph([variable("größe/λ"), relu("模型🙂", 0)]))),
    "two_operators_of_one_name": graph([X, relu("r", 0), relu("r", 1)]),
    "two_variables_of_one_name": graph(
        [X, X, operator("elemwise_add", "a", [[0, 0, 0], [1, 0, 0]])]
    ),
    "operator_named_as_variable": graph([X, relu("x", 0)]),
    "empty_names": graph([variable(""), relu("", 0)]),
    "escapes": graph(
        [variable("x", attrs={"__init__": '["xavier", {"path": "a\\\\b\\n\\t\\""}]'}), relu("r", 0)]
    ),
    "ends_in_backslash": graph([variable("x", attrs={"__note__": "a\\"}), relu("r", 0)]),
    "hidden_attributes": graph(
        [variable("x", attrs={"__lr_mult__": "2", "__shape__": "(1, 2)"}), relu("r", 0)]
    ),
    "unsorted_attributes": graph(
        [X, variable("w"), convolution("c", [[0, 0, 0], [1, 0, 0]], __z__="1", __a__="2")]
    ),
    "empty_value": graph([variable("x", attrs={"__note__": ""}), relu("r", 0)]),
    "long_lists": graph(
        [variable(f"x{i}") for i in range(12)]
        + [operator("add_n", "n", [[i, 0, 0] for i in range(12)], attrs={"num_args": "12"})]
    ),
    "many_heads": graph([X, relu("r", 0)], [[1, 0, 0]] * 11),
    "attribute_as_number": graph([variable("x", attrs={"__note__": 5}), relu("r", 0)]),
    "attribute_as_list": graph([variable("x", attrs={"__note__": [5]}), relu("r", 0)]),
    # Operators and attributes missing from MXNet's table.
    "unknown_operator": graph([X, operator("NoSuchOperator", "n", [[0, 0, 0]])]),
    "unknown_attribute": graph(
        [X, variable("w"), convolution("c", [[0, 0, 0], [1, 0, 0]], bogus="1")]
    ),
    "missing_attribute": graph([X, operator("clip", "c", [[0, 0, 0]])]),
    "too_few_inputs": graph([X, operator("elemwise_add", "a", [[0, 0, 0]])]),
    # Casts of mixed precision, which tojson omits.
    "amp_between": graph([X, operator("amp_cast", "c", [[0, 0, 0]], attrs=CAST), relu("r", 1)]),
    "amp_as_head": graph([X, operator("amp_cast", "c", [[0, 0, 0]], attrs=CAST)]),
    "amp_twice": graph(
        [
            X,
            operator("amp_cast", "c", [[0, 0, 0]], attrs=CAST),
            operator("amp_cast", "d", [[1, 0, 0]], attrs=CAST),
            relu("r", 2),
        ]
    ),
    "amp_twice_as_head": graph(
        [
            X,
            operator("amp_cast", "c", [[0, 0, 0]], attrs=CAST),
            operator("amp_cast", "d", [[1, 0, 0]], attrs=CAST),
        ]
    ),
    "amp_multicast": graph(
        [
            X,
            Y,
            operator("amp_multicast", "m", [[0, 0, 0], [1, 0, 0]], attrs={"num_outputs": "2"}),
            operator("elemwise_add", "a", [[2, 1, 0], [2, 0, 0]]),
        ],
        [[3, 0, 0], [2, 1, 0]],
    ),
    # Numbers out of range.
    "edge_to_nowhere": graph([X, relu("r", 9)]),
    "head_to_nowhere": graph([X, relu("r", 0)], [[9, 0, 0]]),
    "output_out_of_range": graph([X, relu("r", 0), operator("relu", "q", [[1, 4, 0]])]),
    "entry_of_one": graph([X, operator("relu", "r", [[0]])]),
    "entry_of_four": graph([X, operator("relu", "r", [[0, 0, 0, 0]])]),
    "negative_edge": graph([X, relu("r", -1)]),
    "no_nodes": graph([], [[0, 0, 0]]),
}
FILES.update({name: json.dumps(each, ensure_ascii=False) for name, each in GRAPHS.items()})
FILES.update(
    {
        "indented": json.dumps(SIMPLE, indent=4),
        "compact": json.dumps(SIMPLE, separators=(",", ":")),
        "keys_in_other_order": json.dumps(dict(reversed(SIMPLE.items()))),
        "tabs_and_returns": TEXT.replace(" ", "\t\r\n "),
        "unicode_escapes": json.dumps(GRAPHS["unicode"]),
        "escaped_slash": TEXT.replace('"r"', '"a\\/r"'),
        "raw_control_characters": TEXT.replace('"r"', '"a\tb\x01\b\f\x7fc"'),
        "trailing_garbage": TEXT + " and so on",
        "trailing_second_value": TEXT + TEXT,
        "trailing_comma": TEXT[:-1] + ",}",
        "comment": TEXT.replace("{", "{ // a comment\n", 1),
        "single_quotes": TEXT.replace('"', "'"),
        "number_with_fraction": TEXT.replace("[[0, 0, 0]]", "[[0.0, 0, 0]]"),
        "number_with_exponent": TEXT.replace("[[0, 0, 0]]", "[[0e0, 0, 0]]"),
        "number_with_plus": TEXT.replace("[[0, 0, 0]]", "[[+0, 0, 0]]"),
        "number_with_zeros": TEXT.replace("[[0, 0, 0]]", "[[00, 0, 0]]"),
        "huge_number": TEXT.replace("[[0, 0, 0]]", "[[0, 0, 99999999999999999999]]"),
        "key_twice": TEXT.replace('"name": "r"', '"name": "q", "name": "r"'),
        "attribute_twice": json.dumps(
            graph([variable("x", attrs={"__a__": "1", "__b__": "2"}), relu("r", 0)])
        ).replace("__b__", "__a__"),
        "byte_order_mark": "\ufeff" + TEXT,
        "empty": "",
        "truncated": TEXT[: len(TEXT) // 2],
        "list": "[1, 2]",
        "null": "null",
    }
)
