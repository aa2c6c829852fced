"""Engines that generate text with a decoder, each with the practice that it recommends for the cache.

* Intarsia: a cache of fixed capacity (`CacheInPlace`), kept by a sequence (`Executable.start_sequence`).
* onnxruntime: I/O binding, so that the present of a step is the past of the next without leaving the engine.
* OpenVINO: the past as state of the model (`apply_make_stateful_transformation`), kept in float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]
Logits = npt.NDArray[np.float32]
CAPACITIES: Final = (64, 256, 1024)
CHUNKS: Final = (1, 16)
ENGINES: Final = ("onnxruntime", "openvino")
TOOLCHAINS: Final = ("native", "onnxruntime", "openvino")


class Engine(Protocol):
    """A decoder with the tokens that it has read."""

    def read(self, tokens: Tokens) -> Logits:
        """Read new tokens (1, new) and return the logits of the last one (vocabulary,)."""

    def reset(self) -> None:
        """Forget all tokens."""


def open_engine(name: str, model: Path, threads: int) -> Engine:
    """Return an engine by its name: "onnxruntime", "openvino", or "intarsia TOOLCHAIN"."""
    product, _, toolchain = name.partition(" ")
    if product == "intarsia":
        return IntarsiaEngine(build_decoder(model, toolchain, threads))
    return OnnxRuntimeEngine(model, threads) if product == "onnxruntime" else OpenVinoEngine(model, threads)


def build_decoder(
    model: Path,
    toolchain: str,
    threads: int,
    capacities: tuple[int, ...] = CAPACITIES,
    chunks: tuple[int, ...] = CHUNKS,
) -> Any:
    """Return an executable of a decoder with a cache of fixed capacity.

    Args:
        model: ONNX file of a decoder with past keys and values.
        toolchain: Toolchain that runs it: onnxruntime one program for all sizes, others a variant for each
            capacity and number of tokens.
        threads: Number of threads.
        capacities: Numbers of tokens for which the cache has room.
        chunks: Numbers of tokens of a call.
    """
    import intarsia as ia
    from intarsia.passes import CacheInPlace, SpecializeCache, default_heuristic

    target = f"cpu -toolchain={toolchain} -threads={threads}"
    mod = default_heuristic()(ia.from_onnx(str(model)))
    if toolchain == "onnxruntime":
        return ia.build(CacheInPlace(capacities, ())(mod), target)
    cached = CacheInPlace(capacities, chunks)(mod)
    batch = cached["main"].params[0].checked_type.shape[0]  # type: ignore[union-attr,index]  # tokens are a tensor
    sizes = () if isinstance(batch, int) else (f"{batch.name}=1",)
    return ia.build(SpecializeCache(target, sizes)(cached))


class IntarsiaEngine:
    """A sequence of tokens of an executable."""

    def __init__(self, executable: Any) -> None:
        self._sequence = executable.start_sequence()

    def read(self, tokens: Tokens) -> Logits:
        """As `Engine.read`."""
        logits: Logits = self._sequence.step(tokens)
        last: Logits = logits[0, -1]
        return last

    def reset(self) -> None:
        """As `Engine.reset`."""
        self._sequence.reset()


class OnnxRuntimeEngine:
    """A session whose presents stay in its memory and are the next pasts."""

    def __init__(self, model: Path, threads: int) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = {item.name: item.shape for item in self._session.get_inputs()}
        self._outputs = [item.name for item in self._session.get_outputs()]
        self._states = [name for name in self._inputs if name.startswith("past_key_values")]
        self.reset()

    def reset(self) -> None:
        """As `Engine.reset`."""
        import onnxruntime as ort

        self._length = 0
        shapes = [self._inputs[name] for name in self._states]
        self._past = [
            ort.OrtValue.ortvalue_from_numpy(np.zeros((1, shape[1], 0, shape[3]), np.float32))
            for shape in shapes
        ]

    def read(self, tokens: Tokens) -> Logits:
        """As `Engine.read`."""
        rows = step_rows(tokens, self._length)
        binding = self._session.io_binding()
        for name, row in rows.items():
            if name in self._inputs:
                binding.bind_cpu_input(name, row)
        for name, value in zip(self._states, self._past, strict=True):
            binding.bind_ortvalue_input(name, value)
        for name in self._outputs:
            binding.bind_output(name, "cpu")
        self._session.run_with_iobinding(binding)
        logits, *self._past = binding.get_outputs()
        self._length += tokens.shape[1]
        result: Logits = logits.numpy()[0, -1]
        return result


class OpenVinoEngine:
    """A model whose past is state: it does not leave the engine."""

    def __init__(self, model: Path, threads: int) -> None:
        import openvino as ov
        from openvino._offline_transformations import apply_make_stateful_transformation

        core = ov.Core()
        program = core.read_model(str(model))
        # A state begins with size 0 where it is dynamic, so that the batch has to be a number.
        shapes = {item.get_any_name(): item.get_partial_shape() for item in program.inputs}
        program.reshape({name: ov.PartialShape([1, *list(shape)[1:]]) for name, shape in shapes.items()})
        states = {
            name: name.replace("past_key_values", "present")
            for name in shapes
            if name.startswith("past_key_values")
        }
        apply_make_stateful_transformation(program, states)
        properties = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "KV_CACHE_PRECISION": "f32",
        }
        self._request = core.compile_model(program, "CPU", properties).create_infer_request()
        self._inputs = {item.get_any_name() for item in program.inputs}
        self._length = 0

    def reset(self) -> None:
        """As `Engine.reset`."""
        self._request.reset_state()
        self._length = 0

    def read(self, tokens: Tokens) -> Logits:
        """As `Engine.read`."""
        rows = step_rows(tokens, self._length)
        given = {name: row for name, row in rows.items() if name in self._inputs}
        self._request.infer(given, share_inputs=True, share_outputs=True)
        self._length += tokens.shape[1]
        result: Logits = self._request.get_tensor("logits").data[0, -1]
        return result


def step_rows(tokens: Tokens, length: int) -> dict[str, npt.NDArray[np.int64]]:
    """Return the inputs of a step besides its states, for an engine that has read `length` tokens."""
    total = length + tokens.shape[1]
    return {
        "input_ids": tokens,
        "attention_mask": np.ones((1, total), np.int64),
        "position_ids": np.arange(length, total)[None],
    }


def generate(engine: Engine, prompt: Tokens, count: int) -> list[int]:
    """Return the tokens that follow a prompt (1, length), each the likeliest one."""
    engine.reset()
    logits = engine.read(prompt)
    tokens = [int(np.argmax(logits))]
    while len(tokens) < count:
        logits = engine.read(np.array([[tokens[-1]]]))
        tokens.append(int(np.argmax(logits)))
    return tokens
