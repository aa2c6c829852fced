"""Names that are given out once."""

from __future__ import annotations

from intarsia.collage.name_supply import NameSupply


def test_joins_prefix_and_hints() -> None:
    names = NameSupply("collage")
    assert names.fresh("onnxruntime", "Conv+Add") == "collage_onnxruntime_Conv_Add"
    assert names.fresh() == "collage"
    assert names.fresh("", "a") == "collage_a"


def test_numbers_what_is_taken() -> None:
    names = NameSupply("p")
    assert [names.fresh("a") for _ in range(3)] == ["p_a", "p_a_1", "p_a_2"]
    assert names.fresh("a", "1") == "p_a_1_1"


def test_keeps_away_from_what_exists() -> None:
    names = NameSupply(taken=["main"])
    names.reserve("f")
    assert (names.fresh("main"), names.fresh("f"), names.fresh("f")) == ("main_1", "f_1", "f_2")


def test_names_are_names_in_c() -> None:
    names = NameSupply()
    assert names.fresh("größe:0") == "gr__e_0"
    assert names.fresh("0") == "_0"
    assert names.fresh() == "_"


def test_sub_supplies_take_from_the_same() -> None:
    names = NameSupply("p")
    inner = names.sub_supply("q")
    assert inner.fresh("a") == "p_q_a"
    assert names.fresh("q", "a") == "p_q_a_1"
    assert inner.fresh("a") == "p_q_a_2"
