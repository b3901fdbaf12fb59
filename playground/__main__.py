"""`python -m playground` is `playground`."""

from playground.cli import main

raise SystemExit(main())
