from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.free_names import NameSupply, free_name, numbered_names

STEMS = st.sampled_from(["a", "a_1", "a_1_1", "a_2", "b"])


def test_a_free_name_is_kept() -> None:
    assert free_name("x", {"y"}) == "x"


def test_a_taken_name_gets_the_lowest_free_number() -> None:
    assert free_name("x", {"x", "x_1", "x_3"}) == "x_2"


def test_the_number_is_written_as_wanted() -> None:
    assert free_name("x", {"x", "x.1"}, ".{}") == "x.2"
    assert free_name("x", {"x"}, " ({})", 2) == "x (2)"


def test_numbered_names_skip_taken_ones_even_if_these_are_added_later() -> None:
    taken = {"x1"}
    names = numbered_names("x", taken)
    assert list(islice(names, 2)) == ["x0", "x2"]
    taken.add("x3")
    assert next(names) == "x4"


def test_a_supply_starts_with_the_names_in_use() -> None:
    supply = NameSupply(["x"])
    assert [supply.fresh("x"), supply.fresh("x"), supply.fresh("y")] == ["x_1", "x_2", "y"]


def test_numbers_behind_a_released_name_still_grow() -> None:
    supply = NameSupply()
    assert [supply.fresh("x"), supply.fresh("x")] == ["x", "x_1"]
    supply.release("x_1")
    assert supply.fresh("x") == "x_2"
    supply.release("x")
    assert supply.fresh("x") == "x"


@given(st.lists(STEMS), st.sets(STEMS))
def test_a_supply_gives_the_names_of_free_name(wanted: list[str], taken: set[str]) -> None:
    supply, known = NameSupply(taken), set(taken)
    for stem in wanted:
        expected = free_name(stem, known)
        known.add(expected)
        assert supply.fresh(stem) == expected


def test_many_names_of_one_stem_take_linear_time() -> None:
    reads = CountingSet()
    supply = NameSupply()
    supply._taken = reads
    for _ in range(1000):
        supply.fresh("x")
    assert reads.count < 3000


class CountingSet(set[str]):
    count = 0

    def __contains__(self, name: object) -> bool:
        self.count += 1
        return super().__contains__(name)
