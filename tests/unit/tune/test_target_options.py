"""Options set on the targets of partitioned functions, as plain data."""

from __future__ import annotations

import pytest
from tests.partitioned_programs import partitioned, unpartitioned

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.support.errors import UsageError
from intarsia.target import OptionValue
from intarsia.tune.target_options import given_functions, marked_functions, set_target_options

NATIVE, OPENVINO = "cpu -toolchain=native", "cpu -toolchain=openvino -threads=2"


def program() -> IRModule:
    return partitioned(first=NATIVE, second=OPENVINO, third=NATIVE)


def targets(mod: IRModule) -> dict[str, str]:
    return {each.name: str(each.target) for each in marked_functions(mod)}


def test_global_functions_and_literals_are_found() -> None:
    assert targets(program()) == {"first": NATIVE, "second": OPENVINO, "third": NATIVE}
    assert targets(unpartitioned()) == {}


@pytest.mark.parametrize(
    ("functions", "changed"),
    [((), {"first", "third"}), (("third",), {"third"}), (("second",), set()), (("other",), set())],
)
def test_options_reach_the_functions_that_are_meant(functions: tuple[str, ...], changed: set[str]) -> None:
    mod = program()
    after = set_target_options(mod, "native", {"threads": 1, "llvm_passes": "O2"}, functions)
    expected = dict.fromkeys(changed, f"{NATIVE} -llvm_passes=O2 -threads=1")
    assert targets(after) == targets(mod) | expected
    assert (after is mod) == (not changed)


def test_none_unsets_an_option() -> None:
    after = set_target_options(program(), "openvino", {"threads": None})
    assert targets(after)["second"] == "cpu -toolchain=openvino"
    assert set_target_options(after, "openvino", {"threads": None}) is after


def test_a_program_with_options_survives_as_text() -> None:
    printed = print_module(set_target_options(program(), "native", {"wide_vectors": False}))
    again = parse_module(printed.text, printed.constants)
    assert targets(again)["first"] == f"{NATIVE} -wide_vectors=false"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spinning": True}, "toolchain native does not understand -spinning; expected onnxruntime"),
        ({"llvm_passes": "O9"}, "-llvm_passes is 'O9'; expected none or light or O2 or O3"),
        ({"vibes": 1}, "unknown target option 'vibes'"),
    ],
)
def test_what_a_toolchain_does_not_understand_is_refused(
    options: dict[str, OptionValue], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        set_target_options(program(), "native", options)


def test_a_program_that_gives_nothing_to_anybody_is_given_to_the_target() -> None:
    decisions, found = given_functions(unpartitioned(), NATIVE)
    assert [each.name for each in decisions] == ["PartitionWhole"]
    assert [str(each.target) for each in found] == [NATIVE]
    assert given_functions(program(), NATIVE)[0] == []
    with pytest.raises(UsageError, match="no target for the whole program is given"):
        given_functions(unpartitioned(), "")
