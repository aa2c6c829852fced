"""The part of the toolchain native that loads compiled kernels: all that an artifact needs of it.

It imports nothing of the compiler, so that the wheel `intarsia-runtime` contains it (wheels/runtime).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.machine.isa import host_architecture
from intarsia.runtime.availability import Available, Unavailable
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import ArtifactError, CompileError, MissingToolchainError
from intarsia.target import Target
from intarsia.toolchain.native.version import native_version

if TYPE_CHECKING:
    from intarsia.runtime.kernel_profiler import ProfiledKernel
    from intarsia.toolchain.native.region import RegionCall


class NativeLoader:
    """Loads kernels that were compiled before; the subclass `Native` compiles them as well."""

    name: ClassVar[str] = "native"

    def availability(self) -> Available | Unavailable:
        """As `loading_availability`."""
        return self.loading_availability()

    def loading_availability(self) -> Available | Unavailable:
        """Whether kernels run here that were compiled elsewhere, for which no package is needed.

        The version says which kernels are made and what their saved form is.
        """
        try:
            host_architecture()
        except CompileError as error:
            return Unavailable(error.problem)
        return Available(native_version())

    def missing_library(self, target: str) -> str:
        """Return the library that kernels for a target call and that does not work here; "" if none is."""
        from intarsia.toolchain.native.libraries import library_trouble

        library = str(Target(target).option("libs") or "").partition(":")[0]
        return library if library and library_trouble(library) is not None else ""

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        """Make a kernel again: from the blob if it is undamaged and fits this CPU, else from the source.

        Raises:
            ForbiddenSymbolError: The blob calls a function of the process that no kernel needs.
            CompileError: An operator of the source has no native kernel.
            MissingToolchainError: The source must be compiled, and the compiler or llvmlite is missing here.
        """
        return self.compile_source(source) if blob is None else self.load_in_place(source, memoryview(blob))

    def load_in_place(self, source: KernelSource, blob: memoryview) -> Kernel:
        """As `load`; constants of the blob are not copied, so that it must stay as it is.

        Raises:
            ForbiddenSymbolError: The blob calls a function of the process that no kernel needs.
            CompileError: The blob does not fit, and an operator of the source has no native kernel.
            MissingToolchainError: The source must be compiled, and the compiler or llvmlite is missing here.
        """
        from intarsia.native.object_code.process_symbols import ForbiddenSymbolError

        try:
            return self.load_compiled(source, blob)
        except ForbiddenSymbolError:  # no damage, but a forged file
            raise
        except ArtifactError:  # damaged, of another version, or for another CPU: the source says it all
            return self.compile_source(source)

    def load_compiled(self, source: KernelSource, blob: memoryview) -> Kernel:
        """Load a kernel from its compiled form, whose constants are not copied.

        Raises:
            ArtifactError: It is damaged, of another version, or for another CPU.
        """
        from intarsia.toolchain.native.batches.batched_blob import is_batched_blob, read_batched_blob
        from intarsia.toolchain.native.batches.batched_kernel import BatchedKernel
        from intarsia.toolchain.native.batches.item_kernel import ItemKernel
        from intarsia.toolchain.native.batches.item_region import is_item_blob, read_item_blob
        from intarsia.toolchain.native.blob import read_blob
        from intarsia.toolchain.native.images.image_kernel import ImageKernel
        from intarsia.toolchain.native.images.image_region import is_image_blob, read_image_blob
        from intarsia.toolchain.native.kernel import NativeKernel

        if is_batched_blob(blob):
            return BatchedKernel(source, read_batched_blob(blob, source.weights), self.describe_calls)
        if is_item_blob(blob):
            return ItemKernel(source, read_item_blob(blob, source.weights), self.describe_calls)
        if is_image_blob(blob):
            return ImageKernel(source, read_image_blob(blob, source.weights), self.describe_calls)
        return NativeKernel(source, read_blob(blob, source.weights), self.describe_calls)

    def compile_source(self, source: KernelSource) -> Kernel:
        """Refuse to compile a source: the compiler is not part of this class.

        Raises:
            MissingToolchainError: Always.
        """
        raise MissingToolchainError(
            f"a kernel of {source.toolchain} must be compiled again for this machine, and intarsia-runtime "
            "contains no compiler",
            help="pip install 'intarsia[native]', or build the artifact with the same version of Intarsia on "
            "a machine with the same instruction sets",
        )

    def describe_calls(self, source: KernelSource, calls: Sequence[RegionCall]) -> tuple[ProfiledKernel, ...]:
        """Return the kernels of a region for a profile: their names, as only the compiler reads sources."""
        from intarsia.runtime.kernel_profiler import ProfiledKernel

        del source
        return tuple(ProfiledKernel(call.name, is_conversion=call.is_conversion) for call in calls)
