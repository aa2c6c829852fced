"""Give the whole of @main to one toolchain."""

from __future__ import annotations

from intarsia.ir import Call, Function, GlobalVar, IRModule, Var, with_fields, with_module_fields
from intarsia.target import Target


def partition_whole(module: IRModule, target: Target) -> IRModule:
    """Move the body of @main to a function that is marked for the target's toolchain, and call it.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Relu(%x) }
    After:
        def @main(%x: Tensor[(2,), float32]) { @main_onnxruntime(%x) }
        def @main_onnxruntime(%x: Tensor[(2,), float32]) attributes {Compiler="onnxruntime", ...} { Relu(%x) }
    """
    main = module["main"]
    symbol = _free_name(module, f"main_{target.toolchain}")
    marks = {"Compiler": target.toolchain, "target": str(target), "global_symbol": symbol}
    region = with_fields(main, attrs=main.attrs.updated(**marks))
    callee = GlobalVar(symbol, checked_type=region.checked_type)
    params = tuple(
        Var(p.name, checked_type=p.checked_type, virtual_device=p.virtual_device, span=p.span)
        for p in main.params
    )
    call = Call(callee, params, checked_type=main.result_type, span=main.span)
    caller = Function(params, call, main.attrs, virtual_device=main.virtual_device, span=main.span)
    functions = {**module.functions, module.global_var("main"): caller, callee: region}
    return with_module_fields(module, functions=functions)


def _free_name(module: IRModule, wanted: str) -> str:
    name, count = wanted, 0
    while name in module:
        count += 1
        name = f"{wanted}_{count}"
    return name
