"""OpenVINO as a toolchain.

toolchain   the class
options     options of its targets
properties  compile properties from a target's options
model       an ONNX model read with its weights lent to it
kernel      a compiled model with a prebound infer request
message     the essential sentence of an error
process, server
            a kernel computed in a process of its own, for children forked after OpenVINO was loaded
refusals    calls that OpenVINO is known to lack or to compute wrong
integers, integer_ranges, integer_rules
            a proof that integers fit into OpenVINO's arithmetic
doubles, attention, limits
            refusals of float64, of attention variants, of sizes
patterns      groups of operators that are candidates of Collage as a whole
"""
