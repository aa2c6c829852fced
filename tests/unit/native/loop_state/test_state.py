import pickle

import pytest
from tests.native_workloads import conv2d_nchw_bn_relu, matmul, zero_rank_compute

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState, Range, StageKind
from intarsia.native.te.iter_var import IterKind
from intarsia.support.errors import UsageError


def extents(state: LoopState, stage: str) -> list[int | None]:
    return [loop.extent for loop in state[stage].iters]


def names(state: LoopState, stage: str) -> list[str]:
    return [loop.name for loop in state[stage].iters]


A, B, C = matmul(512, 512, 512)
DAG = ComputeDAG((A, B, C))


def test_the_loops_as_declared() -> None:
    state = LoopState.initial(DAG)
    assert [stage.kind for stage in state.stages] == [
        *(StageKind.PLACEHOLDER, StageKind.PLACEHOLDER, StageKind.COMPUTE)
    ]
    assert state["A"].iters == ()
    assert [(loop.name, loop.range, loop.kind) for loop in state[C].iters] == [
        ("i", Range(0, 512), IterKind.SPATIAL),
        ("j", Range(0, 512), IterKind.SPATIAL),
        ("k", Range(0, 512), IterKind.REDUCTION),
    ]
    assert LoopState.initial(DAG) == state


def test_split_fuse_reorder_annotate() -> None:
    """The field's test of that name."""
    state = LoopState.initial(DAG).split(C, "i", [16]).split(C, "j", [8])
    assert (names(state, "C"), extents(state, "C")) == (
        ["i.0", "i.1", "j.0", "j.1", "k"],
        [32, 16, 64, 8, 512],
    )
    state = state.reorder(C, ["i.0", "j.0", "k", "j.1", "i.1"])
    assert extents(state, "C") == [32, 64, 512, 8, 16]
    state = state.fuse(C, ["i.0", "j.0"])
    assert (names(state, "C")[0], extents(state, "C")) == ("i.0@j.0@", [2048, 512, 8, 16])
    fused = state[C].iters[0]
    assert [loop.name for loop in fused.orig_iters] == ["i.0", "j.0"]
    assert fused.kind is IterKind.SPATIAL
    state = state.parallel(C, fused).unroll(C, "j.1").vectorize(C, 3)
    assert [loop.annotation for loop in state[C].iters] == [
        IteratorAnnotation.PARALLEL,
        IteratorAnnotation.NONE,
        IteratorAnnotation.UNROLL,
        IteratorAnnotation.VECTORIZE,
    ]
    assert str(state) == (
        "Placeholder: A, B\n"
        "parallel i.0@j.0@ (0,2048)\n"
        "  for k (0,512)\n"
        "    unroll j.1 (0,8)\n"
        "      vectorize i.1 (0,16)\n"
        "        C = ...\n"
    )
    assert [step.code for step in state.transform_steps] == ["SP", "SP", "RE", "FU", "AN", "AN", "AN"]


def test_the_seeds_print() -> None:
    state = LoopState.initial(DAG).split(C, "i", [16]).split(C, "j", [8])
    state = state.reorder(C, ["i.0", "j.0", "k", "j.1", "i.1"]).fuse(C, ["i.0", "j.0"])
    assert str(state) == (
        "Placeholder: A, B\n"
        "for i.0@j.0@ (0,2048)\n"
        "  for k (0,512)\n"
        "    for j.1 (0,8)\n"
        "      for i.1 (0,16)\n"
        "        C = ...\n"
    )


def test_a_state_never_changes() -> None:
    before = LoopState.initial(DAG)
    text = str(before)
    before.split(C, "i", [4]).parallel(C, "i.0")
    assert str(before) == text
    assert before.transform_steps == ()


def test_fusing_different_kinds_is_mixed() -> None:
    state = LoopState.initial(DAG).fuse(C, ["j", "k"])
    assert state[C].iters[1].kind is IterKind.MIXED


def test_split_lengths_from_both_sides() -> None:
    state = LoopState.initial(DAG).split(C, "i", [4, 2, 16])
    assert extents(state, "C")[:4] == [4, 4, 2, 16]
    state = LoopState.initial(DAG).split(C, "i", [4, 2, 16], inner_to_outer=False)
    assert extents(state, "C")[:4] == [4, 2, 16, 4]


def test_lengths_that_do_not_divide_round_up() -> None:
    assert extents(LoopState.initial(DAG).split(C, "i", [100]), "C")[:2] == [6, 100]
    assert extents(LoopState.initial(DAG).split(C, "i", [100], inner_to_outer=False), "C")[:2] == [100, 6]
    assert extents(LoopState.initial(DAG).split(C, "i", [1000]), "C")[:2] == [1, 1000]


def test_lengths_that_are_not_chosen_leave_the_rest_open() -> None:
    state = LoopState.initial(DAG).split(C, "i", [4, None, 16])
    assert extents(state, "C")[:4] == [None, None, None, 16]
    assert not state.concrete
    assert "for i.0 (None)" in str(state)
    outer = LoopState.initial(DAG).split(C, "i", [4, None, 16], inner_to_outer=False)
    assert extents(outer, "C")[:4] == [4, None, None, None]
    assert LoopState.initial(DAG).split(C, "i", [4]).concrete


def test_the_innermost_part_keeps_the_minimum() -> None:
    state = LoopState.initial(DAG).with_ranges({2: [Range(3, 512), Range(0, 512), None]})
    assert [loop.range for loop in state.split(C, "i", [16])[C].iters[:2]] == [Range(0, 32), Range(3, 16)]


def test_follow_split_takes_the_lengths_of_its_source() -> None:
    state = LoopState.initial(DAG).split(C, "i", [4, 2, 16])
    follow = [extents(state.follow_split(C, "j", 0, count), "C")[4:-1] for count in (1, 2, 3, 4)]
    assert follow == [[4, 128], [4, 4, 32], [4, 4, 2, 16], [4, 4, 2, 16, 1]]
    open_length = LoopState.initial(DAG).split(C, "i", [None, 16]).follow_split(C, "j", 0, 2)
    assert extents(open_length, "C")[3:-1] == [None, None, 16]


def test_follow_fused_split_takes_products() -> None:
    state = LoopState.initial(DAG).split(C, "i", [4, 16]).split(C, "j", [2, 8])
    factor = state.follow_fused_split(C, "k", [0, 1], 0, factor_or_nparts=True)
    assert extents(factor, "C")[-2:] == [64, 8]
    parts = state.follow_fused_split(C, "k", [0, 1], 1, factor_or_nparts=False)
    assert extents(parts, "C")[-2:] == [128, 4]


def test_stages_inside_loops_follow_them() -> None:
    def place(state: LoopState) -> str:
        target, loop = state.attach_map.positions[state.stage_id("C.local")]
        return state.stages[target].iters[loop].name

    state = LoopState.initial(DAG).cache_write(C, "local").split(C, "i", [16])
    state = state.compute_at("C.local", C, "j")
    assert place(state) == "j"
    assert place(state.split(C, "i.0", [4, 2])) == "j"
    assert place(state.split(C, "j", [4, 2])) == "j.2"
    assert place(state.fuse(C, ["i.1", "j"])) == "i.1@j@"
    assert place(state.fuse(C, ["i.0", "i.1"])) == "j"
    assert place(state.reorder(C, ["j", "i.0", "i.1"])) == "j"
    assert place(state.cache_read(B, "shared", ["C.local"])) == "j"
    assert state["C.local"].compute_at is ComputeAt.ITER
    assert extents(state, "C.local") == [None, None, None]
    root = state.compute_root("C.local")
    assert root["C.local"].compute_at is ComputeAt.ROOT
    assert root.attach_map.positions == {}
    assert extents(root, "C.local") == [None, None, None]


def test_the_golden_print_of_a_tuned_product() -> None:
    """The field's sketch of cache write and fusion, before sizes are chosen."""
    state = LoopState.initial(DAG).cache_write(C, "local")
    state = state.split("C.local", 0, [None] * 3).split("C.local", 4, [None] * 3).split("C.local", 8, [None])
    state = state.reorder("C.local", [0, 4, 1, 5, 8, 2, 6, 9, 3, 7])
    state = state.follow_split(C, 0, 1, 1).follow_split(C, 2, 2, 1).reorder(C, [0, 2, 1, 3])
    state = state.compute_at("C.local", C, 1)
    loops = [
        "i.0",
        "j.0",
        "i_c.0",
        "j_c.0",
        "i_c.1",
        "j_c.1",
        "k.0",
        "i_c.2",
        "j_c.2",
        "k.1",
        "i_c.3",
        "j_c.3",
    ]
    lines = ["Placeholder: A, B"]
    lines += [f"{'  ' * depth}for {name} (None)" for depth, name in enumerate(loops)]
    lines += [f"{'  ' * len(loops)}C.local = ..."]
    lines += ["    for i.1 (None)", "      for j.1 (None)", "        C = ..."]
    assert str(state).splitlines() == lines
    assert state.stage_id("C.local") == 2


def test_inlined_stages_do_not_print_and_hints_do() -> None:
    dag = ComputeDAG(conv2d_nchw_bn_relu())
    state = LoopState.initial(dag)
    for name in ("bias_add", "bn_mul", "bn_add"):
        state = state.compute_inline(name)
    state = state.compute_at("conv", "relu", "k").pragma("relu", "i", "auto_unroll_max_step$64")
    state = state.storage_align("padding", "m", 32, 1)
    assert str(state) == (
        "Placeholder: data, kernel, bias, bn_scale, bn_offset\n"
        "padding storage_offset: 1\n"
        "for j (0,3)\n"
        "  for k (0,8)\n"
        "    for m (0,8)\n"
        "      padding = ...\n"
        "relu auto_unroll: 64\n"
        "for j (0,4)\n"
        "  for k (0,6)\n"
        "    for nn (None)\n"
        "      for ff (None)\n"
        "        for yy (None)\n"
        "          for xx (None)\n"
        "            for rc (None)\n"
        "              for ry (None)\n"
        "                for rx (None)\n"
        "                  conv = ...\n"
        "    for m (0,6)\n"
        "      relu = ...\n"
    )


def test_trivial_loops_print_on_request_only() -> None:
    from intarsia.native.loop_state.print_state import state_text

    state = LoopState.initial(ComputeDAG(zero_rank_compute())).fuse("C", [])
    assert str(state) == "Placeholder: A\nfor k (0,12)\n  B = ...\nC = ...\n"
    assert state_text(state.stages, state.attach_map, show_trivial_loops=True).splitlines()[-2:] == [
        "for  (0,1)",
        "  C = ...",
    ]


def test_states_are_equal_if_they_print_the_same() -> None:
    first = LoopState.initial(DAG).split(C, "i", [16]).split(C, "j", [8])
    second = LoopState.initial(DAG).split(C, "j", [8]).split(C, "i", [16])
    assert first.transform_steps != second.transform_steps
    assert first == second
    assert len({first, second, LoopState.initial(DAG)}) == 2
    assert first != LoopState.initial(DAG)


def test_tensors_name_their_stages_after_others_were_put_in() -> None:
    state = LoopState.initial(DAG).cache_write(C, "local").cache_read(A, "shared", ["C.local"])
    assert [state.stage_id(each) for each in (A, "A.shared", B, "C.local", C, C.op)] == [0, 1, 2, 3, 4, 4]
    assert state[C].op is not C.op


def test_what_is_not_there() -> None:
    state = LoopState.initial(DAG)
    with pytest.raises(UsageError, match="there is no stage D; there are A, B, C"):
        state.split("D", "i", [2])
    with pytest.raises(UsageError, match="there is no stage 7: there are stages 0 to 2"):
        state.split(7, "i", [2])
    with pytest.raises(UsageError, match="stage C has no loop x; it has i, j, k"):
        state.split(C, "x", [2])
    with pytest.raises(UsageError, match="there is no thread axis warp; there are vthread, "):
        state.bind(C, "i", "warp")
    with pytest.raises(UsageError, match="stage C: found 1 ranges; expected 3"):
        state.with_ranges({2: [None]})


def test_threads_and_long_unrolled_loops() -> None:
    state = LoopState.initial(DAG).bind(C, "i", "blockIdx.x").bind(C, "j", "threadIdx.x")
    assert str(state).splitlines()[1:3] == ["blockIdx.x i (0,512)", "  threadIdx.x j (0,512)"]
    assert state.unroll(C, "k", max_unroll=16) is state
    assert state.unroll(C, "k", max_unroll=512)[C].iters[2].annotation is IteratorAnnotation.UNROLL


def test_a_skipped_region_stands_on_its_own() -> None:
    state = LoopState.initial(DAG).cache_write(C, "local").compute_at("C.local", C, "j")
    skipped = state.pragma("C.local", 0, "debug_skip_region")
    assert skipped["C.local"].is_skipped
    assert skipped.attach_map.positions == {}


def test_what_does_not_change_is_the_same_state() -> None:
    state = LoopState.initial(ComputeDAG(matmul(8, 8, 8)))
    split = state.split("C", "i", [4])
    assert split.with_fields(attach_map=split.attach_map) is split
    known = {2: [loop.range for loop in split["C"].iters]}
    assert split.stage_id("C") == 2
    assert split.with_ranges(known) is split
    other = split.with_ranges({2: [Range(0, 1), *known[2][1:]]})
    assert extents(other, "C")[0] == 1
    assert other["C"].iters[1] is split["C"].iters[1]


def test_notes_are_neither_copied_nor_pickled() -> None:
    state = LoopState.initial(ComputeDAG(matmul(8, 8, 8))).split("C", "i", [4])
    state.notes["found"] = 1
    again = pickle.loads(pickle.dumps(state))
    assert again == state
    assert (again.notes, state.unroll("C", "j").notes, state.notes) == ({}, {}, {"found": 1})
