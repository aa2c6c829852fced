from importlib.metadata import EntryPoint

import numpy as np
import pytest
from tests.fake_kernels import FUNCTIONS, fake

from intarsia.runtime.devices.core_groups import allowed_cores
from intarsia.runtime.devices.cpu import CpuDevice
from intarsia.runtime.devices.device import DEVICES, Device, device_class
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.mock import MockBuffer, MockDevice
from intarsia.runtime.devices.open_devices import group_sizes, open_devices
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.support.errors import ExecutionError, MissingToolchainError, UsageError

VECTOR = np.arange(6, dtype=np.float32)
FORM = ((6,), np.dtype(np.float32))
KINDS = ("cpu", "mock")


def pair(one: str, other: str) -> tuple[Device, Device]:
    opened = open_devices([f"{one}:0", f"{other}:1"], [None, None])
    return opened[0], opened[1]


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_a_value_goes_there_and_back(one: str, other: str) -> None:
    first, second = pair(one, other)
    block = second.allocate(64)
    into = second.view(block, 0, *FORM)
    there = second.receive(first, first.put(VECTOR), into)
    assert there is into
    fresh = first.receive(second, there, None)
    found = first.get(fresh)
    np.testing.assert_array_equal(np.asarray(found), VECTOR)
    assert not np.may_share_memory(np.asarray(found), VECTOR)
    target = np.empty(6, np.float32)
    assert second.get(there, target) is target
    np.testing.assert_array_equal(target, VECTOR)
    for device in (first, second):
        device.close()


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_write_into_buffers_or_make_their_own(kind: str) -> None:
    device, other = pair(kind, "mock")
    double = NamedKernel(fake("double"), "double")
    buffer = device.view(device.allocate(64), 0, *FORM)
    x = device.put(VECTOR)
    assert device.run(double, [x], [buffer])[0] is buffer
    (made,) = device.run(double, [buffer], [None])
    np.testing.assert_array_equal(np.asarray(device.get(made)), VECTOR * 4)
    (view,) = device.run(NamedKernel(fake("view"), "view"), [buffer], [None])
    device.run(double, [made], [buffer])  # what was a view of the buffer keeps its value
    np.testing.assert_array_equal(np.asarray(device.get(view)), VECTOR * 2)
    device.close()
    other.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [None, [VECTOR, [VECTOR]]], ids=["absent", "sequence"])
def test_values_that_are_no_arrays(kind: str, value: list[object] | None) -> None:
    device, other = pair(kind, "cpu")
    found = device.get(device.put(value))  # type: ignore[arg-type]  # a list of values
    assert str(found) == str(value)
    device.close()
    other.close()


def test_nobody_but_its_device_opens_a_mock_buffer() -> None:
    mock, cpu = pair("mock", "cpu")
    stranger = MockDevice(DeviceName("mock", 7), ())
    buffer = mock.put(VECTOR)
    assert isinstance(buffer, MockBuffer)
    assert not any(
        hasattr(buffer, name) for name in ("__array__", "__array_interface__", "__dlpack__", "shape")
    )
    double = NamedKernel(fake("double"), "double")
    expected = "is given a buffer of mock:0, which is not in its memory"
    for device in (cpu, stranger):
        with pytest.raises(ExecutionError, match=f"{device.name} {expected}"):
            device.run(double, [buffer], [None])
    with pytest.raises(ExecutionError, match="mock:7 is given a value of the host"):
        stranger.run(double, [VECTOR], [None])  # type: ignore[list-item]  # that is what is tested
    with pytest.raises(ExecutionError, match=f"mock:7 {expected}"):
        stranger.get(buffer)
    assert set(FUNCTIONS) >= {"double"}
    assert double.kernel.calls == 0  # type: ignore[attr-defined]  # a FakeKernel
    for device in (mock, cpu, stranger):
        device.close()


def test_what_a_missing_copy_says() -> None:
    device = MockDevice(DeviceName("mock", 0), ())
    other = MockDevice(DeviceName("mock", 1), ())
    with pytest.raises(ExecutionError) as caught:
        other.run(NamedKernel(fake("double"), "double"), [device.put(VECTOR)], [None])
    assert str(caught.value) == (
        "mock:1 is given a buffer of mock:0, which is not in its memory\n"
        "  in kernel double\n"
        "help: a device_copy is missing; PlanDevices puts them where they are needed"
    )


@pytest.mark.parametrize("value", [VECTOR[:3], VECTOR.astype(np.int64), None], ids=["shape", "dtype", "none"])
def test_a_copy_into_another_form_is_refused(value: object) -> None:
    device, other = pair("cpu", "mock")
    into = other.view(other.allocate(64), 0, *FORM)
    with pytest.raises(ExecutionError, match=r"a copy between devices is .*, expected float32\[6\]"):
        other.receive(device, device.put(value), into)  # type: ignore[arg-type]  # a value
    device.close()
    other.close()


def test_cores_are_divided_among_devices_of_the_cpu() -> None:
    devices = open_devices(["cpu:0", "cpu:3", "mock:0"], [None, None, None])
    groups = [device.cores for device in devices if isinstance(device, CpuDevice)]
    assert len(groups) == 2
    assert {core for group in groups for core in group} <= set(allowed_cores())
    assert len(allowed_cores()) < 2 or not set(groups[0]) & set(groups[1])
    sizes = group_sizes(["cpu:0", "cpu:3", "mock:0"], [None, None, None])
    assert sizes == (len(groups[0]), len(groups[1]), None)
    for device in devices:
        device.close()


def test_an_unknown_kind_of_device() -> None:
    with pytest.raises(UsageError, match="unknown device kind 'abacus'"):
        open_devices(["mock:0", "abacus:0"], [None, None])


@pytest.mark.parametrize("text", ["cpu", "cpu:", "cpu:-1", "CPU:0", "cpu:0 ", ""])
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a device"):
        DeviceName.parse(text)


def test_a_device_whose_package_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("abacus", "package_of_beads.device:Abacus", "intarsia.devices")
    monkeypatch.setitem(DEVICES._points(), "abacus", point)
    with pytest.raises(MissingToolchainError) as caught:
        open_devices(["cpu:0", "abacus:0"], [None, None])
    assert str(caught.value) == (
        "devices of kind abacus are not usable here: the package package_of_beads is not installed\n"
        "help: install it, or place the program on other devices"
    )


def test_a_device_whose_package_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: object, name: str) -> object:
        raise ImportError(f"libcuda.so is missing, for {name}", name="torch")

    monkeypatch.setattr(type(DEVICES), "__getitem__", load)
    with pytest.raises(MissingToolchainError, match="importing torch failed with ImportError: libcuda"):
        device_class("cuda")
