# Reading what a start reads: the sound batches of a piece of a file, the batches of a group of a
# write-ahead file, the commits of a batch, and the offsets of a group in a snapshot.
# storage/batch/batch_walk.py, storage/journal/write_ahead.py, coordinator/stored_commits.py and
# coordinator/offsets/plain_offsets.py do the same, are the oracle, and get whatever is unusual.

from sys import intern

cdef enum:
    LENGTH_AT = 8
    MAGIC_AT = 16
    LAST_DELTA_AT = 23
    BASE_TIMESTAMP_AT = 27
    MAX_TIMESTAMP_AT = 35
    COUNT_AT = 57
    ATTRIBUTES_AT = 21
    KEY_BYTES_MIN = 6  # its type, and a partition
    TOPIC_ID_BYTES = 16
    ROWS_RESERVED_MAX = 64  # a count in a header may lie
    ENTRY_HEAD_BYTES = 9  # of a group of a write-ahead file: its kind, a reference, a length
    BATCH_ENTRY = 2

cdef object StoredCommits = None


cdef use_stored_commits():
    global StoredCommits
    if CommittedOffset is None: use_committed_offset()
    StoredCommits = _import("coordinator.loaded_record", "StoredCommits")


def leading_batches(bytes chunk):
    """The whole batches that the chunk begins with, as far as their checksums hold."""
    cdef const char* p = PyBytes_AS_STRING(chunk)
    cdef Py_ssize_t left = PyBytes_GET_SIZE(chunk), size
    cdef list found = []
    while True:
        size = sound_bytes(p, left)
        if not size: return found
        found.append(PyBytes_FromStringAndSize(p, size))
        p += size
        left -= size


cdef Py_ssize_t sound_bytes(const char* p, Py_ssize_t left) except -1:
    """How many the batch has that begins here; 0 if it is not whole, or its checksum fails."""
    cdef Py_ssize_t size
    if left < BATCH_HEADER_BYTES: return 0
    size = <Py_ssize_t><int>load_32(p + LENGTH_AT) + LOG_OVERHEAD
    if p[MAGIC_AT] != MAGIC or not BATCH_HEADER_BYTES <= size <= left: return 0
    if <int>load_32(p + LAST_DELTA_AT) < 0: return 0
    covered = PyBytes_FromStringAndSize(p + COVERED_AT, size - COVERED_AT)
    return size if <unsigned long long>crc32c(covered) == load_32(p + CRC_AT) else 0


def leading_places(bytes chunk):
    """Of the batches that `leading_batches` finds: size, first and last offset, and greatest
    timestamp."""
    cdef const char* p = PyBytes_AS_STRING(chunk)
    cdef Py_ssize_t left = PyBytes_GET_SIZE(chunk), size
    cdef list found = []
    while True:
        size = sound_bytes(p, left)
        if not size: return found
        base_offset = <long long>load_64(p)
        last_offset = base_offset + <int>load_32(p + LAST_DELTA_AT)
        found.append((size, base_offset, last_offset, <long long>load_64(p + MAX_TIMESTAMP_AT)))
        p += size
        left -= size


def batch_entries(bytes payload):
    """The entries of a group of a write-ahead file: (reference, base offset, what is placed). None
    if one of them is no batch (write_ahead.py)."""
    cdef const char* p = PyBytes_AS_STRING(payload)
    cdef Py_ssize_t left = PyBytes_GET_SIZE(payload), size
    cdef list found = []
    while left:
        if left < ENTRY_HEAD_BYTES or p[0] != BATCH_ENTRY: return None
        reference = <unsigned int>load_32(p + 1)
        size = <Py_ssize_t><unsigned int>load_32(p + 5)
        p += ENTRY_HEAD_BYTES
        left -= ENTRY_HEAD_BYTES
        if not BATCH_HEADER_BYTES <= size <= left: return None
        base_offset = <long long>load_64(p)
        last_offset = base_offset + <int>load_32(p + LAST_DELTA_AT)
        placed = (
            PyBytes_FromStringAndSize(p, size), last_offset, <long long>load_64(p + MAX_TIMESTAMP_AT)
        )
        found.append((reference, base_offset, placed))
        p += size
        left -= size
    return found


cdef inline Py_ssize_t length_of(Cursor* c) noexcept:
    """A length or a delta, zig-zag, in the fewest bytes. A negative one is odd here."""
    cdef Py_ssize_t before = c.pos
    cdef Py_ssize_t value = uvarint(c)
    if value & 1 or (c.pos > before + 1 and c.p[c.pos - 1] == 0): c.odd = True
    return value >> 1


def read_commits(bytes batch):
    """The commits of a plain batch, as StoredCommits; None if it has anything else."""
    try:
        return commits_of(batch)
    except Exception:
        return None


cdef object commits_of(bytes batch):
    cdef Cursor c
    cdef const char* start = PyBytes_AS_STRING(batch)
    cdef const char* prefix = NULL
    cdef const char* id_at = NULL
    cdef Py_ssize_t k, left, end, key_size, value_size, metadata_size, prefix_size = -1
    cdef CommitRow row
    cdef object topic_id = None
    cdef CommitRows commits = None
    cdef list found = []
    if StoredCommits is None: use_stored_commits()
    c.p, c.pos, c.end = <const unsigned char*>start, BATCH_HEADER_BYTES, PyBytes_GET_SIZE(batch)
    c.left, c.odd = 0, False
    if c.end < BATCH_HEADER_BYTES or start[MAGIC_AT] != MAGIC: return None
    if <Py_ssize_t><int>load_32(start + LENGTH_AT) + LOG_OVERHEAD != c.end: return None
    if start[ATTRIBUTES_AT] or start[ATTRIBUTES_AT + 1]: return None
    left = <int>load_32(start + COUNT_AT)
    if left <= 0 or <int>load_32(start + LAST_DELTA_AT) < 0: return None
    timestamp_ms = load_64(start + BASE_TIMESTAMP_AT)
    for k in range(left):
        end = length_of(&c)
        end += c.pos
        if i8(&c) or i8(&c): return None  # attributes, the timestamp's delta
        length_of(&c)  # the offset's delta
        key_size = length_of(&c)
        if c.odd or key_size < KEY_BYTES_MIN or not has(&c, key_size): return None
        key = start + c.pos
        c.pos += key_size
        value_size = length_of(&c)
        if c.odd or end != c.pos + value_size + 1: return None
        if i16(&c) != 4: return None  # the version of the value
        row.offset = i64(&c)
        row.epoch = i32(&c)
        metadata_size = uvarint(&c) - 1
        if metadata_size < 0 or metadata_size > 0x7FFF or not has(&c, metadata_size): return None
        metadata = ""
        if metadata_size:
            metadata = PyUnicode_DecodeUTF8(start + c.pos, metadata_size, "rollcall.java")
        c.pos += metadata_size
        row.committed_ms = i64(&c)
        # One tag, which is the topic id; then no headers.
        if i8(&c) != 1 or i8(&c) or i8(&c) != TOPIC_ID_BYTES: return None
        if not has(&c, TOPIC_ID_BYTES): return None
        if id_at == NULL or memcmp(id_at, start + c.pos, TOPIC_ID_BYTES):
            id_at = start + c.pos
            topic_id = read_uuid(PyBytes_FromStringAndSize(id_at, TOPIC_ID_BYTES))
        c.pos += TOPIC_ID_BYTES
        if i8(&c) or c.odd or c.pos != end: return None
        if prefix_size != key_size - 4 or memcmp(prefix, key, prefix_size):
            if key[0] or key[1] != 1: return None  # the type of the key
            if commits is not None:
                found.append(stored(prefix, prefix_size, commits, timestamp_ms))
            prefix, prefix_size, commits = key, key_size - 4, CommittedOffsets()
            commits.reserve(min(left - k, ROWS_RESERVED_MAX))
        row.partition = <int>load_32(key + prefix_size)
        row.expire_ms = -1
        row.metadata, row.topic_id = <PyObject*>metadata, <PyObject*>topic_id
        commits.put(&row)
    if c.pos != c.end: return None
    found.append(stored(prefix, prefix_size, commits, timestamp_ms))
    return found


cdef object stored(const char* prefix, Py_ssize_t size, CommitRows commits, object timestamp_ms):
    """`prefix` is a key up to its partition."""
    cdef Cursor c
    c.p, c.pos, c.end, c.left, c.odd = <const unsigned char*>prefix, 2, size, 0, False
    group_id, topic = text(&c, False, False), text(&c, False, False)
    if c.odd or c.pos != c.end: raise Odd
    if commits.room > commits.used: commits.reserve(commits.used)
    return StoredCommits(group_id, intern(topic), commits, timestamp_ms)


# The blob of a group in a snapshot: msgpack. Its last field are its offsets, in columns.

cdef enum:
    OFFSET_COLUMNS = 7
    NESTED_MAX = 16


def plain_of_blob(bytes blob):
    """What `plain_of` gave for a group, with its commits by topic in the last place in place of
    their columns. None if anything is unusual."""
    cdef Cursor c
    cdef Py_ssize_t k, count
    c.p, c.pos, c.end = <const unsigned char*>PyBytes_AS_STRING(blob), 0, PyBytes_GET_SIZE(blob)
    c.left, c.odd = 0, False
    try:
        count = packed_array(&c)
        if not count: return None
        plain = [packed(&c, NESTED_MAX) for k in range(count - 1)]
        plain.append(packed_commits(&c))
    except Exception:
        return None
    return None if c.odd or c.pos != c.end else plain


cdef dict packed_commits(Cursor* c):
    cdef Py_ssize_t k
    cdef dict found = {}
    for k in range(packed_array(c)):
        if packed_array(c) != OFFSET_COLUMNS + 1: raise Odd
        topic = packed(c, 0)
        if type(topic) is not str or topic in found: raise Odd
        found[intern(topic)] = packed_columns(c)
    return found


cdef CommitRows packed_columns(Cursor* c):
    """The commits of a topic."""
    cdef Py_ssize_t k, count = packed_array(c)
    cdef CommitRows found = CommittedOffsets()
    cdef list texts, ids
    cdef CommitRow* rows
    if not count: raise Odd
    rows = <CommitRow*>PyMem_Malloc(count * sizeof(CommitRow))
    if rows == NULL: raise MemoryError
    try:
        for k in range(count): rows[k].partition = packed_int32(c)
        if packed_array(c) != count: raise Odd
        for k in range(count): rows[k].offset = packed_int(c)
        if column_of(c, count):
            for k in range(count): rows[k].epoch = packed_int32(c)
        else:
            rows[0].epoch = packed_int32(c)
            for k in range(1, count): rows[k].epoch = rows[0].epoch
        texts = [packed(c, 0) for k in range(count if column_of(c, count) else 1)]
        if column_of(c, count):
            for k in range(count): rows[k].committed_ms = packed_int(c)
        else:
            rows[0].committed_ms = packed_int(c)
            for k in range(1, count): rows[k].committed_ms = rows[0].committed_ms
        if column_of(c, count):
            for k in range(count): rows[k].expire_ms = packed_int(c)
        else:
            rows[0].expire_ms = packed_int(c)
            for k in range(1, count): rows[k].expire_ms = rows[0].expire_ms
        ids = [read_uuid(packed(c, 0)) for k in range(count if column_of(c, count) else 1)]
        for text_of in texts:
            if type(text_of) is not str: raise Odd
        if c.odd: raise Odd
        found.reserve(count)
        for k in range(count):
            text_of, topic_id = nth(texts, k), nth(ids, k)
            rows[k].metadata, rows[k].topic_id = <PyObject*>text_of, <PyObject*>topic_id
            found.put(&rows[k])
    finally:
        PyMem_Free(rows)
    return found


cdef inline bint column_of(Cursor* c, Py_ssize_t count) except -1:
    """Whether the column that begins here has a value for each row; if not, one stands for all."""
    cdef Py_ssize_t values = packed_array(c)
    if values == count: return True
    if values != 1: raise Odd
    return False


cdef inline object nth(list column, Py_ssize_t k):
    return column[k] if len(column) > 1 else column[0]


cdef object packed(Cursor* c, int nested_max):
    """The value that begins here, as msgpack reads it."""
    cdef int kind = <unsigned char>i8(c)
    cdef Py_ssize_t size, k
    if kind == 0xC0: return None
    if kind == 0xC2: return False
    if kind == 0xC3: return True
    if 0xA0 <= kind <= 0xBF or 0xD9 <= kind <= 0xDB:
        size = kind & 0x1F if kind <= 0xBF else packed_size(c, kind - 0xD9)
        if not has(c, size): raise Odd
        c.pos += size
        return PyUnicode_DecodeUTF8(<const char*>c.p + c.pos - size, size, NULL)
    if 0xC4 <= kind <= 0xC6:
        size = packed_size(c, kind - 0xC4)
        if not has(c, size): raise Odd
        c.pos += size
        return PyBytes_FromStringAndSize(<const char*>c.p + c.pos - size, size)
    c.pos -= 1
    if 0x90 <= kind <= 0x9F or 0xDC <= kind <= 0xDD:
        if not nested_max: raise Odd
        return [packed(c, nested_max - 1) for k in range(packed_array(c))]
    return packed_int(c)


cdef inline Py_ssize_t packed_size(Cursor* c, int width) noexcept:
    """A length in 1, 2 or 4 bytes, by the width 0, 1 or 2."""
    if width == 0: return <unsigned char>i8(c)
    return u16(c) if width == 1 else <unsigned int>i32(c)


cdef Py_ssize_t packed_array(Cursor* c) except -1:
    """How many values the array has that begins here. Each has a byte at least."""
    cdef int kind = <unsigned char>i8(c)
    cdef Py_ssize_t count
    if 0x90 <= kind <= 0x9F: count = kind & 0x0F
    elif kind == 0xDC: count = u16(c)
    elif kind == 0xDD: count = <unsigned int>i32(c)
    else: raise Odd
    if c.odd or not has(c, count): raise Odd
    return count


cdef long long packed_int(Cursor* c) except? -2:
    cdef int kind = <unsigned char>i8(c)
    cdef long long number
    if kind <= 0x7F: return kind
    if kind >= 0xE0: return kind - 0x100
    if kind == 0xCC: return <unsigned char>i8(c)
    if kind == 0xCD: return u16(c)
    if kind == 0xCE: return <unsigned int>i32(c)
    if kind == 0xCF:
        number = i64(c)
        if number < 0: raise Odd
        return number
    if kind == 0xD0: return i8(c)
    if kind == 0xD1: return i16(c)
    if kind == 0xD2: return i32(c)
    if kind == 0xD3: return i64(c)
    raise Odd


cdef inline int packed_int32(Cursor* c) except? -2:
    cdef long long number = packed_int(c)
    if not -0x80000000LL <= number <= 0x7FFFFFFF: raise OverflowError(number)
    return <int>number
