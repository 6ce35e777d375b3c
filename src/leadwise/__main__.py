"""``python -m leadwise`` is ``leadwise``."""

from leadwise.cli import main

main()
