"""Random programs through ONNX Runtime: ``python -m tests.runtime.export.onnx.fuzz --seed 0 --count 100``.

Each is one of ``tests.fuzz``: exported for its first call, run on the calls that it fits, held against eager. A program
may be refused; a result that is not eager's and a model that does not load are failures.
"""

from __future__ import annotations

import sys

from tests.runtime.export import judging
from tests.runtime.export.onnx.conformance import attempt

if __name__ == "__main__":
    sys.exit(judging.report_seeds(attempt, __doc__))
