"""The `rollcall` command: what a person types. Nothing in the house imports this."""
