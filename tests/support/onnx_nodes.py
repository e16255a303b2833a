"""Models of one or two random nodes; as a program, infers their types in limited memory.

Run as ``python onnx_nodes.py COUNT [FIRST]``: the last number it prints is the seed of the model
that it was at.
"""

from __future__ import annotations

import random
import resource
import sys
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, defs

from passlib.dialects.onnx.soundness.inference import inferred
from passlib.errors import GraphError
from sanitized import limit_address_space

SCHEMAS = [s for s in defs.get_all_schemas_with_history() if s.domain in ("", "ai.onnx.ml")]
NUMBERS = [0, 1, 2, 3, -1, -2, 4, 5, 7, -8, 100, 10**8, 2**31 - 1, 2**31, 2**32, -(2**31), 2**62,
           2**63 - 1, -(2**63)]  # fmt: skip
REALS = [0.0, 0.5, -1.0, 1e30, float("nan"), float("inf"), 2.0]
KINDS = [1, 1, 1, 7, 7, 6, 9, 10, 11, 8, 2, 3, 16, 0, 22, 99]
TEXTS = [b"", b"NOTSET", b"SAME_UPPER", b"VALID", b"ij,jk->ik", b"...i->i", b"iiiii->", b"->", b",",
         b"...,...->...", b"floor", b"linear", b"cubic", b"nearest", b"bidirectional"]  # fmt: skip
TYPES = {7: np.int64, 1: np.float32, 6: np.int32, 9: np.bool_, 11: np.float64}


class Source:
    """Random parts of a model."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def several(self, choices: Any, most: int) -> list[Any]:
        return [self.random.choice(choices) for _ in range(self.random.randint(0, most))]

    def tensor(self, name: str) -> TensorProto:
        code = self.random.choice(list(TYPES))
        dims = self.several([0, 1, 2, 3, 4, 5], 3 if self.chance(0.4) else 1)
        count = int(np.prod(dims)) if dims else 1
        numbers = [self.random.choice(NUMBERS) for _ in range(count)]
        made = TensorProto(name=name, data_type=code, dims=dims)
        with np.errstate(all="ignore"):
            made.raw_data = np.array(numbers, np.int64).astype(TYPES[code]).tobytes()
        if self.chance(0.1):
            made.dims.append(self.random.choice(NUMBERS))
        return made

    def describe(self, value: Any) -> None:
        kind = self.random.random()
        if kind < 0.9:
            tensor = value.type.tensor_type
        elif kind < 0.95:
            tensor = value.type.sequence_type.elem_type.tensor_type
        elif kind < 0.98:
            tensor = value.type.optional_type.elem_type.tensor_type
        else:
            value.type.map_type.key_type = 7
            tensor = value.type.map_type.value_type.tensor_type
        tensor.elem_type = self.random.choice(KINDS)
        if self.chance(0.9):
            tensor.shape.SetInParent()
            for size in self.several([1, 2, 3, 4, 8, *NUMBERS, None, "n"], 5):
                dim = tensor.shape.dim.add()
                if isinstance(size, int):
                    dim.dim_value = size
                elif size:
                    dim.dim_param = size

    def body(self) -> Any:
        graph = onnx.GraphProto(name="body")
        for number in range(self.random.randint(0, 4)):
            value = graph.input.add(name=f"inner{number}")
            if self.chance(0.5):
                self.describe(value)
        names = [*(value.name for value in graph.input), "i0", "i1"]
        for number in range(self.random.randint(0, 3)):
            op = self.random.choice(["Identity", "Shape", "Relu"])
            graph.node.add(op_type=op, input=[self.random.choice(names)], output=[f"made{number}"])
            names.append(f"made{number}")
        for name in self.several(names, 4):
            value = graph.output.add(name=name)
            if self.chance(0.5):
                self.describe(value)
        return graph

    def attribute(self, node: Any, name: str, kind: int) -> None:
        made = node.attribute.add(name=name)
        made.type = kind = self.random.randint(1, 8) if self.chance(0.05) else kind
        if kind == made.FLOAT:
            made.f = self.random.choice(REALS)
        elif kind == made.INT:
            made.i = self.random.choice(NUMBERS)
        elif kind == made.STRING:
            made.s = self.random.choice(TEXTS)
        elif kind == made.TENSOR:
            made.t.CopyFrom(self.tensor("t"))
        elif kind == made.GRAPH:
            made.g.CopyFrom(self.body())
        elif kind == made.FLOATS:
            made.floats.extend(self.several(REALS, 4))
        elif kind == made.INTS:
            made.ints.extend(self.several(NUMBERS, 6))
        elif kind == made.STRINGS:
            made.strings.extend(self.several(TEXTS, 3))
        elif kind == made.TYPE_PROTO:
            value = onnx.ValueInfoProto()
            self.describe(value)
            made.tp.CopyFrom(value.type)

    def count(self, low: int, high: int) -> int:
        low = min(low, 5)
        return (
            self.random.randint(low, min(high, 6))
            if self.chance(0.8)
            else self.random.randint(0, 6)
        )

    def model(self) -> Any:
        schema = self.random.choice(SCHEMAS)
        model = onnx.ModelProto(ir_version=10)
        model.opset_import.add(domain=schema.domain, version=schema.since_version)
        if schema.domain:
            model.opset_import.add(domain="", version=22)
        graph = model.graph
        node = graph.node.add(op_type=schema.name, domain=schema.domain)
        for number in range(self.count(schema.min_input, schema.max_input)):
            name = "" if self.chance(0.05) else f"i{number}"
            node.input.append(name)
            if name and self.chance(0.45):
                graph.initializer.append(self.tensor(name))
            elif name:
                self.describe(graph.input.add(name=name))
        node.output.extend(
            f"o{number}" for number in range(self.count(schema.min_output, schema.max_output))
        )
        for value in schema.attributes.values():
            if self.chance(0.9 if value.required else 0.45):
                self.attribute(node, value.name, value.type.value)
        for name in node.output:
            value = graph.output.add(name=name)
            if self.chance(0.3):
                self.describe(value)
        if node.output and self.chance(0.3):
            self.describe(graph.input.add(name="data"))
            pair = ["data", node.output[0]]
            self.random.shuffle(pair)
            graph.node.add(op_type="GatherND", input=pair, output=["gathered"])
        return model


def main(count: int, first: int) -> None:
    """Infer the types of models, in at most 3 GB of address space."""
    limit_address_space(3 << 30)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for seed in range(first, first + count):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        model = Source(seed).model()
        try:
            inferred(model)
        except GraphError as error:
            if "memory" in str(error):
                raise


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
