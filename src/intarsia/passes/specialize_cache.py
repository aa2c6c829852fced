"""Variants of a decoder for each capacity of its cache and each number of new tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from intarsia.ir import IRModule, SymbolicDim
from intarsia.ir.cache import Cache, cache_of
from intarsia.passes.bind_dims import read_sizes
from intarsia.passes.rules.tensor_facts import dims_of
from intarsia.passes.specialize_sizes import SpecializeSizes
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class SpecializeCache(ModulePass, opt_level=0, required=("InferType",)):
    """Adds a variant of a decoder's @main for each capacity and each number of new tokens of its cache.

    So a toolchain that takes fixed sizes only runs all steps of a sequence of tokens. A @main without a cache
    (`CacheInPlace`) is left as it is.

    Before:
        def @main(%x: Tensor[(1, 1), float32], %past: Tensor[(1, p), float32]) attributes {
          cache=[[["past", "output_1", 1]], [4], [1], [["x", 1]], [["output_0", 1]], "", "", ""]
        } { (Relu(%x), %x) }
    After:
        def @main(%x: Tensor[(1, 1), float32], %past: Tensor[(1, p), float32]) attributes {
          cache=[[["past", "output_1", 1]], [4], [1], [["x", 1]], [["output_0", 1]], "", "", ""]
        } { (Relu(%x), %x) }
        def @main_p_4(%x: Tensor[(1, 1), float32], %past: Tensor[(1, 4), float32]) attributes {
          variant_sizes=[["p", 4]]
        } { @main_p_4_onnxruntime(%x, %past) }
        def @main_p_4_onnxruntime(%x: Tensor[(1, 1), float32], %past: Tensor[(1, 4), float32]) attributes {
          Compiler="onnxruntime",
          cache=[[["past", "output_1", 1]], [4], [1], [["x", 1]], [["output_0", 1]], "", "", ""],
          global_symbol="main_p_4_onnxruntime", target="cpu -toolchain=onnxruntime"
        } { (Relu(%x), %x) }

    Attributes:
        target: Text of the target that compiles the variants; its toolchain gets all of each.
        sizes: Sizes of the other symbolic dimensions as name=number, such as batch_size=1.

    Raises:
        UsageError: An entry of `sizes` is not of this form, the target names no toolchain, or a symbolic
            dimension has no size.
        InvalidModelError: Types do not fit with these sizes.
        CompileError: The toolchain cannot run an operator, as for `PartitionWhole`.
    """

    target: str = ""
    sizes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the form of the sizes and the target."""
        read_sizes(self.sizes)
        if self.target and Target(self.target).toolchain is None:
            raise UsageError(
                f'target "{self.target}" names no toolchain', help="write, for example, -toolchain=native"
            )

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with the variants."""
        cache = cache_of(mod["main"])
        if cache is None or not self.target:
            return mod
        given = read_sizes(self.sizes)
        for capacity, tokens in product(cache.capacities, cache.chunks):
            sizes = given | _step_sizes(mod, cache, capacity, tokens)
            entries = tuple(f"{name}={size}" for name, size in sizes.items())
            mod = SpecializeSizes(entries, self.target)(mod)
        return mod


def _step_sizes(mod: IRModule, cache: Cache, capacity: int, tokens: int) -> dict[str, int]:
    """Return the sizes of the dimensions that count tokens."""
    dims = {param.name: dims_of(param) or () for param in mod["main"].params}
    counted = [(dims[state.input][state.axis], capacity) for state in cache.states]
    counted += [(dims[name][axis], tokens) for name, axis in cache.token_inputs]
    if cache.mask:
        counted.append((dims[cache.mask][1], capacity + tokens))
    return {dim.name: size for dim, size in counted if isinstance(dim, SymbolicDim)}
