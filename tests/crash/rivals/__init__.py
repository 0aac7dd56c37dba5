"""SIGKILL and SIGTERM to the workers of other queues, judged by the same ledger.

`python -m tests.crash.rivals`. Environments and projects are those of the benchmark, with another `stamps`
module: its handler takes its time, and keeps the ledger.
"""
