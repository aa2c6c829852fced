"""Check one model in one process: import, expected result, every toolchain against the judge, artifacts.

Each step is written to a file when it begins and when it ends, so that a crash can be assigned to its step.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from corpus.model_cache import Entry
from corpus.native_cover import native_cover
from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule, TensorType
from intarsia.measure.judge.gate import Gate
from intarsia.measure.work import work_of
from intarsia.passes import partition_for, partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import ExecutionError, IntarsiaError
from intarsia.target import Target
from intarsia.toolchain.onnxruntime.session import session_options

Array = npt.NDArray[Any]
Outcome = dict[str, Any]

THREADS: Final = 2
"""Threads of each toolchain; more than one, so that multithreaded code is checked on every machine."""

REFERENCE_LIMIT: Final = 30_000_000
"""Multiply-adds that onnx.reference computes within seconds; larger models are not given to it."""

MIXED: Final = "mixed"
"""Name of the program in which native runs what it supports, and onnxruntime the rest."""

TOOLCHAINS: Final = ("native", "onnxruntime", "openvino", "torch", "reference")


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The steps of one model, kept in a file of lines.

    Attributes:
        file: Path of the file, with one JSON document for each step that began or ended.
    """

    file: Path

    def run(self, name: str, work: Callable[[], Outcome]) -> Outcome:
        """Run a step and append its outcome to the file, unless the file has its outcome already."""
        ended = self.outcomes()
        if name in ended:
            return ended[name]
        self._write({"step": name})
        began = time.monotonic()
        outcome = attempt(work)
        self._write({"step": name, "outcome": outcome, "seconds": round(time.monotonic() - began, 2)})
        return outcome

    def outcomes(self) -> dict[str, Outcome]:
        """Return the outcomes of the steps that ended."""
        return {line["step"]: line["outcome"] for line in self._lines() if "outcome" in line}

    def seconds(self) -> dict[str, float]:
        """Return the seconds that each step took that ended by itself."""
        return {line["step"]: line["seconds"] for line in self._lines() if "seconds" in line}

    def fail_interrupted(self, message: str) -> str | None:
        """Mark the step that began and did not end as crashed; return its name, or None if there is none."""
        lines = self._lines()
        if not lines or "outcome" in lines[-1]:
            return None
        name = str(lines[-1]["step"])
        self._write({"step": name, "outcome": {"status": "crashed", "message": message}})
        return name

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def _write(self, line: dict[str, Any]) -> None:
        with self.file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def attempt(work: Callable[[], Outcome]) -> Outcome:
    """Return the outcome of a step, or the outcome for the error that it raised.

    An ExecutionError is a failure, any other IntarsiaError a refusal; other exceptions are foreign.
    """
    try:
        return work()
    except ExecutionError as error:
        return {"status": "failed", "message": str(error)}
    except IntarsiaError as error:
        return {"status": "refused", "message": str(error)}
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return {"status": "foreign", "message": text, "traceback": traceback.format_exc()}


def check_model(folder: Path, output: Path) -> None:
    """Check a model, and save an artifact for each toolchain that computes the right result.

    Args:
        folder: Path of the model in the cache.
        output: Path of the folder for the steps and artifacts.
    """
    entry, steps = Entry(folder), Steps(output / "steps.jsonl")
    inputs = load_inputs(entry)
    expected: list[list[Any]] = []
    outcome = steps.run("expected", lambda: _expect(entry, inputs, expected))
    imported: list[IRModule] = []
    if steps.run("import", lambda: _import(entry, inputs, imported))["status"] != "right":
        return
    if not imported:  # a later step crashed, and this is a new process: import again
        _import(entry, inputs, imported)
    if not expected and outcome["status"] == "right":
        _expect(entry, inputs, expected)
    module, given = imported[0], _for_module(imported[0], inputs)
    gates: list[Gate] = []
    judged = steps.run("judge", lambda: _judge(module, given, expected[0] if expected else None, gates))
    gate = gates[0] if gates else _gate(module, given, judged, expected)
    if gate is None:
        return
    for name in (*TOOLCHAINS, MIXED):
        steps.run(name, lambda name=name: _run(module, name, given, gate, output))  # type: ignore[misc]
    steps.run("cover", lambda: native_cover(module, steps.outcomes()["native"]))


def check_artifacts(output: Path) -> None:
    """Load and run the artifacts that `check_model` saved; this runs in a process of its own."""
    steps = Steps(output / "steps.jsonl")
    for artifact in sorted(output.glob("*.intarsia")):
        steps.run(f"{artifact.stem} artifact", lambda artifact=artifact: _reload(artifact))  # type: ignore[misc]


def load_inputs(entry: Entry) -> dict[str, Array]:
    """Return the inputs of a model by name."""
    with np.load(entry.inputs, allow_pickle=True) as file:
        arrays = {name: file[name] for name in file.files}
    for name in [name for name in arrays if name.endswith(":bfloat16")]:
        import ml_dtypes

        del arrays[name]
        plain = name.removesuffix(":bfloat16")
        arrays[plain] = arrays[plain].view(ml_dtypes.bfloat16)
    return arrays


def _expect(entry: Entry, inputs: Mapping[str, Array], expected: list[list[Any]]) -> Outcome:
    """Compute the expected result from the file, with unoptimised onnxruntime."""
    import onnx
    import onnxruntime

    target = Target.for_toolchain("onnxruntime", threads=THREADS).with_options(optimize=0)
    options = session_options(target, onnx.load(entry.model, load_external_data=False))
    try:
        session = onnxruntime.InferenceSession(entry.model, options, providers=["CPUExecutionProvider"])
        expected.append(_run_session(session, inputs))
    except Exception as error:  # onnxruntime's errors have no common base class
        return {"status": "refused", "message": f"{type(error).__name__}: {error}"}
    return {"status": "right"}


def _run_session(session: Any, inputs: Mapping[str, Array]) -> list[Any]:
    """Run a session. NumPy has no bfloat16, so arrays of it are passed as OrtValues."""
    import onnxruntime

    if not any(array.dtype.name == "bfloat16" for array in inputs.values()):
        return list(session.run(None, dict(inputs)))
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), 16)
        if array.dtype.name == "bfloat16"
        else onnxruntime.OrtValue.ortvalue_from_numpy(array)
        for name, array in inputs.items()
    }
    results = session.run_with_ort_values(None, values)
    return [None if value.element_type() == 16 else value.numpy() for value in results]


def _import(entry: Entry, inputs: Mapping[str, Array], imported: list[IRModule]) -> Outcome:
    """Import the file as it is, then with the shapes of the inputs where it leaves them open."""
    module = from_onnx(entry.model)
    types = {param.name: param.checked_type for param in module["main"].params}
    is_symbolic = any(isinstance(type_, TensorType) and not type_.is_static for type_ in types.values())
    if is_symbolic:
        module = from_onnx(
            entry.model, {name: array.shape for name, array in inputs.items() if name in types}
        )
    imported.append(module)
    return {"status": "right", "symbolic": is_symbolic}


def _for_module(module: IRModule, inputs: Mapping[str, Array]) -> dict[str, Array]:
    return {param.name: inputs[param.name] for param in module["main"].params}


def _judge(
    module: IRModule, inputs: Mapping[str, Array], expected: Sequence[Any] | None, gates: list[Gate]
) -> Outcome:
    """Compute the reference result of the judge, and check the expected result against it."""
    gate = Gate.for_module(module, inputs)
    gates.append(gate)
    outcome: Outcome = {"status": "right", "reference": gate.reference}
    if (
        expected is None
        or len(expected) != len(gate.names)
        or not all(_is_array(value) for value in expected)
    ):
        return outcome
    report = gate.check(expected)
    if report.passed:
        return outcome
    return {**outcome, "status": "wrong", "message": report.message}


def _gate(
    module: IRModule, inputs: Mapping[str, Array], judged: Outcome, expected: Sequence[Sequence[Any]]
) -> Gate | None:
    """Return a gate if this process has none: after a crash, or because the judge failed.

    If the judge failed, the expected result of onnxruntime is the reference, so that toolchains are checked.
    """
    if judged["status"] in {"right", "wrong"}:
        return Gate.for_module(module, inputs)
    usable = expected and all(map(_is_array, expected[0]))
    return Gate.known(module, expected[0]) if usable else None


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _run(module: IRModule, name: str, inputs: Mapping[str, Array], gate: Gate, output: Path) -> Outcome:
    """Build the program for a toolchain, run it twice, judge both results, and save it."""
    if name == "reference" and work_of(module).multiply_adds > REFERENCE_LIMIT:
        return {"status": "skipped", "message": "takes too long"}
    with _built(module, name) as executable:
        results = [_flat(executable, inputs) for _ in range(2)]
        for result in results:
            report = gate.check(result)
            if not report.passed:
                return {"status": "wrong", "message": report.message}
        executable.save(output / f"{name}.intarsia")
    arrays: dict[str, Any] = {f"output{number}": array for number, array in enumerate(_storable(results[0]))}
    arrays |= {f"input {key}": value for key, value in _named(inputs)}
    np.savez(output / f"{name}.npz", **arrays)
    return {"status": "right", "error": float(report.max_rel_error or 0)}


def _built(module: IRModule, name: str) -> Executable:
    if name != MIXED:
        return build(partition_whole(module, Target.for_toolchain(name, threads=THREADS)))
    texts = [str(Target.for_toolchain(part, threads=THREADS)) for part in ("native", "onnxruntime")]
    return build(partition_for(module, *texts))


def _flat(executable: Executable, inputs: Mapping[str, Array]) -> list[Array]:
    return [np.array(value) for value in cast("Sequence[Array]", executable.run_flat(**inputs))]


def _storable(arrays: Sequence[Array]) -> list[Array]:
    return [array.view(np.uint16) if array.dtype.name == "bfloat16" else array for array in arrays]


def _named(inputs: Mapping[str, Array]) -> list[tuple[str, Array]]:
    return list(zip(inputs, _storable(list(inputs.values())), strict=True))


def _reload(artifact: Path) -> Outcome:
    """Load an artifact in a process that did not build it, and compare its results with the saved ones."""
    import ml_dtypes

    from intarsia.runtime.artifact_load import load

    with np.load(artifact.with_suffix(".npz"), allow_pickle=True) as file:
        arrays = {name: file[name] for name in file.files}
    with load(artifact) as executable:
        inputs = {}
        for info in executable.inputs:
            array = arrays[f"input {info.name}"]
            bfloat16 = array.dtype == np.uint16 and "bfloat16" in str(info)
            inputs[info.name] = array.view(ml_dtypes.bfloat16) if bfloat16 else array
        results = _storable(_flat(executable, inputs))
    for number, result in enumerate(results):
        saved = arrays[f"output{number}"]
        if not _same(result, saved):
            return {"status": "wrong", "message": f"output {number} differs from that before saving"}
    return {"status": "right"}


def _same(result: Array, saved: Array) -> bool:
    """Whether results are equal up to rounding: threads may sum in another order."""
    if result.shape != saved.shape or result.dtype != saved.dtype:
        return False
    if result.dtype.kind != "f":
        return bool((result == saved).all())
    return bool(
        np.allclose(
            result, saved, rtol=1e-3, atol=1e-4 * float(np.nanmax(np.abs(saved), initial=0)), equal_nan=True
        )
    )
