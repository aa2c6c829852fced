"""Records of a tuning run as a whole: the program, the request, and what the time was spent on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A parameter or operator of @main in the program that was tuned.

    Attributes:
        number: Stable number of the expression.
        operator: Name of the operator; "" for a parameter.
        name: Name of the node in the ONNX model, or of the parameter.
        inputs: Numbers of the nodes whose values it reads, as ranges.
        toolchain: Toolchain of the winner that computes it; "" if the winner has no node of this name,
            such as after constant folding.
    """

    number: int
    operator: str
    name: str
    inputs: str
    toolchain: str


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run was started with.

    Attributes:
        version: Version of Intarsia.
        flags: Flags of `intarsia tune` with their values that give the same run.
        notes: Parts of the request that flags do not express, in sentences.
    """

    version: str
    flags: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """Wall-clock seconds of a stage of a run."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A measurement that a run used, new or stored.

    Attributes:
        at: Seconds since the start of the run, at the end of this measurement. A stored measurement counts
            with its original time.
        seconds: Seconds of this measurement.
        workload: Digest of the measured program.
        target: Text of the target.
        kind: Kind of the candidate, such as "whole" or "tuned"; "race" for the interleaved race.
        cost: Latency in seconds; None if it failed.
        error: Outcome in words.
    """

    at: float
    seconds: float
    workload: str
    target: str
    kind: str
    cost: float | None
    error: str


@dataclass(frozen=True, slots=True)
class PassShareRecord:
    """A tuning pass's share of the budget.

    Attributes:
        target: Target for which the pass decided.
        name: Name of the pass.
        slices: Number of slices of the budget.
        measured: Number of candidates that were new to the run.
        seconds: Seconds of measuring.
        gain: Share of the latency that it saved, by single measurements.
    """

    target: str
    name: str
    slices: int
    measured: int
    seconds: float
    gain: float


@dataclass(frozen=True, slots=True)
class OutputDeviation:
    """Error of an output of the winner on one input set.

    Attributes:
        inputs: Kind of the input set, with sizes of symbolic dimensions if there are any.
        judge: Origin of the expected result.
        output: Names of the outputs.
        verdict: "right", "wrong" or "unproven".
        max_abs: Largest difference; None if shapes or types differ.
        max_rel: Largest difference relative to the largest expected value; None if shapes or types differ.
        excess: Largest difference in units of the allowed one; None if shapes or types differ.
    """

    inputs: str
    judge: str
    output: str
    verdict: str
    max_abs: float | None
    max_rel: float | None
    excess: float | None


@dataclass(frozen=True, slots=True)
class InputSetDeviation:
    """Error of a candidate on one input set, over all outputs.

    Attributes:
        inputs: Kind of the input set, with sizes of symbolic dimensions if there are any.
        verdict: "right", "wrong" or "unproven".
        output: Name of the output with the worst element; "" if all are equal, or shapes differ.
        max_rel: Largest difference relative to the largest expected value; None if shapes or types differ.
        excess: Largest difference in units of the allowed one; None if shapes or types differ.
    """

    inputs: str
    verdict: str
    output: str
    max_rel: float | None
    excess: float | None


@dataclass(frozen=True, slots=True)
class RemarkSubject:
    """An expression that a pass's remark is about.

    Attributes:
        operator: Name of the operator, or the kind of the expression.
        node: Name of the node in the ONNX model; "" if it has none.
        notes: Sentences about further expressions.
    """

    operator: str
    node: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemarkRecord:
    """A remark of a pass that made the winner's program.

    Attributes:
        pass_name: Name of the pass.
        level: "missed" for an optimisation that was declined, "remark", "warning" or "error".
        text: Statement, which goes on after the name of the expression.
        subjects: Expressions that it holds for.
    """

    pass_name: str
    level: str
    text: str
    subjects: tuple[RemarkSubject, ...]
