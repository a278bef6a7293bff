"""`python -m litebert` is the command `litebert`."""

from litebert.cli import main

main()
