# The committed offsets of a topic, by partition: a dict in the sources, and here rows without an object
# for each offset. coordinator/offsets/committed_offsets.py says which of them a build has.

from collections.abc import ItemsView, Mapping, MutableMapping, ValuesView

from cpython.dict cimport PyDict_Next

cdef extern from *:
    """
    static inline PyObject *new_struct(PyObject *cls)
    { return ((PyTypeObject *)cls)->tp_alloc((PyTypeObject *)cls, 0); }
    """
    object new_struct(object)
    void incref "Py_INCREF"(PyObject*) noexcept
    void decref "Py_DECREF"(PyObject*) noexcept

cdef enum:
    COMMIT_FIELDS = 6
    ROWS_FOR_AN_INDEX = 9  # fewer are searched one by one

cdef object CommittedOffset = None
cdef Py_ssize_t at_offset, at_epoch, at_metadata, at_committed_ms, at_expire_ms, at_topic_id


cdef use_committed_offset():
    """Its module uses the codec: imported on first use."""
    global CommittedOffset, at_offset, at_epoch, at_metadata, at_committed_ms, at_expire_ms, at_topic_id
    found = _import("coordinator.group", "CommittedOffset")
    if len(found.__struct_fields__) != COMMIT_FIELDS: raise ImportError("other fields")
    at_offset = _offset_of(found, "committed_offset")
    at_epoch = _offset_of(found, "leader_epoch")
    at_metadata = _offset_of(found, "metadata")
    at_committed_ms = _offset_of(found, "committed_at_ms")
    at_expire_ms = _offset_of(found, "expire_at_ms")
    at_topic_id = _offset_of(found, "topic_id")
    CommittedOffset = found


cdef struct CommitRow:
    long long offset
    long long committed_ms
    long long expire_ms
    PyObject* metadata  # NULL: there is no commit
    PyObject* topic_id
    int partition
    int epoch


cdef inline void set_field(object struct, Py_ssize_t at, object value) noexcept:
    """Of a struct that was just made: it has none yet."""
    Py_INCREF(value)
    (<PyObject**>(<char*><PyObject*>struct + at))[0] = <PyObject*>value


cdef object commit_of(CommitRow* row):
    """CommittedOffset(...), whose fields are where their descriptors say."""
    if CommittedOffset is None: use_committed_offset()  # the rows may be those of a load
    commit = new_struct(CommittedOffset)
    set_field(commit, at_offset, row.offset)
    set_field(commit, at_epoch, row.epoch)
    set_field(commit, at_metadata, <object>row.metadata)
    set_field(commit, at_committed_ms, row.committed_ms)
    set_field(commit, at_expire_ms, row.expire_ms)
    set_field(commit, at_topic_id, <object>row.topic_id)
    return commit


cdef int row_of(CommitRow* row, object partition, object commit) except -1:
    """The opposite; the row owns nothing yet."""
    if CommittedOffset is None: use_committed_offset()
    if type(commit) is not CommittedOffset: raise TypeError("no CommittedOffset")
    metadata, topic_id = field(commit, at_metadata), field(commit, at_topic_id)
    if type(metadata) is not str: raise TypeError("metadata is no str")
    row.offset = whole(field(commit, at_offset))
    row.committed_ms = whole(field(commit, at_committed_ms))
    row.expire_ms = whole(field(commit, at_expire_ms))
    row.metadata = <PyObject*>metadata  # the commit holds both
    row.topic_id = <PyObject*>topic_id
    row.partition = int32_of(partition)
    row.epoch = int32_of(field(commit, at_epoch))
    return 0


cdef inline int int32_of(object value) except? -1:
    cdef long long number = whole(value)
    if not -0x80000000LL <= number <= 0x7FFFFFFF: raise OverflowError(number)
    return <int>number


cdef inline void hold(CommitRow* row) noexcept:
    incref(row.metadata)
    incref(row.topic_id)


cdef inline void release(CommitRow* row) noexcept:
    """It has no commit any more; one that has none may be released."""
    if row.metadata == NULL: return
    metadata, row.metadata = row.metadata, NULL
    decref(metadata)
    decref(row.topic_id)


cdef bint as_int32(object key, int* found) except -1:
    """Whether the key is one; any other is in no table of partitions."""
    if not isinstance(key, int): return False
    try:
        found[0] = key
    except OverflowError:
        return False
    return True


cdef class CommitRows:
    """What the class below has in C."""

    cdef CommitRow* rows  # in the order in which the partitions were added
    cdef int* index       # places in `rows` + 1 by the hash of the partition; 0 is free
    cdef int used         # rows, with those whose commit was removed
    cdef int live
    cdef int room
    cdef int index_mask
    cdef bint is_ascending  # then partitions are found without an index

    def __cinit__(self, content=None):
        self.is_ascending = True
        if content is not None: self.update(content)

    def __dealloc__(self):
        cdef int k
        for k in range(self.used): release(&self.rows[k])
        PyMem_Free(self.rows)
        PyMem_Free(self.index)

    # ------------------------------------------------------------ rows

    cdef int place_of(self, int partition) except -2:
        """In `rows`; -1: there is no commit."""
        cdef CommitRow* rows = self.rows
        cdef int low = 0, high = self.used, middle
        if 0 <= partition < high and rows[partition].partition == partition:
            if rows[partition].metadata != NULL: return partition
        if self.is_ascending:
            if not high or partition > rows[high - 1].partition: return -1
            while low < high:
                middle = low + ((high - low) >> 1)
                if rows[middle].partition < partition: low = middle + 1
                else: high = middle
            if rows[low].partition != partition or rows[low].metadata == NULL: return -1
            return low
        if high < ROWS_FOR_AN_INDEX:
            for low in range(high):
                if rows[low].partition == partition and rows[low].metadata != NULL: return low
            return -1
        if self.index == NULL: self.make_index()
        cdef unsigned int slot = slot_of(partition) & self.index_mask
        while self.index[slot]:
            middle = self.index[slot] - 1
            if rows[middle].partition == partition and rows[middle].metadata != NULL: return middle
            slot = (slot + 1) & self.index_mask
        return -1

    cdef int make_index(self) except -1:
        """With twice as many slots as there is room for rows: it is made again when that grows."""
        cdef int slots = 16, k
        while slots < 2 * self.room: slots *= 2
        cdef int* index = <int*>PyMem_Malloc(slots * sizeof(int))
        if index == NULL: raise MemoryError
        memset(index, 0, slots * sizeof(int))
        self.index, self.index_mask = index, slots - 1
        for k in range(self.used): self.add_to_index(k)
        return 0

    cdef void add_to_index(self, int place) noexcept:
        cdef unsigned int slot = slot_of(self.rows[place].partition) & self.index_mask
        while self.index[slot]: slot = (slot + 1) & self.index_mask
        self.index[slot] = place + 1

    cdef void forget_index(self) noexcept:
        PyMem_Free(self.index)
        self.index = NULL

    cdef int reserve(self, Py_ssize_t room) except -1:
        if room > 0x10000000: raise MemoryError
        rows = <CommitRow*>PyMem_Realloc(self.rows, room * sizeof(CommitRow))
        if rows == NULL: raise MemoryError
        self.rows, self.room = rows, <int>room
        self.forget_index()
        return 0

    cdef int put(self, CommitRow* row) except -1:
        """Set the commit of the row's partition."""
        cdef int place = self.place_of(row.partition)
        cdef CommitRow before
        if place >= 0:
            before = self.rows[place]
            hold(row)
            self.rows[place] = row[0]
            release(&before)
            return 0
        if self.used == self.room: self.reserve(self.room + (self.room >> 2) + 1)
        if self.used and row.partition <= self.rows[self.used - 1].partition:
            self.is_ascending = False
        hold(row)
        self.rows[self.used] = row[0]
        self.used += 1
        self.live += 1
        if self.index != NULL: self.add_to_index(self.used - 1)
        return 0

    cdef int remove(self, int place) except -1:
        self.live -= 1
        release(&self.rows[place])
        if 2 * self.live < self.used: self.compact()
        return 0

    cdef int compact(self) except -1:
        """Without the rows that have no commit any more."""
        cdef int k, kept = 0
        self.is_ascending = True
        for k in range(self.used):
            if self.rows[k].metadata == NULL: continue
            self.rows[kept] = self.rows[k]
            if kept and self.rows[kept].partition <= self.rows[kept - 1].partition:
                self.is_ascending = False
            kept += 1
        self.used = kept
        self.forget_index()
        return self.reserve(max(kept, 1))

    # ------------------------------------------------------------ as a dict

    def __len__(self):
        return self.live

    def __contains__(self, key):
        cdef int partition
        return as_int32(key, &partition) and self.place_of(partition) >= 0

    def __getitem__(self, key):
        found = self.get(key)
        if found is None: raise KeyError(key)
        return found

    def get(self, key, default=None):
        cdef int partition, place
        if not as_int32(key, &partition): return default
        place = self.place_of(partition)
        return default if place < 0 else commit_of(&self.rows[place])

    def __setitem__(self, key, commit):
        cdef CommitRow row
        row_of(&row, key, commit)
        self.put(&row)

    def __delitem__(self, key):
        cdef int partition, place = -1
        if as_int32(key, &partition): place = self.place_of(partition)
        if place < 0: raise KeyError(key)
        self.remove(place)

    def __iter__(self):
        return RowIterator(self, OF_KEYS)

    def items(self):
        return RowItems(self)

    def values(self):
        return RowValues(self)

    def update(self, content):
        """With what a mapping has, or pairs of a partition and a commit."""
        cdef CommitRow row
        cdef Py_ssize_t at = 0
        cdef PyObject* key
        cdef PyObject* commit
        cdef CommitRows other
        cdef int k
        if isinstance(content, CommitRows):
            other = content
            if other is self: return
            if not self.used and other.live: self.reserve(other.live)
            for k in range(other.used):
                if other.rows[k].metadata != NULL: self.put(&other.rows[k])
        elif type(content) is dict:
            if not self.used and content: self.reserve(len(<dict>content))
            while PyDict_Next(content, &at, &key, &commit):
                row_of(&row, <object>key, <object>commit)
                self.put(&row)
        else:
            for key_of, commit_of_key in content.items() if isinstance(content, Mapping) else content:
                self[key_of] = commit_of_key

    def __eq__(self, other):
        if not isinstance(other, Mapping): return NotImplemented
        return dict(self.items()) == dict(other.items())

    def __repr__(self):
        return repr(dict(self.items()))

    def __reduce__(self):
        return type(self), (dict(self.items()),)


cdef inline unsigned int slot_of(int partition) noexcept:
    cdef unsigned int mixed = <unsigned int>partition * 0x9E3779B1U
    return mixed ^ (mixed >> 15)


cdef enum:
    OF_KEYS
    OF_VALUES
    OF_ITEMS


cdef class RowIterator:
    cdef CommitRows rows
    cdef int kind
    cdef int at
    cdef int live

    def __cinit__(self, CommitRows rows, int kind):
        self.rows, self.kind, self.at, self.live = rows, kind, 0, rows.live

    def __iter__(self):
        return self

    def __next__(self):
        cdef CommitRow* row
        if self.live != self.rows.live:
            raise RuntimeError("committed offsets changed size during iteration")
        while self.at < self.rows.used:
            row = &self.rows.rows[self.at]
            self.at += 1
            if row.metadata == NULL: continue
            if self.kind == OF_KEYS: return row.partition
            if self.kind == OF_VALUES: return commit_of(row)
            return row.partition, commit_of(row)
        raise StopIteration


class RowItems(ItemsView):
    __slots__ = ()

    def __iter__(self):
        return RowIterator(self._mapping, OF_ITEMS)


class RowValues(ValuesView):
    __slots__ = ()

    def __iter__(self):
        return RowIterator(self._mapping, OF_VALUES)


class CommittedOffsets(CommitRows, MutableMapping):
    """dict[int, CommittedOffset], with 48 bytes for each. An offset is what a commit says: numbers of
    64 bits; partitions and epochs of 32."""

    __slots__ = ()
    __hash__ = None


cdef class FoundCommits:
    """A sequence of CommittedOffset | None: what some partitions had when they were looked up."""

    cdef CommitRow* rows
    cdef Py_ssize_t count

    def __dealloc__(self):
        cdef Py_ssize_t k
        for k in range(self.count): release(&self.rows[k])
        PyMem_Free(self.rows)

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t place):
        if place < 0: place += self.count
        if not 0 <= place < self.count: raise IndexError(place)
        cdef CommitRow* row = &self.rows[place]
        return None if row.metadata == NULL else commit_of(row)


cdef object found_commits(CommitRows committed, tuple indexes):
    cdef Py_ssize_t k, count = len(indexes)
    cdef FoundCommits found = FoundCommits.__new__(FoundCommits)
    cdef int partition, place
    if not count: return found
    found.rows = <CommitRow*>PyMem_Malloc(count * sizeof(CommitRow))
    if found.rows == NULL: raise MemoryError
    for k in range(count):
        place = committed.place_of(partition) if as_int32(indexes[k], &partition) else -1
        if place < 0:
            found.rows[k].metadata = NULL
        else:
            found.rows[k] = committed.rows[place]
            hold(&found.rows[k])
        found.count = k + 1
    return found
