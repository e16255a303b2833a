"""Settings of ONNX Runtime, as callers give them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from passlib.errors import PasslibError

_LEVELS: Final = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}

_CPU: Final = "CPUExecutionProvider"


class Settings(NamedTuple):
    """How sessions are made. Equal settings share sessions.

    Attributes
    ----------
    providers : tuple of (str, tuple of (str, str))
        Names of execution providers with their options, the preferred one first.
    threads : int or None
        Number of threads for one operator; None leaves it to ONNX Runtime.
    options : tuple of (str, object)
        Attributes of ``onnxruntime.SessionOptions``, and configuration entries, whose names have
        a point.
    optimization : {"all", "extended", "basic", "none"}
        Optimization level.
    """

    providers: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ((_CPU, ()),)
    threads: int | None = None
    options: tuple[tuple[str, Any], ...] = ()
    optimization: str = "all"

    @property
    def on_cpu(self) -> bool:
        """Whether all nodes run on the CPU."""
        return all(name == _CPU for name, _ in self.providers)

    def providers_for(self, runtime: Any) -> list[Any]:
        """Return the providers as ONNX Runtime takes them.

        Raises `PasslibError` if the installed ONNX Runtime lacks one.
        """
        present = runtime.get_available_providers()
        missing = [name for name, _ in self.providers if name not in present]
        if missing:
            raise PasslibError(
                f"ONNX Runtime has no provider {', '.join(map(repr, missing))} here; it has "
                f"{', '.join(present)}"
            )
        return [(name, dict(options)) for name, options in self.providers]

    def session_options(self, runtime: Any) -> Any:
        """Return a new ``onnxruntime.SessionOptions``.

        Raises `PasslibError` if there is no such option or optimization level, or a value does not
        fit.
        """
        if self.optimization not in _LEVELS:
            known = ", ".join(_LEVELS)
            raise PasslibError(f"optimization is one of {known}, not {self.optimization!r}")
        made = runtime.SessionOptions()
        made.log_severity_level = 4
        level = getattr(runtime.GraphOptimizationLevel, _LEVELS[self.optimization])
        made.graph_optimization_level = level
        if self.threads is not None:
            made.intra_op_num_threads = self.threads
        for key, value in self.options:
            _set(made, key, value)
        return made


DEFAULT: Final = Settings()


def settings_of(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    threads: int | None,
    session_options: Mapping[str, Any] | None,
) -> Settings:
    """Return the settings that a caller gives.

    ``providers``: by default the CPU alone. Raises `TypeError` if an argument is of another type.
    """
    if providers is None and threads is None and session_options is None:
        return DEFAULT
    if isinstance(providers, str):
        raise TypeError(f"providers is a sequence of names, such as [{providers!r}]")
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise TypeError(f"threads is {threads!r}, but must be a number from 1 on")
    if session_options is not None and not isinstance(session_options, Mapping):
        raise TypeError(
            f"session_options is of type {type(session_options).__name__}, but must be a "
            "dictionary, such as {'inter_op_num_threads': 2}"
        )
    chosen = DEFAULT.providers if providers is None else tuple(map(_provider, providers))
    options = tuple((session_options or {}).items())
    for key, value in options:
        if not isinstance(value, Hashable):
            raise TypeError(f"session option {key!r} cannot be {value!r}")
    return Settings(chosen, threads, options)


def _provider(
    given: str | tuple[str, Mapping[str, Any]],
) -> tuple[str, tuple[tuple[str, str], ...]]:
    name, options = (given, {}) if isinstance(given, str) else given
    return name, tuple(sorted((key, str(value)) for key, value in options.items()))


def _set(options: Any, key: str, value: Any) -> None:
    if "." in key:
        options.add_session_config_entry(key, str(value))
        return
    known = [n for n in dir(options) if n[0] != "_" and not callable(getattr(options, n))]
    if key not in known:
        raise PasslibError(f"ONNX Runtime has no session option {key!r}; it has {', '.join(known)}")
    try:
        setattr(options, key, value)
    except (TypeError, ValueError) as error:
        raise PasslibError(f"session option {key!r} cannot be {value!r}: {error}") from error
