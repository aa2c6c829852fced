"""Rules of CanonicalizeOps, a file for each option of the pass.

matrix_product      Gemm as MatMul and Add
variadic            Sum and Mean of several as Add chains
shape_change        Flatten, Squeeze and Unsqueeze as Reshape
window              attributes of convolutions and pools, spelled out
activation          written-out activation functions as the operator of that name
"""
