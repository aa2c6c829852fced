"""Sums of the products of two words (int32): one instruction where the machine has it.

`dot_u8s8` is the unsigned bytes of one word times the signed bytes of another one, in int32; elsewhere there
are exact sums of 16-bit products. No form saturates: `vpmaddubsw`, which does, is not used.
`dot_s16` is the two signed halves of one word times those of another one, in int32.
`dot_bf16` is the two bfloat16 numbers of one word times those of another one, in float32.
"""

from __future__ import annotations

from typing import Final

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import constant, vector_type
from intarsia.native.emission.vector_parts import joined_vectors, vector_part
from intarsia.native.machine.isa import Isa

_OF_BYTES: Final = "dot_u8s8"
_OF_HALVES: Final = "dot_s16"
_OF_BFLOATS: Final = "dot_bf16"
_VNNI: Final = {16: "llvm.x86.avx512.vpdpbusd.512", 8: "llvm.x86.avx512.vpdpbusd.256"}
_VNNI_128: Final = "llvm.x86.avx512.vpdpbusd.128"
_USDOT: Final = "llvm.aarch64.neon.usdot.v4i32.v16i8"
_PAIRS: Final = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd"}
_BFLOATS: Final = {lanes: f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}" for lanes in (16, 8, 4)}
DOT_OF_GPU: Final = "llvm.nvvm.idp4a.u.s"
"""Intrinsic of NVIDIA's GPUs: unsigned bytes times signed bytes, added to a sum."""
_UPPER: Final = -0x10000
"""Bits of the upper half of a word, which are those of a bfloat16 number in float32."""
_LOWER_BYTE: Final = 0xFF
_BYTE: Final = 8


def is_dot(name: str) -> bool:
    """Return whether an intrinsic is a sum of products of two words."""
    return name in (_OF_BYTES, _OF_HALVES, _OF_BFLOATS)


def dot_of_words(
    builder: Builder, isa: Isa, name: str, words: tuple[str, str], lanes: int, start: str | None = None
) -> str:
    """Emit sums of the products of words, added to other sums.

    Args:
        builder: Builder of the function.
        isa: Instruction set to emit for.
        name: Name of the intrinsic.
        words: Words, i32 in `lanes`; of bytes, first the unsigned ones.
        lanes: Number of lanes; 0 for scalars.
        start: Sums that are added to; None for 0.
    """
    if name == _OF_BFLOATS:
        return _dot_of_bfloats(builder, isa, words, lanes, start)
    if name == _OF_HALVES:
        return _added(builder, start, _dot_of_halves(builder, isa, words, lanes), lanes)
    return _dot_of_bytes(builder, isa, *words, lanes, start)


def _dot_of_bfloats(builder: Builder, isa: Isa, words: tuple[str, str], lanes: int, start: str | None) -> str:
    width = _width(isa, lanes) if isa.has_bf16_dot else 0
    if not width:
        return _by_halves(builder, words, lanes, start)
    kind, numbers = vector_type("float", width), vector_type("bfloat", 2 * width)
    parts = []
    for first in range(0, lanes, width):
        halves = [vector_part(builder, word, lanes, first, width) for word in words]
        given = [builder.pure(f"bitcast {vector_type('i32', width)} {half} to {numbers}") for half in halves]
        zero = constant(0, "float", width)
        sums = zero if start is None else vector_part(builder, start, lanes, first, width, "float")
        args = f"{kind} {sums}, {numbers} {given[0]}, {numbers} {given[1]}"
        parts.append(builder.call(kind, _BFLOATS[width], args))
    return joined_vectors(builder, parts, width, "float")


def _by_halves(builder: Builder, words: tuple[str, str], lanes: int, start: str | None) -> str:
    """Emit the sums by products in float32, on any machine, in the order of the instruction."""
    kind, pure = vector_type("float", lanes), builder.pure
    word, half = vector_type("i32", lanes), constant(16, "i32", lanes)
    upper = [pure(f"and {word} {text}, {constant(_UPPER, 'i32', lanes)}") for text in words]
    lower = [pure(f"shl {word} {text}, {half}") for text in words]
    total = start
    for bits in (upper, lower):
        left, right = (pure(f"bitcast {word} {text} to {kind}") for text in bits)
        product = pure(f"fmul{builder.contract} {kind} {left}, {right}")
        total = product if total is None else pure(f"fadd{builder.contract} {kind} {total}, {product}")
    assert total is not None, "a word has two numbers"
    return total


def _dot_of_bytes(
    builder: Builder, isa: Isa, unsigned: str, signed: str, lanes: int, start: str | None
) -> str:
    if isa.architecture == "nvptx64":
        return _dot_of_gpu(builder, (unsigned, signed), lanes, start)
    width = _width(isa, lanes)
    if not width:
        return _added(builder, start, _by_bytes(builder, unsigned, signed, lanes), lanes)
    parts = [
        _of_vectors(
            builder,
            isa,
            vector_part(builder, unsigned, lanes, first, width),
            vector_part(builder, signed, lanes, first, width),
            width,
            None if start is None else vector_part(builder, start, lanes, first, width),
        )
        for first in range(0, lanes, width)
    ]
    return joined_vectors(builder, parts, width)


def _dot_of_gpu(builder: Builder, words: tuple[str, str], lanes: int, start: str | None) -> str:
    """Emit an instruction of a GPU for each lane."""
    kind = vector_type("i32", lanes)
    sums = constant(0, "i32", lanes) if start is None else start
    if not lanes:
        return builder.call("i32", DOT_OF_GPU, ", ".join(f"i32 {text}" for text in (*words, sums)))
    results = []
    for lane in range(lanes):
        parts = [builder.pure(f"extractelement {kind} {text}, i64 {lane}") for text in (*words, sums)]
        results.append(builder.call("i32", DOT_OF_GPU, ", ".join(f"i32 {part}" for part in parts)))
    return builder.joined(results, "i32")


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
    bytes_ = pure(f"bitcast {kind} {unsigned} to {halves}")
    even = pure(f"and {halves} {bytes_}, {constant(_LOWER_BYTE, 'i16', 2 * lanes)}")
    odd = pure(f"lshr {halves} {bytes_}, {shift}")
    both = pure(f"bitcast {kind} {signed} to {halves}")
    low = pure(f"ashr {halves} {pure(f'shl {halves} {both}, {shift}')}, {shift}")
    high = pure(f"ashr {halves} {both}, {shift}")
    sums = [
        builder.call(kind, _PAIRS[lanes], f"{halves} {left}, {halves} {right}")
        for left, right in ((even, low), (odd, high))
    ]
    return pure(f"add {kind} {sums[0]}, {sums[1]}")


def _dot_of_halves(builder: Builder, isa: Isa, words: tuple[str, str], lanes: int) -> str:
    """Emit the sums by one instruction for both products, or by 32-bit products."""
    width = _width(isa, lanes) if isa.architecture == "x86_64" else 0
    if not width:
        return _by_two_products(builder, words, lanes)
    kind, halves = vector_type("i32", width), vector_type("i16", 2 * width)
    sums = []
    for first in range(0, lanes, width):
        parts = (vector_part(builder, word, lanes, first, width) for word in words)
        left, right = (builder.pure(f"bitcast {kind} {part} to {halves}") for part in parts)
        sums.append(builder.call(kind, _PAIRS[width], f"{halves} {left}, {halves} {right}"))
    return joined_vectors(builder, sums, width)


def _by_two_products(builder: Builder, words: tuple[str, str], lanes: int) -> str:
    kind, pure = vector_type("i32", lanes), builder.pure
    half = constant(2 * _BYTE, "i32", lanes)
    upper = [pure(f"ashr {kind} {word}, {half}") for word in words]
    lower = [pure(f"ashr {kind} {pure(f'shl {kind} {word}, {half}')}, {half}") for word in words]
    products = [pure(f"mul {kind} {left}, {right}") for left, right in (lower, upper)]
    return pure(f"add {kind} {products[0]}, {products[1]}")


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
