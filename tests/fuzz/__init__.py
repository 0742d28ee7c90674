"""Fuzz tests of every parser.

The invariant: for any input a parser returns a value or raises the project's own error
(`TuiFsError`, an argparse or a documented `ValueError`). It never raises another exception, never
hangs, and never returns a wrong number silently. Each `test_fuzz_*` module feeds mutated real
samples and almost valid inputs; `test_found_*` have the inputs that once broke something.

A normal run tries few inputs; ``TUI_FS_FUZZ_EXAMPLES`` sets how many each target gets, and
``python tests/fuzz/run.py --examples 100000`` tries at least that many in total, with a table of
targets, inputs and failures. Nothing here runs a command of the program: command lines are parsed,
never executed.
"""
