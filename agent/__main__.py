"""`python -m agent` is `cellagent`."""

from agent.cli.main import main

main()
