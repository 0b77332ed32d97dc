"""Coordinators' partitions: which are served here, how they load, where their logs are."""
