"""ONNX's reference implementation as a toolchain: slow, complete, the definition of a right result.

toolchain   the class
kernel      an evaluator of an ONNX model, called
opaque      operators of other domains, computed by their domain
own_operators, token_operators
            operators of the domain "intarsia"
gather_elements, loop, lp_normalization, lrn, non_max_suppression, pad
            operators that ONNX's own implementation computes wrong or cannot compute
"""
