"""Odd symbol files: passlib reads and writes them as MXNet does, with the exceptions listed."""

from __future__ import annotations

import pytest

from mxnet_process import MXNet
from odd_files import FILES
from passlib import sym
from passlib.errors import FormatError

CONTRADICTION = "the file contradicts itself, and a reader would show one interpretation"
NOT_JSON = "not JSON: MXNet accepts it, other readers of the file do not"
REFUSED = {
    "self_edge_of_unused": "a cycle is an error in unused nodes too, since passes see them",
    "two_variables_of_one_name": "weights are found by name, so one would get the other's",
    "short_row_pointers": CONTRADICTION,
    "output_out_of_range": "an edge from an output that does not exist; MXNet fails at run time",
    "trailing_garbage": NOT_JSON,
    "trailing_second_value": NOT_JSON,
    "number_with_plus": NOT_JSON,
    "number_with_zeros": NOT_JSON,
    "key_twice": CONTRADICTION,
    "attribute_twice": CONTRADICTION,
}
"""Files that passlib refuses and MXNet accepts, with the reason."""

KNOWS_NO = "not MXNet's operator: a library may register it, and a pass may correct it"
ACCEPTED = {
    "attrs_and_attr": "the aliases are merged; in MXNet the later one replaces the earlier one",
    "unknown_key": "kept for its reader",
    "unknown_node_key": "kept for its reader",
    "attribute_of_unknown_type": "kept for its reader",
    "unknown_operator": KNOWS_NO,
    "unknown_attribute": KNOWS_NO,
    "missing_attribute": KNOWS_NO,
    "unicode_escapes": "JSON has this escape",
    "escaped_slash": "JSON has this escape",
}
"""Files that MXNet refuses and passlib accepts, with the reason."""

WRITTEN_OTHERWISE = {
    "version_10902": "the operators remain those of the release that the file names",
    "version_20000": "the operators remain those of the release that the file names",
    "other_attributes": "the file's other attributes are kept; MXNet drops them",
}
"""Files that both accept and write differently, with the reason."""


@pytest.mark.parametrize("name", FILES)
def test_read_alike(mxnet: MXNet, name: str) -> None:
    text = FILES[name]
    answer = mxnet("rewrite", texts=[text])[0]
    assert ("value" in answer) == (name not in ACCEPTED and name not in BOTH_REFUSE), answer
    if name in REFUSED or name in BOTH_REFUSE:
        with pytest.raises(FormatError) as refusal:
            sym.load_json(text)
        assert (refusal.value.line is None) == (name in SAID_WITHOUT_PLACE)
        return
    ours = sym.load_json(text).tojson()
    assert sym.load_json(ours).tojson() == ours
    if "value" not in answer:
        return
    if name in WRITTEN_OTHERWISE:
        assert ours != answer["value"]
    else:
        assert ours == answer["value"]
    assert mxnet("rewrite", texts=[ours]) == [{"value": answer["value"]}]


BOTH_REFUSE = {
    "operator_as_argument_node",
    "no_arg_nodes_key",
    "no_heads_key",
    "version_as_text",
    "attribute_as_number",
    "attribute_as_list",
    "edge_to_nowhere",
    "head_to_nowhere",
    "entry_of_one",
    "entry_of_four",
    "negative_edge",
    "no_nodes",
    "trailing_comma",
    "comment",
    "single_quotes",
    "number_with_fraction",
    "number_with_exponent",
    "huge_number",
    "byte_order_mark",
    "empty",
    "truncated",
    "list",
    "null",
}


SAID_WITHOUT_PLACE = {"version_as_text", "output_out_of_range"}
"""Files refused after the text was read; the messages name the key and the node."""


def test_lists_name_files() -> None:
    listed = [*REFUSED, *ACCEPTED, *WRITTEN_OTHERWISE, *BOTH_REFUSE]
    assert len(listed) == len(set(listed))
    assert set(listed) <= FILES.keys()
