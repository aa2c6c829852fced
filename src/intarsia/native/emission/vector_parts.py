"""Long vectors in parts: instructions have vectors of one width, tiles have several of them side by side."""

from __future__ import annotations

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import vector_type


def vector_part(builder: Builder, text: str, lanes: int, first: int, width: int, element: str = "i32") -> str:
    """Return consecutive lanes of a vector."""
    if lanes == width:
        return text
    kind = vector_type(element, lanes)
    places = ", ".join(f"i32 {lane}" for lane in range(first, first + width))
    return builder.pure(f"shufflevector {kind} {text}, {kind} poison, <{width} x i32> <{places}>")


def joined_vectors(builder: Builder, parts: list[str], width: int, element: str = "i32") -> str:
    """Join a power of two of vectors, two at a time."""
    while len(parts) > 1:
        kind = vector_type(element, width)
        places = ", ".join(f"i32 {lane}" for lane in range(2 * width))
        mask = f"<{2 * width} x i32> <{places}>"
        parts = [
            builder.pure(f"shufflevector {kind} {left}, {kind} {right}, {mask}")
            for left, right in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]
