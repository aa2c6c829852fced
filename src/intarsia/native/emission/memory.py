"""Loads and stores of buffers in memory, one scalar or one vector at a time."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.native.emission.affine_index import AffineIndex, add
from intarsia.native.emission.arithmetic import constant_mask, mask_lanes
from intarsia.native.emission.half import from_bfloat_bits, from_half_bits, half_bits, rounded_bfloat_bits
from intarsia.native.emission.prefetch import Prefetch
from intarsia.native.emission.state import FunctionState, MemoryPlace
from intarsia.native.emission.strided_vectors import is_shuffled, merge_parts, part_masks, part_offsets
from intarsia.native.emission.types import (
    Value,
    constant,
    held_type,
    overload,
    shuffle_mask,
    stored_bytes,
    stored_type,
    vector_type,
)

_AHEAD_BYTES: Final = 2048
"""Prefetch distance of streamed buffers in bytes.

Measured: 1024 to 4096 are equally fast, 256 is too short.
"""
_LINE: Final = 64
_FIRST_CACHE: Final = 3
_SECOND_CACHE: Final = 2
"""Locality operand of llvm.prefetch for the second-level cache."""


def element_type(state: FunctionState, dtype: DType, lanes: int = 0) -> str:
    """Return the LLVM type in memory; without instructions for float16 it is an integer."""
    if dtype is DType.FLOAT16 and not state.kernel.has_f16c:
        return vector_type("i16", lanes)
    return stored_type(dtype, lanes)


def _masked_type(state: FunctionState, dtype: DType, lanes: int = 0) -> str:
    """Return the LLVM type for masked loads and stores: x86 masks words, and LLVM no float16 numbers."""
    is_word = dtype is DType.FLOAT16 and state.kernel.isa.architecture == "x86_64"
    return vector_type("i16", lanes) if is_word else element_type(state, dtype, lanes)


def load(state: FunctionState, memory: MemoryPlace, flat: AffineIndex | Value) -> Value:
    """Load the element of each lane at an offset in elements."""
    if memory.private_lanes:
        flat = _private(state, memory, flat)
    if isinstance(flat, Value):
        return _gather(state, memory, flat)
    lanes, version = state.lanes, _version(state, memory)
    if not lanes or not flat.lane:
        address, align = address_of(state, memory, flat)
        kind = element_type(state, memory.dtype)
        return held_value(
            state, state.builder.read(f"load {kind}, ptr {address}, align {align}", version), memory.dtype, 0
        )
    is_free = (memory.private_lanes and flat.lane == 1) or _ends_in_padding(state, memory, flat)
    if state.mask is not None and not is_free:
        return _masked_load(state, memory, flat)
    step = flat.lane
    if step == 1:
        return held_value(state, load_vector(state, memory, flat, lanes), memory.dtype, lanes)
    if step == -1:
        return held_value(state, _reversed(state, memory, flat), memory.dtype, lanes)
    if is_shuffled(step, lanes):
        parts = [
            load_vector(state, memory, flat._replace(const=flat.const + begin), lanes)
            for begin in part_offsets(step, lanes)
        ]
        kind = element_type(state, memory.dtype, lanes)
        return held_value(state, merge_parts(state.builder, kind, parts, step, lanes), memory.dtype, lanes)
    return _strided(state, memory, flat)


def _version(state: FunctionState, memory: MemoryPlace) -> str:
    return f"{memory.name} {state.versions.get(memory.name, 0)}"


def _private(state: FunctionState, memory: MemoryPlace, flat: AffineIndex | Value) -> AffineIndex | Value:
    lanes = memory.private_lanes
    if isinstance(flat, AffineIndex):
        terms = tuple((symbol, coefficient * lanes) for symbol, coefficient in flat.terms)
        return AffineIndex(flat.const * lanes, flat.lane * lanes + 1, terms)
    kind = vector_type("i64", lanes)
    first = state.builder.pure(f"mul {kind} {flat.text}, {constant(lanes, 'i64', lanes)}")
    numbers = "<" + ", ".join(f"i64 {lane}" for lane in range(lanes)) + ">"
    return Value(state.builder.pure(f"add {kind} {first}, {numbers}"), DType.INT64, lanes)


def address_of(state: FunctionState, memory: MemoryPlace, flat: AffineIndex) -> tuple[str, int]:
    """Return the address of the element at an offset in elements, and its alignment in bytes."""
    size = stored_bytes(memory.dtype)
    text = state.symbols.pointer(memory.base, flat.terms, size) if flat.terms else memory.base
    offset = flat.const * size
    bits = memory.align | offset
    for _, coefficient in flat.terms:
        bits |= coefficient * size
    if offset:
        text = state.builder.pure(f"getelementptr i8, ptr {text}, i64 {offset}")
    return text, bits & -bits


def load_vector(state: FunctionState, memory: MemoryPlace, flat: AffineIndex, lanes: int) -> str:
    """Return a vector of contiguous elements from an offset in elements on."""
    address, align = address_of(state, memory, flat)
    kind = element_type(state, memory.dtype, lanes)
    if memory.is_streamed:
        _prefetch_vector(state, address)
    return state.builder.read(f"load {kind}, ptr {address}, align {align}", _version(state, memory))


def _prefetch_vector(state: FunctionState, address: str) -> None:
    """Prefetch the vector that is read some steps later; an address beyond the buffer is harmless."""
    _emit_prefetch(state, address, _AHEAD_BYTES, _FIRST_CACHE)


def prefetch_lines(state: FunctionState, prefetch: Prefetch) -> None:
    """Emit the prefetches of lines that are read much later."""
    memory, flat = state.memory.get(prefetch.buffer), AffineIndex(prefetch.offset)
    if memory is None or any(name not in state.env for name, *_ in prefetch.terms):
        return  # the same loop stands in several places
    for name, step in prefetch.terms:
        flat = add(flat, state.env[name], step)
    address = state.symbols.pointer(memory.base, flat.terms, 1) if flat.terms else memory.base
    if prefetch.carry is not None:
        name, last, more = prefetch.carry
        is_last = state.builder.pure(f"icmp eq i64 {state.symbols.sum(state.env[name])}, {last}")
        carried = state.builder.pure(f"select i1 {is_last}, i64 {more}, i64 0")
        address = state.builder.pure(f"getelementptr i8, ptr {address}, i64 {carried}")
    for pair in range(prefetch.pairs):
        _emit_prefetch(state, address, flat.const + pair * 2 * _LINE, _SECOND_CACHE)


def _emit_prefetch(state: FunctionState, address: str, offset: int, cache: int) -> None:
    later = state.builder.pure(f"getelementptr i8, ptr {address}, i64 {offset}")
    args = f"ptr {later}, i32 0, i32 {cache}, i32 1"
    state.builder.declare("void", "llvm.prefetch.p0", args)
    state.builder.once(f"call void @llvm.prefetch.p0({args})")


def _reversed(state: FunctionState, memory: MemoryPlace, flat: AffineIndex) -> str:
    """Load elements in reverse."""
    lanes = state.lanes
    kind = element_type(state, memory.dtype, lanes)
    first = load_vector(state, memory, flat._replace(const=flat.const - lanes + 1), lanes)
    mask = shuffle_mask(tuple(range(lanes - 1, -1, -1)))
    return state.builder.pure(f"shufflevector {kind} {first}, {kind} poison, {mask}")


def _strided(state: FunctionState, memory: MemoryPlace, flat: AffineIndex) -> Value:
    kind, version = element_type(state, memory.dtype), _version(state, memory)
    texts = []
    for lane in range(state.lanes):
        address, align = address_of(state, memory, AffineIndex(flat.const + lane * flat.lane, 0, flat.terms))
        texts.append(state.builder.read(f"load {kind}, ptr {address}, align {align}", version))
    return held_value(state, state.builder.joined(texts, kind), memory.dtype, state.lanes)


def _lane_pointers(state: FunctionState, memory: MemoryPlace, flat: AffineIndex | Value) -> str:
    """Return the addresses of the lanes' elements as a vector."""
    lanes, size = state.lanes, stored_bytes(memory.dtype)
    if isinstance(flat, AffineIndex):
        base, _ = address_of(state, memory, flat._replace(lane=0))
        numbers = "<" + ", ".join(f"i64 {lane * flat.lane * size}" for lane in range(lanes)) + ">"
        return state.builder.pure(f"getelementptr i8, ptr {base}, <{lanes} x i64> {numbers}")
    kind = element_type(state, memory.dtype)
    offsets = state.builder.splat(flat, lanes)
    return state.builder.pure(f"getelementptr {kind}, ptr {memory.base}, <{lanes} x i64> {offsets}")


def _gather(state: FunctionState, memory: MemoryPlace, flat: Value) -> Value:
    builder, kind, lanes = state.builder, element_type(state, memory.dtype), state.lanes
    if state.mask is not None:
        return _masked_gather(state, memory, flat)
    texts = []
    for lane in range(lanes):
        offset = builder.lane(flat, lane)
        address = builder.pure(f"getelementptr {kind}, ptr {memory.base}, i64 {offset.text}")
        texts.append(
            builder.read(
                f"load {kind}, ptr {address}, align {stored_bytes(memory.dtype)}", _version(state, memory)
            )
        )
    return held_value(state, builder.joined(texts, kind), memory.dtype, lanes)


def _masked_load(state: FunctionState, memory: MemoryPlace, flat: AffineIndex) -> Value:
    assert state.mask is not None  # the caller has looked
    active = mask_lanes(state.mask)
    if is_shuffled(flat.lane, state.lanes) and active is not None:
        kind = element_type(state, memory.dtype, state.lanes)
        parts = [
            load_masked_vector(
                state, memory, flat._replace(const=flat.const + begin), constant_mask(mask).text
            )
            for begin, mask in part_masks(flat.lane, active)
        ]
        text = merge_parts(state.builder, kind, parts, flat.lane, state.lanes)
        return held_value(state, text, memory.dtype, state.lanes)
    if flat.lane != 1:
        return _masked_gather(state, memory, flat)
    text = load_masked_vector(state, memory, flat, state.mask.text)
    return held_value(state, text, memory.dtype, state.lanes)


def load_masked_vector(state: FunctionState, memory: MemoryPlace, flat: AffineIndex, mask: str) -> str:
    """Return a vector of contiguous elements, of which only those of a constant or computed mask are read."""
    builder, lanes = state.builder, state.lanes
    kind, loaded = element_type(state, memory.dtype, lanes), _masked_type(state, memory.dtype, lanes)
    address, align = address_of(state, memory, flat)
    name = f"llvm.masked.load.{overload(_masked_type(state, memory.dtype), lanes)}.p0"
    # LLVM ends the process for PTX of a masked load with other elements than undefined ones.
    is_for_gpu = state.kernel.isa.architecture == "nvptx64"
    others = "poison" if is_for_gpu else "zeroinitializer"
    args = f"ptr {address}, i32 {align}, <{lanes} x i1> {mask}, {loaded} {others}"
    builder.declare(loaded, name, args)
    text = builder.read(f"call {loaded} @{name}({args})", _version(state, memory))
    if not is_for_gpu:
        return text if loaded == kind else builder.pure(f"bitcast {loaded} {text} to {kind}")
    return builder.pure(f"select <{lanes} x i1> {mask}, {kind} {text}, {kind} zeroinitializer")


def _masked_gather(state: FunctionState, memory: MemoryPlace, flat: AffineIndex | Value) -> Value:
    builder, lanes = state.builder, state.lanes
    pointers = _lane_pointers(state, memory, flat)
    kind = element_type(state, memory.dtype, lanes)
    name = f"llvm.masked.gather.{overload(element_type(state, memory.dtype), lanes)}.v{lanes}p0"
    assert state.mask is not None  # the caller has looked
    size = stored_bytes(memory.dtype)
    args = f"<{lanes} x ptr> {pointers}, i32 {size}, <{lanes} x i1> {state.mask.text}, {kind} zeroinitializer"
    builder.declare(kind, name, args)
    text = builder.read(f"call {kind} @{name}({args})", _version(state, memory))
    return held_value(state, text, memory.dtype, lanes)


def store(state: FunctionState, memory: MemoryPlace, flat: AffineIndex | Value, value: Value) -> None:
    """Store a value, or that of each lane, at an offset in elements."""
    if memory.private_lanes:
        flat = _private(state, memory, flat)
    version = state.versions.get(memory.name, 0) + 1
    if not state.lanes:
        assert isinstance(flat, AffineIndex)  # a number that all lanes share is always a sum
        _store_scalar(state, memory, flat, value.text)
    elif isinstance(flat, AffineIndex) and flat.lane == 0 and (state.mask is None or not value.lanes):
        _store_scalar(state, memory, flat, state.builder.lane(value, state.lanes - 1).text)
    elif isinstance(flat, AffineIndex) and flat.lane == 1:
        _store_vector(state, memory, flat, value)
    elif state.mask is not None:
        _scatter(state, memory, flat, value)
    else:
        _store_each(state, memory, flat, value)
    state.versions[memory.name] = version


def _store_scalar(state: FunctionState, memory: MemoryPlace, flat: AffineIndex, text: str) -> None:
    address, align = address_of(state, memory, flat)
    kind = element_type(state, memory.dtype)
    stored = _stored(state, text, memory.dtype, 0)
    state.builder.do(f"store {kind} {stored}, ptr {address}, align {align}")


def _store_vector(state: FunctionState, memory: MemoryPlace, flat: AffineIndex, value: Value) -> None:
    builder, lanes = state.builder, state.lanes
    kind = element_type(state, memory.dtype, lanes)
    stored = _stored(state, builder.splat(value, lanes), memory.dtype, lanes)
    address, align = address_of(state, memory, flat)
    if state.mask is None or _ends_in_padding(state, memory, flat):
        builder.do(f"store {kind} {stored}, ptr {address}, align {align}")
        return
    active = mask_lanes(state.mask)
    if active is not None and "avx512vl" not in state.kernel.isa.features and all(active[: sum(active)]):
        _store_first(state, memory, address, stored, sum(active))
        return
    masked = _masked_type(state, memory.dtype, lanes)
    if masked != kind:
        stored = builder.pure(f"bitcast {kind} {stored} to {masked}")
    name = f"llvm.masked.store.{overload(_masked_type(state, memory.dtype), lanes)}.p0"
    args = f"{masked} {stored}, ptr {address}, i32 {align}, <{lanes} x i1> {state.mask.text}"
    builder.declare("void", name, args)
    builder.do(f"call void @{name}({args})")


def _store_first(state: FunctionState, memory: MemoryPlace, address: str, stored: str, count: int) -> None:
    """Store the first lanes in parts of powers of two: on AMD, masked stores of AVX2 take 20 cycles."""
    builder, begin = state.builder, 0
    whole = element_type(state, memory.dtype, state.lanes)
    while begin < count:
        width = 1 << (count - begin).bit_length() - 1
        kind = element_type(state, memory.dtype, width if width > 1 else 0)
        if width > 1:
            mask = shuffle_mask(tuple(range(begin, begin + width)))
            part = builder.pure(f"shufflevector {whole} {stored}, {whole} poison, {mask}")
        else:
            part = builder.pure(f"extractelement {whole} {stored}, i64 {begin}")
        size = stored_bytes(memory.dtype)
        part_address = (
            builder.pure(f"getelementptr i8, ptr {address}, i64 {begin * size}") if begin else address
        )
        builder.do(f"store {kind} {part}, ptr {part_address}, align {size}")
        begin += width


def _store_each(state: FunctionState, memory: MemoryPlace, flat: AffineIndex | Value, value: Value) -> None:
    builder, kind = state.builder, element_type(state, memory.dtype)
    for lane in range(state.lanes):
        text = builder.lane(value, lane).text
        if isinstance(flat, AffineIndex):
            where = AffineIndex(flat.const + lane * flat.lane, 0, flat.terms)
            _store_scalar(state, memory, where, text)
            continue
        offset = builder.lane(flat, lane).text
        address = builder.pure(f"getelementptr {kind}, ptr {memory.base}, i64 {offset}")
        stored = _stored(state, text, memory.dtype, 0)
        builder.do(f"store {kind} {stored}, ptr {address}, align {stored_bytes(memory.dtype)}")


def _scatter(state: FunctionState, memory: MemoryPlace, flat: AffineIndex | Value, value: Value) -> None:
    """Store the lanes of the mask, in order, so that the last one wins."""
    builder, lanes = state.builder, state.lanes
    kind = element_type(state, memory.dtype, lanes)
    stored = _stored(state, builder.splat(value, lanes), memory.dtype, lanes)
    pointers = _lane_pointers(state, memory, flat)
    assert state.mask is not None  # the caller has looked
    name = f"llvm.masked.scatter.{overload(element_type(state, memory.dtype), lanes)}.v{lanes}p0"
    size = stored_bytes(memory.dtype)
    args = f"{kind} {stored}, <{lanes} x ptr> {pointers}, i32 {size}, <{lanes} x i1> {state.mask.text}"
    builder.declare("void", name, args)
    builder.do(f"call void @{name}({args})")


def held_value(state: FunctionState, text: str, dtype: DType, lanes: int) -> Value:
    """Convert a loaded element to its type in registers."""
    builder = state.builder
    if dtype is DType.FLOAT32:
        return Value(text, dtype, lanes)
    match dtype:
        case DType.BOOL:
            text = builder.pure(f"icmp ne {stored_type(dtype, lanes)} {text}, {constant(0, 'i8', lanes)}")
        case DType.FLOAT16:
            text = from_half_bits(builder, text, lanes, state.kernel.has_f16c)
        case DType.BFLOAT16:
            text = from_bfloat_bits(builder, text, lanes)
    return Value(text, dtype, lanes)


def _stored(state: FunctionState, text: str, dtype: DType, lanes: int) -> str:
    """Convert a value in registers to its type in memory."""
    builder = state.builder
    match dtype:
        case DType.BOOL:
            return builder.pure(f"zext {held_type(dtype, lanes)} {text} to {stored_type(dtype, lanes)}")
        case DType.FLOAT16:
            return half_bits(builder, text, lanes, state.kernel.has_f16c)
        case DType.BFLOAT16:
            return rounded_bfloat_bits(builder, text, lanes)
    return text


def _ends_in_padding(state: FunctionState, memory: MemoryPlace, flat: AffineIndex) -> bool:
    """Return whether all inactive lanes are in the padding after the last element, where a store is harmless.

    A whole vector is forwarded from the store buffer to later loads; a masked store must reach the cache
    first.
    """
    if state.mask is None or not memory.is_padded or memory.private_lanes or flat.terms or flat.lane != 1:
        return False
    active = mask_lanes(state.mask)
    if active is None:
        return False
    count = sum(active)
    return flat.const + count == prod(memory.shape) and all(active[:count])
