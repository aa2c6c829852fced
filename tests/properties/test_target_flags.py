"""Whatever flags are set on a program, they are written, read and unset again without a trace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.partitioned_programs import partitioned
from tests.speed_options import SPEED_OPTIONS

from intarsia.ir import structural_digest
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.target import OptionValue, Target
from intarsia.tune import Choice, Instruction, Trace
from intarsia.tune.target_options import marked_functions, set_target_options

TOOLCHAINS = ("native", "onnxruntime", "openvino")
PROGRAM = partitioned(**{name: f"cpu -toolchain={name}" for name in TOOLCHAINS})


@st.composite
def settings_of_a_toolchain(draw: st.DrawFn) -> tuple[str, dict[str, OptionValue]]:
    """A toolchain, and values for some of its flags."""
    toolchain = draw(st.sampled_from(TOOLCHAINS))
    own = [option for option in SPEED_OPTIONS if toolchain in option.toolchains]
    return toolchain, {
        option.name: draw(st.sampled_from(option.values)) for option in own if draw(st.booleans())
    }


@given(settings_of_a_toolchain())
def test_flags_are_read_back_and_can_be_unset(given_flags: tuple[str, dict[str, OptionValue]]) -> None:
    toolchain, flags = given_flags
    after = set_target_options(PROGRAM, toolchain, flags)
    printed = print_module(after)
    again = parse_module(printed.text, printed.constants)
    found = {each.name: each.target for each in marked_functions(again)}
    assert found[toolchain] == Target.for_toolchain(toolchain).with_options(**flags)
    assert all(found[other] == Target.for_toolchain(other) for other in TOOLCHAINS if other != toolchain)
    unset = set_target_options(after, toolchain, dict.fromkeys(flags))
    assert structural_digest(unset) == structural_digest(PROGRAM)


@given(st.lists(settings_of_a_toolchain(), max_size=4))
def test_a_trace_of_flags_is_plain_data(steps: list[tuple[str, dict[str, OptionValue]]]) -> None:
    trace = Trace(PROGRAM)
    for toolchain, flags in steps:
        choice = Choice(set_target_options, {"toolchain": toolchain, "options": flags})
        trace.add(Instruction("flags", [choice]), "0")
    again = Trace.from_json(trace.to_json(), PROGRAM)
    assert structural_digest(again.out_mod) == structural_digest(trace.out_mod)
