"""Event loop: clocks, timers, threads beside it, and the process that it runs in."""
