"""The greedy partitioning: whatever a toolchain supports is given to it, in large regions."""

from __future__ import annotations

from intarsia.ir import IRModule
from intarsia.passes.annotate_target import AnnotateTarget, toolchain_target
from intarsia.passes.merge_compiler_regions import MergeCompilerRegions
from intarsia.passes.merge_composite import MergeComposite
from intarsia.passes.partition_graph import PartitionGraph
from intarsia.transform import Sequential


def partition_sequence(*toolchains: str) -> Sequential:
    """The passes of `partition_for`, to be put into a larger sequence, or printed.

    That is MergeComposite for each toolchain, AnnotateTarget, MergeCompilerRegions and PartitionGraph.

    Args:
        toolchains: Names of toolchains, or texts of targets, the preferred first.

    Raises:
        UsageError: A target names no toolchain.
    """
    names = dict.fromkeys(str(toolchain_target(text).toolchain) for text in toolchains)
    composites = [MergeComposite(name) for name in names]
    passes = [*composites, AnnotateTarget(toolchains), MergeCompilerRegions(), PartitionGraph()]
    return Sequential(passes, name=f"partition_for_{'_'.join(names)}")


def partition_for(mod: IRModule, *toolchains: str) -> IRModule:
    """Give each call to the first of some toolchains that supports it; the rest stays in the program.

    Regions are global functions marked with `Compiler`, `target` and `global_symbol`; `build` compiles each
    with its toolchain, and what is left with its default. Nothing is measured, and no result is checked: a
    toolchain that supports a call may still be slow, or wrong.

    Args:
        mod: The program.
        toolchains: Names of toolchains ("openvino"), or texts of targets
            ("cpu -toolchain=openvino -threads=2"), the preferred first.

    Raises:
        UsageError: There is no such toolchain.
    """
    return partition_sequence(*toolchains)(mod)
