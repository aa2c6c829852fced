"""Names that are given out once."""

from __future__ import annotations

from intarsia.collage.partition_names import PartitionNames


def test_joins_the_hints() -> None:
    names = PartitionNames()
    assert names.fresh("onnxruntime", "Conv+Add") == "collage_onnxruntime_Conv_Add"
    assert names.fresh() == "collage"
    assert names.fresh("", "a") == "collage_a"


def test_numbers_what_is_taken() -> None:
    names = PartitionNames(["collage_a"])
    assert [names.fresh("a") for _ in range(3)] == ["collage_a_1", "collage_a_2", "collage_a_3"]
    assert names.fresh("a", "1") == "collage_a_1_1"


def test_names_are_names_in_c() -> None:
    names = PartitionNames()
    assert names.fresh("größe:0") == "collage_gr__e_0"
