"""Whether the results of a candidate are right.

    gate = Gate.for_module(module, inputs)     # a panel of judges finds what is right, and how exact that is
    gate.check(outputs)                        # -> GateReport

gate                the expected results of a program for one input set, and the check of candidates
gate_files          gates in files, for the processes that run candidates
quorum              which judges are called, and how they vote
judges              the engines that vote, and which of them share code
definition_cost     how long onnx.reference would take
perturbation        programs and inputs with rounding errors made on purpose
reference_runs      the results that checks are made of
ruling              what the judges have decided, in words too
check_rules         which check judges which output; rules may have values within the program exposed
output_check        the protocol of checks, and their registry
numeric_check       floating-point outputs, by the noise of each of their parts
noise_profile       that noise: slices, and groups of similar magnitude
tolerance_check     outputs with one allowed difference: exact types, and values known from elsewhere
quantised_outputs   outputs that may be off by one step
gate_report         what a check says
compare_outputs, difference, tolerance, fill_values
                    allowed differences by rounding error analysis, where there is no measured noise
accuracy            bounds that users set

To judge outputs otherwise than by their numbers, such as the indices of a TopK:

1. Write a class with the methods of `OutputCheck` and register it in `CHECK_KINDS`. It may claim several
   outputs.
2. Write a class with the methods of `CheckRule` and add it to `CHECK_RULES`. `exposed` names values of @main
   that judges compute as further outputs; `checks` finds them in `ReferenceRuns.exposed`, with their noise in
   `ReferenceRuns.exposed_spreads`. Its checks are used for votes of judges too: engines that order equal
   scores differently agree then.
"""
