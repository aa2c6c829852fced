"""Compilation of a loop function to a kernel that can be saved and loaded."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from intarsia.ir import DType
from intarsia.ir.prim_func import PrimFunc
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.emission.library_call import emit_product
from intarsia.native.emission.state import AccessSite
from intarsia.native.execution.array_parameter import ArrayParameter, parameters_of
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.graph.library_product import LibraryProduct
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS, CodegenOptions, generate_object_code
from intarsia.native.object_code.kernel_cache import SYMBOL


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel as bytes, with what is needed to load it without the compiler.

    Attributes:
        object_code: A relocatable file that defines SYMBOL.
        isa: Instruction set of the code.
        parameters: Its parameters, in order.
        scratch_bytes: Size of the scratch memory that it needs in each thread, in bytes.
        checks: Description of each index check, in bounds-checked code.
    """

    object_code: bytes = field(repr=False)
    isa: Isa
    parameters: tuple[ArrayParameter, ...]
    scratch_bytes: int = 0
    checks: tuple[str, ...] = ()

    def load(self) -> NativeFunction:
        """Load the kernel into memory.

        Raises:
            ArtifactError: The object code is damaged, or uses what this machine has not.
        """
        _this_machine().require(self.isa)
        return NativeFunction.load(
            self.object_code, SYMBOL, self.parameters, self.scratch_bytes, checks=self.checks
        )


def compile_kernel(
    function: PrimFunc,
    isa: Isa,
    options: CodegenOptions = DEFAULT_OPTIONS,
    *,
    bounds_checked: bool = False,
) -> CompiledKernel:
    """Compile a verified loop function.

    Args:
        function: Loop function that `ir.verify` accepts.
        isa: Instruction set of the code.
        options: Options of the emission of LLVM IR and of the code generator.
        bounds_checked: Whether every index is checked; such a kernel is slow, and runs on one thread.

    Raises:
        CompileError: There is no llvmlite, or it refuses the code.
    """
    emitted = emit_llvm(function, SYMBOL, isa, bounds_checked=bounds_checked, prefetch=options.prefetch)
    return CompiledKernel(
        generate_object_code(emitted.text, isa, options),
        isa,
        parameters_of(function),
        emitted.scratch_bytes,
        tuple(map(_about, emitted.sites)),
    )


def compile_product(
    product: LibraryProduct, shapes: Sequence[tuple[int, ...]], isa: Isa, threads: int
) -> CompiledKernel:
    """Compile a kernel that calls a library.

    Args:
        product: The product.
        shapes: Shapes of the arguments, then of the result.
        isa: Instruction set of the code around the call.
        threads: Number of threads that the kernel is made for.

    Raises:
        CompileError: There is no llvmlite, or it refuses the code.
    """
    last = len(shapes) - 1
    parameters = tuple(
        ArrayParameter(f"p{number}", shape, DType.FLOAT32.numpy, number == last)
        for number, shape in enumerate(shapes)
    )
    return CompiledKernel(generate_object_code(emit_product(product, SYMBOL, threads), isa), isa, parameters)


@functools.cache
def _this_machine() -> Isa:
    return Isa.host_without_compiler()


def _about(site: AccessSite) -> str:
    verb = "written" if site.is_store else "read"
    return f"dimension {site.dimension} of {site.buffer!r}, which is {verb}, has {site.extent} elements"
