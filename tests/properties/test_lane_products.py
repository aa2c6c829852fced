"""Products with a transposed right matrix compute what they declare, whatever their sizes."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.default_schedules import assert_matches_declared
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.schedule_families import turned_product

from intarsia.native.dag import ComputeDAG

SETS = x86_sets()
SIZES = st.tuples(st.integers(1, 18), st.integers(1, 40), st.integers(2, 150))


@settings(max_examples=examples(40), deadline=None)
@given(SIZES, st.sampled_from(sorted(SETS)), st.sampled_from([1, 2]))
def test_default_schedules(size: tuple[int, int, int], isa: str, threads: int) -> None:
    assert_matches_declared(ComputeDAG(turned_product(*size)), SETS[isa], threads)
