"""onnxruntime's way to run a model, so that one import line moves a program over."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from intarsia.ir import DType
from intarsia.op.onnx_types import tensor_type_text
from intarsia.runtime.artifact_load import load, load_bytes
from intarsia.runtime.artifact_reader import is_artifact, is_artifact_data
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Value
from intarsia.runtime.plan import TensorInfo
from intarsia.runtime.tensor_info import is_tensor
from intarsia.support.errors import CompileError, IntarsiaError, UsageError
from intarsia.target import Target

if TYPE_CHECKING:
    from onnx import ModelProto

    from intarsia.measure.database import Database

CPU: Final = "CPUExecutionProvider"
"""onnxruntime's name of what runs here; the toolchains are behind it."""
TOOLCHAINS: Final = ("native", "onnxruntime", "openvino", "reference")
"""Toolchains in the order in which a model without a budget is built, until one takes it."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output, as onnxruntime describes it.

    Attributes:
        name: Its name.
        type: Its type, such as "tensor(float)".
        shape: Its dimensions: numbers, names of symbolic ones, None for unknown ones; empty for a scalar and
            for an unknown rank.
    """

    name: str
    type: str
    shape: list[int | str | None]


class InferenceSession:
    """A model that is run as by `onnxruntime.InferenceSession`.

        import intarsia as ort
        session = ort.InferenceSession("model.onnx")
        (y,) = session.run(None, {"x": x})

    The model is an artifact, which is loaded, or ONNX: then it is tuned within a budget, or built without
    measuring by the first toolchain that takes it. The attribute `executable` is the program itself.

    Args:
        path_or_bytes: Path or bytes of an ONNX model or an artifact, or the message of a model.
        sess_options: onnxruntime's `SessionOptions`, of which `intra_op_num_threads` is read, or None.
        providers: Names of execution providers, alone or with options. CPUExecutionProvider must be one of
            them; the others are passed over, as onnxruntime does where it lacks them.
        provider_options: Options of the providers, which are not read.
        budget: Time to tune a model, such as "60s"; 0 for the decisions of an earlier run with the database;
            None to build it without measuring.
        database: Database of measurements for tuning; see `tune`.

    Raises:
        UsageError: There is no such file, or no provider is the CPU's.
        ModelError: The model is invalid or unsupported.
        ArtifactError: The artifact is damaged, or not for this machine.
        CompileError: No toolchain takes the model.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | ModelProto,
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        budget: str | float | None = None,
        database: Database | str | os.PathLike[str] | None = None,
    ) -> None:
        del provider_options
        _check_providers(providers)
        threads = int(getattr(sess_options, "intra_op_num_threads", 0) or 0) or None
        self.executable = _executable(path_or_bytes, threads, budget, database)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Value]:
        """Run the model and return its results.

        Args:
            output_names: Names of the results to return, in order; None or empty for all.
            input_feed: Array of each input, by name; lists and numbers are converted.
            run_options: onnxruntime's `RunOptions`, which are not read.

        Raises:
            InputError: An input has a wrong name, element type or shape.
            UsageError: There is no output of such a name.
            ExecutionError: A kernel failed.
        """
        del run_options
        results = self.executable.run_flat(self._arrays(input_feed))
        if not output_names:
            return results
        by_name = dict(zip((info.name for info in self.executable.outputs), results, strict=True))
        missing = next((name for name in output_names if name not in by_name), None)
        if missing is not None:
            close = get_close_matches(missing, by_name, n=1)
            raise UsageError(
                f"there is no output {missing!r}",
                help=f"did you mean {close[0]!r}?" if close else f"the outputs are {', '.join(by_name)}",
            )
        return [by_name[name] for name in output_names]

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs, in order."""
        return [_node_arg(info) for info in self.executable.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs, in order."""
        return [_node_arg(info) for info in self.executable.outputs]

    def get_providers(self) -> list[str]:
        """Return the providers: the CPU's."""
        return [CPU]

    def __repr__(self) -> str:
        return f"InferenceSession({self.executable!r})"

    def _arrays(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        dtypes = {info.name: info.dtype for info in self.executable.inputs if is_tensor(info)}
        return {
            name: np.asarray(value, DType(dtypes[name]).numpy)
            if name in dtypes and isinstance(value, list | tuple | int | float)
            else value
            for name, value in feed.items()
        }


def _check_providers(providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None) -> None:
    names = [item if isinstance(item, str) else item[0] for item in providers or ()]
    if names and CPU not in names:
        raise UsageError(
            f"the providers are {', '.join(names)}, expected {CPU} among them",
            help="Intarsia's toolchains run on the CPU; intarsia.build builds programs for several devices",
        )


def _executable(
    source: str | os.PathLike[str] | bytes | ModelProto,
    threads: int | None,
    budget: str | float | None,
    database: Database | str | os.PathLike[str] | None,
) -> Executable:
    from intarsia.driver.import_model import import_model
    from intarsia.driver.tune import tune

    if isinstance(source, bytes) and is_artifact_data(source):
        return load_bytes(source)
    if isinstance(source, str | os.PathLike) and is_artifact(Path(source)):
        return load(source)
    model = os.fspath(source) if isinstance(source, os.PathLike) else source
    if budget is None:
        return _built(import_model(model, None, None, None, None).module, threads)
    return tune(model, budget=budget, database=database, threads=threads).executable


def _built(module: Any, threads: int | None) -> Executable:
    from intarsia.build import build
    from intarsia.measure.candidate_kind import WHOLE, instantiate

    reasons = []
    for toolchain in TOOLCHAINS:
        target = Target.for_toolchain(toolchain)
        if threads is not None and toolchain != "reference":
            target = target.with_options(threads=threads)
        try:
            return build(instantiate(module, target, WHOLE))
        except IntarsiaError as error:
            reasons.append(f"{toolchain}: {error.problem}")
    raise CompileError(f"no toolchain takes the model: {'; '.join(reasons)}")


def _node_arg(info: TensorInfo) -> NodeArg:
    shape = [None if dim in {-1, "?"} else dim for dim in info.shape or ()]
    return NodeArg(info.name, tensor_type_text(DType(info.dtype)) if is_tensor(info) else info.dtype, shape)
