"""Commands: the unions of what can be asked of a group, and of the ops that wait.

Each group type declares its commands and ops in its package (classic/commands.py,
classic/delayed.py).
"""

from coordinator.classic.commands import AssignmentStored, ClassicCommand
from coordinator.classic.delayed import ClassicOp
from coordinator.consumer.commands import ConsumerCommand
from coordinator.consumer.delayed import ConsumerOp

Command = ClassicCommand | ConsumerCommand
"""What one turn of a shard carries out."""

StoredCommand = AssignmentStored
"""A command for when a record is stored; `refused` gives the one that replaces it on a timeout."""

Op = ClassicOp | ConsumerOp
"""What waits in the purgatory and yields a command."""
