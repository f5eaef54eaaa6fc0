"""``python -m dy2static`` is the ``dy2static`` command."""

from __future__ import annotations

import sys

from dy2static.cli import main

if __name__ == "__main__":
    sys.exit(main())
