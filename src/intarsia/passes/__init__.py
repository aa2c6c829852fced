"""Heuristic graph passes, one per file: `IRModule -> IRModule`, decided by rule (DESIGN section 1)."""

from intarsia.passes.partition_whole import partition_whole

__all__ = ["partition_whole"]
