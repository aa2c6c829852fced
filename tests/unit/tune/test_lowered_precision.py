"""Functions of one toolchain in narrower types, and the bound that goes with the program."""

from __future__ import annotations

import pytest
from tests.partitioned_programs import partitioned
from tests.unit.tune.test_target_options import NATIVE, OPENVINO, targets

from intarsia.ir import IRModule, structural_digest
from intarsia.ir.verify import verify
from intarsia.measure.judge.accuracy import error_bound
from intarsia.support.errors import UsageError
from intarsia.tune.lowered_precision import lowered_precision

REFERENCE = "cpu -toolchain=reference"


def program() -> IRModule:
    return partitioned(first=REFERENCE, second=OPENVINO, third=NATIVE)


def test_a_toolchain_that_has_the_option_is_told_by_it() -> None:
    mod = program()
    after = lowered_precision(mod, "openvino", "bfloat16", 0.01)
    told = f"{OPENVINO.replace(' -threads', ' -inference_precision=bfloat16 -threads')}"
    assert targets(after) == targets(mod) | {"second": told}
    assert "Cast" not in str(after)
    assert error_bound(after) == 0.01


def test_native_is_told_of_the_type_that_it_has_instructions_for() -> None:
    mod = program()
    after = lowered_precision(mod, "native", "bfloat16", 0.01)
    told = f"{NATIVE} -multiply_in=bfloat16"
    assert targets(after) == targets(mod) | {"third": told}
    assert error_bound(after) == 0.01


@pytest.mark.parametrize("toolchain", ["reference", "native"])
def test_functions_of_others_are_rewritten_global_ones_and_literals(toolchain: str) -> None:
    mod = program()
    after = lowered_precision(mod, toolchain, "float16", 0.01)
    verify(after)
    assert targets(after) == targets(mod)
    assert str(after).count("Cast(") == 2
    assert error_bound(after) == 0.01


def test_where_nothing_changes_the_program_keeps_its_exactness() -> None:
    mod = program()
    assert lowered_precision(mod, "onnxruntime", "float16", 0.01) is mod


def test_bounds_are_part_of_the_program_and_the_smaller_one_holds() -> None:
    loose, tight = (lowered_precision(program(), "native", "float16", bound) for bound in (0.1, 0.01))
    assert structural_digest(loose) != structural_digest(tight)
    for first, second in ((0.1, 0.01), (0.01, 0.1)):
        once = lowered_precision(program(), "native", "float16", first)
        assert error_bound(lowered_precision(once, "openvino", "float16", second)) == 0.01


@pytest.mark.parametrize("toolchain", ["native", "openvino"])
def test_an_unknown_type_is_refused(toolchain: str) -> None:
    with pytest.raises(UsageError, match="float8"):
        lowered_precision(program(), toolchain, "float8", 0.01)
