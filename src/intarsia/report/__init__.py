"""Reports of tuning runs: plain records that artifacts and databases store, and one page of HTML from them.

Nothing of the compiler is imported, so that reports are made where the model cannot be built.

explanation, explained_function, run_records, tuning_record    records of a run, written by `driver.explain`
report_source    what a report is made from
page             the page, from the templates
verdict, graph_map, waterfall, spending, charts, machine_facts, reproduction    contents of its sections
graph_layout     layered layout of the graph
packages         packages of the extra `report`
outcome_text, search_line    outcomes in words, for the page and the command line
"""
