"""Mathematical functions on vectors, as LLVM IR."""
