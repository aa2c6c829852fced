"""Products of a warp as LLVM instructions: fragments of both factors from shared memory, then one `mma`.

Each thread of a warp keeps a part of a tile in registers, its fragment, of words of 4 bytes: pairs of
elements for float16 and bfloat16, which `ldmatrix` loads for the whole warp at once, or one float32, which
a thread loads itself and rounds to tf32. Words of two bfloat16, or of four bytes, are a pair of the left
factor, and an element of the right one, whose pairs are in columns. A fragment is loaded once for products
in a row that read one tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Load, Mma
from intarsia.ir.warp import MMA_SUMS, WARP
from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.memory import address_of, load, store
from intarsia.native.emission.scalar import Scalars
from intarsia.native.emission.state import FunctionState
from intarsia.native.emission.types import Value

MATRICES: Final = "llvm.nvvm.ldmatrix.sync.aligned.m8n8"
"""Begin of the names of intrinsics that load fragments."""
MMA: Final = "llvm.nvvm.mma"
"""Begin of the names of intrinsics of products."""
AS_TF32: Final = "llvm.nvvm.f2tf32.rna"
"""Intrinsic that rounds a float32 to 11 significant bits."""
THREAD_NUMBER: Final = "%thread"
"""The number of the thread in its block, an i64."""
_NAMES: Final = {
    DType.BFLOAT16: f"{MMA}.m16n8k16.row.col.bf16",
    DType.INT32: f"{MMA}.m16n8k16.row.col.bf16",
    DType.FLOAT16: f"{MMA}.m16n8k16.row.col.f32.f32",
    DType.FLOAT32: f"{MMA}.m16n8k8.row.col.tf32",
}
BYTES: Final = f"{MMA}.m16n8k32.row.col.u8.s8"
"""Intrinsic of products of words of four bytes, unsigned ones by signed ones, with sums in int32."""
SIGNED_BYTES: Final = f"{MMA}.m16n8k32.row.col.s8.u8"
"""The same, signed bytes by unsigned ones."""
_LEFT_WORDS: Final = 4
_RIGHT_WORDS: Final = 2
_SHARED: Final = 3
"""Number of the address space of shared memory."""
_MATRIX_BYTES: Final = 16
"""Size of a row of the matrices of 8 by 8 elements that `ldmatrix` loads."""


@dataclass(frozen=True, slots=True)
class WarpProducts:
    """Emits the products of one kernel."""

    state: FunctionState
    scalars: Scalars

    def emit(self, mma: Mma) -> None:
        """Emit a product, and the loads of its fragments if they are not there already."""
        is_of_bytes = mma.sums.buffer.dtype is DType.INT32
        name, number = _NAMES[mma.left.buffer.dtype], "float"
        if is_of_bytes:
            name, number = SIGNED_BYTES if mma.is_left_signed else BYTES, "i32"
        words = self._words(mma)
        sums = [f"{number} {self._sum(mma.sums, element)}" for element in range(MMA_SUMS)]
        arguments, kind = ", ".join((*words, *sums)), _struct(number, MMA_SUMS)
        self.state.builder.declare(kind, name, arguments)
        # No thread of the warp may be left out: the call must not move into a guard.
        result = self.state.builder.value_of(f"call {kind} @{name}({arguments}) convergent")
        for element in range(MMA_SUMS):
            text = self.state.builder.pure(f"extractvalue {kind} {result}, {element}")
            self._set_sum(mma.sums, element, text)

    def _words(self, mma: Mma) -> list[str]:
        """Return the words of both fragments, as arguments."""
        match mma.left.buffer.dtype:
            case DType.FLOAT32:
                self.state.builder.declare("i32", AS_TF32, "float 0.0")
                elements = [*self._left_elements(mma.left, "float"), *self._right_elements(mma, "float")]
                return [f"i32 {self._pure(f'call i32 @{AS_TF32}(float {value})')}" for value in elements]
            case DType.INT32:
                words = [*self._left_matrices(mma.left), *self._right_elements(mma, "i32")]
            case DType.FLOAT16:
                words = [*self._left_matrices(mma.left), *self._right_matrices(mma)]
                return [f"<2 x half> {self._pure(f'bitcast i32 {word} to <2 x half>')}" for word in words]
            case _:
                words = [*self._left_matrices(mma.left), *self._right_matrices(mma)]
        return [f"i32 {word}" for word in words]

    def _left_matrices(self, tile: Load) -> list[str]:
        lane = self._lane()
        row, half = self._pure(f"and i64 {lane}, 15"), self._pure(f"lshr i64 {lane}, 4")
        return self._matrices(tile, row, half, _LEFT_WORDS)

    def _right_matrices(self, mma: Mma) -> list[str]:
        lane = self._lane()
        if not mma.is_right_transposed:
            return self._matrices(mma.right, self._pure(f"and i64 {lane}, 15"), None, _RIGHT_WORDS)
        half = self._pure(f"and i64 {self._pure(f'lshr i64 {lane}, 3')}, 1")
        return self._matrices(mma.right, self._pure(f"and i64 {lane}, 7"), half, _RIGHT_WORDS)

    def _matrices(self, tile: Load, row: str, column: str | None, count: int) -> list[str]:
        """Return the words of a fragment, one for each matrix of 8 by 8 elements.

        Args:
            tile: First element of the tile.
            row: Number of the row that this thread names.
            column: Number of 16 bytes before that row's part; None for 0, and matrices that are transposed.
            count: Number of matrices.
        """
        offset = self._pure(f"mul i64 {row}, {self._row_bytes(tile)}")
        if column is not None:
            offset = self._pure(f"add i64 {offset}, {self._pure(f'mul i64 {column}, {_MATRIX_BYTES}')}")
        name = f"{MATRICES}.x{count}{'.trans' if column is None else ''}.b16.p3"
        kind = f"ptr addrspace({_SHARED})"
        address = self._pure(f"addrspacecast ptr {self._address(tile, offset)} to {kind}")
        self.state.builder.declare(_struct("i32", count), name, f"{kind} {address}")
        words = self.state.builder.read(
            f"call {_struct('i32', count)} @{name}({kind} {address})", self._version(tile)
        )
        return [self._pure(f"extractvalue {_struct('i32', count)} {words}, {at}") for at in range(count)]

    def _left_elements(self, tile: Load, kind: str) -> list[str]:
        """Return the elements of 4 bytes of the left fragment."""
        row, column = self._quad()
        shifts = ((0, 0), (8, 0), (0, 4), (8, 4))
        return [self._element(tile, kind, row, column, *shift) for shift in shifts]

    def _right_elements(self, mma: Mma, kind: str) -> list[str]:
        """Return the elements of 4 bytes of the right fragment."""
        group, quad = self._quad()
        if mma.is_right_transposed:
            return [self._element(mma.right, kind, group, quad, 0, shift) for shift in (0, 4)]
        return [self._element(mma.right, kind, quad, group, shift, 0) for shift in (0, 4)]

    def _quad(self) -> tuple[str, str]:
        """Return the number of the thread's four in its warp, and its number among these."""
        lane = self._lane()
        return self._pure(f"lshr i64 {lane}, 2"), self._pure(f"and i64 {lane}, 3")

    def _element(self, tile: Load, kind: str, row: str, column: str, down: int, along: int) -> str:
        """Return the element of a tile in a row and a column, and some rows and columns behind."""
        size, row_bytes = tile.buffer.dtype.numpy.itemsize, self._row_bytes(tile)
        offset = self._pure(f"mul i64 {row}, {row_bytes}")
        offset = self._pure(f"add i64 {offset}, {self._pure(f'mul i64 {column}, {size}')}")
        offset = self._pure(f"add i64 {offset}, {down * row_bytes + along * size}")
        address = self._address(tile, offset)
        return self.state.builder.read(f"load {kind}, ptr {address}, align {size}", self._version(tile))

    def _lane(self) -> str:
        return self._pure(f"and i64 {THREAD_NUMBER}, {WARP - 1}")

    def _row_bytes(self, tile: Load) -> int:
        return tile.buffer.shape[-1] * tile.buffer.dtype.numpy.itemsize

    def _address(self, tile: Load, offset: str) -> str:
        """Return the address so many bytes behind the first element of a tile."""
        first = self.scalars.flat(tile)
        assert isinstance(first, AffineIndex), "no lanes are around a product of a warp"
        address, _ = address_of(self.state, self.state.memory[tile.buffer.name], first)
        return self._pure(f"getelementptr i8, ptr {address}, i64 {offset}")

    def _version(self, tile: Load) -> str:
        name = tile.buffer.name
        return f"{name} {self.state.versions.get(name, 0)}"

    def _sum(self, first: Load, element: int) -> str:
        """Return one of the thread's sums."""
        register = self.state.registers.places.get(first.buffer.name)
        if register is None:
            return load(self.state, self.state.memory[first.buffer.name], self._offset(first, element)).text
        return self.state.registers.read(register, self._offset(first, element).const, 1).text

    def _set_sum(self, first: Load, element: int, text: str) -> None:
        register = self.state.registers.places.get(first.buffer.name)
        if register is None:
            memory, value = self.state.memory[first.buffer.name], Value(text, first.buffer.dtype, 0)
            store(self.state, memory, self._offset(first, element), value)
        else:
            self.state.registers.write(register, self._offset(first, element).const, 1, text)

    def _offset(self, first: Load, element: int) -> AffineIndex:
        offset = self.scalars.flat(first)
        assert isinstance(offset, AffineIndex), "no lanes are around a product of a warp"
        return offset._replace(const=offset.const + element)

    def _pure(self, text: str) -> str:
        return self.state.builder.pure(text)


def _struct(kind: str, count: int) -> str:
    """Return the type of a structure of equal parts."""
    return f"{{ {', '.join([kind] * count)} }}"
