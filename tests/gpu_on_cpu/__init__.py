"""GPU kernels on a CPU: the LLVM IR that is meant for NVPTX, one coroutine for each thread of the GPU."""
