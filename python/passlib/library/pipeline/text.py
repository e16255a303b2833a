"""Reading the text of a pipeline."""

from __future__ import annotations

import json

from passlib.errors import FormatError
from passlib.library.pipeline.steps import BARE, Repeat, Step, Steps, list_of

_MOST_NESTED = 100
_MOST_TIMES = 1_000_000
_SPACE = " \t\r\n"


def parse(text: str) -> Steps:
    """Read a pipeline: ``removeDeadNodes, fold{level=2, axes=[0, 1]}, repeat<4>(a, b)``.

    Names and values that are no plain words stand in double quotes, as JSON strings.

    Parameters
    ----------
    text : str

    Returns
    -------
    tuple of Step or Repeat

    Raises
    ------
    FormatError
        The text is no pipeline; the message has the place and what was expected there.
    """
    reader = _Reader(text)
    # Repeats in progress: the number of times, and the steps around them.
    open_repeats: list[tuple[int, list[Step | Repeat]]] = []
    steps: list[Step | Repeat] = []
    while True:
        if reader.takes("repeat<"):
            open_repeats.append((reader.times(), steps))
            if len(open_repeats) > _MOST_NESTED:
                raise reader.error(f"repeats nested at most {_MOST_NESTED} deep")
            steps = []
            continue
        steps.append(reader.step())
        while open_repeats and reader.takes(")"):
            times, outer = open_repeats.pop()
            outer.append(Repeat(times, tuple(steps)))
            steps = outer
        if reader.takes(","):
            continue
        if open_repeats:
            raise reader.error("',' or ')'")
        if not reader.at_end():
            raise reader.error("',' or the end")
        return tuple(steps)


class _Reader:
    """The text and a place in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def error(self, expected: str) -> FormatError:
        """Return the error that something else was expected at this place."""
        found = self._text[self._place : self._place + 12]
        after = f"not {found!r}" if found else "but the text ends"
        return FormatError(
            f"pipeline {self._text!r}, character {self._place + 1}: expected {expected}, {after}",
            offset=self._place,
        )

    def at_end(self) -> bool:
        self._skip()
        return self._place == len(self._text)

    def takes(self, word: str) -> bool:
        """Move past a word if it comes next."""
        self._skip()
        if not self._text.startswith(word, self._place):
            return False
        self._place += len(word)
        return True

    def times(self) -> int:
        """Read ``4>(``."""
        place = self._place
        number = self._word("a number of times")
        if not (number.isascii() and number.isdigit() and len(number) < 8):
            self._place = place
            raise self.error("a number of times")
        if not 1 <= int(number) <= _MOST_TIMES:
            self._place = place
            raise self.error(f"a number of times from 1 to {_MOST_TIMES}")
        self._need(">")
        self._need("(")
        return int(number)

    def step(self) -> Step:
        self._skip()
        place = self._place
        name = self._word("the name of a pass")
        options: dict[str, str] = {}
        places: list[int] = []
        if self.takes("{") and not self.takes("}"):
            while True:
                self._skip()
                start = self._place
                key = self._word("the name of an option")
                if key in options:
                    self._place = start
                    raise self.error(f"another option, since {key!r} is given already")
                places.append(start)
                self._need("=")
                options[key] = self._value()
                if self.takes("}"):
                    break
                # As in MLIR, options may also be separated by space alone.
                self.takes(",")
        return Step(name, tuple(options.items()), place, tuple(places))

    def _value(self) -> str:
        self._skip()
        if not self.takes("["):
            return self._word("a value")
        items = []
        while not self.takes("]"):
            items.append(self._word("an item"))
            if not self.takes(",") and self._peek() != "]":
                raise self.error("',' or ']'")
        return list_of(items)

    def _word(self, expected: str) -> str:
        self._skip()
        if self._peek() == '"':
            try:
                word, self._place = json.JSONDecoder().raw_decode(self._text, self._place)
            except ValueError:
                raise self.error(f"{expected} as a JSON string") from None
            return str(word)
        found = BARE.match(self._text, self._place)
        if found is None:
            raise self.error(expected)
        self._place = found.end()
        return found.group()

    def _need(self, character: str) -> None:
        if not self.takes(character):
            raise self.error(repr(character))

    def _peek(self) -> str:
        self._skip()
        return self._text[self._place : self._place + 1]

    def _skip(self) -> None:
        while self._place < len(self._text) and self._text[self._place] in _SPACE:
            self._place += 1
