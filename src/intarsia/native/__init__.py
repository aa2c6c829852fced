"""Our own code generator: tensor expressions, loop functions, machine code (DESIGN section 8).

te    what is computed: tensors declared by what their elements are
dag   a graph of such declarations, states of their loops, steps that change them, lowering to loop functions
tir   passes on loop functions, and an interpreter that says what they mean
llvm  machine code for loop functions, and what runs it
"""
