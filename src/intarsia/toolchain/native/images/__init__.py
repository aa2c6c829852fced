"""Kernels for images of any size: height and width are numbers that code reads.

image_program   the images of a program, with extents as expressions of the sizes of a call
image_shapes    shape arithmetic on such extents
tile_program    the program for a tile of a row
image_reader    reading the operators; what each of them computes: image_rules, image_resizing,
                image_transposed, image_groups
image_plan      the kernels for tiles, the moves between them, and image_memory, where images are
tile_variant    their code: for rows, grids of tiles, and the pixels of small images
grid_form       which convolutions are computed by grids of tiles
image_head      the layers behind a pool of the whole image
image_build     from the plan to compiled kernels
image_region    compiled kernels as data, and their bytes in artifacts
image_sizes     what a region is for the sizes of a call
image_kernel    a kernel with a table of calls for each size that was met, by sized_kernels
"""
