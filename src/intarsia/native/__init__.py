"""Our own code generator: tensor expressions, loop functions, machine code (DESIGN section 8).

te          what is computed: tensors declared by what their elements are; compute rules for operators
dag         a graph of such declarations, and what is known of it
loop_state  previews of its loops, and the steps that change them
lowering    a state as a loop function
tir         passes on loop functions, and an interpreter that says what they mean
machine     the CPU that is compiled for: instruction set, cache sizes
emission    a loop function as LLVM IR
object_code LLVM IR as object code, kept in a cache and loaded
execution   kernels run: threads, the driver of a row of kernels
schedule    a good state for every graph, by rule
graph       a region of a program as kernels: fusion groups, layouts, memory
cores       the threads of a plan on a simulated machine with any number of cores
"""
