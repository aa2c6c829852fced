"""Calls of one toolchain that hang together become one function."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from intarsia.ir import Attrs, Call, Expr, Function, IRModule, TupleGetItem
from intarsia.op.device_call import is_device_copy
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.regions.acyclic_groups import acyclic_groups
from intarsia.passes.regions.dataflow import Dataflow
from intarsia.passes.regions.outlining import Region, outlined
from intarsia.passes.regions.toolchain_call import assigned_toolchain, is_candidate
from intarsia.target import Target, VirtualDevice
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class MergeCompilerRegions(FunctionPass, opt_level=0, required=("InferType",)):
    """Groups adjacent calls that have the same virtual device with a toolchain into regions.

    A region is a function literal with the attributes `Compiler` and `target`, called in place: that is a
    program of the language, which can be printed, verified and built (docs/decisions/0006). Constants stand
    inside; what else flows in are its parameters, what something outside uses is its result.

    * Regions are as large as they can be: no two adjacent ones of the same device could be joined without
      a cycle, that is without one needing what depends on the other (`passes.regions.acyclic_groups`).
    * A region lies in one scope: a branch of an If has its own, so that only what is needed is computed.
    * A field of a call with several results goes with the call.
    * A region needs each copy between devices as a whole or not at all, and is needed by each copy so: no
      device waits for more than it would without regions.

    Linear, but for the search for cycles where regions of several toolchains alternate.

    Before:
        def @main(%x: Tensor[(2,), float32]) {
          %0 = Relu(%x) @device(cpu, target="cpu -toolchain=onnxruntime");
          %1 = Neg(%0) @device(cpu, target="cpu -toolchain=onnxruntime");
          Exp(%1)
        }
    After:
        def @main(%x: Tensor[(2,), float32]) {
          %0 = fn (%p0: Tensor[(2,), float32])
              attributes {Compiler="onnxruntime", target="cpu -toolchain=onnxruntime"}
              @device(cpu, target="cpu -toolchain=onnxruntime") {
            %1 = Relu(%p0) @device(cpu, target="cpu -toolchain=onnxruntime");
            Neg(%1) @device(cpu, target="cpu -toolchain=onnxruntime")
          };
          %2 = %0(%x) @device(cpu, target="cpu -toolchain=onnxruntime");
          Exp(%2)
        }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with its regions called in place."""
        if is_sealed(function):
            return function
        dataflow = Dataflow.of(function)
        kinds = _kinds(dataflow)
        if not any(kinds.values()):
            return function
        return outlined(function, _regions(dataflow, kinds), dataflow)


def region_attrs(target: Target) -> Attrs:
    """The attributes of a function that a target's toolchain compiles."""
    assert target.toolchain is not None
    return Attrs({"Compiler": target.toolchain, "target": str(target)})


def _kinds(dataflow: Dataflow) -> dict[Expr, Hashable]:
    """For each open expression, what it may be grouped with: the same device, scope and era of copies."""
    kinds: dict[Expr, Hashable] = {}
    eras = _copy_eras(dataflow)
    for expr in dataflow.nodes:
        kind: Hashable = None
        if isinstance(expr, Call) and is_candidate(expr) and assigned_toolchain(expr) is not None:
            kind = dataflow.scope[expr], expr.virtual_device, eras[expr]
        elif isinstance(expr, TupleGetItem) and isinstance(expr.tuple_value, Call):
            whole = expr.tuple_value
            is_near = dataflow.scope.get(whole) is dataflow.scope[expr]
            is_there = VirtualDevice.join(expr.virtual_device, whole.virtual_device) is not None
            kind = kinds.get(whole) if is_near and is_there else None
        kinds[expr] = kind
    return kinds


def _regions(dataflow: Dataflow, kinds: dict[Expr, Hashable]) -> list[Region]:
    nodes = dataflow.nodes
    number = {expr: index for index, expr in enumerate(nodes)}
    needs = [[number[item] for item in dataflow.needs[expr]] for expr in nodes]
    groups = acyclic_groups([kinds[expr] for expr in nodes], needs)
    home = {index: position for position, group in enumerate(groups) for index in group}
    is_output = [False] * len(nodes)
    for index, below in enumerate(needs):
        for item in below:
            is_output[item] |= home.get(item) != home.get(index)
    regions = []
    for group in groups:
        members = tuple(nodes[index] for index in group)
        outputs = tuple(nodes[index] for index in group if is_output[index])
        device = next(expr.virtual_device for expr in members if isinstance(expr, Call))
        assert device.target is not None
        regions.append(Region(members, outputs, region_attrs(device.target)))
    return regions


def _copy_eras(dataflow: Dataflow) -> dict[Expr, Hashable]:
    """For each open expression a key of when it can run, in a program of several devices.

    Those of one era need the same copies, and the same copies wait for them. A function that is made of
    expressions of one era neither waits for a copy that some of it does not need, nor keeps one waiting with
    what the copy does not need: devices work at the same time as if nothing had been put together.

    All are of one era in a program without copies. Takes n * c / 64 words for n expressions and c copies.
    """
    copies = [expr for expr in dataflow.nodes if is_device_copy(expr)]
    before = dict.fromkeys(dataflow.nodes, 0)
    behind = dict.fromkeys(dataflow.nodes, 0)
    if not copies:
        return dict(before)
    bits = {expr: 1 << number for number, expr in enumerate(copies)}
    for expr in dataflow.nodes:
        for need in dataflow.needs[expr]:
            before[expr] |= before[need] | bits.get(need, 0)
    for expr in reversed(dataflow.nodes):
        for need in dataflow.needs[expr]:
            behind[need] |= behind[expr] | bits.get(expr, 0)
    return {expr: (before[expr], behind[expr]) for expr in dataflow.nodes}
