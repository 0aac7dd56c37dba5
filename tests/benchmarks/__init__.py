"""The queue beside bare loops on the same database, in one run: `python -m tests.benchmarks`."""
