"""Options that belong to toolchains."""

from __future__ import annotations

import pytest

from intarsia.support.errors import UsageError
from intarsia.target import FLAGS, TARGET_OPTIONS, Target, TargetOption

NAMES = [option.name for option in FLAGS]


@pytest.mark.parametrize("option", FLAGS, ids=NAMES)
def test_each_has_a_toolchain_a_default_and_other_values(option: TargetOption) -> None:
    assert TARGET_OPTIONS[option.name] is option
    assert option.toolchains
    assert option.default in option.values
    assert len(option.values) > 1
    assert option.keeps_results


@pytest.mark.parametrize("option", FLAGS, ids=NAMES)
def test_only_its_toolchain_understands_it(option: TargetOption) -> None:
    (own,) = option.toolchains
    target = Target("cpu", own, ((option.name, option.values[-1]),))
    assert Target(str(target)) == target
    for other in ("reference", None):
        with pytest.raises(UsageError, match=f"does not understand -{option.name}; expected {own}"):
            Target("cpu", other, ((option.name, option.values[-1]),))


def test_the_error_names_target_and_meaning() -> None:
    with pytest.raises(UsageError) as caught:
        Target("cpu -toolchain=openvino -spinning=false")
    assert str(caught.value) == (
        "toolchain openvino does not understand -spinning; expected onnxruntime\n"
        '  in target "cpu -toolchain=openvino -spinning=false"\n'
        "help: whether threads wait busily within a run"
    )


def test_a_plain_target_has_no_options_of_toolchains() -> None:
    with pytest.raises(UsageError, match="a target without toolchain does not understand -llvm_level"):
        Target("cpu -llvm_level=2")


def test_precision_is_no_flag() -> None:
    option = TARGET_OPTIONS["inference_precision"]
    assert not option.keeps_results
    assert option not in FLAGS
