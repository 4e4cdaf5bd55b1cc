"""What the test over `op_db` leaves out, and why. Data only."""

from __future__ import annotations

EXCLUDED: dict[str, str] = {}
RANDOM = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}
TOLERANCES: dict[str, float] = {}
SPELLINGS: dict[str, str] = {}
