"""`python -m ci` is the `regretbook` command."""

import sys

from ci.cli import main

sys.exit(main())
