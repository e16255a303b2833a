from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

NodeTuple = tuple[
    str, str, dict[str, str], list[tuple[int, int, int]], int, list[int], list["Graph"]
]

class Graph:
    @staticmethod
    def parse(text: str | bytes, lenient: bool, ordered: bool) -> Graph: ...
    @staticmethod
    def build(nodes: list[Any], heads: list[tuple[int, int, int]]) -> Graph: ...
    def print(self, pretty: bool, attributes: dict[str, str]) -> str: ...
    def check(self) -> None: ...
    def nodes(self) -> list[NodeTuple]: ...
    def heads(self) -> list[tuple[int, int, int]]: ...
    def variables(self, auxiliary: dict[str, list[int]]) -> tuple[list[str], list[str]]: ...
    def operators(self) -> dict[str, int]: ...
    def uses(
        self, names: set[str]
    ) -> list[tuple[str, dict[str, str], str, dict[str, str], int]]: ...
    def doubtful_outputs(
        self, table: OutputTable
    ) -> list[tuple[int, str, dict[str, str], int]]: ...
    def set_outputs(self, counts: list[tuple[int, int]]) -> None: ...
    def set_node_attributes(self, values: list[tuple[int, str, str]]) -> None: ...
    def drop_node_attributes(self, keys: list[str]) -> None: ...
    def attributes(self) -> dict[str, str]: ...
    def copy(self) -> Graph: ...
    def __len__(self) -> int: ...

class OutputTable:
    def __init__(self, fixed: dict[str, int], varying: set[str]) -> None: ...

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
        merge_equal: bool,
        consume: bool,
        ordered: bool,
    ) -> None: ...

def parse_json(text: bytes, types: ModuleType, comments: bool, max_depth: int) -> Any: ...
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
