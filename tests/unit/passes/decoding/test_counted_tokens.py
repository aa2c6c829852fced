"""Decoders for a fixed number of new tokens as those for any number."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.ir import Function, GlobalVar, IRModule, SymbolicDim
from intarsia.passes import InferType, bind_sizes
from intarsia.passes.decoding.counted_tokens import with_counted_tokens
from intarsia.passes.decoding.growing_cache import GrowingCache, find_growing_cache
from intarsia.support.errors import InvalidModelError

TOKENS = SymbolicDim("tokens")


def decoder(target: tuple[int, ...], new: int = 1) -> tuple[Function, GrowingCache]:
    """Return a program that appends to a past, with a Reshape of (b, new, 8) to a target, and its cache."""
    text = (
        f"g (int64[b, {new}] ids, float[b, 2, p, 4] past) "
        f"=> (float[b, {new}, 8] e, float[b, 2, t, 4] present) "
        "{ e = Gather (table, ids) r = Reshape (e, target) "
        "n = Transpose <perm = [0, 2, 1, 3]> (r) present = Concat <axis = 2> (past, n) }"
    )
    table = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    mod = InferType()(from_onnx(model_of(text, opset=18, table=table, target=np.array(target))))
    function = mod["main"]
    cache = find_growing_cache(function)
    assert cache is not None
    assert cache.new == new
    return function, cache


@pytest.mark.parametrize("new", [1, 3])
def test_numbers_in_reshape_become_sizes(new: int) -> None:
    function, cache = decoder((-1, new, 2, 4), new)
    after = with_counted_tokens(function, cache, TOKENS)
    right, result = (build(IRModule({GlobalVar("main"): item})) for item in (function, after))
    rng = np.random.default_rng(1)
    past = rng.standard_normal((2, 2, 3, 4)).astype(np.float32)
    ids = rng.integers(0, 5, (2, new))
    (_, expected), (_, present) = (item.run_flat(ids=ids, past=past) for item in (right, result))
    assert np.array_equal(np.asarray(present), np.asarray(expected))
    more = bind_sizes(IRModule({GlobalVar("main"): after}), {"tokens": 7, "b": 2, "p": 3})
    _, longer = build(more).run_flat(ids=rng.integers(0, 5, (2, 7)), past=past)
    assert np.asarray(longer).shape == (2, 2, 10, 4)


def test_other_programs_are_refused() -> None:
    """A target that is right for one text alone."""
    function, cache = decoder((1, 1, 2, 4))
    with pytest.raises(InvalidModelError):
        with_counted_tokens(function, cache, TOKENS)
