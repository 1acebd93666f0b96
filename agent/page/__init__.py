"""The live page: shows the typed status and the ledger in a browser; has no rules of its own."""
