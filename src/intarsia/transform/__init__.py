"""Pass infrastructure: what passes are, and how they are run, watched and found (DESIGN section 5).

pass_info, program_feature       what a pass says of itself
name_list, instrument_list       what people give a pass and a context, checked
compiler_pass                    Pass; kinds: module_pass, function_pass, prim_func_pass, sequential
pass_decorators                  passes made of functions and classes
pass_context, pass_config        what passes run under
pass_settings                    the same as plain data, without instruments
enablement, explanation          whether a sequence runs a pass, and why
pass_order                       constraints on sequences, checked before anything runs
pass_registry, pipeline          passes and sequences by name
pass_text, pass_syntax           passes as text, printed and read
pass_packages                    packages that bring more
pass_trace, replay               the passes applied, as data that replays
diagnostic                       what passes say about the program
completion                       what is done after every pass
program_check                    the rules that every program keeps
option_type                      objects that are options of passes, as data
apply_pass_to_function           a pass on some functions only
immutable_module                 a check that passes leave their input alone
instrument                       what watches passes
bisection, pass_owner            which pass made a program wrong, and whose it is

No operator is named here: operators stand in `op`, and what passes do with them in `passes`.
"""

from intarsia.transform.apply_pass_to_function import ApplyPassToFunction
from intarsia.transform.bisection import Bisection, bisect_passes
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.diagnostic import Diagnostic, DiagnosticLevel, DiagnosticNote
from intarsia.transform.function_pass import FunctionPass
from intarsia.transform.instrument.pass_instrument import PassInstrument, pass_instrument
from intarsia.transform.module_pass import ModulePass
from intarsia.transform.pass_config import register_config_option
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_decorators import function_pass, module_pass, prim_func_pass
from intarsia.transform.pass_info import PassInfo
from intarsia.transform.pass_registry import pass_names, register_pass
from intarsia.transform.pass_settings import PassSettings
from intarsia.transform.pass_syntax.read_passes import get_pass, read_passes
from intarsia.transform.pass_trace import PassTrace
from intarsia.transform.pipeline import load_pass_sequence, pipeline_names, register_pipeline
from intarsia.transform.prim_func_pass import PrimFuncPass
from intarsia.transform.program_feature import ProgramFeature
from intarsia.transform.replay import replay_trace
from intarsia.transform.sequential import Sequential

__all__ = [
    "ApplyPassToFunction",
    "Bisection",
    "Diagnostic",
    "DiagnosticLevel",
    "DiagnosticNote",
    "FunctionPass",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassSettings",
    "PassTrace",
    "PrimFuncPass",
    "ProgramFeature",
    "Sequential",
    "bisect_passes",
    "function_pass",
    "get_pass",
    "load_pass_sequence",
    "module_pass",
    "pass_instrument",
    "pass_names",
    "pipeline_names",
    "prim_func_pass",
    "read_passes",
    "register_config_option",
    "register_pass",
    "register_pipeline",
    "replay_trace",
]
