"""Repair: cuts damaged logs where they are sound, and atomic appends offline."""
