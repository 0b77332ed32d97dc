"""Verdicts: what is wrong with a group, with its evidence. Pure detectors."""
