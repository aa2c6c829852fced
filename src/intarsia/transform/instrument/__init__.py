"""Instruments: what watches passes, and what may skip them.

pass_instrument      the five hooks, and the decorator
open_runs            pairs what is seen before and after a pass
pass_timing          how long each pass takes, as a tree
pass_memory          how much memory each takes
print_ir, dump_ir    the program before and after passes, as text and in files
verify_after_pass    finds the pass that breaks the rules of the language
change_tracking      what each pass changed
"""

from intarsia.transform.instrument.change_tracking import ChangeTracking, PassChange
from intarsia.transform.instrument.dump_ir import DumpIR
from intarsia.transform.instrument.pass_instrument import PassInstrument, pass_instrument
from intarsia.transform.instrument.pass_memory import PassMemory, PassMemoryInstrument
from intarsia.transform.instrument.pass_timing import PassTime, PassTimingInstrument
from intarsia.transform.instrument.print_ir import PrintAfter, PrintBefore
from intarsia.transform.instrument.verify_after_pass import VerifyAfterPass

__all__ = [
    "ChangeTracking",
    "DumpIR",
    "PassChange",
    "PassInstrument",
    "PassMemory",
    "PassMemoryInstrument",
    "PassTime",
    "PassTimingInstrument",
    "PrintAfter",
    "PrintBefore",
    "VerifyAfterPass",
    "pass_instrument",
]
