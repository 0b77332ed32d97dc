# Accepting the partitions of an OffsetCommit: what coordinator/offsets/offset_commit.py does for the usual
# case, without an object for each. Its accept_in_python is the oracle, and gets whatever is unusual.

cdef object CommitPartition = _import("protocol.messages.offset_commit", "OffsetCommitRequestPartition")
cdef Py_ssize_t at_commit_index = _offset_of(CommitPartition, "partition_index")
cdef Py_ssize_t at_commit_offset = _offset_of(CommitPartition, "committed_offset")
cdef Py_ssize_t at_commit_epoch = _offset_of(CommitPartition, "committed_leader_epoch")
cdef Py_ssize_t at_commit_metadata = _offset_of(CommitPartition, "committed_metadata")

cdef enum:
    STRING_BYTES_MAX = 0x7FFF


def are_there(partitions, long long count):
    """Whether a topic of so many partitions has all of these; None if any is not of the usual kind."""
    if type(partitions) is not tuple and type(partitions) is not list: return None
    try:
        for partition in partitions:
            if type(partition) is not CommitPartition: return None
            if not 0 <= whole(field(partition, at_commit_index)) < count: return False
    except (Odd, OverflowError):
        return None
    return True


def accept_commits(partitions, tuple stored, Py_ssize_t metadata_max, long long committed_ms,
                   long long expire_ms, topic_id):
    """The answers, all of `stored`, and the offsets to keep; None if any is not of the usual kind."""
    cdef CommitRows commits
    cdef CommitRow row
    cdef Py_ssize_t k, length, count = len(partitions), answers_kept = len(stored)
    cdef list answers
    if type(partitions) is not tuple and type(partitions) is not list: return None
    commits = CommittedOffsets()
    commits.reserve(count)
    answers = []
    row.committed_ms, row.expire_ms, row.topic_id = committed_ms, expire_ms, <PyObject*>topic_id
    try:
        for partition in partitions:
            if type(partition) is not CommitPartition: return None
            row.partition = int32_of(field(partition, at_commit_index))
            if not 0 <= row.partition < answers_kept: return None
            metadata = field(partition, at_commit_metadata)
            if metadata is None: metadata = ""
            if type(metadata) is not str or not PyUnicode_IS_ASCII(metadata): return None
            length = PyUnicode_GET_LENGTH(metadata)
            if length > metadata_max or length > STRING_BYTES_MAX: return None
            row.offset = whole(field(partition, at_commit_offset))
            row.epoch = int32_of(field(partition, at_commit_epoch))
            row.metadata = <PyObject*>metadata
            commits.put(&row)
            answers.append(stored[row.partition])
    except (Odd, OverflowError):
        return None
    return answers, commits
