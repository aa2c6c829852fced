from dataclasses import fields

import pytest

from intarsia.autoschedule.task import HardwareParams
from intarsia.native.machine.isa import Isa
from intarsia.support.errors import UsageError


def test_fields_stand_in_the_order_of_the_log() -> None:
    names = [field.name for field in fields(HardwareParams)]
    assert names == [
        *("num_cores", "vector_unit_bytes", "cache_line_bytes", "max_shared_memory_per_block"),
        *("max_local_memory_per_block", "max_threads_per_block", "max_vthread_extent", "warp_size"),
    ]
    assert HardwareParams(2, 32, 64, 1, 2, 3, 4, 5).numbers == (2, 32, 64, 1, 2, 3, 4, 5)


def test_an_instruction_set_gives_the_bytes_of_vectors() -> None:
    isa = Isa("x86_64", "x86-64-v3", ("avx", "avx2"))
    assert HardwareParams.of_isa(isa, 3).numbers == (3, 32, 64, 0, 0, 0, 0, 0)


def test_a_machine_without_cores_is_refused() -> None:
    with pytest.raises(UsageError, match="num_cores is 0; expected at least 1"):
        HardwareParams(0)
