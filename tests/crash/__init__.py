"""The crash suite: real workers under faults, and a checker that compares what ran with what is in the table.

`python -m tests.crash --help`. The parts, in the order of the data:

app/        the site's handlers; each writes what happens to it into the ledger
ledger.py   how it is written and read: append-only lines, times from one clock
load.py     what is enqueued meanwhile: committed, rolled back, or not known to be
faults/     what goes wrong, by kind; a fault counts as injected only when it was seen to be
world.py    the database and the workers, with everything to break them by
runs.py     one run: start, load, break, heal, drain, stop
table.py    what the table says at the end, and every change of a job's status
checker.py  decides; it knows nothing of the package but the promises
"""
