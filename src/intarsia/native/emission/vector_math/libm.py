"""Calls of C library functions, lane by lane, for functions without vector code."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import vector_type


def each_lane(builder: Builder, name: str, args: Sequence[str], element: str, lanes: int) -> str:
    """Emit calls of a function of the process for each lane of vectors of an LLVM type."""
    builder.module.symbols.add(name)
    if not lanes:
        return builder.call(element, name, ", ".join(f"{element} {arg}" for arg in args))
    kind = vector_type(element, lanes)
    results = []
    for lane in range(lanes):
        parts = [builder.pure(f"extractelement {kind} {arg}, i64 {lane}") for arg in args]
        results.append(builder.call(element, name, ", ".join(f"{element} {part}" for part in parts)))
    return builder.joined(results, element)
