import numpy as np
import pytest

import intarsia as ia
from intarsia.ir import Call, Expr, Function, IRModule, Span, TensorType, Var, post_order
from intarsia.op import call
from intarsia.op.device_call import is_device_copy
from intarsia.passes.place import names_of
from intarsia.support.errors import ProgramTextError, UsageError
from intarsia.target import DeviceType, VirtualDevice

NODES = ("layer1.0.conv/Relu", "layer4.0.conv/Neg", "layer4.1/Exp", "/head/fc/Abs")
X = np.array([-1.5, 2.0], np.float32)


def network() -> IRModule:
    x = Var("x", checked_type=TensorType.of(X))
    value: Expr = x
    for node in NODES:
        value = call(node.rpartition("/")[2], value, span=Span("net.onnx", node))
    return IRModule.from_expr(Function((x,), value))


def devices_of(mod: IRModule) -> dict[str, str]:
    """The device of each node, without those of copies."""
    return {
        expr.span.node: f"{expr.virtual_device.device_type}:{expr.virtual_device.virtual_device_id}"
        for expr in post_order(mod["main"])
        if isinstance(expr, Call) and expr.span and not is_device_copy(expr)
    }


def copies(mod: IRModule) -> int:
    return sum(is_device_copy(expr) for expr in post_order(mod["main"]))


@pytest.mark.parametrize(
    ("pattern", "on_mock"),
    [
        ("layer4.*", {1, 2}),
        ("layer4", {1, 2}),
        ("layer4.0.conv/Neg", {1}),
        ("layer?.0", {0, 1}),
        ("head.fc", {3}),
        ("/head/fc/Abs", {3}),
        ("*/Exp", {2}),
    ],
)
def test_patterns_of_nodes_and_modules(pattern: str, on_mock: set[int]) -> None:
    mock = VirtualDevice(DeviceType.MOCK, 1)
    placed = ia.place(network(), {pattern: mock, "*": "cpu:0"})
    expected = {node: ("mock:1" if number in on_mock else "cpu:0") for number, node in enumerate(NODES)}
    shown = {node: device.removeprefix("DeviceType.").lower() for node, device in devices_of(placed).items()}
    assert shown == expected


def test_the_placed_program_is_planned_and_runs() -> None:
    placed = ia.place(network(), {"layer4.*": "mock:1", "*": "cpu:0"})
    assert copies(placed) == 2
    with ia.build(placed) as exe:
        assert exe.plan.devices == ("cpu:0", "mock:1")
        np.testing.assert_allclose(exe(X), np.abs(np.exp(-np.maximum(X, 0))), rtol=1e-6)


def test_a_pattern_that_matches_nothing() -> None:
    with pytest.raises(
        UsageError, match=r"no operator has a name or a module that matches 'layer5\.\*'"
    ) as caught:
        ia.place(network(), {"layer4.*": "cpu:1", "layer5.*": "cpu:0"})
    assert "layer4" in caught.value.help


def test_a_text_that_is_no_device() -> None:
    with pytest.raises(ProgramTextError, match="is not a virtual device"):
        ia.place(network(), {"*": "second cpu"})


def test_names_of_a_node_and_its_modules() -> None:
    assert names_of("/a/b.0/Conv") == {"/a/b.0/Conv", "a", "b.0", "Conv", "a.b", "a.b.0", "a.b.0.Conv"}
