"""Reports of tuning runs: plain records that artifacts and databases store, and one page of HTML from them.

Nothing of the compiler is imported, so that reports are made where the model cannot be built.

explanation, explained_function, tuning_record    records of a run, written by `driver.explain`
"""
