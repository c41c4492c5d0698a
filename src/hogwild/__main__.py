"""`python -m hogwild` is the command `hogwild`."""

from __future__ import annotations

import sys

from hogwild.cli.main import main

sys.exit(main())
