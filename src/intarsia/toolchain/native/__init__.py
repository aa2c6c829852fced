"""Our own code generator as a toolchain: regions of a program compiled to kernels.

toolchain     the class; loader: what compiled kernels need of it, without the compiler
options       options of its targets
simplified    rewrites a function before it is planned
source        a function as the source of a kernel, and back
plan          plans the kernels of a function and their memory; arena: offsets in the shared memory
build         compiles the planned kernels to a region; compile: one of them
caches        stores schedules and kernels
region        a region as data; blob: as bytes; region_check: checks one that was read
kernel        a region loaded into memory and called
counted, counted_result
              regions whose results have a number of rows that is known after the call
checked, index_check
              regions that check every index while they run
record, version
              notes for explanations; the version of the code generator
patterns      groups of operators that are candidates of Collage as a whole
"""
