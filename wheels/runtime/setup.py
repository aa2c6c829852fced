"""Build intarsia-runtime from the sources of Intarsia: see contents.py for which of them."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Final

from setuptools import setup
from setuptools.command.build_py import build_py

_HERE: Final = Path(__file__).resolve().parent
_ROOT: Final = _HERE.parent.parent
_SOURCE: Final = _ROOT / "src"
_BUILD: Final = _ROOT / "build" / "intarsia-runtime"
_OPTIONS: Final = "intarsia.target_options"
_OWNER: Final = "intarsia.toolchain.native."

sys.path.insert(0, str(_HERE))
import contents  # noqa: E402  # it stands beside this file, which the build runs from anywhere


class CopyRuntime(build_py):
    """Copies the files of the runtime, and stores the version of the code generator beside them."""

    def run(self) -> None:
        """Fill the build folder, which may contain files of an earlier build."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        for file in contents.source_files(_SOURCE):
            destination = Path(self.build_lib) / file.relative_to(_SOURCE)
            self.mkpath(str(destination.parent))
            self.copy_file(str(file), str(destination), preserve_mode=False)
        version = import_version_module()
        stored = Path(self.build_lib, *version.__name__.split(".")[:-1], version.STORED)
        stored.write_text(version.native_version() + "\n", "utf-8")


def import_version_module() -> ModuleType:
    """Import the module that makes native's version from all sources, without the package around it."""
    package = ModuleType(contents.PACKAGE)
    package.__path__ = [str(_SOURCE / contents.PACKAGE)]
    sys.modules[contents.PACKAGE] = package
    from intarsia.toolchain.native import version

    return version


def read_version() -> str:
    """Return the version of Intarsia."""
    namespace: dict[str, str] = {}
    exec((_SOURCE / "intarsia/support/version.py").read_text("utf-8"), namespace)  # noqa: S102  # our own file
    return namespace["VERSION"]


def option_entry_points() -> list[str]:
    """Return native's target options as the compiler's wheel announces them: equal values do not conflict."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    options = project["entry-points"][_OPTIONS]
    return [f"{name} = {value}" for name, value in options.items() if value.startswith(_OWNER)]


_BUILD.mkdir(parents=True, exist_ok=True)
setup(
    version=read_version(),
    packages=[contents.PACKAGE],
    package_dir={contents.PACKAGE: str(Path("..", "..", "src", contents.PACKAGE))},
    entry_points={_OPTIONS: option_entry_points()},
    cmdclass={"build_py": CopyRuntime},
    # Metadata among the sources would announce a second package to everything that reads them in place.
    options={"build": {"build_base": str(_BUILD)}, "egg_info": {"egg_base": str(_BUILD)}},
)
