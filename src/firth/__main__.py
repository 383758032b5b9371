"""`python -m firth` is the command `firth`."""

from firth.cli.main import main

main()
