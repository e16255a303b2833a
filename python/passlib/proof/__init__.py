"""Proofs of rules for all sizes, and counterexamples of wrong ones."""

from __future__ import annotations

from passlib.proof.counterexamples import Counterexample
from passlib.proof.outcomes import Outcome, prove

__all__ = ["Counterexample", "Outcome", "prove"]
