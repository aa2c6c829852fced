"""Models as people name them: an .onnx file, zoo:NAME, or an artifact; `MODEL@TOOLCHAIN` says who runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from intarsia.cli.arguments.completion import ZOO_PREFIX
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.ir import IRModule

_ZIP_MAGIC: Final = b"PK\x03\x04"
_ONNX_SUFFIX: Final = ".onnx"


@dataclass(frozen=True, slots=True)
class ModelArgument:
    """What the user wrote.

    Attributes:
        text: All of it.
        place: File, folder, or zoo:NAME.
        target: What stands after the last "@": a toolchain or a target; empty if nothing does.
    """

    text: str
    place: str
    target: str = ""

    @classmethod
    def parse(cls, text: str) -> ModelArgument:
        """Take `MODEL@TOOLCHAIN` apart; a file that is named so as a whole is that file."""
        place, at, target = text.rpartition("@")
        if not at or Path(text).exists() or not (place.startswith(ZOO_PREFIX) or Path(place).exists()):
            return cls(text, text)
        return cls(text, place, target)

    @property
    def name(self) -> str:
        """Name of the model: of the file without folder and suffix, or as the zoo calls it."""
        if self.is_zoo:
            return self.place.removeprefix(ZOO_PREFIX)
        path = Path(self.place)
        return path.stem if path.suffix == _ONNX_SUFFIX else path.name

    @property
    def is_zoo(self) -> bool:
        """Whether the model is built here."""
        return self.place.startswith(ZOO_PREFIX) and not Path(self.place).exists()

    @property
    def is_artifact(self) -> bool:
        """Whether it looks like what `tune` saves, judged by content: a folder, or a zip file."""
        path = Path(self.place)
        if self.is_zoo or not path.exists():
            return False
        if path.is_dir():
            return True
        try:
            with path.open("rb") as file:
                return file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"cannot read {path}: {reason}") from error

    def refuse_choices(self, **choices: object) -> None:
        """Refuse what can be chosen for a model and not for an artifact, which is compiled already.

        Args:
            **choices: Values by the names of their options; what is None or empty was not given.

        Raises:
            UsageError: Something was given.
        """
        for option, value in choices.items():
            if value:
                raise UsageError(
                    f"--{option} does not go with {self.place}: it is an artifact, compiled already",
                    help="tune the model again with it",
                )

    def import_model(self, shapes: Mapping[str, Sequence[int | str]]) -> IRModule:
        """The program of a model that is no artifact.

        Raises:
            UsageError: No such file or zoo model, or shapes that do not fit.
            ModelError: Damaged or unsupported.
        """
        from intarsia.frontend.onnx import from_onnx

        if self.is_zoo:
            from intarsia.frontend.zoo import build_model

            return from_onnx(build_model(self.name), shapes)
        return from_onnx(Path(self.place), shapes)
