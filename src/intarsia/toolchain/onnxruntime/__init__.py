"""ONNX Runtime as a toolchain.

toolchain   the class
options     options of its targets
session     session options, threads, weights lent to a session
providers   what runs a session's operators: the CPU, CUDA, TensorRT
cuda_kernel a session on GPUs, called
kernel      a session with I/O binding, called
message     the essential sentence of an error
refusals    calls that ONNX Runtime is known to lack or to compute wrong; forests: those of tree ensembles
domain      operators of com.microsoft, computed by ONNX Runtime
patterns      groups of operators that are candidates of Collage as a whole
"""
