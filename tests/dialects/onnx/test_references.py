"""Weights to which more than inference refers, annotations and metadata after passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib as pl
from passlib.dialects.onnx.nested import graphs_within
from passlib.errors import UnsupportedError

FLOAT = TensorProto.FLOAT
node = helper.make_node


def described(name: str, *sizes: Any) -> Any:
    return helper.make_tensor_value_info(name, FLOAT, sizes)


def weight(name: str, *sizes: int) -> Any:
    return numpy_helper.from_array(np.ones(sizes, np.float32), name)


def model(nodes: list[Any], weights: list[Any], shape: Any = (3,), out: Any = (3,)) -> Any:
    ends = [described("x", *shape)], [described("y", *out)]
    graph = helper.make_graph(nodes, "g", *ends, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def saved(made: pl.Model, folder: Path, **options: Any) -> Any:
    path = folder / "made.onnx"
    made.save(path, **options)
    found = onnx.load(str(path))
    onnx.checker.check_model(found)
    return found


def names(found: Any) -> list[str]:
    return [tensor.name for tensor in found.graph.initializer]


def bind(made: Any, kind: str) -> Any:
    """Let a model refer to `w`, `dead`, `b1` and `b2` in one of several ways."""
    four = ("w", "dead", "b1", "b2")
    if kind == "metadata":
        for name in four:
            made.metadata_props.add(key=f"about {name}", value=name)
    elif kind == "annotation":
        for name in four:
            entry = made.graph.quantization_annotation.add(tensor_name="y")
            entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=name)
    else:
        training = made.training_info.add()
        for name in four:
            bound = getattr(training, kind).add(key=name, value=f"{name}_next")
            assert bound.key == name
        nodes = [node("Neg", [name], [f"{name}_next"]) for name in four]
        outputs = [described(f"{name}_next", 3) for name in four]
        part = "algorithm" if kind == "update_binding" else "initialization"
        getattr(training, part).CopyFrom(helper.make_graph(nodes, "t", [], outputs))
    return made


def referring(kind: str) -> Any:
    nodes = [
        node("Relu", ["w"], ["r"]), node("Mul", ["x", "r"], ["t"]), node("Add", ["t", "b1"], ["u"]),
        node("Add", ["u", "b2"], ["y"]),
    ]  # fmt: skip
    return bind(model(nodes, [weight(name, 3) for name in ("w", "b1", "b2", "dead", "free")]), kind)


KINDS = ["update_binding", "initialization_binding", "metadata", "annotation"]
PASSES = ["simplify", "foldConstants", "removeDeadNodes", "mergeEqualWeights", "mergeFactors",
          "weightsToConstants"]  # fmt: skip
OPTIONS: list[dict[str, Any]] = [{}, {"external_data": True, "size_threshold": 0}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PASSES)
def test_weights_with_other_references_stay(kind: str, name: str, tmp_path: Path) -> None:
    for options in OPTIONS:
        found = saved(pl.load(referring(kind)).optimize_for(name), tmp_path, **options)
        assert {"w", "b1", "b2", "dead"} <= set(names(found))
        assert [each.op_type for each in found.graph.node][:4] == ["Relu", "Mul", "Add", "Add"]
        assert "free" not in names(found) or name in ("foldConstants", "mergeEqualWeights",
                                                      "mergeFactors")  # fmt: skip
        assert found.training_info == referring(kind).training_info


def drop(graph: pl.Graph) -> None:
    """Remove a weight that training refers to."""
    del graph.args["dead"]
    graph.remove(graph.find("dead"))


def rename(graph: pl.Graph) -> None:
    """Rename a weight that training refers to."""
    graph.find("w").name = "renamed"


@pytest.mark.parametrize("change", [drop, rename])
@pytest.mark.parametrize("kind", KINDS)
def test_passes_cannot_lose_them(
    kind: str, change: Callable[[pl.Graph], None], tmp_path: Path
) -> None:
    made = pl.load(referring(kind)).optimize_for(pl.graph_pass(change, name=change.__name__))
    found = saved(made, tmp_path)
    assert {"w", "b1", "b2", "dead"} <= set(names(found))


def test_values_that_training_needs_are_missed_by_name(tmp_path: Path) -> None:
    made = model([node("Neg", ["x"], ["a"]), node("Neg", ["a"], ["y"])], [])
    made.training_info.add().algorithm.CopyFrom(
        helper.make_graph([node("Neg", ["a"], ["z"])], "t", [], [described("z", 3)])
    )

    @pl.graph_pass
    def skip_a(graph: pl.Graph) -> None:
        """Let the last node take the input."""
        last = graph.outputs[0].node
        before = last.inputs[0].node
        graph.connect(before.inputs[0], last, 0)
        graph.remove(before)

    with pytest.raises(UnsupportedError, match=r"training information .* 'a'"):
        saved(pl.load(made).optimize_for("skip_a"), tmp_path)


INNER = {
    "removed": ("d", [node("Identity", ["x"], ["d"]), node("Neg", ["d"], ["y"])], ["Neg"]),
    "dead": ("d", [node("Abs", ["x"], ["d"]), node("Neg", ["x"], ["y"])], ["Neg"]),
    "folded": ("d", [node("Neg", ["w"], ["d"]), node("Mul", ["x", "d"], ["y"])], ["Mul"]),
    "fused": (
        "d", [node("MatMul", ["x", "w"], ["d"]), node("Add", ["d", "b"], ["y"])], ["Gemm"],
    ),
    "changed by what follows": (
        "d", [node("Conv", ["x", "w"], ["d"]), node("Mul", ["d", "k"], ["y"])], ["Conv"],
    ),
}  # fmt: skip


def with_inner(case: str, how: str) -> Any:
    """Return a model of which training or an annotation names an inner value."""
    name, nodes, _ = INNER[case]
    shape = {"fused": (3, 3), "changed by what follows": (1, 3, 4)}.get(case, (3,))
    sizes = {"fused": (3, 3), "changed by what follows": (3, 3, 1)}.get(case, (3,))
    two = numpy_helper.from_array(np.array([2], np.float32), "k")
    made = model(nodes, [weight("w", *sizes), weight("b", 3), two, weight("lr")], shape, shape)
    if how == "annotation":
        entry = made.graph.quantization_annotation.add(tensor_name="y")
        entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=name)
        return made
    inside = [] if how == "output" else [node("Mul", [name, "lr"], ["z"])]
    outputs = [described(name if how == "output" else "z", *shape)]
    made.training_info.add().algorithm.CopyFrom(helper.make_graph(inside, "t", [], outputs))
    return made


@pytest.mark.parametrize("how", ["input", "output", "annotation"])
@pytest.mark.parametrize("case", INNER)
def test_standard_passes_keep_inner_values_with_other_references(
    case: str, how: str, tmp_path: Path
) -> None:
    name, nodes, without = INNER[case]
    given = with_inner(case, how)
    for step in ("simplify", "removeDeadNodes", "foldConstants", "foldLinear"):
        found = saved(pl.load(given).optimize_for(step), tmp_path)
        assert name in {value for each in found.graph.node for value in each.output}
        assert [each.op_type for each in found.graph.node] == [each.op_type for each in nodes]
        assert found.training_info == given.training_info
        assert found.graph.quantization_annotation == given.graph.quantization_annotation
    del given.training_info[:], given.graph.quantization_annotation[:]
    found = saved(pl.simplify(pl.load(given)), tmp_path)
    assert [each.op_type for each in found.graph.node] == without


def annotated(nodes: list[Any], only: list[str] | None = None) -> Any:
    made = model(
        nodes,
        [weight("w", 3, 2, 1, 1), weight("sc"), weight("zp"), *(weight(n, 3) for n in "mopq")],
        (1, 2, 4, 4),
        (1, 3, 4, 4),
    )
    for name in only or ["x", *(name for each in nodes for name in each.output)]:
        entry = made.graph.quantization_annotation.add(tensor_name=name)
        entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="sc")
        entry.quant_parameter_tensor_names.add(key="ZERO_POINT_TENSOR", value="zp")
    return made


CONV = node("Conv", ["x", "w"], ["c"])
ANNOTATIONS = {
    "nothing to do": ([CONV, node("Relu", ["c"], ["y"])], None, ["x", "c", "y"]),
    "Identity between": (
        [CONV, node("Identity", ["c"], ["i"]), node("Relu", ["i"], ["y"])], None, ["x", "c", "y"],
    ),
    "Identity at the end": (
        [CONV, node("Relu", ["c"], ["r"]), node("Identity", ["r"], ["y"])], None, ["x", "c", "y"],
    ),
    "of the Identity alone": (
        [CONV, node("Identity", ["c"], ["i"]), node("Relu", ["i"], ["y"])], ["i"], ["c"],
    ),
    "of the output of an Identity alone": (
        [CONV, node("Relu", ["c"], ["r"]), node("Identity", ["r"], ["y"])], ["y"], ["y"],
    ),
    "of what was folded": (
        [CONV, node("BatchNormalization", ["c", *"mopq"], ["n"]), node("Relu", ["n"], ["y"])],
        ["n", "y"], ["c", "y"],
    ),
    "of what was folded into": (
        [CONV, node("BatchNormalization", ["c", *"mopq"], ["n"]), node("Relu", ["n"], ["y"])],
        ["c", "y"], ["y"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ANNOTATIONS)
def test_annotations_stay_with_their_scales(case: str, tmp_path: Path) -> None:
    nodes, only, wanted = ANNOTATIONS[case]
    found = saved(pl.simplify(pl.load(annotated(nodes, only))), tmp_path)
    assert [each.tensor_name for each in found.graph.quantization_annotation] == wanted
    assert {"sc", "zp"} <= set(names(found))


def test_dead_nodes_leave_annotations_alone(tmp_path: Path) -> None:
    nodes, only, wanted = ANNOTATIONS["nothing to do"]
    found = saved(pl.load(annotated(nodes, only)).optimize_for("removeDeadNodes"), tmp_path)
    assert [each.tensor_name for each in found.graph.quantization_annotation] == wanted
    assert {"sc", "zp"} <= set(names(found))


METADATA = {
    "Transposes": (
        [node("Transpose", ["x"], ["a"], perm=[0, 2, 1], name="a"),
         node("Transpose", ["a"], ["b"], perm=[2, 1, 0], name="b"),
         node("Neg", ["b"], ["y"], name="n")],
        [], (2, 3, 4), ["a\nb", "n"],
    ),
    "Conv and BatchNormalization": (
        [node("Conv", ["x", "w"], ["c"], name="c"),
         node("BatchNormalization", ["c", *"mopq"], ["n"], name="n"),
         node("Relu", ["n"], ["y"], name="r")],
        [weight("w", 3, 2, 1, 1), *(weight(n, 3) for n in "mopq")], (1, 2, 4, 4), ["c\nn", "r"],
    ),
    "Conv and Mul": (
        [node("Conv", ["x", "w"], ["c"], name="c"), node("Mul", ["c", "k"], ["y"], name="m")],
        [weight("w", 3, 2, 1, 1), weight("k")], (1, 2, 4, 4), ["c\nm"],
    ),
    "Add and Conv": (
        [node("Add", ["x", "k"], ["c"], name="m"), node("Conv", ["c", "w"], ["y"], name="c")],
        [weight("w", 3, 2, 1, 1), weight("k")], (1, 2, 4, 4), ["m\nc"],
    ),
    "BatchNormalization, Add and Conv": (
        [node("BatchNormalization", ["x", *"mopq"], ["n"], name="n"),
         node("Add", ["n", "m4"], ["a"], name="a"), node("Conv", ["a", "w"], ["y"], name="c")],
        [weight("w", 3, 2, 1, 1), weight("m4"), *(weight(n, 2) for n in "mopq")], (1, 2, 4, 4),
        ["n\na\nc"],
    ),
    "Pad and Conv": (
        [node("Pad", ["x", "p"], ["c"], name="p"), node("Conv", ["c", "w"], ["y"], name="c")],
        [weight("w", 3, 2, 1, 1), numpy_helper.from_array(np.array([0, 0, 1, 1] * 2), "p")],
        (1, 2, 4, 4), ["p\nc"],
    ),
    "Concat of Concat": (
        [node("Concat", ["x", "x"], ["a"], name="a", axis=0),
         node("Concat", ["a", "x"], ["y"], name="b", axis=0)], [], (3,), ["a\nb"],
    ),
    "Casts around Transpose": (
        [node("Cast", ["x"], ["a"], name="a", to=TensorProto.DOUBLE),
         node("Transpose", ["a"], ["b"], name="t", perm=[1, 0]),
         node("Cast", ["b"], ["y"], name="b", to=FLOAT)], [], (2, 3), ["a\nt\nb"],
    ),
    "MatMul and Add": (
        [node("MatMul", ["x", "w"], ["c"], name="c"), node("Add", ["c", "k"], ["y"], name="m")],
        [weight("w", 2, 3), weight("k", 3)], (4, 2), ["c\nm"],
    ),
    "equal nodes": (
        [node("Relu", ["x"], ["a"], name="a"), node("Relu", ["x"], ["b"], name="b"),
         node("Add", ["a", "b"], ["y"], name="s")],
        [], (3,), ["a\nb", "s"],
    ),
    "Identity": (
        [node("Relu", ["x"], ["a"], name="a"), node("Identity", ["a"], ["b"], name="b"),
         node("Neg", ["b"], ["y"], name="n")],
        [], (3,), ["a\nb", "n"],
    ),
    "Relu between Transposes": (
        [node("Transpose", ["x"], ["a"], perm=[0, 2, 1], name="a"),
         node("Relu", ["a"], ["b"], name="b"),
         node("Transpose", ["b"], ["y"], perm=[0, 2, 1], name="c")],
        [], (2, 3, 4), ["a\nb\nc"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", METADATA)
@pytest.mark.parametrize("origins", [False, True])
def test_merged_nodes_have_the_metadata_of_all(case: str, origins: bool, tmp_path: Path) -> None:
    nodes, weights, shape, wanted = METADATA[case]
    made = model(nodes, weights, shape, [None] * len(shape))
    for each in made.graph.node:
        del each.metadata_props[:]
        each.metadata_props.add(key="namespace", value=each.name)
        each.metadata_props.add(key="same", value="one")
    found = saved(pl.simplify(pl.load(made)), tmp_path, origins=origins)
    texts = [{entry.key: entry.value for entry in each.metadata_props} for each in found.graph.node]
    assert [each["namespace"] for each in texts] == wanted
    assert all(each["same"] == "one" for each in texts)
    assert any("__origin__" in each for each in texts) == origins


SLICES = """<int64[1] i = {0}, int64[1] j = {2}, int64[1] k = {6}>
    { a = Slice(x, i, j, i) b = Slice(x, j, k, i) c = Neg(a) d = Abs(b)
      p = Concat<axis = 0>(c, d) }"""


@pytest.mark.parametrize(
    "way", ["save", "to_onnx", "to_onnx_proto", "outline", "nested", "with_opset"]
)
def test_metadata_of_merged_nodes_on_all_ways(way: str, tmp_path: Path) -> None:
    """No way out of a model, or into a nested graph, loses what new nodes stand for."""
    text = f"g (float[6] x) => (float[6] p) {SLICES}"
    if way == "nested":
        text = f"""g (bool c, float[6] x) => (float[6] y) {{ y = If(c) <
            then_branch = t () => (float[6] p) {SLICES},
            else_branch = e () => (float[6] q) {{ q = Neg(x) }}> }}"""
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17]> {text}')
    for graph in graphs_within(made.graph):
        for each in graph.node:
            each.name = f"{each.output[0]}_node"
            each.metadata_props.add(key="namespace", value=each.output[0])
    found = pl.load(made)
    found = found.simplify(cost="bytes") if way == "nested" else found.optimize_for("mergeSlices")
    path = tmp_path / "made.onnx"
    if way == "to_onnx":
        found.to_onnx(path)
    elif way == "to_onnx_proto":
        onnx.save(found.to_onnx_proto(), path)
    else:
        found = pl.outline(found, least=2) if way == "outline" else found
        (found.with_opset(22) if way == "with_opset" else found).save(path)
    nodes = [each for graph in graphs_within(onnx.load(path).graph) for each in graph.node]
    (split,) = (each for each in nodes if each.op_type == "Split")
    assert [(each.key, each.value) for each in split.metadata_props] == [("namespace", "a\nb")]


@pytest.mark.parametrize(
    ("attributes", "code", "sizes"),
    [
        ({"__shape__": "(0, 3, 4)"}, 1, [None, 3, 4]),
        ({"__shape__": "(2, 3, 4)"}, 1, [2, 3, 4]),
        ({"__dtype__": "1"}, 11, [1, 3, 4]),
        ({"__shape__": "(5, 3, 4)", "__dtype__": "2"}, 10, [5, 3, 4]),
        ({"__shape__": "(1, 3, 4)"}, 1, [1, 3, 4]),
    ],
)
def test_a_pass_can_state_the_type_of_an_input(
    attributes: dict[str, str], code: int, sizes: list[Any], tmp_path: Path
) -> None:
    @pl.graph_pass(name="state_type")
    def state_type(graph: pl.Graph) -> None:
        """State another type for the input."""
        for key, text in attributes.items():
            graph.find("x").attrs[key] = text

    made = model([node("Relu", ["x"], ["r"]), node("Neg", ["r"], ["y"])], [], (1, 3, 4), (1, 3, 4))
    changed = pl.load(made).optimize_for("state_type")
    found = saved(changed, tmp_path)
    for value in (found.graph.input[0], found.graph.output[0]):
        kind = value.type.tensor_type
        assert kind.elem_type == code
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        assert dims == sizes
    array = np.ones([size or 7 for size in sizes], helper.tensor_dtype_to_np_dtype(code))
    assert changed.run({"x": array})["y"].shape == array.shape


def test_text_that_is_no_shape_is_an_error(tmp_path: Path) -> None:
    @pl.graph_pass(name="state_nonsense")
    def state_nonsense(graph: pl.Graph) -> None:
        """State what is no shape."""
        graph.find("x").attrs["__shape__"] = "wide"

    made = pl.load(model([node("Relu", ["x"], ["y"])], [])).optimize_for("state_nonsense")
    with pytest.raises(UnsupportedError, match=r"'x'.*wide"):
        saved(made, tmp_path)
