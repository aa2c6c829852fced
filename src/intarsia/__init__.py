"""Intarsia: a model compiler that measures which inference toolchain should run which piece of a network.

    mod = intarsia.from_onnx("model.onnx")     a program
    mod = intarsia.from_torch(model, (x,))     one of a PyTorch module
    mod = intarsia.load_pass_sequence("default_heuristic")(mod)    the same program, transformed by passes
    exe = intarsia.build(mod)                  an executable; exe(x) runs it
    result = intarsia.tune("model.onnx")       the fastest right executable on this machine
    exe = intarsia.load("model.intarsia")      a saved one

Without the compiler (the wheel intarsia-runtime), load, Executable, IntarsiaError, Pool, Target,
VirtualDevice and to_dlpack are there.
"""

# Names are loaded when they are first used. `build` and `tune` are bound at once, because the packages of the
# same names would hide the functions as soon as one of their modules is imported: they are imported before.

from importlib.util import find_spec
from typing import TYPE_CHECKING

from intarsia.support.lazy_names import lazy_names
from intarsia.support.version import VERSION

_HAS_COMPILER = find_spec("intarsia.driver") is not None
if _HAS_COMPILER:
    import intarsia.tune  # noqa: F401  # before its name is the function's
    from intarsia.build import build
    from intarsia.driver import tune

if TYPE_CHECKING:
    from intarsia.driver.inference_session import InferenceSession
    from intarsia.driver.lazy_variants import specialize_lazily
    from intarsia.driver.result import TuneResult
    from intarsia.driver.tune_hosts import tune_hosts
    from intarsia.frontend.onnx import ImportLimits, from_onnx, to_onnx
    from intarsia.frontend.torch import from_torch
    from intarsia.ir import IRModule
    from intarsia.op.register_operator import operator, register_operator
    from intarsia.passes.place import place
    from intarsia.runtime.artifact_load import load
    from intarsia.runtime.dlpack import to_dlpack
    from intarsia.runtime.executable import Executable
    from intarsia.runtime.pool import Pool
    from intarsia.support.errors import IntarsiaError
    from intarsia.target import Target, VirtualDevice
    from intarsia.toolchain import targets
    from intarsia.transform import PassContext, Sequential, get_pass, load_pass_sequence

__version__ = VERSION

_HOMES = {
    "Executable": "intarsia.runtime.executable",
    "IRModule": "intarsia.ir",
    "ImportLimits": "intarsia.frontend.onnx",
    "InferenceSession": "intarsia.driver.inference_session",
    "IntarsiaError": "intarsia.support.errors",
    "PassContext": "intarsia.transform",
    "Pool": "intarsia.runtime.pool",
    "Sequential": "intarsia.transform",
    "Target": "intarsia.target",
    "TuneResult": "intarsia.driver.result",
    "VirtualDevice": "intarsia.target",
    "build": "intarsia.build",
    "from_onnx": "intarsia.frontend.onnx",
    "from_torch": "intarsia.frontend.torch",
    "get_pass": "intarsia.transform",
    "load": "intarsia.runtime.artifact_load",
    "load_pass_sequence": "intarsia.transform",
    "operator": "intarsia.op.register_operator",
    "place": "intarsia.passes.place",
    "register_operator": "intarsia.op.register_operator",
    "specialize_lazily": "intarsia.driver.lazy_variants",
    "targets": "intarsia.toolchain",
    "to_dlpack": "intarsia.runtime.dlpack",
    "to_onnx": "intarsia.frontend.onnx",
    "tune": "intarsia.driver",
    "tune_hosts": "intarsia.driver.tune_hosts",
}

__all__ = [
    "Executable",
    "IRModule",
    "ImportLimits",
    "InferenceSession",
    "IntarsiaError",
    "PassContext",
    "Pool",
    "Sequential",
    "Target",
    "TuneResult",
    "VirtualDevice",
    "__version__",
    "build",
    "from_onnx",
    "from_torch",
    "get_pass",
    "load",
    "load_pass_sequence",
    "operator",
    "place",
    "register_operator",
    "specialize_lazily",
    "targets",
    "to_dlpack",
    "to_onnx",
    "tune",
    "tune_hosts",
]

if not _HAS_COMPILER:
    __all__ = [
        "Executable",
        "IntarsiaError",
        "Pool",
        "Target",
        "VirtualDevice",
        "__version__",
        "load",
        "to_dlpack",
    ]

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
