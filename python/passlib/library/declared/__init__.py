"""What passes declare about themselves, and how their options are checked by it."""

from __future__ import annotations

from passlib.library.declared.declaration import Declaration, Joins, Lending
from passlib.library.declared.names import PassNames
from passlib.library.declared.option import Kind, Option
from passlib.library.declared.reading import read_declarations

__all__ = ["Declaration", "Joins", "Kind", "Lending", "Option", "PassNames", "read_declarations"]
