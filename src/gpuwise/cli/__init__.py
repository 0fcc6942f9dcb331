"""The command line: one command a question, its options derived from the request types.

Results go to standard output and nothing else does; warnings, progress and errors go to standard error. Exit codes:
0 an answer, 2 bad input, 3 nothing feasible or refused, 4 a measurement or a launcher failed, 130 interrupted, 1 a
fault of gpuwise itself. A reader that closes the pipe early (`gpuwise rank ... | head -1`) changes nothing: the exit
code is that of the answer. With `--json`, standard output always holds one JSON document, also for an error.
"""

from gpuwise.cli.program import main, program
from gpuwise.cli.session import Session

__all__ = ["Session", "main", "program"]
