from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.passes.devices import exact_placement
from intarsia.passes.devices.max_flow import FlowNetwork
from intarsia.passes.devices.min_copies import CopyProblem, fewest_copies
from intarsia.passes.devices.upward_choice import follow_arguments


def copies(values: Sequence[frozenset[int]], chosen: dict[int, int]) -> int:
    return sum(len({chosen[user] for user in users}) - 1 for users in values)


@st.composite
def problems(draw: st.DrawFn, devices: int) -> CopyProblem:
    numbers = range(draw(st.integers(1, 7)))
    everything = tuple(range(devices))
    options = st.one_of(
        st.just(everything),
        st.sampled_from([(device,) for device in everything]),
        st.lists(st.sampled_from(everything), min_size=1, unique=True).map(sorted).map(tuple),
    )
    users = st.frozensets(st.sampled_from(numbers), min_size=1, max_size=4)
    return CopyProblem({n: draw(options) for n in numbers}, draw(st.lists(users, max_size=9)))


def fewest(problem: CopyProblem) -> int:
    choices = (
        dict(zip(problem.allowed, choice, strict=True)) for choice in product(*problem.allowed.values())
    )
    return min(copies(problem.values, chosen) for chosen in choices)


@given(problems(2))
def test_between_two_devices_the_cut_is_the_smallest(problem: CopyProblem) -> None:
    chosen = fewest_copies(problem)
    assert copies(problem.values, chosen) == fewest(problem)
    assert all(device in problem.allowed[domain] for domain, device in chosen.items())


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ({0: (0, 1, 2), 1: (1, 2)}, {0: 1, 1: 1}),
        ({0: (0, 2), 1: (1, 2)}, {0: 2, 1: 2}),
        ({0: (0, 1), 1: (0, 1)}, {0: 0, 1: 0}),
    ],
)
def test_domains_with_nothing_around_go_where_all_can_be(
    allowed: dict[int, tuple[int, ...]], expected: dict[int, int]
) -> None:
    assert fewest_copies(CopyProblem(allowed, [frozenset(allowed)])) == expected


def test_a_device_that_is_nobodys_first_choice_may_be_the_best() -> None:
    problem = CopyProblem({0: (3,), 1: (0, 1), 2: (2, 1)}, [frozenset({0, 1}), frozenset({1, 2})] * 2)
    assert fewest_copies(problem) == {0: 3, 1: 1, 2: 1}


@given(problems(3))
def test_small_problems_of_more_devices_are_exact(problem: CopyProblem) -> None:
    assert copies(problem.values, fewest_copies(problem)) == fewest(problem)


def test_moves_alone_find_the_best_of_three_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_placement, "SEARCH_STEPS", 0)
    allowed = {0: (0,), 1: (1,), 2: (2,), **dict.fromkeys(range(3, 8), (0, 1, 2))}
    pairs = ((0, 3), (1, 4), (1, 5), (2, 6), (2, 7), (3, 4), (4, 5), (5, 6), (6, 7), (3, 7))
    problem = CopyProblem(allowed, [frozenset(pair) for pair in pairs])
    assert copies(problem.values, fewest_copies(problem)) == fewest(problem)


def test_of_equal_choices_the_first_device_is_taken() -> None:
    problem = CopyProblem({0: (0,), 1: (0, 1), 2: (1,)}, [frozenset({0, 1}), frozenset({1, 2})])
    chosen = fewest_copies(problem)
    assert chosen == {0: 0, 1: 0, 2: 1}


def test_a_value_costs_once_for_each_device() -> None:
    shared = [frozenset({0, 1, 2, 3})]
    assert fewest_copies(CopyProblem({0: (0, 1), 1: (1,), 2: (1,), 3: (0,)}, shared))[0] == 0


def test_what_nothing_annotated_touches_stays_on_the_first_device() -> None:
    chosen = fewest_copies(CopyProblem({0: (0, 1), 1: (0, 1)}, [frozenset({0, 1})]))
    assert chosen == {0: 0, 1: 0}


def test_a_smallest_cut() -> None:
    network = FlowNetwork()
    left, right = network.node(), network.node()
    network.arc(network.SOURCE, left, 3)
    network.arc(network.SOURCE, right, 2)
    network.arc(left, right, 1)
    network.arc(left, network.SINK, 2)
    network.arc(right, network.SINK, 2)
    assert network.source_side() == {network.SOURCE, left, right}


def test_upward_devices_go_from_arguments_to_users_and_then_back() -> None:
    allowed = {0: (1,), 1: (0, 1), 2: (0, 1), 3: (0,), 4: (0, 1)}
    uses = [(0, 1), (3, 1), (2, 1)]
    assert follow_arguments(allowed, uses) == {0: 1, 1: 1, 2: 1, 3: 0, 4: 0}
