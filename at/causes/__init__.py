"""Why a modem does not do its work: evidence of its lines, held against a table of causes."""
