"""Instruments: what watches passes, and what may skip them.

pass_instrument      the five hooks, and the decorator
open_runs            pairs what is seen before and after a pass
pass_timing          how long each pass takes, as a tree
pass_memory          how much memory each takes
pass_statistics      what each did to operators and constants
stop_after           ends a sequence after one of its passes
print_ir, dump_ir    the program before and after passes, as text and in files
verify_after_pass    finds the pass that breaks the rules of the language
change_tracking      what each pass changed
diagnostics          what passes say about the program
"""

from intarsia.transform.instrument.change_tracking import ChangeTracking, PassChange
from intarsia.transform.instrument.diagnostics import CollectedDiagnostic, Diagnostics
from intarsia.transform.instrument.dump_ir import DumpIR
from intarsia.transform.instrument.pass_instrument import PassInstrument, pass_instrument
from intarsia.transform.instrument.pass_memory import PassMemory, PassMemoryInstrument
from intarsia.transform.instrument.pass_statistics import PassStatistic, PassStatistics, ProgramSize
from intarsia.transform.instrument.pass_timing import PassTime, PassTimingInstrument
from intarsia.transform.instrument.print_ir import PrintAfter, PrintBefore, PrintChanged
from intarsia.transform.instrument.stop_after import StopAfter
from intarsia.transform.instrument.verify_after_pass import VerifyAfterPass

__all__ = [
    "ChangeTracking",
    "CollectedDiagnostic",
    "Diagnostics",
    "DumpIR",
    "PassChange",
    "PassInstrument",
    "PassMemory",
    "PassMemoryInstrument",
    "PassStatistic",
    "PassStatistics",
    "PassTime",
    "PassTimingInstrument",
    "PrintAfter",
    "PrintBefore",
    "PrintChanged",
    "ProgramSize",
    "StopAfter",
    "VerifyAfterPass",
    "pass_instrument",
]
