import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.errors import ProgramTextError, UsageError
from intarsia.target import UNCONSTRAINED, VIRTUAL_DEVICE_REGEX, DeviceType, Target, VirtualDevice

CPU, CUDA = DeviceType.CPU, DeviceType.CUDA
HOST, OPENVINO, GPU = Target("cpu"), Target("cpu -toolchain=openvino -threads=2"), Target("cuda")

IDS = st.none() | st.integers(0, 3)
SCOPES = st.sampled_from(["", "global", "shared.dyn"])
DEVICES = st.one_of(
    st.builds(VirtualDevice, st.none() | st.sampled_from(DeviceType), IDS, st.none(), SCOPES),
    st.builds(VirtualDevice, st.none(), IDS, st.sampled_from([HOST, OPENVINO, GPU]), SCOPES),
)


def test_constructors() -> None:
    assert VirtualDevice() == UNCONSTRAINED
    assert VirtualDevice.for_target(GPU) == VirtualDevice(CUDA, 0, GPU)


def test_a_target_fills_in_its_device_type() -> None:
    assert VirtualDevice(target=GPU).device_type is CUDA


def test_is_compared_by_value() -> None:
    separately = VirtualDevice.for_target(Target.for_toolchain("openvino", threads=2))
    assert separately == VirtualDevice.for_target(OPENVINO)
    assert len({separately, VirtualDevice.for_target(OPENVINO), VirtualDevice.for_target(HOST)}) == 2
    assert pickle.loads(pickle.dumps(separately)) == separately


@pytest.mark.parametrize(
    ("device", "is_open"),
    [
        (UNCONSTRAINED, True),
        (VirtualDevice(CPU), False),
        (VirtualDevice(memory_scope="global"), False),
        (VirtualDevice.for_target(HOST), False),
        (VirtualDevice(None, 0), False),
    ],
)
def test_is_fully_unconstrained(device: VirtualDevice, is_open: bool) -> None:
    assert device.is_fully_unconstrained == is_open


def test_target_of_another_device_type_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        VirtualDevice(CPU, 0, GPU)
    assert str(caught.value) == 'device type cpu does not fit target "cuda"; expected cuda'


def test_negative_id_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        VirtualDevice(CPU, -1)
    assert str(caught.value) == "virtual device id is -1; expected 0 to 999999999, or None"


def test_malformed_scope_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        VirtualDevice(memory_scope='a"b')
    assert str(caught.value) == (
        "memory scope 'a\"b' is malformed; expected letters, digits, '_', '-' and '.'"
    )


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        (UNCONSTRAINED, VirtualDevice(CPU, 3, HOST, "global"), VirtualDevice(CPU, 3, HOST, "global")),
        (VirtualDevice(CPU), VirtualDevice(CPU, 2), VirtualDevice(CPU, 2)),
        (VirtualDevice(CPU, 2), VirtualDevice(target=HOST), VirtualDevice(CPU, 2, HOST)),
        (
            VirtualDevice(CPU),
            VirtualDevice(memory_scope="global"),
            VirtualDevice(CPU, memory_scope="global"),
        ),
        (
            VirtualDevice(target=Target("cpu")),
            VirtualDevice(target=Target("cpu")),
            VirtualDevice(target=HOST),
        ),
    ],
)
def test_join_defined(left: VirtualDevice, right: VirtualDevice, joined: VirtualDevice) -> None:
    assert VirtualDevice.join(left, right) == joined
    assert VirtualDevice.join(right, left) == joined


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (VirtualDevice(CPU), VirtualDevice(CUDA)),
        (VirtualDevice(CPU, 0), VirtualDevice(CPU, 1)),
        (VirtualDevice(target=HOST), VirtualDevice(target=OPENVINO)),
        (VirtualDevice(CPU), VirtualDevice(target=GPU)),
        (VirtualDevice(memory_scope="global"), VirtualDevice(memory_scope="shared")),
    ],
)
def test_join_undefined(left: VirtualDevice, right: VirtualDevice) -> None:
    assert VirtualDevice.join(left, right) is None
    assert VirtualDevice.join(right, left) is None


@pytest.mark.parametrize(
    ("left", "right", "defaulted"),
    [
        (VirtualDevice(CPU), VirtualDevice(CPU, 2, HOST, "global"), VirtualDevice(CPU, 2, HOST, "global")),
        (VirtualDevice(CPU, 1), VirtualDevice(CPU, 2, HOST), VirtualDevice(CPU, 1, HOST)),
        (VirtualDevice(target=OPENVINO), VirtualDevice(CPU, 2, HOST), VirtualDevice(CPU, 2, OPENVINO)),
        (
            VirtualDevice(CPU, memory_scope="global"),
            VirtualDevice(CPU, memory_scope="shared"),
            VirtualDevice(CPU, memory_scope="global"),
        ),
        (
            VirtualDevice(CPU),
            VirtualDevice(CUDA, 2, GPU, "global"),
            VirtualDevice(CPU, memory_scope="global"),
        ),
        (VirtualDevice(None, 1), VirtualDevice(CUDA, 2, GPU), VirtualDevice(CUDA, 1, GPU)),
        (VirtualDevice(CPU), VirtualDevice(None, 2), VirtualDevice(CPU, 2)),
    ],
)
def test_default(left: VirtualDevice, right: VirtualDevice, defaulted: VirtualDevice) -> None:
    assert VirtualDevice.default(left, right) == defaulted


@given(DEVICES, DEVICES, DEVICES)
def test_join_laws(first: VirtualDevice, second: VirtualDevice, third: VirtualDevice) -> None:
    def join(left: VirtualDevice | None, right: VirtualDevice | None) -> VirtualDevice | None:
        return None if left is None or right is None else VirtualDevice.join(left, right)

    assert join(first, first) == first
    assert join(first, UNCONSTRAINED) == first
    assert join(first, second) == join(second, first)
    assert join(join(first, second), third) == join(first, join(second, third))


@given(DEVICES, DEVICES)
def test_default_is_the_join_where_that_exists(left: VirtualDevice, right: VirtualDevice) -> None:
    defaulted = VirtualDevice.default(left, right)
    assert VirtualDevice.join(left, right) in {None, defaulted}
    assert VirtualDevice.join(left, defaulted) == defaulted
    assert VirtualDevice.default(defaulted, right) == defaulted


@pytest.mark.parametrize(
    ("device", "text"),
    [
        (UNCONSTRAINED, "VirtualDevice(?)"),
        (VirtualDevice(None, 1), "VirtualDevice(?:1)"),
        (VirtualDevice(CUDA), "VirtualDevice(cuda)"),
        (VirtualDevice(CPU, 0), "VirtualDevice(cpu:0)"),
        (VirtualDevice(memory_scope="global"), 'VirtualDevice(?, scope="global")'),
        (VirtualDevice(target=HOST), 'VirtualDevice(cpu, target="cpu")'),
        (
            VirtualDevice(CPU, 0, OPENVINO, "global"),
            'VirtualDevice(cpu:0, target="cpu -toolchain=openvino -threads=2", scope="global")',
        ),
    ],
)
def test_text(device: VirtualDevice, text: str) -> None:
    assert str(device) == text
    assert VirtualDevice.parse(text) == device


@given(DEVICES)
def test_text_reads_back(device: VirtualDevice) -> None:
    assert VirtualDevice.parse(str(device)) == device


@given(DEVICES)
def test_the_regular_expression_finds_the_text_inside_a_program(device: VirtualDevice) -> None:
    found = re.search(VIRTUAL_DEVICE_REGEX, f"%0 = Relu(%x) @ {device} // VirtualDevice(?)")
    assert found is not None
    assert found[0] == str(device)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "VirtualDevice()",
            (
                "'VirtualDevice()' is not a virtual device; expected a text such as "
                'VirtualDevice(cpu:0, target="cpu -toolchain=openvino", scope="global")\n'
                "help: a device of any type is written '?'; number, target and scope may be left out"
            ),
        ),
        (
            "VirtualDevice(gpu)",
            (
                "'VirtualDevice(gpu)' is not a virtual device: "
                "unknown device kind 'gpu'\nhelp: did you mean cpu?"
            ),
        ),
        (
            'VirtualDevice(cpu, target="cuda")',
            (
                "'VirtualDevice(cpu, target=\"cuda\")' is not a virtual device: "
                'device type cpu does not fit target "cuda"; expected cuda'
            ),
        ),
        (
            'VirtualDevice(cpu, target="cpu -thread=1")',
            (
                "'VirtualDevice(cpu, target=\"cpu -thread=1\")' is not a virtual device: "
                "unknown target option 'thread'\nhelp: did you mean threads?"
            ),
        ),
    ],
)
def test_malformed_text(text: str, expected: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        VirtualDevice.parse(text)
    assert str(caught.value) == expected


@given(st.text() | st.from_regex(VIRTUAL_DEVICE_REGEX))
def test_any_text_is_a_virtual_device_or_an_error(text: str) -> None:
    try:
        device = VirtualDevice.parse(text)
    except ProgramTextError:
        return
    assert VirtualDevice.parse(str(device)) == device
