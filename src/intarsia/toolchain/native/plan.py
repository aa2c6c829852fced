"""From the source of a kernel to its plan: what is compiled, and what a search for schedules is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from intarsia.ir import Call, DType, Function, Op, TensorType, post_order
from intarsia.ir.rule_errors import named_node
from intarsia.native.graph import (
    ConvolutionAlgorithms,
    KernelDecisions,
    PlanOptions,
    RegionPlan,
    WeightStorage,
    plan_region,
)
from intarsia.native.graph.library_use import NO_LIBRARY, LibraryUse
from intarsia.native.graph.plan_region import weight_bytes
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import named_cpu
from intarsia.native.machine.relative_costs import RelativeCosts, relative_costs
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS, CodegenOptions, IrPasses
from intarsia.passes.decompose_recurrent import recurrent_obstacle
from intarsia.passes.recurrent.form import is_recurrent
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native.checked import with_index_checks
from intarsia.toolchain.native.counted import with_counted_results
from intarsia.toolchain.native.counted_result import CountedResult
from intarsia.toolchain.native.index_check import IndexCheck
from intarsia.toolchain.native.libraries import library_trouble
from intarsia.toolchain.native.simplified import simplified
from intarsia.toolchain.native.source_context import source_context
from intarsia.toolchain.source_function import source_function


@dataclass(frozen=True, slots=True)
class PlannedRegion:
    """A source before its kernels are compiled.

    Attributes:
        isa: Instruction set of the kernels.
        options: LLVM options for their code.
        threads: Number of threads that run them.
        names: Names of the parameters.
        plan: The kernels, in order.
        counted: Results that the plan gives as counted vectors.
        checks: Range checks of indices; the results that they compare stand behind those of the source.
    """

    isa: Isa
    options: CodegenOptions
    threads: int
    names: tuple[str, ...]
    plan: RegionPlan
    counted: tuple[CountedResult, ...]
    checks: tuple[IndexCheck, ...]


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What the target of a source says about its kernels.

    Attributes:
        isa: Instruction set of the kernels.
        options: LLVM options for their code.
        threads: Number of threads that run them.
    """

    isa: Isa
    options: CodegenOptions
    threads: int

    @property
    def lanes(self) -> int:
        """Number of channels of a block of float32."""
        return self.isa.vector_bytes // DType.FLOAT32.numpy.itemsize


def plan_settings(source: KernelSource) -> PlanSettings:
    """Return what the target of a source says about its kernels.

    Raises:
        CompileError: It switches optimisations off, or names a CPU that is not known.
    """
    target = Target(source.target)
    if target.option("optimize", 1) == 0:
        raise CompileError("native cannot switch its optimisations off", help="leave out -optimize=0")
    options = CodegenOptions(
        IrPasses(target.option("llvm_passes", "none")),
        target.option("llvm_level", DEFAULT_OPTIONS.level),
        target.option("prefetch", True),
    )
    return PlanSettings(_isa(target), options, _threads(target))


def planned_region(
    source: KernelSource,
    *,
    in_place: bool = True,
    program: Function | None = None,
    for_gpu: bool = False,
) -> PlannedRegion:
    """The plan of a source for this machine.

    Args:
        source: Source of static shapes.
        in_place: Whether Concat and Slice may be computed in place.
        program: Program that computes the same, of static shapes; that of the source if not given.
        for_gpu: Whether kernels for GPUs are made of the plan.

    Raises:
        CompileError: An operator has no native kernel, or a shape is not known.
    """
    target, settings = Target(source.target), plan_settings(source)
    isa, threads = settings.isa, settings.threads
    function = source_function(source) if program is None else program
    checks: tuple[IndexCheck, ...] = ()
    if target.option("checked", False):
        function, checks = with_index_checks(function)
    _refuse_recurrent(function)
    _refuse_uneven_reshapes(function)  # before rules that trust them drop some
    function = simplified(function, source_context(source))
    _refuse_uneven_reshapes(function)  # those of shapes that are computed
    function, counted = with_counted_results(function)
    # GPUs sum words of channels of plain tensors, and multiply float16 numbers as they are.
    options = replace(
        _plan_options(target, threads, in_place), has_channel_words=for_gpu, widens_halves=not for_gpu
    )
    try:
        plan = plan_region(function, isa, options)
    except CompileError as error:
        refusal = CompileError(f"native cannot compile this: {error.problem}", help=error.help)
        for note in getattr(error, "__notes__", ()):
            refusal.add_note(note)
        raise refusal from error
    names = tuple(param.name for param in function.params)
    return PlannedRegion(isa, settings.options, threads, names, plan, counted, checks)


def _refuse_recurrent(function: Function) -> None:
    """Refuse recurrent layers that `simplified` leaves as they are, for which there are no kernels.

    Raises:
        CompileError: There is one; the message says why it is left.
    """
    for expr in post_order(function.body):
        if isinstance(expr, Call) and is_recurrent(expr):
            reason = recurrent_obstacle(expr)
            if reason is not None:
                with named_node(expr):
                    raise CompileError(f"native cannot compile this: {reason}")


def _refuse_uneven_reshapes(function: Function) -> None:
    """Refuse calls of Reshape to a shape of another size: a kernel would read the first elements, or beyond.

    Exporters that fix the sizes of one example write such calls, which no other sizes fit.

    Raises:
        CompileError: There is one; the message has both shapes.
    """
    for expr in post_order(function.body):
        if not (isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op) == "Reshape"):
            continue
        given, result = expr.args[0].checked_type, expr.checked_type
        if not (isinstance(given, TensorType) and isinstance(result, TensorType)):
            continue
        if not (given.is_static and result.is_static):
            continue
        if prod(given.static_shape) != prod(result.static_shape):
            with named_node(expr):
                raise CompileError(
                    f"native cannot compile this: {given.static_shape} cannot be reshaped to "
                    f"{result.static_shape}, which has another number of elements"
                )


def _plan_options(target: Target, threads: int, in_place: bool) -> PlanOptions:
    return PlanOptions(
        target.option("blocked", True),
        target.option("fused", True),
        ConvolutionAlgorithms.parse(target.option("convolutions", "auto")),
        WeightStorage(target.option("weights", WeightStorage.F32.value)),
        target.option("attention", True),
        _libraries(target),
        KernelDecisions.parse(str(target.option("decisions") or "")),
        threads,
        in_place,
        target.option("multiply_in", "float32") == DType.BFLOAT16.value,
    )


def library_use(target: Target) -> LibraryUse:
    """Return the products that the library of a target computes, whether it works here or not."""
    text = target.option("libs")
    return NO_LIBRARY if text is None else LibraryUse.parse(str(text))


def require_library(target: Target) -> None:
    """Do nothing if the library that a target names works here.

    Raises:
        CompileError: It does not; the message says how to install it.
    """
    name = library_use(target).library
    trouble = library_trouble(name) if name else None
    if trouble is not None:
        raise CompileError(f"-libs={name} is not usable here: {trouble.reason}", help=trouble.help)


def _libraries(target: Target) -> LibraryUse:
    """Products that a library computes: none where it is missing, as on another machine."""
    use = library_use(target)
    return use if use.library and library_trouble(use.library) is None else NO_LIBRARY


def costs_of(target: Target, function: Function) -> RelativeCosts:
    """Return the costs of this machine by which the algorithms of a function's kernels are estimated."""
    return relative_costs(_isa(target), _threads(target), weight_bytes(function))


def _threads(target: Target) -> int:
    return target.option("threads", usable_cores(Path("/")))


def _isa(target: Target) -> Isa:
    """What kernels for a target may use of this machine, or of the CPU that the target names."""
    name = target.option("mcpu")
    isa = Isa.host() if name is None else named_cpu(str(name), _threads(target))
    return isa if target.option("wide_vectors", True) else isa.without_wide_vectors()
