"""The weights of a model as a pass in Python reads and changes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.ndarray import NDArray
from passlib.errors import PassResultError, listed
from passlib.library.call import Arrays, Param
from passlib.library.lent import as_lent_array, require_dictionary


class Parameters(MutableMapping[str, "np.ndarray[Any, Any]"]):
    """Arrays by name of their variable. They are read-only; assign an array to change one.

    Nothing is copied, and the caller's dictionary changes when the pass has succeeded only.

    Parameters
    ----------
    kind : {"args", "aux"}
        For messages.
    given : mutable mapping of str to array, or None
        The caller's dictionary. The pass does not see names outside ``names``.
    names : sequence of str
        The variables of the graph, in its order.

    Raises
    ------
    TypeError
        ``given`` is neither None nor a mutable mapping.
    """

    def __init__(
        self, kind: str, given: MutableMapping[str, Any] | None, names: Sequence[str]
    ) -> None:
        require_dictionary(kind, given)
        self._kind = kind
        self._given = given
        self._names = {name: None for name in names if given is not None and name in given}
        self._new: dict[str, np.ndarray[Any, Any]] = {}
        self._deleted: set[str] = set()

    @property
    def accepts_new(self) -> bool:
        """Whether there is a dictionary to put new parameters into."""
        return self._given is not None

    @property
    def params(self) -> list[Param]:
        """Name and array of each, for the inference of shapes; the code of the type is not set."""
        return [(name, self[name], -1) for name in self]

    @property
    def has_new(self) -> bool:
        """Whether the pass set any."""
        return bool(self._new)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name in self._new:
            return self._new[name]
        if self._given is None or name not in self._names:
            raise KeyError(name)
        array: np.ndarray[Any, Any] = np.asarray(
            as_lent_array(f"{self._kind}[{name!r}]", self._given[name])
        ).view()
        array.flags.writeable = False
        return array

    def __setitem__(self, name: str, array: Any) -> None:
        if self._given is None:
            raise PassResultError(
                f"{self._kind}[{name!r}] cannot be set, because optimize_for was given no "
                f"{self._kind}: pass {self._kind}={{}}"
            )
        if not isinstance(name, str):
            raise TypeError(f"{self._kind} are set by the names of variables, not by {name!r}")
        made = np.array(array)
        dtypes.code(made.dtype)  # an error where models have no arrays of this type
        made.flags.writeable = False
        self._new[name] = made
        self._names[name] = None
        self._deleted.discard(name)

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._new.pop(name, None)
        self._deleted.add(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{self._kind}: {listed(list(self))}>"

    def require_variables(self, names: Iterable[str], editor: str) -> None:
        """Check that every array belongs to a variable of the graph.

        Raises
        ------
        PassResultError
            The pass set one that does not.
        """
        stray = sorted(self._new.keys() - set(names))
        if stray:
            raise PassResultError(
                f"{editor} set {self._kind} of variables that the graph does not have: "
                f"{listed(stray)}; add them with graph.add_parameter"
            )

    def commit(self, gone: Sequence[str], new: Arrays, is_parameter: Callable[[str], bool]) -> None:
        """Bring the caller's dictionary up to date; see `Holder.commit`."""
        del new  # which passes in Python do not allocate
        if self._given is None:
            return
        for name, array in self._new.items():
            self._given[name] = np.array(array).view(NDArray)
        for name in {*self._deleted, *filter(is_parameter, gone)}:
            self._given.pop(name, None)
