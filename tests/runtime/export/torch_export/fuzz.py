"""Random programs as exported programs: ``python -m tests.runtime.export.torch_export.fuzz --seed 0 --count 100``.

Each is one of ``tests.fuzz``: exported for its first call, run on the calls that it fits, held against eager. A program
may be refused; a result that is not eager's is a failure.
"""

from __future__ import annotations

import sys

from tests.runtime.export import judging
from tests.runtime.export.torch_export.conformance import attempt

if __name__ == "__main__":
    sys.exit(judging.report_seeds(attempt, __doc__, draws=True))
