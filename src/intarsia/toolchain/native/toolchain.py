"""The toolchain native: our own code generator, which makes machine code for this very CPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from intarsia.ir import Call, Function, IRModule, Op, TensorType, dim_ranges, post_order
from intarsia.native.machine.isa import Isa
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import ArtifactError, CompileError
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.native.loader import NativeLoader
from intarsia.toolchain.package import package_availability, require, require_on
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable
from intarsia.transform import PassContext

if TYPE_CHECKING:
    from intarsia.op.pattern_table import PatternTable
    from intarsia.runtime.kernel_profiler import ProfiledKernel
    from intarsia.toolchain.native.batches.item_region import ItemRegion
    from intarsia.toolchain.native.region import RegionCall


class Native(NativeLoader):
    """Kernels from tensor expressions, a region as one table of calls; see `kernel` for threads.

    What was compiled once is loaded without llvmlite, by `NativeLoader`: sources need it.
    """

    fusion_style: ClassVar[FusionStyle] = FusionStyle.GRAPH
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(opset=26, ir_version=13)
    thread_policy: ClassVar[str] = "native: one pool, workers spin for 0.2 ms, 0.05 behind a run"
    takes_control_flow: ClassVar[bool] = False
    conflicts: ClassVar[frozenset[str]] = frozenset()

    def availability(self) -> Available | Unavailable:
        """Whether llvmlite can be imported, on a machine that it makes kernels for; never raises.

        The version says which kernels are made and what their saved form is.
        """
        found = package_availability("llvmlite", "pip install 'intarsia[native]'")
        return found if isinstance(found, Unavailable) else self.loading_availability()

    def availability_on(self, kind: str) -> Available | Unavailable:
        """As `RunsOnDevices.availability_on`: GPUs need a driver and nothing else."""
        from intarsia.runtime.cuda.gpu_facts import gpus_here

        available = self.availability()
        if isinstance(available, Unavailable) or kind != DeviceType.CUDA.kind:
            return available
        return gpus_here().unavailable or available

    def supports(self, call: Call) -> bool:
        """Operators with a compute rule that covers this form: static shapes, and numbers of whole bytes.

        RNN, GRU and LSTM are made of such operators, where `DecomposeRecurrent` takes them apart.
        """
        from intarsia.native.te.operators import reason_not_covered
        from intarsia.op.opset import ML_DOMAIN
        from intarsia.passes.decompose_ml import ml_obstacle
        from intarsia.passes.decompose_recurrent import recurrent_obstacle
        from intarsia.passes.recurrent.form import is_recurrent
        from intarsia.toolchain.native.counted import counted_obstacle, is_counted

        if is_counted(call):
            return counted_obstacle(call) is None
        if is_recurrent(call):
            return recurrent_obstacle(call) is None
        if isinstance(call.op, Op) and call.op.domain == ML_DOMAIN:
            return ml_obstacle(call) is None
        return reason_not_covered(call) is None

    def patterns(self) -> PatternTable:
        """Return groups of operators that are candidates of Collage as a whole."""
        from intarsia.toolchain.native.patterns import patterns

        return patterns()

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Compile a function.

        Raises:
            CompileError: An operator has no native kernel, a shape other than a batch is known only at run
                time, there is no schedule log with the digest in the target, or the library that it names is
                not installed.
            MissingToolchainError: llvmlite is not usable here, or there is no GPU for a target of GPUs.
        """
        require(self)
        from intarsia.toolchain.onnx_compile import compile_onnx

        if target.kind == DeviceType.CUDA.kind:
            require_on(self, self.name, target.kind)
            return compile_onnx(self, function, target, module)
        _require_what_is_named(target)
        return compile_onnx(self, function, _with_batches(function, target, module), module)

    def compile_source(self, source: KernelSource) -> Kernel:
        """Compile a source.

        The schedule log of its target may be missing, or the library: without them kernels get their default
        schedules.

        Raises:
            CompileError: An operator of the source has no native kernel.
            MissingToolchainError: llvmlite is not usable here.
        """
        require(self)
        if Target(source.target).kind == DeviceType.CUDA.kind:
            from intarsia.toolchain.native.gpu.gpu_kernel import compile_gpu_kernel

            return compile_gpu_kernel(source)
        from intarsia.toolchain.native.kept_programs import program_cache, program_key

        # Instruments watch passes, which do not run on what is loaded.
        key = None if PassContext.current().instruments else program_key(source)
        if key is None:
            return self._compiled(source)
        programs = program_cache()
        kept = programs.get(key)
        if kept is not None:
            try:
                return self.load_compiled(source, kept)
            except ArtifactError:
                programs.remove(key)
        kernel = self._compiled(source)
        programs.put(key, _stored_parts(kernel))
        return kernel

    def _compiled(self, source: KernelSource) -> Kernel:
        """Compile a source for CPUs, whatever was compiled before."""
        from intarsia.toolchain.source_function import source_function

        function = source_function(source)
        if _is_static(function):
            return self._compile_items(source, function)
        from intarsia.toolchain.native.foreign_kernel import ForeignKernel
        from intarsia.toolchain.native.images.image_build import build_image_region
        from intarsia.toolchain.native.images.image_kernel import ImageKernel
        from intarsia.toolchain.native.images.image_region import write_image_blob

        refusal: CompileError | None = None
        try:
            images = build_image_region(source)
        except CompileError as error:
            images, refusal = None, error
        if images is not None:
            if not _runs_here(images.region.isa):
                return ForeignKernel(source, images.region.isa, partial(write_image_blob, images))
            return ImageKernel(source, images, self.describe_calls)
        try:
            return self._compile_items(source, function)
        except CompileError as error:
            if refusal is None:
                raise
            raise refusal from error

    def _compile_items(self, source: KernelSource, function: Function) -> Kernel:
        """Compile a source of static shapes, or for any number of items.

        Args:
            source: The source.
            function: Its program.

        Raises:
            CompileError: An operator of the source has no native kernel.
        """
        from intarsia.toolchain.native.batches.batch_source import batch_source
        from intarsia.toolchain.native.batches.token_source import token_source
        from intarsia.toolchain.native.blob import write_blob
        from intarsia.toolchain.native.build import build_item_region, build_region
        from intarsia.toolchain.native.foreign_kernel import ForeignKernel
        from intarsia.toolchain.native.kernel import NativeKernel

        tokens = token_source(source)
        if tokens is not None:
            built = build_item_region(
                source, tokens.kinds, tokens.program_of_one, tokens.tables, tokens.result_kinds
            )
            return self._any_items(source, tokens.region_of_any(*built))
        batch = batch_source(source)
        if batch is None:
            region = build_region(source, function)
            if not _runs_here(region.isa):
                return ForeignKernel(source, region.isa, partial(write_blob, region))
            return NativeKernel(source, region, self.describe_calls)
        if batch.is_any_size:
            try:
                region, _ = build_item_region(batch.of_size(1), batch.kinds)
                return self._any_items(source, batch.region_of_any(region))
            except CompileError:
                if batch.is_asked_for or not batch.may_be_joined:
                    raise
        from intarsia.toolchain.native.batches.batched_blob import BatchedRegions, write_batched_blob
        from intarsia.toolchain.native.batches.batched_kernel import BatchedKernel

        regions = {size: build_region(batch.of_size(size)) for size in batch.sizes}
        batched, isa = BatchedRegions(batch.carrying, regions), regions[1].isa
        if not _runs_here(isa):
            return ForeignKernel(source, isa, partial(write_batched_blob, batched))
        return BatchedKernel(source, batched, self.describe_calls)

    def _any_items(self, source: KernelSource, region: ItemRegion) -> Kernel:
        """Return the kernel of a region for any number of items."""
        from intarsia.toolchain.native.batches.item_kernel import ItemKernel
        from intarsia.toolchain.native.batches.item_region import write_item_blob
        from intarsia.toolchain.native.foreign_kernel import ForeignKernel

        if not _runs_here(region.region.isa):
            return ForeignKernel(source, region.region.isa, partial(write_item_blob, region))
        return ItemKernel(source, region, self.describe_calls)

    def describe_calls(self, source: KernelSource, calls: Sequence[RegionCall]) -> tuple[ProfiledKernel, ...]:
        """Return the kernels of a region with the nodes of the source that they compute, and their work."""
        from intarsia.toolchain.source_graph import EngineKernel
        from intarsia.toolchain.source_work import describe_kernels

        kernels = [
            EngineKernel(call.name, frozenset(call.nodes), is_conversion=call.is_conversion) for call in calls
        ]
        return describe_kernels(source, kernels)


def _stored_parts(kernel: Kernel) -> list[bytes | memoryview]:
    """Return the compiled form of a kernel in parts."""
    from intarsia.toolchain.native.kernel import NativeKernel

    if isinstance(kernel, NativeKernel):
        return kernel.blob_parts()
    blob = kernel.blob()
    return [] if blob is None else [blob]


def _require_what_is_named(target: Target) -> None:
    """Refuse a target that names a schedule log or a library that is not here.

    What reads them imports the compiler, which a program that was compiled before does not need.
    """
    if target.option("schedules") is not None:
        from intarsia.toolchain.native.build import load_schedule_log

        load_schedule_log(target)
    if target.option("libs") is not None:
        from intarsia.toolchain.native.plan import require_library

        require_library(target)


def _runs_here(isa: Isa) -> bool:
    return Isa.host_without_compiler().fits(isa)


def _with_batches(function: Function, target: Target, module: IRModule | None) -> Target:
    """Return the target with the sizes that kernels are compiled for, if the batch has any size."""
    from intarsia.toolchain.native.batches.batch_source import prefers_any_size, sizes_up_to

    ranges = dim_ranges(module["main"]) if module is not None and "main" in module else {}
    if not ranges or target.option("batches") is not None or _is_static(function):
        return target
    if prefers_any_size(node.name for node in post_order(function) if isinstance(node, Op)):
        return target
    sizes = sizes_up_to(max(item.high for item in ranges.values()))
    return target.with_options(batches="+".join(map(str, sizes)))


def _is_static(function: Function) -> bool:
    types = (param.checked_type for param in function.params)
    return all(not isinstance(type_, TensorType) or type_.is_static for type_ in types)
