"""Attributes that MXNet stores on any node between double underscores: ``__lr_mult__``, ..."""

from __future__ import annotations

from passlib.errors import GraphError

HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")
"""Attributes of any node that MXNet stores as ``__ctx_group__`` and so on."""


def is_dunder(key: str) -> bool:
    """Whether a key is free for anyone's use: ``__mine__``."""
    return key.startswith("__") and key.endswith("__")


def hidden_on_operator(key: str) -> str:
    """Return the key under which an operator stores an attribute.

    MXNet wraps every key that begins with a hidden one: ``lr_mult`` becomes ``__lr_mult__``.

    Raises
    ------
    GraphError
        The key addresses the variable of an input (``weight_lr_mult``), which operators may not.
    """
    for hidden in HIDDEN:
        if key.startswith(hidden):
            return f"__{key}__"
    _refuse_suffix(key)
    return key


def hidden_on_variable(key: str) -> str:
    """Return the key under which a variable stores an attribute; only whole hidden keys change.

    Raises
    ------
    GraphError
        As for `hidden_on_operator`.
    """
    if key in HIDDEN:
        return f"__{key}__"
    _refuse_suffix(key)
    return key


def _refuse_suffix(key: str) -> None:
    for hidden in HIDDEN:
        if key.endswith(hidden):
            owner = key[: -len(hidden)].rstrip("_")
            message = (
                f"attribute {key!r} would belong to the variable {owner!r}: create it with "
                f"var(..., {hidden}=...) or attr={{'__{hidden}__': ...}} and pass it as an input"
            )
            raise GraphError(message)
