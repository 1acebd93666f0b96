"""`cellagent provision`: a table of commands, each imported when it is called."""

from agent.cli.main import LazyGroup

command = LazyGroup(
    name="provision",
    help="Bring new kits into service: keys, certificates, registration, proof; and the ledger.",
    epilog="Example: cellagent provision run --all --expect 16",
    table={
        "plan": ("provision.plan", "What would be done to each board, before anything is."),
        "run": ("provision.run", "Do it: many boards at once, each step kept in the ledger."),
        "status": ("provision.status", "What the ledger knows of every board, or of one."),
        "export": ("provision.export", "The ledger as CSV or JSON, for people and for services."),
    },
)
