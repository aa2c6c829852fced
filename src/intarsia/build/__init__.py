"""IRModule -> Executable: compiles what the program says and takes no decision (DESIGN, idea 3).

device_map     which expression is on which device
slot_value     what an expression becomes: slots, or something known before the run
joined_value   what is left of a branch; of two functions, the choice
imports        what a block uses of the one that it is written in
slots          the slots of a block while it is lowered
step_order     an order of steps in which devices overlap
kernel_table   compiled functions; equal ones are compiled once
marked         functions that the program gives to a toolchain
capture        what functions inside of operators use from outside
closure        what a kernel is made of, closed over what is computed outside
task, uses     work on a stack of its own; how often expressions are used
lowering       expressions -> steps over slots
program        functions -> blocks of a plan
executable     the whole
kernel_requests  what would be compiled, to look at kernels before they are made
"""

from intarsia.build.executable import build

__all__ = ["build"]
