from dataclasses import replace

import pytest

from intarsia.support.errors import UsageError
from intarsia.target import CompilationConfig, DeviceType, Target, VirtualDevice

CPU, CUDA = DeviceType.CPU, DeviceType.CUDA
PLAIN = Target("cpu -threads=2")
OPENVINO, ONNXRUNTIME = Target("cpu -toolchain=openvino"), Target("cpu -toolchain=onnxruntime")
GPU, TENSORRT = Target("cuda"), Target("cuda -toolchain=tensorrt")
HETEROGENEOUS = CompilationConfig((GPU, TENSORRT, PLAIN, OPENVINO, ONNXRUNTIME))


def message(
    *targets: Target, host: Target | None = None, fallback_device_type: DeviceType | None = None
) -> str:
    with pytest.raises(UsageError) as caught:
        CompilationConfig(targets, host, fallback_device_type)
    return str(caught.value)


def test_homogeneous_cpu_hosts_itself() -> None:
    config = CompilationConfig((PLAIN,))
    assert config.host_target == PLAIN
    assert config.host_virtual_device == VirtualDevice(CPU, 0, PLAIN)
    assert config.default_primitive_virtual_device == VirtualDevice(CPU, 0, PLAIN)


def test_host_rule_a_the_host_given() -> None:
    host = Target("cpu -threads=8")
    config = replace(HETEROGENEOUS, host=host)
    assert config.host_target == host
    assert config.host_virtual_device == VirtualDevice(CPU, 0, host)


def test_host_rule_b_the_first_plain_cpu_target() -> None:
    assert HETEROGENEOUS.host_target == PLAIN


@pytest.mark.parametrize("targets", [(GPU,), (OPENVINO,)])
def test_host_rule_c_a_plain_cpu(targets: tuple[Target, ...]) -> None:
    assert CompilationConfig(targets).host_target == Target("cpu")


def test_default_rule_d_the_fallback_device_type() -> None:
    config = replace(HETEROGENEOUS, fallback_device_type=CUDA)
    assert config.default_primitive_virtual_device == VirtualDevice(CUDA, 0, GPU)


def test_default_rule_e_the_only_device_type() -> None:
    config = CompilationConfig((GPU, TENSORRT))
    assert config.default_primitive_virtual_device == VirtualDevice(CUDA, 0, GPU)


def test_default_rule_f_the_cpu() -> None:
    assert HETEROGENEOUS.default_primitive_virtual_device == VirtualDevice(CPU, 0, PLAIN)


def test_a_single_toolchain_needs_no_plain_target() -> None:
    config = CompilationConfig((OPENVINO,))
    assert config.default_primitive_virtual_device == VirtualDevice(CPU, 0, OPENVINO)


def test_device_types_in_the_order_of_the_targets() -> None:
    assert HETEROGENEOUS.device_types == (CUDA, CPU)


def test_the_targets_of_device_kinds_may_be_interleaved() -> None:
    config = CompilationConfig((PLAIN, GPU, OPENVINO, TENSORRT))
    assert config.find_primitive_target_for_device_or_fail(CUDA) == GPU


def test_construction_is_idempotent() -> None:
    again = CompilationConfig(
        HETEROGENEOUS.primitive_targets, HETEROGENEOUS.host_target, HETEROGENEOUS.default_device_type
    )
    twice = CompilationConfig(again.primitive_targets, again.host_target, again.default_device_type)
    assert again == twice
    assert again.host_virtual_device == HETEROGENEOUS.host_virtual_device
    assert again.default_primitive_virtual_device == HETEROGENEOUS.default_primitive_virtual_device


def test_no_targets() -> None:
    assert message() == 'no targets are given; expected at least one\nhelp: such as Target("cpu")'


def test_no_plain_target_before_several() -> None:
    assert message(OPENVINO, ONNXRUNTIME) == (
        'the first of 2 cpu targets is "cpu -toolchain=openvino"; '
        'expected a target without toolchain, which the others refine\nhelp: put Target("cpu") first'
    )


def test_plain_target_out_of_order() -> None:
    assert message(GPU, OPENVINO, PLAIN).startswith('the first of 2 cpu targets is "cpu -toolchain=openvino"')


def test_two_plain_targets_of_one_kind() -> None:
    assert message(PLAIN, Target("cpu")) == (
        'targets "cpu -threads=2" and "cpu" both name no toolchain; expected one of them'
    )


def test_two_targets_of_one_toolchain() -> None:
    assert message(PLAIN, OPENVINO, OPENVINO) == (
        'targets "cpu -toolchain=openvino" and "cpu -toolchain=openvino" both name toolchain openvino; '
        "expected one of them"
    )


def test_one_toolchain_on_two_device_kinds() -> None:
    targets = (Target("cpu -toolchain=torch"), Target("cuda -toolchain=torch"))
    assert CompilationConfig(targets).find_primitive_target_for_device_or_fail(CUDA) == targets[1]


def test_no_target_for_the_fallback_device_type() -> None:
    assert message(PLAIN, OPENVINO, fallback_device_type=CUDA) == (
        'no target is for device type cuda; found "cpu -threads=2", "cpu -toolchain=openvino"'
    )


@pytest.mark.parametrize("host", [GPU, OPENVINO])
def test_unfit_host(host: Target) -> None:
    assert (
        message(PLAIN, host=host) == f'the host target is "{host}"; expected a cpu target without toolchain'
    )


def test_find_for_device_is_the_first_of_its_type() -> None:
    assert HETEROGENEOUS.find_primitive_target_for_device_or_fail(CPU) == PLAIN
    assert HETEROGENEOUS.find_primitive_target_for_device_or_fail(CUDA) == GPU


def test_find_for_device_without_target() -> None:
    with pytest.raises(UsageError) as caught:
        CompilationConfig((GPU,)).find_primitive_target_for_device_or_fail(CPU)
    assert str(caught.value) == 'no target is for device type cpu; found "cuda"'


def test_canonical_target_is_the_configurations_own_object() -> None:
    assert HETEROGENEOUS.canonical_target(Target("cpu -toolchain=openvino")) is OPENVINO
    unknown = Target("cpu -toolchain=torch")
    assert HETEROGENEOUS.canonical_target(unknown) is unknown


@pytest.mark.parametrize(
    ("device", "canonical"),
    [
        (VirtualDevice(CPU), VirtualDevice(CPU, None, PLAIN)),
        (VirtualDevice(CUDA, 3, None, "global"), VirtualDevice(CUDA, 3, GPU, "global")),
        (VirtualDevice(target=Target("cpu -toolchain=openvino")), VirtualDevice(CPU, None, OPENVINO)),
    ],
)
def test_canonical_virtual_device(device: VirtualDevice, canonical: VirtualDevice) -> None:
    assert HETEROGENEOUS.canonical_virtual_device(device) == canonical
    assert HETEROGENEOUS.canonical_virtual_device(canonical) == canonical


def test_canonical_virtual_device_without_target() -> None:
    with pytest.raises(UsageError) as caught:
        CompilationConfig((PLAIN,)).canonical_virtual_device(VirtualDevice(CUDA))
    assert str(caught.value) == 'no target is for device type cuda; found "cpu -threads=2"'


def test_canonical_virtual_device_without_device_type() -> None:
    with pytest.raises(UsageError) as caught:
        HETEROGENEOUS.canonical_virtual_device(VirtualDevice(memory_scope="global"))
    assert str(caught.value) == (
        'VirtualDevice(?, scope="global") has no device type; expected at least that to find its target'
    )


def test_mock_devices_take_part() -> None:
    config = CompilationConfig((Target("mock"), PLAIN), fallback_device_type=DeviceType.MOCK)
    assert config.host_virtual_device == VirtualDevice(CPU, 0, PLAIN)
    assert config.default_primitive_virtual_device == VirtualDevice(DeviceType.MOCK, 0, Target("mock"))
    assert config.canonical_virtual_device(VirtualDevice(DeviceType.MOCK, 1)).target == Target("mock")
