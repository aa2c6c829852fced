"""Model arguments: an .onnx file, program text (.txt), zoo:NAME, or an artifact, maybe with @TOOLCHAIN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from intarsia.frontend.zoo_name import ZOO_PREFIX, zoo_name
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.ir import IRModule

_ONNX_SUFFIX: Final = ".onnx"
_TEXT_SUFFIX: Final = ".txt"


@dataclass(frozen=True, slots=True)
class ModelArgument:
    """A parsed model argument.

    Attributes:
        text: Text of the argument.
        source: File, folder, or zoo:NAME.
        target: Text after the last "@": a toolchain or a target; empty without one.
    """

    text: str
    source: str
    target: str = ""

    @classmethod
    def parse(cls, text: str) -> ModelArgument:
        """Parse `MODEL@TOOLCHAIN`; an existing file with "@" in its name is that file."""
        source, at, target = text.rpartition("@")
        # The "@" splits only if the text before it is a model, so that "user@host.onnx" stays a file name.
        if not at or Path(text).exists() or not (source.startswith(ZOO_PREFIX) or Path(source).exists()):
            return cls(text, text)
        return cls(text, source, target)

    @property
    def name(self) -> str:
        """Name of the model: the file name without suffix, or the name in the zoo."""
        if self.is_zoo:
            return self.source.removeprefix(ZOO_PREFIX)
        path = Path(self.source)
        return path.stem if path.suffix in (_ONNX_SUFFIX, _TEXT_SUFFIX) else path.name

    @property
    def is_zoo(self) -> bool:
        """Whether it is a built-in model."""
        return zoo_name(self.source) is not None

    @property
    def is_artifact(self) -> bool:
        """Whether it looks like an artifact by its content: a folder, or a zip file."""
        from intarsia.runtime.artifact_reader import is_artifact

        return not self.is_zoo and is_artifact(Path(self.source))

    def refuse_choices(self, **choices: object) -> None:
        """Refuse options of models for an artifact, which is compiled already.

        Args:
            **choices: Values of options by name; None or empty for options that were not given.

        Raises:
            UsageError: An option was given.
        """
        for option, value in choices.items():
            if value:
                raise UsageError(
                    f"--{option} cannot be used with {self.source}: it is an artifact, compiled already",
                    help=f"pass --{option} to intarsia tune, or use the model itself",
                )

    def import_model(self, shapes: Mapping[str, Sequence[int | str]]) -> IRModule:
        """Import a model that is not an artifact.

        Raises:
            UsageError: The file or zoo model does not exist, or shapes do not fit.
            ModelError: The model is damaged or unsupported.
        """
        from intarsia.frontend.onnx import from_onnx

        if not self.is_zoo and Path(self.source).suffix == _TEXT_SUFFIX:
            from intarsia.driver.program_file import read_program

            if shapes:
                raise UsageError("--shape is for ONNX models", help="change the types in the program text")
            return read_program(Path(self.source))
        if self.is_zoo:
            from intarsia.frontend.zoo import build_model

            return from_onnx(build_model(self.name), shapes)
        return from_onnx(Path(self.source), shapes)
