"""Our own code generator: tensor expressions, loop functions, machine code (DESIGN section 8).

te          what is computed: tensors declared by what their elements are; compute rules for operators
dag         a graph of such declarations, and what is known of it
loop_state  previews of its loops, and the steps that change them
lowering    a state as a loop function
tir         passes on loop functions, and an interpreter that says what they mean
llvm        machine code for loop functions, and what runs it
schedule    a good state for every graph, by rule
graph       a region of a program as kernels: fusion groups, layouts, memory
"""
