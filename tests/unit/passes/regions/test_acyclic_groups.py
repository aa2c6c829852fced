"""Groups without cycles between them."""

from __future__ import annotations

from intarsia.passes.regions.acyclic_groups import acyclic_groups


def test_a_chain_is_one_group() -> None:
    assert acyclic_groups(["a"] * 4, [[], [0], [1], [2]]) == [[0, 1, 2, 3]]


def test_a_diamond_through_another_kind_is_cut() -> None:
    """0 and 3 are of one kind and adjacent, but 2 lies between them."""
    assert acyclic_groups(["a", "a", None, "a"], [[], [0], [0], [0, 1, 2]]) == [[0, 1], [3]]


def test_a_late_input_does_not_cut_a_chain() -> None:
    assert acyclic_groups(["a", None, "a", None, "a"], [[], [], [0, 1], [], [2, 3]]) == [[0, 2, 4]]


def test_two_regions_may_not_need_each_other() -> None:
    """a0 -> b2 and b1 -> a3: joining both pairs would make a cycle; the first is joined."""
    assert acyclic_groups(["a", "b", "b", "a"], [[], [], [0, 1], [1, 0]]) == [[0], [1, 2], [3]]


def test_nodes_that_are_not_connected_stay_apart() -> None:
    assert acyclic_groups(["a", "a", None], [[], [], [0, 1]]) == [[0], [1]]


def searches(count: int, kinds: list[str | None], needs: list[list[int]]) -> int:
    """How many groups are looked at in all searches."""
    from intarsia.passes.regions.acyclic_groups import _Groups

    looked = 0

    class Counting(_Groups):
        def _current_needs(self, group: int) -> list[int]:
            nonlocal looked
            looked += 1
            return super()._current_needs(group)

    groups = Counting(kinds)
    for node, below in enumerate(needs):
        groups.add(node, below)
    return looked


def ladder(count: int) -> tuple[list[str | None], list[list[int]]]:
    """A chain of a's, each of which also needs a link of a chain of others."""
    kinds: list[str | None] = []
    needs: list[list[int]] = []
    for step in range(count):
        kinds += [None, "a"]
        needs += [[2 * step - 2] if step else [], [2 * step, 2 * step - 1] if step else [0]]
    return kinds, needs


def late_ladder(count: int) -> tuple[list[str | None], list[list[int]]]:
    """An early a that all later ones need, though others lie between: no join succeeds with it."""
    kinds: list[str | None] = ["a"]
    needs: list[list[int]] = [[]]
    for step in range(count):
        before = 2 * step
        kinds += [None, "a"]
        needs += [[before], [0, before + 1]]
    return kinds, needs


def test_the_searches_are_short() -> None:
    for graph in (ladder, late_ladder):
        small, large = (searches(count, *graph(count)) for count in (200, 2000))
        assert large < 11 * small, graph.__name__
