import pytest

from intarsia.support.errors import UsageError
from intarsia.target import DeviceType


def test_numbers_are_those_of_dlpack() -> None:
    assert {device_type.kind: device_type.value for device_type in DeviceType} == {
        "cpu": 1,
        "cuda": 2,
        "mock": 12,
    }


@pytest.mark.parametrize("device_type", DeviceType)
def test_of_kind_reads_back_every_kind(device_type: DeviceType) -> None:
    assert DeviceType.of_kind(device_type.kind) is device_type


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("cudaa", "unknown device kind 'cudaa'\nhelp: did you mean cuda?"),
        ("CPU", "unknown device kind 'CPU'\nhelp: known: cpu, cuda, mock"),
    ],
)
def test_unknown_kind(kind: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        DeviceType.of_kind(kind)
    assert str(caught.value) == message
