"""Growing caches of decoders become caches of fixed capacity that are read where they lie."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Function, IRModule
from intarsia.passes.decoding.appended_cache import with_appended_cache
from intarsia.passes.decoding.attention_parts import with_attention_parts, with_joined_attention
from intarsia.passes.decoding.fixed_cache import with_fixed_cache
from intarsia.passes.decoding.growing_cache import find_growing_cache
from intarsia.passes.decoding.length_values import UnknownPositionsError, bound_twins
from intarsia.support.errors import UsageError
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class CacheInPlace(ModulePass, opt_level=0, required=("InferType",)):
    """Turns the growing keys and values of a decoder into states of fixed capacity.

    Where a result is Concat(past, new) of a parameter, or what an Attention or a GroupQueryAttention makes
    of the two, it becomes the new part alone, which the runtime writes into its buffer, and attention reads
    both parts without joining them. The past is then as long as the buffer. What is not valid yet is masked,
    by the mask that the program has or is given, or else by -inf in front of each Softmax. Positions that the
    program computes from the length of the past are computed from the number of valid tokens. A @main without
    such results, or whose attention is not recognised, is left as it is.

    Before:
        def @main(%q: Tensor[(1, 2, n, 4), float32], %mask: Tensor[(1, t), bool],
            %past: Tensor[(1, 2, p, 4), float32], %new: Tensor[(1, 2, n, 4), float32]) {
          %keys = Concat(%past, %new, axis=2);
          %scores = MatMul(%q, Transpose(%keys, perm=[0, 1, 3, 2]));
          (MatMul(Softmax(Where(%mask, %scores, float32(-1e9))), %keys), %keys)
        }
    After:
        def @main(%q: Tensor[(1, 2, n, 4), float32], %mask: Tensor[(1, t), bool],
            %past: Tensor[(1, 2, p, 4), float32], %new: Tensor[(1, 2, n, 4), float32]) attributes {
          cache=[[["past", "output_1", 2]], [64, 256, 1024], [1, 16], [["q", 2], ["new", 2]],
                 [["output_0", 2]], "mask", "", ""]
        } {
          %of_past = MatMul(%q, Transpose(%past, perm=[0, 1, 3, 2]));
          %of_new = MatMul(%q, Transpose(%new, perm=[0, 1, 3, 2]));
          %weights = Softmax(Where(%mask, Concat(%of_past, %of_new, axis=-1), float32(-1e9)));
          %length = Shape(%past, start=2, end=3);
          %past_weights = Slice(%weights, int64[0], %length, int64[-1]);
          %new_weights = Slice(%weights, %length, int64[9223372036854775807], int64[-1]);
          (Add(MatMul(%past_weights, %past), MatMul(%new_weights, %new)), %new)
        }

    Attributes:
        capacities: Numbers of tokens for which buffers have room, ascending.
        chunks: Numbers of tokens of a call, ascending, such as 1 and 16: longer texts are read in several
            calls. Empty for any number.

    Raises:
        UsageError: An option is not ascending, or no capacity is given.
    """

    capacities: tuple[int, ...] = (64, 256, 1024)
    chunks: tuple[int, ...] = (1, 16)

    def __post_init__(self) -> None:
        """Check the options."""
        for name, sizes in (("capacities", self.capacities), ("chunks", self.chunks)):
            if list(sizes) != sorted(set(sizes)) or any(size < 1 for size in sizes):
                raise UsageError(f"{name} are {list(sizes)}, expected ascending numbers of tokens")
        if not self.capacities:
            raise UsageError(
                "there are no capacities, expected at least one", help="give, for example, (1024,)"
            )

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with a cache of fixed capacity."""
        main = with_appended_cache(with_attention_parts(mod["main"]))
        cache = find_growing_cache(main)
        if cache is not None:
            joined = [state.joined for state in cache.states]
            main = with_joined_attention(main, joined, bound_twins(main, cache))
            cache = find_growing_cache(main)
        if cache is None:
            return mod
        try:
            fixed: Function | None = with_fixed_cache(main, cache, self.capacities, self.chunks)
        except UnknownPositionsError:
            fixed = None
        return mod if fixed is None else mod.with_function("main", fixed)
