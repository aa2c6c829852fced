"""Emission of a kernel that calls a library's matrix product, as LLVM IR text.

The kernel has the form of every kernel (`emit`). Its parallel loop has an iteration for each thread or for
each pair of matrices, whichever are more, and each iteration calls the library, which then must use the
calling thread only. The larger extent of the result is divided: then each thread reads the smaller matrix as
a whole, and a part of the larger one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from intarsia.native.graph.library_product import LibraryProduct

SGEMM: Final = "cblas_sgemm"
"""Symbol that the kernel calls."""

_ROW_MAJOR: Final = 101
"""CblasRowMajor of cblas.h."""
_PLAIN: Final = 111
"""CblasNoTrans of cblas.h."""
_TRANSPOSED: Final = 112
"""CblasTrans of cblas.h."""
_STEP: Final = 16
"""Rows or columns by whose multiples a result is divided: a vector of 64 bytes, so that threads share no
cache line of a row."""
_BYTES: Final = 4
"""Size of a float32."""


@dataclass(frozen=True, slots=True)
class _Division:
    """How iterations divide a product.

    Attributes:
        by_rows: Whether rows are divided; else columns.
        parts: Number of parts of each pair of matrices.
        step: Rows or columns of a part; the last part may have fewer.
    """

    by_rows: bool
    parts: int
    step: int


def emit_product(product: LibraryProduct, name: str, threads: int) -> str:
    """Return the LLVM module of a product; its arguments are left, right, the bias if any, and the result.

    Args:
        product: The product.
        name: Name of the kernel.
        threads: Number of threads that the kernel is made for.
    """
    division = _division(product, threads)
    extent = product.shape.batch * division.parts
    count = 4 if product.has_bias else 3
    loads = "\n".join(
        f"  %p{slot}_at = getelementptr i8, ptr %args, i64 {8 * slot}\n"
        f"  %p{slot} = load ptr, ptr %p{slot}_at, align 8"
        for slot in range(count)
    )
    return f"""
declare void @{SGEMM}(i32, i32, i32, i32, i32, i32, float, ptr, i32, ptr, i32, float, ptr, i32)
declare ptr @memcpy(ptr, ptr, i64)

define void @{name}(ptr %args, ptr %runtime) nounwind {{
entry:
  %parallel_for = load ptr, ptr %runtime, align 8
  call void %parallel_for(ptr %runtime, ptr @{name}.body, ptr %args, i64 {extent})
  ret void
}}

define internal void @{name}.body(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {{
entry:
{loads}
  br label %part
part:
  %number = phi i64 [ %begin, %entry ], [ %following, %multiply ]
  %pair = udiv i64 %number, {division.parts}
  %piece = urem i64 %number, {division.parts}
  %first = mul i64 %piece, {division.step}
  %rest = sub i64 {product.shape.rows if division.by_rows else product.shape.columns}, %first
  %is_short = icmp ult i64 %rest, {division.step}
  %count = select i1 %is_short, i64 %rest, i64 {division.step}
{_addresses(product, division)}
{_first_rows(product, division) if product.has_bias else "  br label %multiply"}
multiply:
  %count32 = trunc i64 %count to i32
  call void @{SGEMM}({_arguments(product, division)})
  %following = add i64 %number, 1
  %is_over = icmp uge i64 %following, %end
  br i1 %is_over, label %leave, label %part
leave:
  ret void
}}
"""


def _division(product: LibraryProduct, threads: int) -> _Division:
    """Divide the larger extent of the result among the threads that the batch leaves without work."""
    by_rows = product.shape.rows >= product.shape.columns
    extent = product.shape.rows if by_rows else product.shape.columns
    wanted = -(-threads // product.shape.batch)
    step = -(-extent // wanted)
    step = min(extent, -(-step // _STEP) * _STEP)
    return _Division(by_rows, -(-extent // step), step)


def _addresses(product: LibraryProduct, division: _Division) -> str:
    """Return the addresses of the parts of the matrices: `%left`, `%right` and `%result`."""
    by_rows = division.by_rows
    left = (1 if product.is_left_transposed else product.shape.depth) if by_rows else 0
    right = 0 if by_rows else (product.shape.depth if product.is_right_transposed else 1)
    result = product.shape.columns if by_rows else 1
    places = (
        ("left", "%p0", product.shape.rows * product.shape.depth, left),
        ("right", "%p1", product.shape.depth * product.shape.columns, right),
        ("result", "%p3" if product.has_bias else "%p2", product.shape.rows * product.shape.columns, result),
    )
    lines = []
    for name, base, size, step in places:
        lines += [
            f"  %{name}.pair = mul i64 %pair, {size * _BYTES}",
            f"  %{name}.first = mul i64 %first, {step * _BYTES}",
            f"  %{name}.offset = add i64 %{name}.pair, %{name}.first",
            f"  %{name} = getelementptr i8, ptr {base}, i64 %{name}.offset",
        ]
    return "\n".join(lines)


def _first_rows(product: LibraryProduct, division: _Division) -> str:
    """Return a loop that copies the bias into each row of the result."""
    rows = "%count" if division.by_rows else str(product.shape.rows)
    width = str(product.shape.columns) if division.by_rows else "%count"
    first = "0" if division.by_rows else "%first"
    return f"""
  %bias.first = mul i64 {first}, {_BYTES}
  %bias = getelementptr i8, ptr %p2, i64 %bias.first
  %bias.bytes = mul i64 {width}, {_BYTES}
  br label %copy
copy:
  %row = phi i64 [ 0, %part ], [ %row.following, %copy ]
  %row.offset = mul i64 %row, {product.shape.columns * _BYTES}
  %row.at = getelementptr i8, ptr %result, i64 %row.offset
  %copied = call ptr @memcpy(ptr %row.at, ptr %bias, i64 %bias.bytes)
  %row.following = add i64 %row, 1
  %is_copied = icmp uge i64 %row.following, {rows}
  br i1 %is_copied, label %multiply, label %copy"""


def _arguments(product: LibraryProduct, division: _Division) -> str:
    left = _TRANSPOSED if product.is_left_transposed else _PLAIN
    right = _TRANSPOSED if product.is_right_transposed else _PLAIN
    rows = "%count32" if division.by_rows else str(product.shape.rows)
    columns = str(product.shape.columns) if division.by_rows else "%count32"
    left_stride = product.shape.rows if product.is_left_transposed else product.shape.depth
    right_stride = product.shape.depth if product.is_right_transposed else product.shape.columns
    numbers = ", ".join(
        f"i32 {item}" for item in (_ROW_MAJOR, left, right, rows, columns, product.shape.depth)
    )
    operands = f"ptr %left, i32 {left_stride}, ptr %right, i32 {right_stride}"
    kept = _literal(1.0 if product.has_bias else 0.0)
    return (
        f"{numbers}, {_literal(product.factor)}, {operands}, {kept}, ptr %result, i32 {product.shape.columns}"
    )


def _literal(value: float) -> str:
    """Return a float32 as LLVM writes it: the bits of the float64 with the same value."""
    (rounded,) = struct.unpack("f", struct.pack("f", value))
    return f"float 0x{struct.pack('>d', rounded).hex().upper()}"
