"""Functions of the C library, called lane by lane where there is no code of our own."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import vector_type


def each_lane(builder: Builder, name: str, args: Sequence[str], element: str, lanes: int) -> str:
    """A function of the process applied to each lane of vectors of an LLVM type."""
    builder.module.symbols.add(name)
    if not lanes:
        return builder.call(element, name, ", ".join(f"{element} {arg}" for arg in args))
    kind = vector_type(element, lanes)
    results = []
    for lane in range(lanes):
        parts = [builder.pure(f"extractelement {kind} {arg}, i64 {lane}") for arg in args]
        results.append(builder.call(element, name, ", ".join(f"{element} {part}" for part in parts)))
    return builder.joined(results, element)
