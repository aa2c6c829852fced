from tests.native_workloads import conv2d_nchw_bn_relu, matmul, zero_rank_compute

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState, print_python_code_from_state

DAG = ComputeDAG(matmul(512, 512, 512))


def seed_state_text(*, prefixed: bool) -> str:
    state = LoopState.initial(DAG).split("C", "i", [16]).split("C", "j", [8])
    state = state.reorder("C", ["i.0", "j.0", "k", "j.1", "i.1"]).fuse("C", ["i.0", "j.0"])
    return print_python_code_from_state(state, prefixed=prefixed)


def test_the_seeds_text() -> None:
    assert seed_state_text(prefixed=False) == (
        "i, j, k = tuple(C.op.axis) + tuple(C.op.reduce_axis)\n"
        "i_o, i_i = s[C].split(i, factor=16)\n"
        "j_o, j_i = s[C].split(j, factor=8)\n"
        "s[C].reorder(i_o, j_o, k, j_i, i_i)\n"
        "i_o_j_o_fused = s[C].fuse(i_o, j_o)\n"
    )


def test_the_later_form_names_the_stage_too() -> None:
    assert seed_state_text(prefixed=True) == (
        "C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)\n"
        "C_i_o, C_i_i = s[C].split(C_i, factor=16)\n"
        "C_j_o, C_j_i = s[C].split(C_j, factor=8)\n"
        "s[C].reorder(C_i_o, C_j_o, C_k, C_j_i, C_i_i)\n"
        "C_i_o_j_o_fused = s[C].fuse(C_i_o, C_j_o)\n"
    )


def test_several_lengths_are_several_lines() -> None:
    state = LoopState.initial(DAG).split("C", "i", [8, 4, 2]).split("C", "j", [8, 4], inner_to_outer=False)
    assert print_python_code_from_state(state).splitlines()[1:] == [
        "C_i_o_i, C_i_i = s[C].split(C_i, factor=2)",
        "C_i_o_o_i, C_i_o_i = s[C].split(C_i_o_i, factor=4)",
        "C_i_o_o_o, C_i_o_o_i = s[C].split(C_i_o_o_i, factor=8)",
        "C_j_o, C_j_i_o = s[C].split(C_j, nparts=8)",
        "C_j_i_o, C_j_i_i = s[C].split(C_j_i_o, nparts=4)",
    ]


def test_a_tuned_product() -> None:
    state = LoopState.initial(DAG).cache_write("C", "local").cache_read("B", "shared", ["C.local"])
    state = state.split("C.local", "i_c", [4]).split("C", "i", [8]).follow_split("C", "j", 3, 1)
    state = state.compute_at("C.local", "C", "i.0").compute_at("B.shared", "C.local", "j_c")
    state = state.parallel("C", "i.0").vectorize("C", "j.1").unroll("C.local", "i_c.1")
    state = state.pragma("C.local", 0, "auto_unroll_max_step$64").storage_align("B.shared", 0, 32, 1)
    assert print_python_code_from_state(state) == (
        "C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)\n"
        'C_local, = s.cache_write([C], "local")\n'
        "C_local_i_c, C_local_j_c, C_local_k = tuple(C_local.op.axis) + tuple(C_local.op.reduce_axis)\n"
        'B_shared = s.cache_read(B, "shared", [C_local])\n'
        "B_shared_ax0, B_shared_ax1 = tuple(B_shared.op.axis)\n"
        "C_local_i_c_o, C_local_i_c_i = s[C_local].split(C_local_i_c, factor=4)\n"
        "C_i_o, C_i_i = s[C].split(C_i, factor=8)\n"
        "C_j_o, C_j_i = s[C].split(C_j, factor=8)\n"
        "s[C_local].compute_at(s[C], C_i_o)\n"
        "s[B_shared].compute_at(s[C_local], C_local_j_c)\n"
        "s[C].parallel(C_i_o)\n"
        "s[C].vectorize(C_j_i)\n"
        "s[C_local].unroll(C_local_i_c_i)\n"
        's[C_local].pragma(C_local_i_c_o, "auto_unroll_max_step", 64)\n'
        's[C_local].pragma(C_local_i_c_o, "unroll_explicit", True)\n'
        "s[B_shared].storage_align(B_shared_ax0, 32, 1)\n"
    )


def test_partial_results() -> None:
    state = (
        LoopState.initial(DAG)
        .split("C", "k", [16])
        .rfactor("C", "k.0", 2)
        .parallel("C.rf", "i")
        .unroll("C", "i")
    )
    assert print_python_code_from_state(state).splitlines()[1:] == [
        "C_k_o, C_k_i = s[C].split(C_k, factor=16)",
        "C_rf = s.rfactor(C, C_k_o, 2)",
        "C_rf_i, C_rf_j, C_rf_k_0, C_rf_k_1 = tuple(C_rf.op.axis) + tuple(C_rf.op.reduce_axis)",
        "C_i, C_j, C_k_0_v = tuple(C.op.axis) + tuple(C.op.reduce_axis)",
        "s[C_rf].parallel(C_rf_i)",
        "s[C].unroll(C_i)",
    ]


def test_placement_and_threads() -> None:
    state = LoopState.initial(ComputeDAG(conv2d_nchw_bn_relu())).compute_inline("bn_mul")
    state = (
        state.compute_at("bias_add", "bn_add", "k").compute_root("bias_add").bind("relu", "j", "threadIdx.x")
    )
    assert print_python_code_from_state(state).splitlines()[-4:] == [
        "s[bn_mul].compute_inline()",
        "s[bias_add].compute_at(s[bn_add], bn_add_k)",
        "s[bias_add].compute_root()",
        's[relu].bind(relu_j, te.thread_axis("threadIdx.x"))',
    ]


def test_stages_without_loops() -> None:
    state = (
        LoopState.initial(ComputeDAG(zero_rank_compute()))
        .pragma("C", 0, "auto_unroll_max_step$16")
        .fuse("C", [])
    )
    assert print_python_code_from_state(state) == (
        "B_k, = tuple(B.op.axis) + tuple(B.op.reduce_axis)\n"
        "() = tuple(C.op.axis) + tuple(C.op.reduce_axis)\n"
        "C_singleton = s[C].fuse()\n"
    )


def test_names_that_would_be_the_same_get_numbers() -> None:
    state = LoopState.initial(DAG).split("C", "i", [4]).fuse("C", ["i.0", "i.1"]).split("C", "i.0@i.1@", [2])
    text = print_python_code_from_state(state.cache_read("A", "shared", ["C"]), prefixed=False)
    assert text.splitlines()[1:5] == [
        "i_o, i_i = s[C].split(i, factor=4)",
        "i_o_i_i_fused = s[C].fuse(i_o, i_i)",
        "i_o_i_i_fused_o, i_o_i_i_fused_i = s[C].split(i_o_i_i_fused, factor=2)",
        'A_shared = s.cache_read(A, "shared", [C])',
    ]
