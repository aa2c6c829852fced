"""Sums of four products of bytes: one instruction where the machine has it, else exact sums of 16-bit ones.

The unsigned bytes of one word (int32) times the signed bytes of another one. No form saturates: `vpmaddubsw`,
which does, is not used.
"""

from __future__ import annotations

from typing import Final

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import constant, vector_type
from intarsia.native.machine.isa import Isa

_DOT: Final = "dot_u8s8"
_VNNI: Final = {16: "llvm.x86.avx512.vpdpbusd.512", 8: "llvm.x86.avx512.vpdpbusd.256"}
_VNNI_128: Final = "llvm.x86.avx512.vpdpbusd.128"
_USDOT: Final = "llvm.aarch64.neon.usdot.v4i32.v16i8"
_PAIRS: Final = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd"}
_EVEN_BYTES: Final = 0x00FF00FF
_BYTE: Final = 8


def is_dot(name: str) -> bool:
    """Return whether an intrinsic is a sum of products of bytes."""
    return name == _DOT


def dot_of_bytes(
    builder: Builder, isa: Isa, unsigned: str, signed: str, lanes: int, start: str | None = None
) -> str:
    """Emit sums of four products, added to other sums.

    Args:
        builder: Builder of the function.
        isa: Instruction set to emit for.
        unsigned: Words of four unsigned bytes, i32 in `lanes`.
        signed: Words of four signed bytes.
        lanes: Number of lanes; 0 for scalars.
        start: Sums that are added to; None for 0.
    """
    width = _width(isa, lanes)
    if not width:
        return _added(builder, start, _by_bytes(builder, unsigned, signed, lanes), lanes)
    parts = [
        _of_vectors(
            builder,
            isa,
            _part(builder, unsigned, lanes, first, width),
            _part(builder, signed, lanes, first, width),
            width,
            None if start is None else _part(builder, start, lanes, first, width),
        )
        for first in range(0, lanes, width)
    ]
    return _whole(builder, parts, width)


def _width(isa: Isa, lanes: int) -> int:
    """Return the lanes of the widest vectors with instructions that `lanes` consist of; 0 for none."""
    most = min(isa.vector_bytes // 4, 16) if isa.architecture == "x86_64" else 4
    if most == 16 and not {"avx512vnni", "avx512bw"} & set(isa.features):
        most = 8
    if most == 8 and "avx2" not in isa.features:
        most = 4
    if isa.architecture == "aarch64" and "i8mm" not in isa.features:
        return 0
    return next((width for width in (16, 8, 4) if width <= most and lanes and lanes % width == 0), 0)


def _of_vectors(builder: Builder, isa: Isa, unsigned: str, signed: str, lanes: int, start: str | None) -> str:
    name = _instruction(isa, lanes)
    if name is None:
        return _added(builder, start, _by_pairs(builder, unsigned, signed, lanes), lanes)
    kind, bytes_ = vector_type("i32", lanes), vector_type("i8", 4 * lanes)
    left = builder.pure(f"bitcast {kind} {unsigned} to {bytes_}")
    right = builder.pure(f"bitcast {kind} {signed} to {bytes_}")
    sums = constant(0, "i32", lanes) if start is None else start
    return builder.call(kind, name, f"{kind} {sums}, {bytes_} {left}, {bytes_} {right}")


def _instruction(isa: Isa, lanes: int) -> str | None:
    """Return the instruction for vectors of this width; None if the machine has none."""
    if isa.architecture == "aarch64":
        return _USDOT
    has_short = "avxvnni" in isa.features or {"avx512vnni", "avx512vl"} <= set(isa.features)
    if lanes == 16 and "avx512vnni" in isa.features:
        return _VNNI[lanes]
    return {**_VNNI, 4: _VNNI_128}[lanes] if lanes < 16 and has_short else None


def _by_pairs(builder: Builder, unsigned: str, signed: str, lanes: int) -> str:
    """Emit the sums by products of 16-bit integers: even bytes and odd bytes, each pair summed in 32 bits."""
    kind, halves = vector_type("i32", lanes), vector_type("i16", 2 * lanes)
    pure, shift = builder.pure, constant(_BYTE, "i16", 2 * lanes)
    mask = constant(_EVEN_BYTES, "i32", lanes)
    even = pure(f"and {kind} {unsigned}, {mask}")
    moved = pure(f"lshr {kind} {unsigned}, {constant(_BYTE, 'i32', lanes)}")
    odd = pure(f"and {kind} {moved}, {mask}")
    both = pure(f"bitcast {kind} {signed} to {halves}")
    low = pure(f"ashr {halves} {pure(f'shl {halves} {both}, {shift}')}, {shift}")
    high = pure(f"ashr {halves} {both}, {shift}")
    sums = [
        builder.call(
            kind, _PAIRS[lanes], f"{halves} {pure(f'bitcast {kind} {left} to {halves}')}, {halves} {right}"
        )
        for left, right in ((even, low), (odd, high))
    ]
    return pure(f"add {kind} {sums[0]}, {sums[1]}")


def _by_bytes(builder: Builder, unsigned: str, signed: str, lanes: int) -> str:
    """Emit the sums by four products of 32-bit integers, on any machine."""
    kind, pure = vector_type("i32", lanes), builder.pure
    top = constant(3 * _BYTE, "i32", lanes)
    total = ""
    for number in range(4):
        left = pure(f"lshr {kind} {unsigned}, {constant(number * _BYTE, 'i32', lanes)}")
        left = pure(f"and {kind} {left}, {constant(255, 'i32', lanes)}")
        right = pure(f"shl {kind} {signed}, {constant((3 - number) * _BYTE, 'i32', lanes)}")
        product = pure(f"mul {kind} {left}, {pure(f'ashr {kind} {right}, {top}')}")
        total = pure(f"add {kind} {total}, {product}") if total else product
    return total


def _added(builder: Builder, start: str | None, sums: str, lanes: int) -> str:
    return sums if start is None else builder.pure(f"add {vector_type('i32', lanes)} {start}, {sums}")


def _part(builder: Builder, text: str, lanes: int, first: int, width: int) -> str:
    """Return consecutive lanes of a vector."""
    if lanes == width:
        return text
    kind = vector_type("i32", lanes)
    places = ", ".join(f"i32 {lane}" for lane in range(first, first + width))
    return builder.pure(f"shufflevector {kind} {text}, {kind} poison, <{width} x i32> <{places}>")


def _whole(builder: Builder, parts: list[str], width: int) -> str:
    """Join a power of two of vectors, two at a time."""
    while len(parts) > 1:
        kind = vector_type("i32", width)
        places = ", ".join(f"i32 {lane}" for lane in range(2 * width))
        mask = f"<{2 * width} x i32> <{places}>"
        parts = [
            builder.pure(f"shufflevector {kind} {left}, {kind} {right}, {mask}")
            for left, right in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]
