"""ACLs: what a principal may do to which resource. Pure."""
