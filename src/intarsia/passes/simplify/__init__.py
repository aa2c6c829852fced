"""Rules of SimplifyExpr: tables from operator to the functions that may simplify a call of it.

arithmetic        neutral elements, operators that undo or repeat themselves, selections that are decided
clamping          Clip and Relu over each other
casting           casts that change nothing, or lose nothing on the way
reshaping         Reshape, Flatten, Squeeze and Unsqueeze
transposing       Transpose
data_movement     Slice, Pad, Expand, Tile, Concat and Split that copy what is there
padding           zeros around the data of a convolution
reducing          reductions and pools over one element
reassociation     constants that are added or multiplied one after the other

To add a rule, write a function and name it in the table of its file; a test checks that each is tested.
"""
