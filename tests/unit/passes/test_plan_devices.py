import re
from typing import Any

import numpy as np
import pytest
from tests.device_scenarios import PLANNING, SCENARIOS, Scenario, annotated, shown

from intarsia.build import build
from intarsia.ir import (
    Constant,
    Function,
    IRModule,
    Op,
    Span,
    Tuple,
    TupleGetItem,
    Var,
    post_order,
    with_fields,
)
from intarsia.op import call, device_copy, on_device, verify
from intarsia.passes import PlanDevices
from intarsia.passes.devices.consistency import device_gaps, is_planned
from intarsia.passes.devices.device_domains import DeviceConflictError
from intarsia.passes.devices.without_devices import without_devices
from intarsia.support.errors import UsageError
from intarsia.target import UNCONSTRAINED, DeviceType, VirtualDevice
from intarsia.transform import PassContext

CPU, GPU = VirtualDevice(DeviceType.CPU, 0), VirtualDevice(DeviceType.MOCK, 0)


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.name)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    found: Scenario = request.param
    return found


def test_the_planned_program(scenario: Scenario) -> None:
    assert shown(scenario.planned()) == scenario.after.strip()


@pytest.mark.quick_cases(12)
def test_a_planned_program_is_whole_and_stays_as_it_is(scenario: Scenario) -> None:
    planned = scenario.planned()
    verify(planned)
    assert is_planned(planned)
    assert list(device_gaps(planned)) == []
    assert PLANNING(planned) is planned


@pytest.mark.quick_cases(12)
def test_planning_is_deterministic(scenario: Scenario) -> None:
    assert str(scenario.planned()) == str(scenario.planned())


def parameter(name: str, device: VirtualDevice = UNCONSTRAINED) -> Var:
    return Var(
        name,
        checked_type=annotated("def @main(%x: f32) { %x }")["main"].params[0].checked_type,
        virtual_device=device,
    )


def conflict(text: str) -> str:
    with pytest.raises(DeviceConflictError) as caught:
        PLANNING(annotated(text))
    return str(caught.value)


def test_a_conflict_names_both_annotations_with_their_spans() -> None:
    x = parameter("x")
    y = call("Relu", x, span=Span("model.onnx", "r"))
    one = on_device(y, CPU, span=Span("model.onnx", "first"))
    other = on_device(y, GPU, span=Span("model.onnx", "second"))
    with pytest.raises(DeviceConflictError) as caught:
        PLANNING(IRModule.from_expr(Function((x,), call("Add", one, other))))
    assert str(caught.value) == (
        "a value is put on two devices: VirtualDevice(cpu:0) by on_device of Relu in @main "
        "(node 'first' of model.onnx), and VirtualDevice(mock:0) by on_device of Relu in @main "
        "(node 'second' of model.onnx)\n  in pass PlanDevices\n"
        "help: remove one annotation, or put intarsia::device_copy between them"
    )


@pytest.mark.parametrize(
    ("text", "sites"),
    [
        (
            "def @main(%x: f32 @CPU) { %0 = intarsia::on_device(%x) @GPU; Neg(%0) }",
            "VirtualDevice(cpu:0) by %x in @main, and VirtualDevice(mock:0) by on_device of %x in @main",
        ),
        (
            "def @main(%x: f32) { %0 = Neg(%x) @CPU; %1 = intarsia::on_device(%0) @GPU; Neg(%1) }",
            "VirtualDevice(cpu:0) by Neg in @main, and VirtualDevice(mock:0) by on_device of Neg in @main",
        ),
        (
            "def @f(%x: f32) -> f32 @CPU { Neg(%x) }\ndef @main(%x: f32) { @f(%x): f32 @GPU }",
            "VirtualDevice(cpu:0) by the result of a function in @f, and "
            "VirtualDevice(mock:0) by Call in @main",
        ),
        (
            "def @main(%n: Tensor[(), int64], %x: f32) { "
            "%0 = fn (%i: Tensor[(), int64], %go: Tensor[(), bool], %s: f32) { "
            "%1 = Neg(%s) @CPU; (%go, %1) }; "
            "Loop(%n, meta[Constant][1], %x, %0, outputs=1).0 @GPU }",
            "VirtualDevice(mock:0) by TupleGetItem in @main, and VirtualDevice(cpu:0) by Neg in @main",
        ),
        (
            'def @main(%x: f32) { %0 = Neg(%x) @device(?, scope="a"); '
            '%1 = intarsia::on_device(%0) @device(?, scope="b"); Neg(%1) }',
            'VirtualDevice(?, scope="a") by Neg in @main, and '
            'VirtualDevice(?, scope="b") by on_device of Neg in @main',
        ),
    ],
    ids=["parameter", "call", "function", "body", "scope"],
)
def test_conflicts(text: str, sites: str) -> None:
    assert conflict(text).splitlines()[0] == f"a value is put on two devices: {sites}"


def test_a_conflict_in_program_text_names_lines_and_variables() -> None:
    text = """
def @main(%x: f32) {
  %0 = Neg(%x) @CPU;
  %1 = Relu(%0);
  %2 = intarsia::on_device(%0) @GPU;
  Add(%1, %2)
}"""
    first, second = conflict(text).splitlines()[1:3]
    assert re.fullmatch(r"  line 3, %0: %0 = Neg\(%x\): .* @device\(cpu:0\);", first)
    assert re.fullmatch(r"  line 5, %2: %2 = intarsia::on_device\(%0\): .* @device\(mock:0\);", second)


def test_without_annotations_all_is_on_the_default_device() -> None:
    planned = PlanDevices()(annotated("def @main(%x: f32) { Neg(%x) }"))
    assert shown(planned) == "def @main(%x @CPU) @CPU {\n  %0 = Neg(%x) @CPU;\n  %0\n}"


def test_the_context_names_the_fallback_device() -> None:
    mod = annotated("def @main(%x: f32) { Neg(%x) }")
    context = PassContext(config={"PlanDevices.fallback_device": "mock"})
    assert PlanDevices()(mod, context)["main"].virtual_device.device_type is DeviceType.MOCK
    assert (
        PlanDevices(fallback_device="cpu")(mod, context)["main"].virtual_device.device_type is DeviceType.CPU
    )


def test_a_device_without_target_is_refused() -> None:
    with pytest.raises(UsageError, match='no target is for device type mock; found "cpu"'):
        PlanDevices(targets=("cpu",))(annotated("def @main(%x: f32 @GPU) { Neg(%x) }"))


def test_annotations_may_name_who_compiles() -> None:
    text = 'def @main(%x: f32) { %0 = Neg(%x) @device(cpu, target="cpu -toolchain=acme"); Relu(%0) }'
    planned = PlanDevices()(annotated(text))
    devices = [str(node.virtual_device) for node in post_order(planned["main"]) if not isinstance(node, Op)]
    plain = 'VirtualDevice(cpu:0, target="cpu")'
    assert devices == [plain, 'VirtualDevice(cpu:0, target="cpu -toolchain=acme")', plain, plain]


def test_a_target_of_on_device_is_taken_over() -> None:
    text = (
        "def @main(%x: f32) { %0 = Neg(%x); %1 = intarsia::on_device(%0) @device(cpu:0, "
        'target="cpu -toolchain=acme"); Relu(%1) }'
    )
    planned = PlanDevices()(annotated(text))
    assert 'Neg(%x) @device(cpu:0, target="cpu -toolchain=acme")' in shown(planned)


def test_a_device_type_without_number_takes_the_cheapest_device_of_the_type() -> None:
    text = (
        "def @main(%x: f32 @device(cpu:1)) { "
        "%0 = Neg(%x) @device(cpu); %1 = Relu(%0) @device(cpu:1); Tan(%1) }"
    )
    planned = PlanDevices()(annotated(text))
    assert {str(node.virtual_device) for node in post_order(planned["main"]) if not isinstance(node, Op)} == {
        'VirtualDevice(cpu:1, target="cpu")'
    }


def test_constants_of_two_devices_share_their_array() -> None:
    scenario = next(item for item in SCENARIOS if item.name == "shared_constant")
    constants = [node for node in post_order(scenario.planned()["main"]) if isinstance(node, Constant)]
    assert len(constants) == 2
    assert constants[0].data is constants[1].data


def test_copies_between_devices_that_the_program_has_are_used() -> None:
    x = parameter("x", CPU)
    copy = device_copy(x, GPU, span=Span("model.onnx", "mine"))
    body = call("Add", with_fields(call("Neg", x), virtual_device=GPU), copy)
    planned = PLANNING(IRModule.from_expr(Function((x,), body)))
    copies = [node for node in post_order(planned["main"]) if node.span == Span("model.onnx", "mine")]
    assert len(copies) == 1
    assert shown(planned).count("device_copy") == 1


def test_marked_functions_keep_their_targets() -> None:
    text = (
        'def @f(%x: f32) -> f32 attributes {Compiler="acme", target="cpu -toolchain=acme"} '
        '@device(cpu, target="cpu -toolchain=acme") { Neg(%x) @device(cpu, target="cpu -toolchain=acme") }\n'
        "def @main(%x: f32 @GPU) @GPU { @f(%x): f32 }"
    )
    planned = PLANNING(annotated(text))
    assert shown(planned).startswith(
        'def @f(%x @CPU) attributes {Compiler="acme", target="cpu -toolchain=acme"} '
        '@device(cpu:0, target="cpu -toolchain=acme") {\n'
        '  %0 = Neg(%x) @device(cpu:0, target="cpu -toolchain=acme");'
    )
    assert shown(planned).count("device_copy") == 2


def test_results_of_functions_that_are_called_follow_their_users() -> None:
    text = "def @f(%x: f32) -> f32 { Neg(%x) }\ndef @main(%x: f32) { %0 = @f(%x): f32; Relu(%0) @CPU }"
    assert "@GPU" not in shown(PLANNING(annotated(text)))


def test_a_function_is_passed_by_its_global_name() -> None:
    text = (
        "def @f(%x: f32) -> f32 { Neg(%x) @CPU }\n"
        "def @main(%x: f32 @GPU) @GPU { %0 = fn (%g: fn (f32) -> f32) { %g(%x) }; %0(@f) }"
    )
    planned = PLANNING(annotated(text))
    verify(planned)
    assert shown(planned).count("device_copy") == 2


def test_recursive_functions() -> None:
    text = (
        "def @f(%c: Tensor[(), bool], %x: f32) -> f32 { "
        "if (%c) { %0 = Neg(%x) @CPU; @f(%c, %0): f32 } else { %x } }\n"
        "def @main(%c: Tensor[(), bool], %x: f32) @GPU { @f(%c, %x): f32 }"
    )
    planned = PLANNING(annotated(text))
    verify(planned)
    assert list(device_gaps(planned)) == []


def test_a_tuple_has_one_place_and_functions_in_it_their_own() -> None:
    text = """def @main(%c: Tensor[(), bool], %x: f32) {
      let %t: (fn (f32) -> f32, f32, f32) =
        if (%c) { (fn (%a: f32) { Neg(%a) @CPU }, Relu(%x) @CPU, %x) }
        else { (fn (%b: f32) { Exp(%b) }, %x, %x) };
      %0 = %t.0;
      %1 = %t.1;
      %2 = %t.2;
      Add(%0(%1), Neg(%2)) @GPU
    }"""
    planned = PLANNING(annotated(text))
    assert list(device_gaps(planned)) == []
    assert PLANNING(planned) is planned
    fields = [node for node in post_order(planned["main"]) if isinstance(node, TupleGetItem)]
    of_function, *others = sorted(fields, key=lambda node: node.index)
    assert {str(node.virtual_device) for node in others} == {str(others[0].tuple_value.virtual_device)}
    assert of_function.virtual_device.device_type is DeviceType.CPU  # where its result is


def test_a_tuple_of_functions_is_where_the_first_one_gives_its_result() -> None:
    f = "fn (f32) -> f32"
    text = (
        f"def @main(%x: f32) {{ let %t: ({f}, {f}) = (fn (%a: f32) {{ Neg(%a) @CPU }}, fn (%b: f32) "
        "{ Exp(%b) @GPU }); %0 = %t.0; %1 = %t.1; %0(%1(%x)) }"
    )
    planned = PLANNING(annotated(text))
    assert PLANNING(planned) is planned
    assert list(device_gaps(planned)) == []
    (held,) = [node for node in post_order(planned["main"]) if isinstance(node, Tuple)]
    assert held.virtual_device == held.fields[0].virtual_device != held.fields[1].virtual_device


def test_targets_may_be_a_list() -> None:
    given: Any = ["cpu"]
    assert PlanDevices(targets=given) == PlanDevices(targets=("cpu",))


@pytest.mark.quick_cases(12)
def test_the_planned_program_computes_the_same(scenario: Scenario) -> None:
    inputs = scenario.inputs().values()
    before, after = (without_devices(mod) for mod in (scenario.program(), scenario.planned()))
    results = [build(mod, "cpu -toolchain=reference").run_flat(*inputs) for mod in (before, after)]
    assert len(results[0]) == len(results[1])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
