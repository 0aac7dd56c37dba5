"""Names of environment variables that the benchmark and the processes it starts have in common."""

#: The file that stamped jobs write the moment of their start to.
STAMPS = "JOBQUEUE_BENCH_STAMPS"
#: The file that worker processes write their claims to, if they shall count them.
CLAIMS = "JOBQUEUE_BENCH_CLAIMS"
