from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

class NodeTuple(NamedTuple):
    op: str
    name: str
    attrs: dict[str, str]
    inputs: list[tuple[int, int, int]]
    num_outputs: int
    control_deps: list[int]
    subgraphs: list[Graph]

Bytes = np.ndarray[Any, Any]
Write = Callable[[str], object]

class Graph:
    @staticmethod
    def parse(text: str | bytes, lenient: bool, ordered: bool) -> Graph: ...
    @staticmethod
    def build(nodes: list[Any], heads: list[tuple[int, int, int]]) -> Graph: ...
    def print(self, pretty: bool, attributes: dict[str, str]) -> str: ...
    def check(self) -> None: ...
    def nodes(self) -> list[NodeTuple]: ...
    def heads(self) -> list[tuple[int, int, int]]: ...
    def variables(
        self, auxiliary: dict[str, list[int]], own: dict[int, list[int]] = ...
    ) -> tuple[list[str], list[str]]: ...
    def nodes_with(
        self, operators: set[str]
    ) -> list[tuple[int, str, dict[str, str], int, list[Graph]]]: ...
    def operators(self) -> dict[str, int]: ...
    def uses(
        self, names: set[str]
    ) -> list[tuple[str, dict[str, str], str, dict[str, str], int]]: ...
    def doubtful_outputs(
        self, table: OutputTable
    ) -> list[tuple[int, str, dict[str, str], int, int]]: ...
    def set_outputs(self, counts: list[tuple[int, int]]) -> None: ...
    def set_node_attributes(self, values: list[tuple[int, str, str]]) -> None: ...
    def drop_node_attributes(self, keys: list[str]) -> None: ...
    def equals(self, other: Graph) -> bool: ...
    def attributes(self) -> dict[str, str]: ...
    def copy(self) -> Graph: ...
    def __len__(self) -> int: ...

class OutputTable:
    def __init__(
        self, fixed: dict[str, int], varying: set[str], carrying: set[str] = ...
    ) -> None: ...

class Library:
    def __init__(self, path: str, version: int) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def abi_version(self) -> int: ...
    @property
    def passes(self) -> list[str]: ...
    @property
    def partitioners(self) -> list[tuple[str, list[str]]]: ...
    @property
    def operators(self) -> list[str]: ...
    @property
    def shares_types(self) -> bool: ...
    @property
    def is_ours(self) -> bool: ...

class CallSettings:
    def __init__(
        self,
        *,
        accept_args: bool,
        accept_aux: bool,
        force_json: bool,
        consume: bool,
        ordered: bool,
    ) -> None: ...

class PartitionSettings:
    def __init__(
        self,
        *,
        strategy: int,
        auxiliary: dict[str, list[int]],
        states: dict[int, list[int]],
        merge_equal: bool,
        consume: bool,
        ordered: bool,
    ) -> None: ...

class ComputeSettings:
    def __init__(self, *, node: str, is_forward: bool, check_memory: bool) -> None: ...

InputColumn = tuple[Any, ...]
OutputColumn = tuple[int, int, tuple[int, ...]]
Computed = list[tuple[tuple[int, ...], Bytes, Bytes | None, Bytes | None]]

class CustomOp:
    def __init__(self, library: Library, index: int) -> None: ...
    @property
    def is_subgraph(self) -> bool: ...
    @property
    def is_stateful(self) -> bool: ...
    @property
    def has_backward_function(self) -> bool: ...
    def described(self, what: str, node: str) -> str: ...
    def arity(self, attributes: dict[str, str], node: str, write: Write) -> tuple[int, int]: ...
    def mutated_inputs(
        self, attributes: dict[str, str], num_inputs: int, node: str, write: Write
    ) -> list[int]: ...
    def infer_shapes(
        self,
        attributes: dict[str, str],
        inputs: list[list[int]],
        num_outputs: int,
        node: str,
        write: Write,
    ) -> tuple[list[list[int]], list[list[int]]]: ...
    def infer_types(
        self,
        attributes: dict[str, str],
        inputs: list[int],
        num_outputs: int,
        node: str,
        write: Write,
    ) -> tuple[list[int], list[int]]: ...
    def infer_storage(
        self,
        attributes: dict[str, str],
        inputs: list[int],
        num_outputs: int,
        node: str,
        write: Write,
    ) -> list[int]: ...
    def create_state(
        self,
        attributes: dict[str, str],
        shapes: list[list[int]],
        types: list[int],
        node: str,
        write: Write,
    ) -> OperatorState: ...
    def compute(
        self,
        attributes: dict[str, str],
        settings: ComputeSettings,
        inputs: list[InputColumn],
        outputs: list[OutputColumn],
        write: Write,
    ) -> Computed: ...

class OperatorState:
    @property
    def made_by_create(self) -> bool: ...
    def compute(
        self,
        settings: ComputeSettings,
        inputs: list[InputColumn],
        outputs: list[OutputColumn],
        write: Write,
    ) -> Computed: ...

def seed_random(seed: int) -> None: ...
def differing_arrays(
    pairs: Iterable[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]],
) -> list[int]: ...

class JsonObject(dict[str, Any]):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...

class JsonArray(list[Any]):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...

def parse_json(
    text: bytes, number: Callable[[str], Any], comments: bool, max_depth: int
) -> Any: ...
def run_pass(
    library: Library,
    index: int,
    graph: Graph,
    attributes: dict[str, str],
    options: Sequence[tuple[str, str]],
    args: list[tuple[str, np.ndarray[Any, Any], int]],
    aux: list[tuple[str, np.ndarray[Any, Any], int]],
    settings: CallSettings,
    write: Callable[[str], object],
) -> tuple[
    Graph,
    dict[str, str],
    list[tuple[str, bool, int, tuple[int, ...], np.ndarray[Any, Any]]],
    list[str],
]: ...
def run_partition(
    library: Library,
    index: int,
    graph: Graph,
    attributes: dict[str, str],
    options: Sequence[tuple[str, str]],
    args: list[tuple[str, np.ndarray[Any, Any], int]],
    aux: list[tuple[str, np.ndarray[Any, Any], int]],
    settings: PartitionSettings,
    suffix: Callable[[str, dict[str, str], int, int], str],
    write: Callable[[str], object],
) -> Graph: ...
