"""Module list: what the compiled build compiles with mypyc, and why these.

Whatever runs for each heartbeat, commit or fetch of offsets, from the socket to the journal and
back, and what a load runs for each record. Modules that declare msgspec Structs stay sources: mypyc
drops the keywords of a class (`frozen`, `eq`, `gc`) and the annotations that declare messages. The
base of a compiled class is compiled too, if it has fields. What takes apart values that msgpack or
JSON made stays a source: a compiled function wants a tuple where its types say so.
"""

from typing import Final

COMPILED: Final = tuple(
    """
    broker.loop.clock
    broker.loop.journal_bridge
    broker.loop.soon
    broker.net.connection
    broker.net.quotas
    broker.net.request
    broker.net.route
    broker.net.server
    broker.observe.stats
    coordinator.classic.apply
    coordinator.classic.decide.checks
    coordinator.classic.decide.heartbeat
    coordinator.classic.decide.sessions
    coordinator.classic.decisions
    coordinator.classic.evolve
    coordinator.classic.group
    coordinator.combined_answer
    coordinator.commands
    coordinator.consumer.decide.steady_heartbeat
    coordinator.consumer.group
    coordinator.consumer.steady_session
    coordinator.coordinator
    coordinator.decision_context
    coordinator.group_base
    coordinator.group_counts
    coordinator.group_store
    coordinator.group_types
    coordinator.history_sink
    coordinator.locks
    coordinator.many_groups
    coordinator.offset_turns
    coordinator.offsets.evolve
    coordinator.offsets.expiry
    coordinator.offsets.offset_commit
    coordinator.offsets.offset_fetch
    coordinator.pending_answers
    coordinator.records
    coordinator.refusals
    coordinator.shard
    coordinator.writable
    protocol.codec
    protocol.framing
    protocol.primitives
    purgatory.deadlines
    purgatory.op
    purgatory.purgatory
    seams.handler
    seams.java_hash
    seams.next_deadline
    seams.now
    seams.reply_token
    seams.text
    seams.topic_names
    seams.topics_view
    storage.batch.record_batch
    storage.journal.group_commit
    storage.journal.journal
    storage.journal.journaled_log
    storage.journal.write_ahead
    storage.journal.write_ahead_pair
    """.split()
)


def path_of(module: str) -> str:
    """Relative to the repository."""
    return f"{module.replace('.', '/')}.py"
