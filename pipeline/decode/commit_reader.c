/* Commit reader: the usual offset commits of a log, in one pass from bytes to columns.
 *
 * It does what lockstep.py and offset_commits.py do with numpy, for what nearly every log consists
 * of: records without headers, keys of type 1, values of versions 3 and 4. Records that are no
 * commits are passed over, as there. Whatever else it meets (damage, an older value, a tag of a
 * later Kafka) it gives up, and numpy reads the same batches: that is the oracle, and the one that
 * says what is wrong. Every read is checked against the end of what it is in, every write against
 * the room of its column. compiled_commits.py calls it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef const unsigned char *Place;

/* The columns, in the order in which they are given. A text or blob has two buffers. */
enum {
    LOG_OFFSET, LOG_TIMESTAMP, GROUP, GROUP_OCTETS, TOPIC, TOPIC_OCTETS, PARTITION,
    COMMITTED_OFFSET, LEADER_EPOCH, METADATA, METADATA_OCTETS, COMMIT_TIMESTAMP,
    TOPIC_ID, TOPIC_ID_OCTETS, VALUE_VERSION, LIVING, PRODUCER_ID, TRANSACTIONAL, LOG_PARTITION,
    COLUMNS
};

/* Bytes of an element; a text has one end more than it has elements. Zero: bytes of texts. */
static const int WIDTH[COLUMNS] = {8, 8, 4, 0, 4, 0, 4, 8, 4, 4, 0, 8, 4, 0, 2, 1, 8, 1, 4};

enum { NO_KEY_TYPE = 2, KEY_TYPE = 1, TOPIC_ID_BYTES = 16, WIDE = 16 };
enum { LOG_APPEND_TIME = 0x08, TRANSACTIONAL_FLAG = 0x10, CONTROL_FLAG = 0x20 };
enum { RECORD_MIN = 7, HEADER_BYTES = 61 };
enum { AT_ATTRIBUTES = 21, AT_BASE_TIMESTAMP = 27, AT_MAX_TIMESTAMP = 35, AT_PRODUCER_ID = 43,
       AT_COUNT = 57 };

typedef struct {
    Py_buffer views[COLUMNS];
    Py_ssize_t room; /* rows */
    Py_ssize_t rows;
    int64_t first, bound; /* offsets that are wanted: from the one up to the other */
    int64_t last;         /* offset of the last record that was seen */
    Place keys_end, values_end; /* what may be read ends here */
} Output;

/* A record, and what is known of its batch; -1 bytes: null. */
typedef struct {
    Place key, value;
    int64_t key_bytes, value_bytes, offset, timestamp, producer_id;
    int32_t partition;
    int transactional;
} Record;

/* What a value says. */
typedef struct {
    int64_t offset, committed;
    int32_t epoch;
    int16_t version;
    Place metadata, topic_id; /* topic_id: NULL if there is none */
    Py_ssize_t metadata_bytes;
} Value;

static inline uint64_t be(Place at, int octets)
{
    uint64_t number = 0;
    for (int n = 0; n < octets; n++) number = number << 8 | at[n];
    return number;
}

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline int64_t be64(Place at)
{
    uint64_t number;
    memcpy(&number, at, 8);
    return (int64_t)__builtin_bswap64(number);
}
static inline int32_t be32(Place at)
{
    uint32_t number;
    memcpy(&number, at, 4);
    return (int32_t)__builtin_bswap32(number);
}
#else
static inline int64_t be64(Place at) { return (int64_t)be(at, 8); }
static inline int32_t be32(Place at) { return (int32_t)be(at, 4); }
#endif
static inline int16_t be16(Place at) { return (int16_t)(at[0] << 8 | at[1]); }

/* An unsigned LEB128 number of up to five bytes. 0: there is none. */
static inline int unsigned_varint(Place *at, Place end, int64_t *number)
{
    Place p = *at;
    uint64_t found = 0;
    for (int shift = 0; shift < 35 && p < end; shift += 7) {
        unsigned char octet = *p++;
        found |= (uint64_t)(octet & 0x7F) << shift;
        if (octet < 0x80) {
            *at = p;
            *number = (int64_t)found;
            return 1;
        }
    }
    return 0;
}

static inline int varint(Place *at, Place end, int64_t *number)
{
    if (*at < end && **at < 0x80) {
        int first = *(*at)++;
        *number = (first >> 1) ^ -(first & 1);
        return 1;
    }
    int64_t found;
    if (!unsigned_varint(at, end, &found)) return 0;
    *number = (found >> 1) ^ -(found & 1);
    return 1;
}

/* A length, and so many bytes; -1: null. */
static inline int take_blob(Place *at, Place end, Place *blob, int64_t *octets)
{
    if (!varint(at, end, octets) || *octets < -1 || *octets > end - *at) return 0;
    *blob = *at;
    *at += *octets < 0 ? 0 : *octets;
    return 1;
}

#define COLUMN(type, name) ((type *)out->views[name].buf)
#define PUT(type, name, value) \
    do { if (out->views[name].buf != NULL) COLUMN(type, name)[row] = (value); } while (0)

/* One more text. 0: the column has no room. */
static inline int put_text(Output *out, int column, Py_ssize_t row, Place at, Py_ssize_t octets,
                           Place limit)
{
    int32_t *ends = COLUMN(int32_t, column);
    if (ends == NULL) return 1;
    Py_buffer *into = &out->views[column + 1];
    Py_ssize_t begin = ends[row];
    ends[row + 1] = (int32_t)(begin + octets);
    if (octets == 0) return 1;
    if (octets > into->len - begin) return 0;
    if (octets <= WIDE && begin + WIDE <= into->len && limit - at >= WIDE)
        memcpy((char *)into->buf + begin, at, WIDE); /* what is too much is written over */
    else
        memcpy((char *)into->buf + begin, at, octets);
    return 1;
}

/* Versions 3 and 4 of OffsetCommitValue. 0: it is something else. */
static inline int read_value(Place at, Place end, Value *value)
{
    if (end - at < 16) return 0;
    value->version = be16(at);
    value->offset = be64(at + 2);
    value->epoch = be32(at + 10);
    value->topic_id = NULL;
    int64_t octets;
    if (value->version == 3) {
        octets = be16(at + 14);
        at += 16;
    } else if (value->version == 4) {
        at += 14;
        if (!unsigned_varint(&at, end, &octets)) return 0;
        octets--; /* zero is null */
    } else
        return 0;
    if (octets < 0 || octets > end - at - 8) return 0;
    value->metadata = at;
    value->metadata_bytes = octets;
    at += octets;
    value->committed = be64(at);
    at += 8;
    if (value->version == 3) return at == end;
    if (end - at == 1) return *at == 0; /* no tags */
    if (end - at != 3 + TOPIC_ID_BYTES || at[0] != 1 || at[1] != 0 || at[2] != TOPIC_ID_BYTES)
        return 0;
    value->topic_id = at + 3;
    return 1;
}

/* A record that may be a commit, as a row. 0: it is left to the oracle. */
static inline int put_record(Output *out, const Record *record)
{
    Place key = record->key;
    if (record->key_bytes < 2) return 1;
    int type = be16(key);
    if (type == 0) return 0; /* a commit of an old kind */
    if (type != KEY_TYPE || record->offset < out->first || record->offset >= out->bound) return 1;
    if (record->key_bytes < 10) return 0;
    Place key_end = key + record->key_bytes;
    Py_ssize_t group_bytes = be16(key + 2);
    Place group = key + 4;
    if (group_bytes < 0 || group_bytes > key_end - group - 6) return 0;
    Place topic = group + group_bytes + 2;
    Py_ssize_t topic_bytes = be16(topic - 2);
    if (topic_bytes < 0 || topic_bytes != key_end - topic - 4) return 0;
    int living = record->value_bytes >= 0;
    Value value = {0, 0, -1, 0, NULL, NULL, 0}; /* of a tombstone */
    if (living && !read_value(record->value, record->value + record->value_bytes, &value)) return 0;
    Py_ssize_t row = out->rows;
    if (row >= out->room) return 0;
    out->rows++;
    PUT(int32_t, LOG_PARTITION, record->partition);
    PUT(int64_t, LOG_OFFSET, record->offset);
    PUT(int64_t, LOG_TIMESTAMP, record->timestamp);
    PUT(int32_t, PARTITION, be32(key_end - 4));
    PUT(int64_t, COMMITTED_OFFSET, value.offset);
    PUT(int32_t, LEADER_EPOCH, value.epoch);
    PUT(int64_t, COMMIT_TIMESTAMP, value.committed);
    PUT(int16_t, VALUE_VERSION, value.version);
    PUT(uint8_t, LIVING, (uint8_t)living);
    PUT(int64_t, PRODUCER_ID, record->producer_id);
    PUT(uint8_t, TRANSACTIONAL, (uint8_t)record->transactional);
    return put_text(out, GROUP, row, group, group_bytes, out->keys_end) &&
           put_text(out, TOPIC, row, topic, topic_bytes, out->keys_end) &&
           put_text(out, METADATA, row, value.metadata, value.metadata_bytes, out->values_end) &&
           put_text(out, TOPIC_ID, row, value.topic_id, value.topic_id == NULL ? 0 : TOPIC_ID_BYTES,
                    out->values_end);
}

/* The records of a batch, which stand between `at` and `end`. 0: something is not as usual. */
static int read_batch(Output *out, int32_t partition, Place header, Place at, Place end)
{
    int64_t base_offset = be64(header), base_timestamp = be64(header + AT_BASE_TIMESTAMP);
    int64_t max_timestamp = be64(header + AT_MAX_TIMESTAMP), count = be32(header + AT_COUNT);
    int attributes = be16(header + AT_ATTRIBUTES);
    int stamped = attributes & LOG_APPEND_TIME, control = attributes & CONTROL_FLAG;
    Record record = {.producer_id = be64(header + AT_PRODUCER_ID), .partition = partition,
                     .transactional = attributes & TRANSACTIONAL_FLAG ? 1 : 0};
    if (count < 0 || count > (end - at) / RECORD_MIN) return 0;
    for (int64_t n = 0; n < count; n++) {
        int64_t size, timestamp, offset;
        if (!varint(&at, end, &size) || size < 1 || size > end - at) return 0;
        Place stop = at + size;
        at++; /* attributes, of which none is defined */
        if (!varint(&at, stop, &timestamp) || !varint(&at, stop, &offset)) return 0;
        if (!take_blob(&at, stop, &record.key, &record.key_bytes)) return 0;
        if (!take_blob(&at, stop, &record.value, &record.value_bytes)) return 0;
        if (stop - at != 1 || *at != 0) return 0; /* no headers */
        at = stop;
        out->last = record.offset = base_offset + offset;
        record.timestamp = stamped ? max_timestamp : base_timestamp + timestamp;
        if (!control && !put_record(out, &record)) return 0;
    }
    return at == end;
}

static void release(Output *out)
{
    for (int n = 0; n < COLUMNS; n++)
        if (out->views[n].obj != NULL) PyBuffer_Release(&out->views[n]);
}

/* Take the columns. 0, and an exception: one is not what it must be. */
static int take_columns(Output *out, PyObject *columns)
{
    memset(out->views, 0, sizeof out->views);
    if (!PyTuple_Check(columns) || PyTuple_GET_SIZE(columns) != COLUMNS) {
        PyErr_Format(PyExc_TypeError, "a tuple of %d columns is needed", COLUMNS);
        return 0;
    }
    for (int n = 0; n < COLUMNS; n++) {
        PyObject *column = PyTuple_GET_ITEM(columns, n);
        if (column == Py_None) continue;
        if (PyObject_GetBuffer(column, &out->views[n], PyBUF_WRITABLE) < 0) {
            release(out);
            return 0;
        }
        int has_octets = WIDTH[n] == 4 && n + 1 < COLUMNS && WIDTH[n + 1] == 0;
        if (out->views[n].len < (out->room + has_octets) * WIDTH[n]) {
            PyErr_Format(PyExc_ValueError, "column %d has no room for %zd rows", n, out->room);
            release(out);
            return 0;
        }
        if (has_octets) *(int32_t *)out->views[n].buf = 0;
    }
    for (int n = 0; n + 1 < COLUMNS; n++)
        if (WIDTH[n + 1] == 0 && (out->views[n].obj == NULL) != (out->views[n + 1].obj == NULL)) {
            PyErr_Format(PyExc_ValueError, "column %d has ends without bytes, or none", n);
            release(out);
            return 0;
        }
    return 1;
}

enum { VIEWS = 9 };

static void release_views(Py_buffer *views)
{
    for (int n = 0; n < VIEWS; n++)
        if (views[n].obj != NULL) PyBuffer_Release(&views[n]);
}

/* Whether all arrays from the one to the other have as many numbers. */
static int are_even(const Py_buffer *views, int from, int to)
{
    for (int n = from; n < to; n++)
        if (views[n].len != views[from].len || views[n].len % 8) return 0;
    return 1;
}

static PyObject *answer(Output *out, int usual)
{
    release(out);
    if (usual) return Py_BuildValue("nL", out->rows, (long long)out->last);
    Py_RETURN_NONE;
}

static PyObject *read_batches(PyObject *self, PyObject *arguments)
{
    Py_buffer views[VIEWS] = {{0}}; /* octets, positions, begins, ends */
    PyObject *columns, *result = NULL;
    long long first, bound;
    int partition;
    Output out = {.last = -1};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*iLLnO", &views[0], &views[1], &views[2], &views[3],
                          &partition, &first, &bound, &out.room, &columns))
        return NULL;
    out.first = first;
    out.bound = bound;
    Place octets = views[0].buf;
    Py_ssize_t size = views[0].len, count = views[1].len / 8;
    out.keys_end = out.values_end = octets + size;
    if (!are_even(views, 1, 4) || size > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "arrays of different lengths, or too many bytes");
    } else if (take_columns(&out, columns)) {
        const int64_t *position = views[1].buf, *begin = views[2].buf, *end = views[3].buf;
        int usual = 1;
        for (Py_ssize_t n = 0; usual && n < count; n++)
            usual = position[n] >= 0 && position[n] <= size - HEADER_BYTES && begin[n] >= 0 &&
                    begin[n] <= end[n] && end[n] <= size &&
                    read_batch(&out, partition, octets + position[n], octets + begin[n],
                               octets + end[n]);
        result = answer(&out, usual);
    }
    release_views(views);
    return result;
}

/* Where the number says, and how long it is; -1: null. 0: it is not within these bytes. */
static int find_blob(const Py_buffer *within, int64_t at, int64_t octets, Place *blob,
                     int64_t *blob_bytes)
{
    *blob = within->buf;
    *blob_bytes = -1;
    if (octets < 0) return 1;
    if (at < 0 || octets > within->len || at > within->len - octets) return 0;
    *blob += at;
    *blob_bytes = octets;
    return 1;
}

static PyObject *read_records(PyObject *self, PyObject *arguments)
{
    /* keys, where, sizes; values, where, sizes; partitions, offsets, timestamps */
    Py_buffer views[VIEWS] = {{0}};
    PyObject *columns, *result = NULL;
    Output out = {.last = -1, .first = INT64_MIN, .bound = INT64_MAX};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*y*y*y*nO", &views[0], &views[1], &views[2],
                          &views[3], &views[4], &views[5], &views[6], &views[7], &views[8],
                          &out.room, &columns))
        return NULL;
    out.keys_end = (Place)views[0].buf + views[0].len;
    out.values_end = (Place)views[3].buf + views[3].len;
    if (!are_even(views, 1, 3) || !are_even(views, 4, 9) || views[1].len != views[4].len ||
        views[0].len > INT32_MAX || views[3].len > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "arrays of different lengths, or too many bytes");
    } else if (take_columns(&out, columns)) {
        const int64_t *key_at = views[1].buf, *key_bytes = views[2].buf;
        const int64_t *value_at = views[4].buf, *value_bytes = views[5].buf;
        const int64_t *partition = views[6].buf, *offset = views[7].buf, *timestamp = views[8].buf;
        int usual = 1;
        for (Py_ssize_t n = 0; usual && n < views[1].len / 8; n++) {
            Record record = {.offset = offset[n], .timestamp = timestamp[n], .producer_id = -1,
                             .partition = (int32_t)partition[n]};
            usual = find_blob(&views[0], key_at[n], key_bytes[n], &record.key, &record.key_bytes) &&
                    find_blob(&views[3], value_at[n], value_bytes[n], &record.value,
                              &record.value_bytes) &&
                    put_record(&out, &record);
            out.last = offset[n];
        }
        result = answer(&out, usual);
    }
    release_views(views);
    return result;
}

static PyMethodDef methods[] = {
    {"read_batches", read_batches, METH_VARARGS,
     "read_batches(octets, positions, begins, ends, partition, first, bound, room, columns): "
     "(rows, offset of the last record), or None if something is not as usual"},
    {"read_records", read_records, METH_VARARGS,
     "read_records(keys, where, sizes, values, where, sizes, partitions, offsets, timestamps, "
     "room, columns): the same of records without batches"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rollcall_commit_reader", NULL, -1, methods,
};

PyMODINIT_FUNC PyInit_rollcall_commit_reader(void) { return PyModule_Create(&definition); }
