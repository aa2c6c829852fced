"""Decisions applied to every occurrence of a part."""

from __future__ import annotations

import numpy as np
import pytest
from tests.layered_programs import layers
from tests.tuning_passes import decided

from intarsia.build import build
from intarsia.ir import Call, Function, IRModule, Op, post_order, structural_digest, structural_equal
from intarsia.op import verify
from intarsia.support.errors import UsageError
from intarsia.tune import Choice
from intarsia.tune.repeated import in_repeated_parts, repeated_parts
from intarsia.tune.transformations import holding_transformation

PROGRAMS = {
    "plain": layers(4),
    "masked": layers(4, is_masked=True),
    "cached": layers(4, is_cached=True),
    "two steps": layers(6, widths=(8, 16)),
}


def applied(mod: IRModule, *choices: Choice) -> IRModule:
    """The program after choices for its first part."""
    (part,) = repeated_parts(mod)
    return in_repeated_parts(mod, {part.digest: [each.to_json() for each in choices]})


def results(mod: IRModule) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(param.checked_type.static_shape) for param in mod["main"].params]  # type: ignore[union-attr]
    return [np.asarray(each) for each in build(mod).run_flat(*(each.astype(np.float32) for each in given))]


def agree(before: IRModule, after: IRModule) -> None:
    for old, new in zip(results(before), results(after), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-4)


def count(mod: IRModule, name: str) -> int:
    calls = (each for each in post_order(mod["main"]) if isinstance(each, Call))
    return sum(isinstance(each.op, Op) and each.op.name == name for each in calls)


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_choices_the_program_stays(name: str) -> None:
    assert structural_equal(applied(PROGRAMS[name]), PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_substitution_is_made_in_every_occurrence(name: str) -> None:
    mod = PROGRAMS[name]
    after = applied(mod, Choice("substitute", {"rule": "product_as_gemm", "place": [1]}))
    verify(after)
    (part,) = repeated_parts(mod)
    assert count(after, "Gemm") == len(part.occurrences)
    agree(mod, after)


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_occurrence_can_go_to_a_toolchain(name: str) -> None:
    mod = PROGRAMS[name]
    (part,) = repeated_parts(mod)
    after = applied(mod, Choice("PartitionWhole", {"target": "cpu -toolchain=onnxruntime"}))
    verify(after)
    symbols = [
        each.attrs["global_symbol"]
        for each in after.functions.values()
        if isinstance(each, Function) and "Compiler" in each.attrs
    ]
    assert len(set(symbols)) == len(part.occurrences)
    agree(mod, after)


def test_facts_of_the_program_stay() -> None:
    mod = PROGRAMS["plain"]
    after = applied(mod, Choice("PartitionWhole", {"target": "cpu -toolchain=onnxruntime"}))
    assert after["main"].params == mod["main"].params
    assert after.attrs == mod.attrs
    assert count(after, "Abs") == count(after, "Tanh") == 1
    assert count(after, "MatMul") == 0


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(UsageError, match="the program has no repeated part 00ff"):
        in_repeated_parts(PROGRAMS["plain"], {"00ff": []})


def test_a_choice_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="does not match at 0"):
        applied(PROGRAMS["plain"], Choice("substitute", {"rule": "merge_transposes", "place": [0]}))


def test_an_occurrence_that_weights_exclude_stays() -> None:
    mod = PROGRAMS["plain"]
    (part,) = repeated_parts(mod)
    excluded = structural_digest(part.occurrences[2].function)

    def gemm_but_for_one(mod: IRModule) -> IRModule:
        if structural_digest(mod["main"]) == excluded:
            raise UsageError("these weights do not fit")
        return Choice("substitute", {"rule": "product_as_gemm", "place": [1]}).apply(mod)

    with holding_transformation("gemm_but_for_one", gemm_but_for_one):
        after = applied(mod, Choice("gemm_but_for_one"))
    assert count(after, "Gemm") == len(part.occurrences) - 1
    agree(mod, after)


def test_what_a_choice_says_of_the_part_is_said_of_the_program() -> None:
    after = applied(PROGRAMS["plain"], Choice(decided, {"what": "layout", "value": "NHWC"}))
    assert dict(after.attrs) == {**PROGRAMS["plain"].attrs, "layout": "NHWC"}
