"""PyTorch as a toolchain, on the CPU and on CUDA devices.

toolchain   the class
options     options of its targets
graph       an ONNX graph as a Python function over tensors; kernel: called
rule        how one operator is expressed in PyTorch
arithmetic, networks, recurrent, shapes
            the rules; operators: all of them
types       element types
cuda_kernel, cuda_memory
            kernels for GPUs, on the memory of the device `cuda`
"""
