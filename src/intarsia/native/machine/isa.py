"""Instruction sets that code is generated for, and checks whether a machine runs the code."""

from __future__ import annotations

import platform
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from intarsia.support.digest import digest_text
from intarsia.support.errors import ArtifactError, CompileError
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.cpu import read_cpuinfo, usable_cores
from intarsia.target.machine_file import machine_model
from intarsia.target.machine_model import MachineModel

# Features of x86-64 that a code generator uses by itself. The others (virtualisation, cryptography, tile
# registers, ...) would only tie code to machines that have them. `avx10` is one name for features listed
# anyway.
_CODE_FEATURES: Final = re.compile(
    r"(?:s?sse[0-9.a]*|avx(?!10).*|fma4?|f16c|bmi2?|lzcnt|popcnt|movbe|cmov|cx8|cx16|gfni|sahf|xop|tbm)"
)
# Feature names in Linux that differ from LLVM's by more than dots and underscores.
_LINUX_NAMES: Final = {
    "x86_64": {"pni": "sse3", "abm": "lzcnt", "bmi1": "bmi", "lahflm": "sahf"},
    "aarch64": {"asimd": "neon", "asimddp": "dotprod", "asimdhp": "fullfp16", "atomics": "lse"},
}
_ARM_FEATURES: Final = ("neon", "fullfp16", "dotprod", "lse", "i8mm", "bf16")
_ALWAYS: Final = {"x86_64": ("64bit", "cmov", "cx8", "sse", "sse2"), "aarch64": ("neon",)}
_WITH_FMA: Final = ("aarch64", "nvptx64")
"""Architectures that have multiply-adds, and conversions of float16, in all their models."""
_ARCHITECTURES: Final = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
_TEXT: Final = re.compile(r"(?P<architecture>\w+) (?P<cpu>[\w.+-]+)(?P<features>( [+-][\w.-]+)*)")


@dataclass(frozen=True)
class Isa:
    """An instruction set, as LLVM names its parts.

    Attributes:
        architecture: Name of the architecture, "x86_64" or "aarch64".
        cpu: LLVM's name of the model that code is scheduled for ("znver3", "generic").
        features: All features that code may use, with those that the model implies, sorted ("avx2", "neon").
        missing: Features that the model implies and this machine lacks, sorted.
        cores: Number of logical cores that this process may use. It does not change the code, so text, digest
            and equality leave it out.
        machine: Machine model. It changes how loops are scheduled and not what runs where, so text, digest
            and equality leave it out; keys of kernels contain it.
    """

    architecture: str
    cpu: str
    features: tuple[str, ...]
    missing: tuple[str, ...] = ()
    cores: int = field(default=1, compare=False)
    machine: MachineModel = field(default=MachineModel(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(sorted(set(self.features))))
        object.__setattr__(self, "missing", tuple(sorted(set(self.missing) - set(self.features))))

    @classmethod
    def host(cls) -> Isa:
        """Return the instruction set of this machine, from LLVM.

        Features that the system does not list are left out: code must not need a feature that cannot be
        checked
        without LLVM.

        Raises:
            CompileError: There is no llvmlite, or no code can be generated for this architecture.
        """
        from intarsia.native.machine.compiler_library import compiler_library

        library = compiler_library()
        architecture = host_architecture()
        is_present = {name: bool(present) for name, present in library.get_host_cpu_features().items()}
        named = set(cls.host_without_compiler().features)
        present = {name for name in is_present if is_present[name] and (name in named or not named)}
        features = _code_features(architecture, present)
        missing = _code_features(architecture, is_present.keys() - present)
        name = str(library.get_host_cpu_name())
        return cls(architecture, name, features, missing, usable_cores(Path("/")), machine_model())

    @classmethod
    def host_without_compiler(cls, root: Path = Path("/")) -> Isa:
        """Return the instruction set by the system's files: enough to check what runs here, without LLVM."""
        architecture = host_architecture()
        facts = read_cpuinfo(root)
        flags = (facts.get("flags") or facts.get("Features") or "").split()
        aliases = _LINUX_NAMES[architecture]
        names = {re.sub("[_.]", "", flag) for flag in flags}
        plain = {aliases.get(name, name) for name in names}
        spelled = {re.sub(r"^(sse4)([12])$", r"\1.\2", name) for name in plain}
        features = _code_features(architecture, spelled)
        return cls(architecture, "generic", features, (), usable_cores(root), machine_model(root))

    @classmethod
    def parse(cls, text: str) -> Isa:
        """Parse the `str` of an instruction set; `cores` of the result are 1, its machine is generic.

        Raises:
            ArtifactError: The text is not that of an instruction set.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ArtifactError(f"not an instruction set: {text[:200]!r}")
        signed = match["features"].split()
        features = tuple(name[1:] for name in signed if name[0] == "+")
        missing = tuple(name[1:] for name in signed if name[0] == "-")
        return cls(match["architecture"], match["cpu"], features, missing)

    def __str__(self) -> str:
        """Architecture, model, features with + and -, e.g. "x86_64 znver3 +avx2 +fma -avx512f"."""
        signed = [*(f"+{name}" for name in self.features), *(f"-{name}" for name in self.missing)]
        return " ".join((self.architecture, self.cpu, *signed))

    @property
    def digest(self) -> str:
        """Hexadecimal digest of the text."""
        return digest_text([str(self)])

    @property
    def triple(self) -> str:
        """LLVM's name of the architecture with its object format and calling convention."""
        return f"{self.architecture}-unknown-linux-gnu"

    @property
    def is_of_host(self) -> bool:
        """Whether this machine has the same architecture, whatever the features."""
        return _ARCHITECTURES.get(platform.machine().lower()) == self.architecture

    @property
    def feature_string(self) -> str:
        """The features for LLVM's target machines; LLVM aborts without the baseline of the architecture."""
        always = _ALWAYS[self.architecture]
        signed = [*(f"+{name}" for name in self.features), *(f"-{name}" for name in self.missing)]
        return ",".join([*signed, *(f"+{name}" for name in always)])

    @property
    def caches(self) -> CacheSizes:
        """Sizes of the caches of the machine."""
        return self.machine.caches

    @property
    def independent_sums(self) -> int:
        """Minimum number of vectors of independent sums that keep the multiply-add pipes of a core busy."""
        return self.machine.independent_sums(self.vector_bytes)

    @property
    def vector_bytes(self) -> int:
        """Size of the widest float vector that one instruction computes, in bytes."""
        widths = {"avx512f": 64, "avx": 32}
        return next((width for name, width in widths.items() if name in self.features), 16)

    @property
    def vector_registers(self) -> int:
        """Number of vector registers of `vector_bytes` bytes."""
        return 32 if self.architecture == "aarch64" or "avx512f" in self.features else 16

    @property
    def has_fma(self) -> bool:
        """Whether a product and a sum are one instruction; without it, `llvm.fma` is a slow library call."""
        return self.architecture in _WITH_FMA or "fma" in self.features or "avx512f" in self.features

    @property
    def has_f16c(self) -> bool:
        """Whether there are instructions that convert between float16 and float32."""
        return self.architecture in _WITH_FMA or "f16c" in self.features

    @property
    def has_avx512(self) -> bool:
        """Whether there are vectors of 64 bytes with masks."""
        return "avx512f" in self.features

    @property
    def has_int8_dot(self) -> bool:
        """Whether one instruction sums products of four int8 into an int32."""
        return bool({"avx512vnni", "avxvnni", "dotprod"} & set(self.features))

    @property
    def has_bf16_dot(self) -> bool:
        """Whether one instruction sums products of two bfloat16 numbers into a float32."""
        return {"avx512bf16", "avx512vl"} <= set(self.features)

    def without_wide_vectors(self) -> Isa:
        """Return this instruction set without AVX-512, its 64-byte vectors and their extensions."""
        features = tuple(name for name in self.features if not name.startswith("avx512"))
        return replace(self, features=features, missing=(*self.missing, *set(self.features) - set(features)))

    def lacks(self, code: Isa) -> tuple[str, ...]:
        """Return what `code` needs and this instruction set lacks: features, or the architecture."""
        if self.architecture != code.architecture:
            return (code.architecture,)
        return tuple(name for name in code.features if name not in self.features)

    def fits(self, code: Isa) -> bool:
        """Return whether code compiled for `code` runs on this instruction set."""
        return not self.lacks(code)

    def require(self, code: Isa) -> None:
        """Refuse code that does not run on this instruction set.

        Raises:
            ArtifactError: The code needs a feature or an architecture that is missing here.
        """
        if lacking := self.lacks(code):
            raise ArtifactError(
                f"native code for {code.architecture} ({code.cpu}) does not run here: this machine has no "
                f"{', '.join(lacking)}",
                help="build it again on this machine",
            )


def host_architecture() -> str:
    """Return this machine's architecture, "x86_64" or "aarch64".

    Raises:
        CompileError: The architecture is another one, or the system is not Linux.
    """
    machine = platform.machine()
    if platform.system() != "Linux":
        raise CompileError(f"no native kernels on {platform.system()}: they need Linux")
    if machine.lower() not in _ARCHITECTURES:
        raise CompileError(
            f"no native kernels for {machine!r}: they are made for {' and '.join(sorted(_LINUX_NAMES))}"
        )
    return _ARCHITECTURES[machine.lower()]


def _code_features(architecture: str, names: AbstractSet[str]) -> tuple[str, ...]:
    if architecture == "aarch64":
        return tuple(name for name in _ARM_FEATURES if name in names or name == "neon")
    return tuple(sorted(name for name in names if _CODE_FEATURES.fullmatch(name)))
