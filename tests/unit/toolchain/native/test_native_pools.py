from collections.abc import Callable

import pytest
from onnx import TensorProto, helper

from intarsia.runtime.devices.core_groups import allowed_cores
from intarsia.runtime.devices.worker import Worker
from intarsia.runtime.kernel import KernelSource
from intarsia.toolchain import toolchain
from intarsia.toolchain.native.kernel import NativeKernel


@pytest.mark.skipif(len(allowed_cores()) < 2, reason="one core cannot be divided")
def test_kernels_on_other_cores_have_other_threads(source_of: Callable[..., KernelSource]) -> None:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in "xy"]
    source = source_of("native", [helper.make_node("Neg", ["x"], ["y"])], infos[:1], infos[1:])

    def load() -> NativeKernel:
        kernel = toolchain("native").load(source)
        assert isinstance(kernel, NativeKernel)
        return kernel

    workers = [Worker("w", cores) for cores in (allowed_cores()[:1], allowed_cores()[-1:], None)]
    first, last, whole = (worker.call(load)._pool for worker in workers)
    assert len({id(first), id(last), id(whole)}) == 3
    assert load()._pool is whole
    for worker in workers:
        worker.close()
