"""The contenders: engines in float32, models that other quantisers wrote, and what `tune` chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from benchmarks.post_training.task import Array, Task

import intarsia as ia
from intarsia.tune.contest.candidate_record import CandidateRecord
from intarsia.tune.quantise.output_error import relative_error

Contender: TypeAlias = Callable[[Mapping[str, Array]], Sequence[Array]]
"""Function from inputs by name to outputs."""

OURS: Final = "intarsia"
REFERENCE: Final = "onnxruntime"
FATES: Final = "candidates.txt"
"""File with what `tune` chose, and why not the others."""


def contenders(task: Task) -> Iterator[tuple[str, Callable[[], Contender]]]:
    """Yield the names of all contenders with functions that prepare them."""
    threads, data = task.given.threads, task.model.SerializeToString()
    yield REFERENCE, lambda: onnxruntime_contender(data, threads)
    yield "openvino", lambda: openvino_contender(str(task.path), threads, "f32")
    yield "openvino (default precision)", lambda: openvino_contender(str(task.path), threads, None)
    yield "static", lambda: onnxruntime_contender(_static(task).read_bytes(), threads)
    yield "static on openvino", lambda: openvino_contender(str(_static(task)), threads, "f32")
    yield "dynamic", lambda: onnxruntime_contender(_dynamic(task).read_bytes(), threads)
    yield "nncf", lambda: openvino_contender(str(_nncf(task)), threads, "f32")
    yield "nncf accuracy", lambda: openvino_contender(str(_nncf_within(task)), threads, "f32")
    yield OURS, lambda: _tuned(task)


def onnxruntime_contender(model: bytes, threads: int) -> Contender:
    """Return a model run by ONNX Runtime on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])

    def run(inputs: Mapping[str, Array]) -> Sequence[Array]:
        outputs: Sequence[Array] = session.run(None, dict(inputs))
        return outputs

    return run


def openvino_contender(model: Any, threads: int, precision: str | None) -> Contender:
    """Return a model or a file run by OpenVINO; in its default precision if that is None."""
    import openvino

    config: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    if precision is not None:
        config["INFERENCE_PRECISION_HINT"] = precision
    compiled = openvino.Core().compile_model(model, "CPU", config)
    request = compiled.create_infer_request()

    def run(inputs: Mapping[str, Array]) -> Sequence[Array]:
        results = request.infer(dict(inputs))
        return [np.array(results[port]) for port in compiled.outputs]

    return run


class Reader:
    """Calibration inputs as ONNX Runtime's quantiser reads them."""

    def __init__(self, inputs: Sequence[Mapping[str, Array]]) -> None:
        self._inputs = iter(inputs)

    def get_next(self) -> dict[str, Array] | None:
        """Return the next input set; None at the end."""
        return next(map(dict, self._inputs), None)


def _static(task: Task) -> Path:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    def write(after: Path) -> None:
        ready = after.with_name("ready.onnx")
        quant_pre_process(str(task.path), str(ready), skip_symbolic_shape=True)
        kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
        given = {"quant_format": QuantFormat.QDQ, "per_channel": True, **kinds}
        quantize_static(str(ready), str(after), Reader(task.used), **given)

    return task.kept("static.onnx", write)


def _dynamic(task: Task) -> Path:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    def write(after: Path) -> None:
        quantize_dynamic(str(task.path), str(after), per_channel=True, weight_type=QuantType.QInt8)

    return task.kept("dynamic.onnx", write)


def _nncf(task: Task) -> Path:
    import nncf
    import openvino

    def write(after: Path) -> None:
        kind = nncf.ModelType.TRANSFORMER if task.has_attention else None
        model = openvino.Core().read_model(str(task.path))
        dataset = nncf.Dataset(list(map(dict, task.used)))
        quantised = nncf.quantize(model, dataset, subset_size=len(task.used), model_type=kind)
        openvino.save_model(quantised, str(after), compress_to_fp16=False)

    return task.kept("nncf.xml", write)


def _nncf_within(task: Task) -> Path:
    import openvino

    def write(after: Path) -> None:
        openvino.save_model(_within_tolerance(task), str(after), compress_to_fp16=False)

    return task.kept("nncf-accuracy.xml", write)


def _within_tolerance(task: Task) -> Any:
    """Return NNCF's model whose error on the calibration inputs is at most the tolerance, as it sees it."""
    import nncf
    import openvino

    model = openvino.Core().read_model(str(task.path))
    dataset = nncf.Dataset(list(map(dict, task.used)))
    exact = openvino_contender(str(task.path), task.given.threads, "f32")
    expected = [exact(inputs) for inputs in task.used]

    def quality(compiled: Any, items: Any) -> tuple[float, None]:
        worst = 0.0
        for inputs, wanted in zip(items, expected, strict=False):
            results = compiled(inputs)
            outputs = [np.array(results[port]) for port in compiled.outputs]
            worst = max(worst, relative_error(wanted, outputs))
        return 1.0 - worst, None  # NNCF divides by that of the model in float32

    return nncf.quantize_with_accuracy_control(
        model,
        dataset,
        dataset,
        validation_fn=quality,
        max_drop=task.given.tolerance,
        subset_size=len(task.used),
        model_type=nncf.ModelType.TRANSFORMER if task.has_attention else None,
    )


def _tuned(task: Task) -> Contender:
    executable = ia.load(task.kept("tuned.intarsia", lambda after: _tune(task, after)))
    print(f"  intarsia: {(task.folder / FATES).read_text()}", flush=True)

    def run(inputs: Mapping[str, Array]) -> Sequence[Array]:
        outputs = executable.run_flat(*(inputs[item.name] for item in executable.inputs))
        return [np.asarray(output) for output in outputs]

    return run


def _tune(task: Task, after: Path) -> None:
    # `tune` holds every second set back: each of the used ones is followed by one of them.
    pairs = [item for pair in zip(task.used, task.held_back, strict=True) for item in pair]
    arrays = {name: np.stack([item[name] for item in pairs]) for name in pairs[0]}
    given = task.given
    result = ia.tune(
        task.module,
        budget=given.budget,
        threads=given.threads,
        calibration=arrays,
        tolerance=given.tolerance,
        database=False,
    )
    result.executable.save(after)
    result.executable.close()
    after.with_name(FATES).write_text("\n".join([result.explain(), *map(_timed, result.candidates)]))


def _timed(record: CandidateRecord) -> str:
    """Return a candidate with its time, and with how long building and checking it took."""
    latency = "not timed" if record.timing is None else f"{record.timing.median * 1e3:.3f} ms"
    measuring = "" if record.measure_seconds is None else f", measured in {record.measure_seconds:.0f} s"
    return f"    {record.name}: {record.status.value}, {latency}{measuring}"
