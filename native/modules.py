"""Module list: what the compiled build compiles with mypyc, and why these.

Whatever runs for each heartbeat, commit or fetch of offsets, from the socket to the journal and
back, and what a load runs for each record. Modules that declare msgspec Structs stay sources: mypyc
drops the keywords of a class (`frozen`, `eq`, `gc`) and the annotations that declare messages.
Constants of a compiled enumeration (protocol.names) are read without a look-up, 0.1 µs each. The
base of a compiled class is compiled too, if it has fields. What takes apart values that msgpack or
JSON made stays a source: a compiled function wants a tuple where its types say so.

What holds files that several threads use stays a source, too. The last reference closes a file, and
other threads run meanwhile. mypyc frees the old value of a field before it stores the new one, so
they would find the file that is being closed, or free it again; and it hands a generator out again
before it has cleared it, so what they read would end early, without an error.

So does what goes through much in a thread: assignors, their input and their records, entries of
indexes, records of a batch that somebody looks for. A compiled loop lets no other thread run,
however long it takes, except where the garbage collector calls back for many new objects; one that
is interpreted gives way after some 5 ms (`sys.getswitchinterval`).
"""

from typing import Final

COMPILED: Final = tuple(
    """
    broker.history_log.writer
    broker.lag.commit_rates
    broker.loop.clock
    broker.loop.journal_bridge
    broker.loop.soon
    broker.loop.ticker
    broker.net.connection
    broker.net.connection_slots
    broker.net.error_codes
    broker.net.quotas
    broker.net.request
    broker.net.route
    broker.net.server
    broker.observe.counters
    broker.observe.observer
    broker.observe.stats
    console.member_steps
    coordinator.classic.apply
    coordinator.classic.decide.assignment_stored
    coordinator.classic.decide.begin_rebalance
    coordinator.classic.decide.checks
    coordinator.classic.decide.complete_join
    coordinator.classic.decide.end_sync_phase
    coordinator.classic.decide.expire_session
    coordinator.classic.decide.heartbeat
    coordinator.classic.decide.join_answers
    coordinator.classic.decide.join_group
    coordinator.classic.decide.join_request
    coordinator.classic.decide.lapsed_members
    coordinator.classic.decide.leave_group
    coordinator.classic.decide.protocol_choice
    coordinator.classic.decide.sessions
    coordinator.classic.decide.static_members
    coordinator.classic.decide.stored_members
    coordinator.classic.decide.sync_group
    coordinator.classic.decisions
    coordinator.classic.evolve
    coordinator.classic.generation_record
    coordinator.classic.generations
    coordinator.classic.group
    coordinator.classic.subscriptions
    coordinator.classic.transitions
    coordinator.combined_answer
    coordinator.commands
    coordinator.consumer.apply
    coordinator.consumer.assignment_job
    coordinator.consumer.assignors.balancer
    coordinator.consumer.assignors.uniform
    coordinator.consumer.decide.advance
    coordinator.consumer.decide.assignment_input
    coordinator.consumer.decide.bump_epoch
    coordinator.consumer.decide.expire_member
    coordinator.consumer.decide.find_member
    coordinator.consumer.decide.heartbeat
    coordinator.consumer.decide.leave_group
    coordinator.consumer.decide.refusal
    coordinator.consumer.decide.remove_members
    coordinator.consumer.decide.resolve_regex
    coordinator.consumer.decide.steady_heartbeat
    coordinator.consumer.decide.subscriptions
    coordinator.consumer.decide.target_assignment
    coordinator.consumer.decide.target_computed
    coordinator.consumer.decide.topics_changed
    coordinator.consumer.decide.update_member
    coordinator.consumer.decide.update_regex
    coordinator.consumer.decide.validate_heartbeat
    coordinator.consumer.decisions
    coordinator.consumer.evolve
    coordinator.consumer.group
    coordinator.consumer.metadata_hash
    coordinator.consumer.records
    coordinator.consumer.regex_cache
    coordinator.consumer.steady_session
    coordinator.consumer.topic_cache
    coordinator.coordinator
    coordinator.decision_context
    coordinator.group_base
    coordinator.group_counts
    coordinator.group_rights
    coordinator.group_store
    coordinator.group_types
    coordinator.history_sink
    coordinator.image
    coordinator.large_assignments
    coordinator.lazy_restore
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
    coordinator.restore
    coordinator.shard
    coordinator.stored_commits
    coordinator.writable
    history.encoding
    history.ownership
    history.recording.assignments
    history.recording.attribution
    history.recording.changed_topics
    history.recording.consumer_direct_entries
    history.recording.consumer_recorder
    history.recording.consumer_state
    history.recording.consumer_turn
    history.recording.consumer_turn_recorder
    history.recording.direct_entries
    history.recording.rebalance_tracker
    history.recording.reconciliation
    history.recording.recorder
    history.recording.released_partitions
    history.recording.target_moves
    history.repeats
    history.story
    history.verdicts.recent_activity
    protocol.codec
    protocol.framing
    protocol.names
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
    storage.journal.flush
    storage.journal.group_commit
    storage.journal.group_writer
    storage.journal.journal
    storage.journal.journaled_log
    storage.journal.posted_flush
    storage.journal.write_ahead
    storage.journal.write_ahead_pair
    storage.log.index
    storage.log.retention
    storage.loop_guard
    storage.reserve
    topics.registry
    """.split()
)

C_EXTENSIONS: Final = {
    "rollcall_commit_reader": "pipeline/decode/commit_reader.c",
    "rollcall_group_writer": "storage/journal/group_writer.c",
}
"""By name, the sources in C of libraries of their own. As with a source in Python: if one has
changed, nothing that was compiled is used."""


def path_of(module: str) -> str:
    """Relative to the repository."""
    return f"{module.replace('.', '/')}.py"
