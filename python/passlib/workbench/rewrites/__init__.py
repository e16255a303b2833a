"""What a pass did, as independent rewrites that can be applied one by one."""

from __future__ import annotations

from passlib.workbench.rewrites.applying import Rewriting
from passlib.workbench.rewrites.splitting import Rewrite, rewrites_between

__all__ = ["Rewrite", "Rewriting", "rewrites_between"]
