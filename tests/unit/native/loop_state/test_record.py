import json
from dataclasses import replace

import pytest
from tests.each_case import each_case
from tests.native_workloads import matmul

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.loop_state.record import (
    Record,
    RecordResult,
    RecordTask,
    read_records,
    record_from_line,
    record_to_line,
    record_to_text,
)
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.native.loop_state.steps import (
    STEPS,
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    StorageAlignStep,
    TransformStep,
)
from intarsia.support.errors import DatabaseError, UsageError

SEED_LINE = (
    '{"i": [["test", "llvm"], [[], [["SP", 2, 0, 512, [16], 1], ["SP", 2, 2, 512, [8], 1], '
    '["RE", 2, [0, 2, 4, 3, 1]], ["FU", 2, [0, 1]]]]], "r": [[0.1], 0, 0.2, 1], "v": "v0.2"}'
)
DAG = ComputeDAG(matmul(512, 512, 512))

FORMS: list[tuple[TransformStep, str]] = [
    (AnnotationStep(2, 1, IteratorAnnotation.PARALLEL), '["AN", 2, 1, 3]'),
    (FuseStep(2, (0, 1)), '["FU", 2, [0, 1]]'),
    (FuseStep(2, ()), '["FU", 2, []]'),
    (PragmaStep(2, 0, "auto_unroll_max_step$64"), '["PR", 2, 0, "auto_unroll_max_step$64"]'),
    (ReorderStep(2, (1, 0)), '["RE", 2, [1, 0]]'),
    (SplitStep(2, 0, 512, (4, 8)), '["SP", 2, 0, 512, [4, 8], 1]'),
    (SplitStep(2, 0, None, (None, 8), inner_to_outer=False), '["SP", 2, 0, 0, [null, 8], 0]'),
    (FollowSplitStep(3, 0, 1, 2), '["FSP", 3, 0, 1, 2]'),
    (FollowFusedSplitStep(3, 0, (1, 2), 0, factor_or_nparts=True), '["FFSP", 3, 0, [1, 2], 0, 1]'),
    (StorageAlignStep(2, 0, 32, 1), '["SA", 2, 0, 32, 1]'),
    (ComputeAtStep(2, 3, 1), '["CA", 2, 3, 1]'),
    (ComputeInlineStep(2), '["CI", 2]'),
    (ComputeRootStep(2), '["CR", 2]'),
    (CacheReadStep(1, "shared", (2, 3)), '["CHR", 1, "shared", [2, 3]]'),
    (CacheWriteStep(2, "local"), '["CHW", 2, "local"]'),
    (RfactorStep(2, 2, 0), '["RF", 2, 2, 0]'),
]


@each_case(("step", "text"), FORMS)
def test_every_step_has_a_json_form(step: TransformStep, text: str) -> None:
    assert json.dumps(step_to_json(step)) == text
    assert step_from_json(json.loads(text)) == step


def test_every_kind_of_step_is_among_the_forms() -> None:
    assert {step.code for step, _ in FORMS} == set(STEPS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "7 is no step; expected a list that begins with a code"),
        (["XY", 1], "step code 'XY' is unknown; there are AN, CA, CHR"),
        (["CI", 1, 2], "step ['CI', 1, 2] has 2 fields; expected 1: stage_id"),
        (["FU", 1, [True]], "step ['FU', 1, [True]]: fused_ids is [True]; expected a list of numbers"),
        (["AN", 1, 0, 12], "step ['AN', 1, 0, 12]: annotation is 12; expected 0 to 11"),
        (["SP", 1, 0, 4, [2], 2], "step ['SP', 1, 0, 4, [2], 2]: inner_to_outer is 2; expected 0 or 1"),
        (["PR", 1, 0, 3], "step ['PR', 1, 0, 3]: pragma_type is 3; expected a text"),
        (["CA", "1", 0, 3], "step ['CA', '1', 0, 3]: stage_id is '1'; expected a number"),
    ],
)
def test_what_is_no_step_is_refused(data: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        step_from_json(data)
    assert str(caught.value).startswith(message)


def test_the_seeds_log_line() -> None:
    state = LoopState.initial(DAG).split("C", "i", [16]).split("C", "j", [8])
    state = state.reorder("C", ["i.0", "j.0", "k", "j.1", "i.1"]).fuse("C", ["i.0", "j.0"])
    result = RecordResult((0.1,), 0, 0.2, 1)
    record = Record(RecordTask("test", "llvm"), state.transform_steps, result, "v0.2")
    assert record_to_line(record) == SEED_LINE
    assert record_from_line(SEED_LINE) == record
    assert LoopState.replay(DAG, record_from_line(SEED_LINE).steps) == state


def test_a_line_of_version_6() -> None:
    key = '["matmul", 512, 512, 512]'
    task = RecordTask(key, "llvm", (4, 64, 64, 0, 0, 0, 0, 0), "", 1, ("weights",))
    steps = (CacheWriteStep(2, "local"), PragmaStep(2, 0, "auto_unroll_max_step$512"))
    line = record_to_line(Record(task, steps, RecordResult((0.5, 0.25), 0, 1.5, 1600000000)))
    assert json.loads(line) == {
        "i": [
            [key, "llvm", [4, 64, 64, 0, 0, 0, 0, 0], "", 1, ["weights"]],
            [[], [["CHW", 2, "local"], ["PR", 2, 0, "auto_unroll_max_step$512"]]],
        ],
        "r": [[0.5, 0.25], 0, 1.5, 1600000000],
        "v": "v0.6",
    }
    assert record_from_line(line).task == task


def test_the_log_of_a_tuned_product_replays() -> None:
    steps = (
        '["CHW",2,"local"],["SP",2,0,512,[4,8,2],1],["SP",2,4,512,[2,4,8],1],["SP",2,8,512,[4],1],'
        '["RE",2,[0,4,1,5,8,2,6,9,3,7]],["FSP",3,0,1,1],["FSP",3,2,2,2],["RE",3,[0,2,1,3,4]],["CA",2,3,1],'
        '["FU",3,[0,1]],["AN",3,0,3],["PR",2,0,"auto_unroll_max_step$512"],["AN",2,9,2],["AN",3,3,2]'
    )
    line = f'{{"i":[["k","llvm"],[[],[{steps}]]],"r":[[1],0,2,3],"v":"v0.6"}}'
    state = LoopState.replay(DAG, record_from_line(line).steps)
    assert state.attach_map.positions == {2: (3, 0)}
    assert str(state).splitlines()[1:4] == [
        "parallel i.0@j.0@ (0,64)",
        "  C.local auto_unroll: 512",
        "  for i_c.0 (None)",
    ]


def test_comments_and_blank_lines_are_no_records() -> None:
    lines = ["# a comment\n", "\n", f" {SEED_LINE}\n", f"{SEED_LINE}\n"]
    assert len(list(read_records(lines))) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "'{' is no record: Expecting property name"),
        ("[]", "found version None; expected one of v0.2"),
        ('{"v": "v9"}', "found version 'v9'; expected one of v0.2, v0.3, v0.4, v0.5, v0.6"),
        ('{"v": "v0.6"}', "is no record: 'i'"),
        (SEED_LINE.replace('["test", "llvm"]', '["test"]'), "is no record: not enough values"),
        (SEED_LINE.replace('["test", "llvm"]', '["test", 7]'), "workload key and target are texts"),
        (SEED_LINE.replace('"llvm"]', '"llvm", [1]]'), "found 1 hardware parameters; expected 8"),
        (SEED_LINE.replace('"llvm"]', '"llvm", 1, 2, 3, 4, 5]'), "the task has 7 fields; expected 2 to 6"),
        (SEED_LINE.replace('"FU"', '"XX"'), "step code 'XX' is unknown"),
    ],
)
def test_a_damaged_line_is_refused(line: str, message: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        list(read_records([SEED_LINE, line], "tuning.json"))
    assert message in str(caught.value)
    assert "in line 2 of tuning.json" in str(caught.value)


def test_a_confirmed_record_has_a_mark_that_other_readers_skip() -> None:
    plain = record_from_line(SEED_LINE)
    confirmed = replace(plain, is_confirmed=True)
    text = record_to_text(confirmed) + record_to_text(plain)
    assert text == f"{SEED_LINE}\n# confirmed\n{SEED_LINE}\n"
    assert list(read_records(text.splitlines())) == [confirmed, plain]
    assert list(read_records(["# confirmed", SEED_LINE, "# confirme"])) == [plain]
