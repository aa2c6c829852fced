from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.runtime.devices.core_groups import allowed_cores, core_groups


@pytest.mark.parametrize(
    ("wanted", "cores", "groups"),
    [
        ([None, None], [0, 1, 2, 3], ((0, 1), (2, 3))),
        ([None, None], [4, 6, 9], ((4, 6), (9,))),
        ([1, None], [0, 1, 2, 3], ((0,), (1, 2, 3))),
        ([2, 1], [0, 1, 2, 3], ((0, 1), (2,))),
        ([8, 2], [0, 1, 2, 3], ((0, 1), (2, 3))),
        ([8, None], [0, 1, 2], ((0, 1), (2,))),
        ([None, 5], [0, 1], ((0,), (1,))),
        ([None, None, None], [0, 1], ((0,), (1,), (0,))),
        ([], [0, 1], ()),
    ],
    ids=str,
)
def test_how_cores_are_divided(
    wanted: list[int | None], cores: list[int], groups: tuple[tuple[int, ...], ...]
) -> None:
    assert core_groups(wanted, cores) == groups


@given(
    st.lists(st.none() | st.integers(1, 9), max_size=6),
    st.lists(st.integers(0, 99), min_size=1, max_size=12, unique=True),
)
def test_groups_are_disjoint_where_the_cores_suffice(wanted: Sequence[int | None], cores: list[int]) -> None:
    groups = core_groups(wanted, cores)
    assert len(groups) == len(wanted)
    assert all(group and set(group) <= set(cores) for group in groups)
    given_out = [core for group in groups for core in group]
    assert len(set(given_out)) == min(len(given_out), len(cores))
    sizes = [size for size in wanted if size is not None]
    if len(sizes) == len(wanted) and sum(sizes) <= len(cores):
        assert [len(group) for group in groups] == sizes
    if None in wanted and len(wanted) <= len(cores):
        assert set(given_out) == set(cores)


def test_this_machine_has_cores() -> None:
    assert allowed_cores()
