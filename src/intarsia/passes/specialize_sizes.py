"""A variant of @main for some sizes of its symbolic dimensions, compiled by one toolchain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from intarsia.ir import (
    Expr,
    Function,
    GlobalVar,
    IRModule,
    PrimFunc,
    SymbolicDim,
    TensorType,
    rewrite,
    with_fields,
    with_module_fields,
)
from intarsia.ir.variant import as_variant, variants
from intarsia.passes.bind_dims import bind_sizes, read_sizes
from intarsia.passes.partition_whole import partition_whole
from intarsia.support.errors import UsageError
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class SpecializeSizes(ModulePass, opt_level=0, required=("InferType",)):
    """Adds a variant of @main that is run where symbolic dimensions have these sizes.

    @main itself is run for all other sizes. A @main without one of the dimensions is left as it is, and so is
    one that has a variant for these sizes.

    Before:
        def @main(%x: Tensor[(batch, 3), float32]) { Relu(%x) }
    After:
        def @main(%x: Tensor[(batch, 3), float32]) { Relu(%x) }
        def @main_batch_2(%x: Tensor[(2, 3), float32]) attributes {variant_sizes=[["batch", 2]]} {
          @main_batch_2_onnxruntime(%x)
        }
        def @main_batch_2_onnxruntime(%x: Tensor[(2, 3), float32]) attributes {
          Compiler="onnxruntime", global_symbol="main_batch_2_onnxruntime",
          target="cpu -toolchain=onnxruntime"
        } { Relu(%x) }

    Attributes:
        sizes: Sizes as name=number.
        target: Text of the target that compiles the variant; its toolchain gets all of it.

    Raises:
        UsageError: An entry is not of this form, or the target names no toolchain.
        InvalidModelError: Types do not fit with these sizes.
        CompileError: The toolchain cannot run an operator, as for `PartitionWhole`.
    """

    sizes: tuple[str, ...] = ()
    target: str = ""

    def __post_init__(self) -> None:
        """Check the form of the sizes and the target."""
        read_sizes(self.sizes)
        if self.target and Target(self.target).toolchain is None:
            raise UsageError(
                f'target "{self.target}" names no toolchain', help="write, for example, -toolchain=native"
            )

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with the variant."""
        sizes = read_sizes(self.sizes)
        is_there = sizes in variants(mod).values()
        if not sizes or not self.target or is_there or not sizes.keys() <= symbols_of(mod["main"]):
            return mod
        specialized = partition_whole(bind_sizes(mod, sizes), Target(self.target))
        label = "_".join(("main", *(f"{name}_{size}" for name, size in sizes.items())))
        return _with_variant(mod, specialized, label, sizes)


def symbols_of(function: Function) -> set[str]:
    """Return the names of the symbolic dimensions of a function's parameters."""
    types = [param.checked_type for param in function.params]
    return {
        dim.name
        for type_ in types
        if isinstance(type_, TensorType) and type_.shape is not None
        for dim in type_.shape
        if isinstance(dim, SymbolicDim)
    }


def _with_variant(mod: IRModule, specialized: IRModule, label: str, sizes: dict[str, int]) -> IRModule:
    """Return a module with the functions of another one under free names; its @main becomes a variant.

    All have names of their own, so that a later partition of @main finds its usual names free.
    """
    names = {var.name for var in (*mod.functions, *specialized.functions)}
    added = {var: item for var, item in specialized.functions.items() if mod.functions.get(var) is not item}
    new_names: dict[str, str] = {}
    for var in added:
        wanted = label if var.name == "main" else f"{label}_{var.name.removeprefix('main_')}"
        new_names[var.name] = free_name(_identifier(wanted), names)
        names.add(new_names[var.name])

    def renamed(expr: Expr) -> Expr:
        if isinstance(expr, GlobalVar) and expr.name in new_names:
            return GlobalVar(new_names[expr.name], checked_type=expr.checked_type)
        return expr

    functions = dict(mod.functions)
    for var, item in added.items():
        new_name = new_names[var.name]
        functions[GlobalVar(new_name, checked_type=var.checked_type)] = _changed(
            item, renamed, new_name, sizes if var.name == "main" else {}
        )
    return with_module_fields(mod, functions=functions)


def _changed(
    item: Function | PrimFunc, rule: Callable[[Expr], Expr], name: str, sizes: Mapping[str, int]
) -> Function | PrimFunc:
    """Return a function after a rule, as a variant if there are sizes; a loop function as it is.

    A symbol, by which kernels are named, becomes the function's new name.
    """
    if isinstance(item, PrimFunc):
        return item
    function = rewrite(item, rule)
    assert isinstance(function, Function)
    if "global_symbol" in function.attrs:
        function = with_fields(function, attrs=function.attrs.updated(global_symbol=name))
    return as_variant(function, sizes) if sizes else function


def _identifier(text: str) -> str:
    """Return a text with what a name of a function cannot have replaced by underscores."""
    return "".join(char if char.isalnum() else "_" for char in text)
