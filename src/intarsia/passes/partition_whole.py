"""Give the whole of @main to one toolchain."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Call, Function, GlobalVar, IRModule, Var, post_order, with_fields, with_module_fields
from intarsia.ir.variant import variants
from intarsia.passes.functions.call_graph import CallGraph
from intarsia.passes.interpreted_partition import interpreted_partition
from intarsia.support.errors import UnsupportedModelError, UsageError
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class PartitionWhole(ModulePass, opt_level=0):
    """Moves the body of @main to a function that is marked for a target's toolchain, and calls it.

    A @main that only calls such a function, or that is one, is left as it is. For a toolchain that takes no
    control flow, branches and bodies are partitioned instead (`interpreted_partition`).

    Before:
        def @main(%x: Tensor[(2,), float32]) { Relu(%x) }
    After:
        def @main(%x: Tensor[(2,), float32]) { @main_onnxruntime(%x) }
        def @main_onnxruntime(%x: Tensor[(2,), float32]) attributes {
          Compiler="onnxruntime", global_symbol="main_onnxruntime", target="cpu -toolchain=onnxruntime"
        } { Relu(%x) }

    Attributes:
        target: Text of a target with a toolchain, such as "cpu -toolchain=openvino -threads=2".
    """

    target: str

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module whose @main is partitioned.

        Raises:
            UsageError: There is no @main, or the target is none, or names no toolchain.
            UnsupportedModelError: @main is on several devices, or on one that the target is not for.
            CompileError: The toolchain cannot run an operator, as for `partition_whole`.
        """
        target = Target(self.target)
        if target.toolchain is None:
            raise UsageError(
                f'target "{target}" names no toolchain', help="write, for example, -toolchain=openvino"
            )
        if _is_partitioned(mod):
            return mod
        return partition_whole(mod, target)


def partition_whole(module: IRModule, target: Target) -> IRModule:
    """What `PartitionWhole` does, whether it is done already or not; variants of @main stay as they are.

    Raises:
        UnsupportedModelError: @main is on several devices, or on one that the target is not for.
        CompileError: The toolchain takes no control flow, and the program has some, and beside it an operator
            that the toolchain does not support (`interpreted_partition`).
    """
    _check_devices(module["main"], target)
    graph = CallGraph.of(module)
    kept = graph.reachable(variants(module)) - graph.reachable(["main"])
    if kept:
        apart = {var: item for var, item in module.functions.items() if var.name in kept}
        others = {var: item for var, item in module.functions.items() if var.name not in kept}
        partitioned = partition_whole(with_module_fields(module, functions=others), target)
        return with_module_fields(partitioned, functions={**partitioned.functions, **apart})
    interpreted = interpreted_partition(module, target)
    return _one_function(module, target) if interpreted is None else interpreted


def _one_function(module: IRModule, target: Target) -> IRModule:
    """Mark all of @main as one function for a toolchain."""
    main = module["main"]
    symbol = free_name(f"main_{target.toolchain}", {var.name for var in module.functions})
    marks = {"Compiler": target.toolchain, "target": str(target), "global_symbol": symbol}
    region = with_fields(main, attrs=main.attrs.updated(**marks))
    callee = GlobalVar(symbol, checked_type=region.checked_type)
    params = tuple(
        Var(p.name, checked_type=p.checked_type, virtual_device=p.virtual_device, span=p.span)
        for p in main.params
    )
    body = main.body
    call = Call(
        callee,
        params,
        checked_type=main.result_type,
        virtual_device=body.virtual_device,
        span=body.span or main.span,
    )
    caller = Function(params, call, main.attrs, virtual_device=main.virtual_device, span=main.span)
    functions = {**module.functions, module.global_var("main"): caller, callee: region}
    return with_module_fields(module, functions=functions)


def _check_devices(main: Function, target: Target) -> None:
    """See to it that all of @main is on one device, which the target is for."""
    placed = (expr.virtual_device for expr in post_order(main))
    devices = {(device.device_type, device.virtual_device_id) for device in placed}
    named = sorted(f"{kind.kind}:{number}" for kind, number in devices if kind and number is not None)
    if len(named) > 1:
        raise UnsupportedModelError(
            f"@main is on {', '.join(named)}, but one function of a toolchain is on one device",
            help="name the toolchain in the targets of the devices; MergeCompilerRegions and PartitionGraph "
            "then give it the regions of each device",
        )
    if named and named[0].partition(":")[0] != target.kind:
        raise UnsupportedModelError(
            f'@main is on {named[0]}, but target "{target}" is for devices of kind {target.kind}',
            help="plan the program for that device, or give a target that is for this one",
        )


def _is_partitioned(mod: IRModule) -> bool:
    """Whether @main belongs to a toolchain, or hands all its parameters to a function that does."""
    main = mod["main"]
    if "Compiler" in main.attrs:
        return True
    match main.body:
        case Call(op=GlobalVar(name=name), args=args) if args == main.params:
            callee = mod.functions.get(mod.global_var(name)) if name in mod else None
            return isinstance(callee, Function) and "Compiler" in callee.attrs
        case _:
            return False
