"""The toolchain native: our own code generator, which makes machine code for this very CPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from intarsia.ir import Call, Function, IRModule, Op, TensorType, dim_ranges
from intarsia.native.machine.isa import Isa
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.target import Target
from intarsia.toolchain.native.loader import NativeLoader
from intarsia.toolchain.package import package_availability, require
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable

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
            MissingToolchainError: llvmlite is not usable here.
        """
        require(self)
        from intarsia.toolchain.native.build import load_schedule_log
        from intarsia.toolchain.native.plan import require_library
        from intarsia.toolchain.onnx_compile import compile_onnx

        load_schedule_log(target)
        require_library(target)
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
        from intarsia.native.execution.most_items import MOST_ITEMS
        from intarsia.toolchain.native.batches.batch_source import batch_source
        from intarsia.toolchain.native.batches.item_region import ItemRegion
        from intarsia.toolchain.native.batches.token_source import token_source
        from intarsia.toolchain.native.blob import write_blob
        from intarsia.toolchain.native.build import build_region
        from intarsia.toolchain.native.foreign_kernel import ForeignKernel
        from intarsia.toolchain.native.kernel import NativeKernel

        tokens = token_source(source)
        if tokens is not None:
            region = build_region(source, tokens.carrying, tokens.program_of_one, tokens.tables)
            return self._any_items(source, tokens.region_of_any(region))
        batch = batch_source(source)
        if batch is None:
            region = build_region(source)
            if not _runs_here(region.isa):
                return ForeignKernel(source, region.isa, partial(write_blob, region))
            return NativeKernel(source, region, self.describe_calls)
        if batch.is_any_size:
            region = build_region(batch.of_size(1), batch.carrying)
            axes = tuple(0 if carries else None for carries in batch.carrying)
            return self._any_items(source, ItemRegion(axes, (0,) * len(region.results), MOST_ITEMS, region))
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


def _runs_here(isa: Isa) -> bool:
    return Isa.host_without_compiler().fits(isa)


def _with_batches(function: Function, target: Target, module: IRModule | None) -> Target:
    """Return the target with the sizes that kernels are compiled for, if the batch has any size."""
    from intarsia.toolchain.native.batches.batch_source import sizes_up_to

    ranges = dim_ranges(module["main"]) if module is not None and "main" in module else {}
    if not ranges or target.option("batches") is not None or _is_static(function):
        return target
    sizes = sizes_up_to(max(item.high for item in ranges.values()))
    return target.with_options(batches="+".join(map(str, sizes)))


def _is_static(function: Function) -> bool:
    types = (param.checked_type for param in function.params)
    return all(not isinstance(type_, TensorType) or type_.is_static for type_ in types)
