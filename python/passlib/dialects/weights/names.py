"""The names in a weight file: ``arg:fc_weight`` is an argument, ``aux:bn_moving_mean`` a state.

Source: `mx.model.save_checkpoint` and `HybridBlock.export` of MXNet 1.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeVar

from passlib.errors import FormatError, listed

ARG: Final = "arg:"
AUX: Final = "aux:"

_T = TypeVar("_T")


def bare_name(key: str) -> str:
    """Return a name without the prefix ``arg:`` or ``aux:``, if it has one."""
    return key[len(ARG) :] if key.startswith((ARG, AUX)) else key


def split_names(
    content: Mapping[str, _T], where: str, auxiliary: Collection[str] | None = None
) -> tuple[dict[str, _T], dict[str, _T]]:
    """Sort the content of a weight file into arguments and auxiliary states.

    Parameters
    ----------
    content : mapping
        By name, with ``arg:`` and ``aux:``.
    where : str
        The file, for messages.
    auxiliary : collection of str, optional
        The symbol's auxiliary states, which classify names without prefix.

    Returns
    -------
    args, aux : dict
        Without the prefixes. As in MXNet, names with another prefix (``foo:x``) are dropped.

    Raises
    ------
    FormatError
        A name has no prefix and ``auxiliary`` was not given, or a name occurs twice.
    """
    args: dict[str, _T] = {}
    aux: dict[str, _T] = {}
    for key, value in content.items():
        if key.startswith((ARG, AUX)):
            kind, name = key[: len(ARG)], key[len(ARG) :]
        elif ":" in key and auxiliary is None:
            continue
        elif auxiliary is None:
            raise FormatError(
                f"{where}: the name {key!r} begins with neither {ARG!r} nor {AUX!r}, so it is "
                "unknown whether it is an argument or an auxiliary state; read the file with "
                "passlib.nd.load, or the whole model with passlib.load, which asks the symbol"
            )
        else:
            kind, name = (AUX if key in auxiliary else ARG), key
        target = args if kind == ARG else aux
        if name in target:
            raise FormatError(f"{where}: {name!r} is in the file twice, with a prefix and without")
        target[name] = value
    twice = args.keys() & aux.keys() if auxiliary is not None else ()
    if twice:
        raise FormatError(
            f"{where}: {listed(sorted(twice))} is in the file twice, as an argument and as an "
            "auxiliary state; read both with passlib.nd.load, and save the right one"
        )
    return args, aux


def join_names(args: Mapping[str, _T], aux: Mapping[str, _T]) -> dict[str, _T]:
    """Add the prefixes, arguments first: the reverse of `split_names`."""
    return {
        **{ARG + name: value for name, value in args.items()},
        **{AUX + name: value for name, value in aux.items()},
    }
