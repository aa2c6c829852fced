from __future__ import annotations

import pytest
from tests.device_scenarios import PLANNING, SCENARIOS, Scenario, annotated, shown

from intarsia.ir import Call, Expr, Function, IRModule, Op, rewrite, with_fields, with_module_fields
from intarsia.op import verify
from intarsia.passes import PlanDevicesLite
from intarsia.passes.devices.consistency import device_gaps
from intarsia.passes.devices.device_domains import DeviceConflictError
from intarsia.target import UNCONSTRAINED
from intarsia.transform import PassContext, function_pass

LITE = PlanDevicesLite()


def filled(text: str) -> str:
    after = LITE(
        annotated(
            text.replace("@CPU", '@device(cpu:0, target="cpu")').replace(
                "@GPU", '@device(mock:0, target="mock")'
            )
        )
    )
    verify(after)
    assert list(device_gaps(after)) == []
    assert LITE(after) is after
    return shown(after)


def test_users_are_where_their_first_argument_is() -> None:
    assert filled(
        "def @main(%x: f32 @GPU, %y: f32 @CPU) @GPU { %0 = Add(%y, %x); %1 = Neg(%0); Neg(%1) @GPU }"
    ) == (
        "def @main(%x @GPU, %y @CPU) @GPU {\n  %0 = intarsia::device_copy(%x) @CPU;\n"
        "  %1 = Add(%y, %0) @CPU;\n"
        "  %2 = Neg(%1) @CPU;\n  %3 = intarsia::device_copy(%2) @GPU;\n  %4 = Neg(%3) @GPU;\n  %4\n}"
    )


def test_what_has_no_argument_is_where_its_user_is() -> None:
    assert filled("def @main(%x: f32) @CPU { %0 = Mul(%x, meta[Constant][0]) @GPU; Neg(%0) @CPU }") == (
        "def @main(%x @GPU) @CPU {\n  %0 = Mul(%x, meta[Constant][0] @GPU) @GPU;\n"
        "  %1 = intarsia::device_copy(%0) @CPU;\n  %2 = Neg(%1) @CPU;\n  %2\n}"
    )


def test_what_nothing_reaches_is_where_the_result_is() -> None:
    text = "def @main(%x: f32, %y: f32 @CPU) @GPU { %0 = Neg(%x); Neg(%y) @GPU }"
    assert "@main(%x @GPU, %y @CPU)" in filled(text)


def test_values_that_were_moved_are_copied() -> None:
    assert "intarsia::device_copy(%0) @CPU" in filled(
        "def @main(%x: f32 @GPU) @CPU { %0 = Neg(%x) @GPU; Neg(%0) @CPU }"
    )


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_planned_program_stays_as_it_is(scenario: Scenario) -> None:
    planned = scenario.planned()
    assert LITE(planned) is planned


@function_pass(opt_level=0)
def forgetful(function: Function, mod: IRModule, ctx: PassContext) -> Function:
    """Builds every call of an operator anew, and forgets where it is."""

    def rule(expr: Expr) -> Expr:
        is_operator = isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.domain
        return with_fields(expr, virtual_device=UNCONSTRAINED) if is_operator else expr

    after = rewrite(function, rule)
    assert isinstance(after, Function)
    return after


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_it_runs_by_itself_after_passes(scenario: Scenario) -> None:
    after = forgetful(scenario.planned())
    verify(after)
    assert list(device_gaps(after)) == []


def test_it_does_not_run_on_programs_that_are_not_planned() -> None:
    after = forgetful(annotated("def @main(%x: f32) { %0 = Neg(%x) @GPU; Neg(%0) }"))
    assert "@" not in shown(after).removeprefix("def @main")


def test_it_can_be_disabled() -> None:
    mod = PLANNING(annotated("def @main(%x: f32) { Neg(%x) }"))
    after = forgetful(mod, PassContext(disabled_pass=["PlanDevicesLite"]))
    assert after["main"].body.virtual_device == UNCONSTRAINED


def test_a_pass_that_places_devices_is_left_alone() -> None:
    mod = PLANNING(annotated("def @main(%x: f32) { Neg(%x) }"))
    after = forgetful.with_info(places_devices=True)(mod)
    assert after["main"].body.virtual_device == UNCONSTRAINED


def test_marks_that_contradict_devices_are_refused() -> None:
    mod = PLANNING(annotated("def @main(%x: f32) { Neg(%x) }"))
    attrs = mod["main"].attrs.updated(Compiler="acme", target="cpu -toolchain=acme")
    marked = with_module_fields(
        mod, functions={mod.global_var("main"): with_fields(mod["main"], attrs=attrs)}
    )
    with pytest.raises(
        DeviceConflictError, match="VirtualDevice\\(cpu\\) by the result of a function in @main"
    ):
        LITE(marked)
