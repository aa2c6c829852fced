"""What a toolchain takes: parts of a program that are cut out as functions."""
