"""Command line: the `rollcall` command. No other package imports this one."""
