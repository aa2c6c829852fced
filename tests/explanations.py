"""A small explanation with every kind of fate, for tests."""

from __future__ import annotations

from dataclasses import replace

from intarsia.report.explained_function import (
    Compared,
    ExplainedRegion,
    Fate,
    FunctionRecord,
    NodeRecord,
    Rival,
    RivalPart,
    SearchRecord,
    Tried,
)
from intarsia.report.explanation import Border, ContestRecord, Explanation, Losses
from intarsia.report.run_records import (
    GraphNode,
    InputSetDeviation,
    OutputDeviation,
    PassShareRecord,
    RemarkRecord,
    RemarkSubject,
    RunRequest,
    StageSeconds,
    TrialRecord,
)
from intarsia.report.tuning_record import TuningRecord

FAST, SLOW = "cpu -toolchain=fast", "cpu -toolchain=slow"


def tried(
    spec: str,
    nodes: str,
    label: str,
    fate: Fate = Fate.LOST,
    seconds: float | None = None,
    losses: tuple[float | None, float | None] = (None, None),
    message: str = "",
) -> Tried:
    """A candidate whose interval is 10 % to each side."""
    low, high = (None, None) if seconds is None else (0.9 * seconds, 1.1 * seconds)
    return Tried(spec, f"cpu -toolchain={spec}", nodes, label, "", fate, message, seconds, low, high, *losses)


FIRST = ExplainedRegion(
    "fast",
    FAST,
    "1..2",
    "Conv+Relu",
    2e-3,
    1.8e-3,
    2.2e-3,
    2.1e-3,
    Rival((RivalPart("slow", "1..2", "Conv+Relu", 2.5e-3),), 5e-4, 0.2),
    (
        tried("fast", "1..2", "Conv+Relu", Fate.CHOSEN, 2e-3),
        tried("slow", "1..2", "Conv+Relu", Fate.LOST, 2.5e-3, (5e-4, 5e-4)),
        tried("slow", "1", "Conv", Fate.LOST, 1.9e-3, (7e-4, 9e-4)),
        tried("slow", "2", "Relu", Fate.LOST, 1e-5, (-1e-5, 2e-5)),
        tried("fast", "1", "Conv", Fate.LOST, 1.9e-3, (1e-4, None)),
        tried("fast", "2", "Relu", Fate.LOST, 1e-5, (None, None)),
        tried("quick", "1", "Conv", Fate.WRONG, message='output "y" differs by 0.5'),
        tried("quick", "2", "Relu", Fate.CRASHED, message="the process ended with SIGSEGV"),
        tried("reference", "1", "Conv", Fate.NOT_TRIED, message="others run it"),
    ),
    3,
)
SECOND = ExplainedRegion(
    "slow",
    SLOW,
    "3",
    "Gemm",
    1e-3,
    None,
    None,
    None,
    None,
    (
        tried("slow", "3", "Gemm", Fate.CHOSEN, 1e-3),
        tried("fast", "3", "Gemm", Fate.UNSUPPORTED, message="operator 'Gemm' is beneath this toolchain"),
    ),
    0,
)
EXPLANATION = Explanation(
    model="tiny",
    host="0123",
    cpu="Abacus 3",
    cores=2,
    chosen="fast 1, slow 1",
    functions=(
        FunctionRecord(
            "main",
            (
                NodeRecord(1, "Conv", "block/conv"),
                NodeRecord(2, "Relu", "block/relu"),
                NodeRecord(3, "Gemm", ""),
            ),
            (FIRST, SECOND),
            SearchRecord(
                ("fast", "slow", "quick", "reference"),
                14,
                9,
                2,
                3,
                1,
                {"it can be no function": 2},
                1.5,
                3.1e-3,
                3e-3,
                0.032,
                False,
                3.1e-3,
                Compared.CHOSEN,
            ),
        ),
    ),
    borders=(Border("fast", "slow", 5e-6, 1e-9),),
    run_seconds=1e-5,
    contest=(
        ContestRecord("fast 1, slow 1", "measured", "", 3.2e-3, 1.0, 1.0, 1.0, 3.11e-3, False, True),
        ContestRecord("slow", "measured", "", 3.5e-3, 1.09, 1.07, 1.11, None, True, False),
        ContestRecord(
            "quick", "wrong", 'output "y" differs by 0.5', None, None, None, None, None, True, False
        ),
    ),
    losses=Losses("fast 1, slow 1", 3.11e-3, 3.2e-3, 9e-5, 0.0, 1.9e-4, "slow", -3e-4),
    decisions=("pipeline: default_heuristic",),
    tuning=(TuningRecord("slow", False, None, "", False, (TuningRecord("On", True, 2e-3, "", True, ()),)),),
    notes=(),
)

UNTUNED = replace(
    EXPLANATION,
    chosen="",
    contest=tuple(
        replace(each, ratio=None, ratio_low=None, ratio_high=None, predicted=None, is_chosen=False)
        for each in EXPLANATION.contest
    ),
    losses=None,
    decisions=(),
    tuning=(),
    notes=("the parts that are shown are the cheapest by what has been measured of each alone",),
)

SCRIPT = "</script><script>alert(1)</script>"
"""Name of a node that is an attack on a page that does not escape it."""

RUN = replace(
    EXPLANATION,
    decisions=(),
    workload="feed",
    contest=(
        EXPLANATION.contest[0],
        replace(
            EXPLANATION.contest[1],
            target=SLOW,
            errors=(
                InputSetDeviation("ordinary", "right", "y", 3e-7, 0.25),
                InputSetDeviation("large", "right", "", 0.0, 0.0),
            ),
        ),
        replace(EXPLANATION.contest[2], errors=(InputSetDeviation("ordinary", "wrong", "y", 0.5, 4_000.0),)),
        *EXPLANATION.contest[3:],
    ),
    graph=(
        GraphNode(0, "", "image", "", ""),
        GraphNode(1, "Conv", "block/conv", "0", "fast"),
        GraphNode(2, "Relu", SCRIPT, "1", "fast"),
        GraphNode(3, "Gemm", "", "2", "slow"),
        GraphNode(4, "Add", "skip", "1,3", ""),
    ),
    request=RunRequest("0.1.0", (("--budget", "5s"), ("--shape", "x=1,3"), ("--exact", "")), ("by hand",)),
    stages=(StageSeconds("import", 0.5), StageSeconds("race", 2.0)),
    trials=(
        TrialRecord(1.0, 1.0, "feed", SLOW, "whole", 4e-3, "ok"),
        TrialRecord(1.5, 0.5, "part", SLOW, "whole", 1e-3, "ok"),
        TrialRecord(2.5, 1.0, "feed", FAST, "whole", None, "crash"),
        TrialRecord(4.0, 1.5, "feed", "cpu -toolchain=reference", "collage", 3e-3, "ok"),
        TrialRecord(6.0, 2.0, "feed", SLOW, "race", 3.2e-3, "ok"),
    ),
    shares=(
        PassShareRecord("slow", "TuneLayout", 2, 5, 1.5, 0.1),
        PassShareRecord("slow", "TuneRewrite", 0, 0, 0.0, 0.0),
    ),
    errors=(
        OutputDeviation("ordinary", "onnx.reference", "y", "right", 1e-6, 2e-7, 0.05),
        OutputDeviation("large", "onnx.reference", "y", "wrong", None, None, None),
    ),
    remarks=(
        RemarkRecord(
            "FuseOps",
            "missed",
            "is not fused with what follows: its result is used twice",
            (
                RemarkSubject("Conv", "block/conv", (f"Relu (node {SCRIPT!r}) uses its result",)),
                RemarkSubject("Gemm", ""),
            ),
        ),
        RemarkRecord("FoldConstant", "remark", "folds to 4 elements", (RemarkSubject("Relu", SCRIPT),)),
    ),
)
"""The explanation with the records of a whole run."""
