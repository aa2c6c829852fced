"""Judge whether the results of a candidate are right.

    gate = Gate.for_module(module, inputs)     # a panel of judges finds the right result and its noise
    gate.check(outputs)                        # -> GateReport

gate                the expected results of a program for one input set, and the check of candidates
gate_files          gates in files, for the processes that run candidates
quorum              which judges are called, and how they vote
judges              the engines that vote, grouped by shared code
definition_cost     estimated time of onnx.reference
perturbation        programs and inputs with injected rounding errors
reference_runs      the results that checks are made from
ruling              the decision of the judges
check_rules         rules from outputs to checks; a rule may expose inner values of the program
output_check        the protocol of checks, and their registry
numeric_check       floating-point outputs, by the noise of their slices
noise_profile       the noise of slices, and of groups of similar magnitude
tolerance_check     outputs with one allowed difference: exact types, and given values
quantised_outputs   outputs that may be off by one step
gate_report         reports of checks
compare_outputs, difference, tolerance, fill_values
                    allowed differences by rounding error analysis, where there is no measured noise
accuracy            bounds that users set

To judge outputs by other criteria than their numbers, such as the indices of a TopK:

1. Write a class with the methods of `OutputCheck` and register it in `CHECK_KINDS`. It may claim several
   outputs.
2. Write a class with the methods of `CheckRule` and add it to `CHECK_RULES`. `exposed` names values of @main
   that judges compute as further outputs; `checks` finds them in `ReferenceRuns.exposed`, with their noise in
   `ReferenceRuns.exposed_spreads`. Its checks are used for votes of judges too: engines that order equal
   scores differently agree then.
"""
