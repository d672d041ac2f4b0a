"""`python -m headwater`."""

from headwater.cli.main import main

main()
