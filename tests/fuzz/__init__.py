"""Inputs that nobody thought of, thrown at every parser.

What must hold: for any input a parser gives a value or raises the project's own error
(`TuiFsError`, an argparse or a documented `ValueError`): never another exception, never a
hang, never a wrong number without a word. Each `test_fuzz_*` module throws mutated real samples
and inputs made to fit a format almost; `test_found_*` hold the inputs that once broke something.

A normal run tries few inputs; ``TUI_FS_FUZZ_EXAMPLES`` sets how many each target gets, and
``python tests/fuzz/run.py --examples 100000`` tries at least that many in sum, with a table of
targets, inputs and failures. Nothing here runs a command of the program: command lines are parsed,
never obeyed.
"""
