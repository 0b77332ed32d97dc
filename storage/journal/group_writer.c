/* Group writer: writes and syncs the usual flush in the flusher's thread, without the interpreter.
 *
 * The flusher's thread rests in `wait`. There it also carries out what the event loop posts: write
 * one group to the write-ahead file, sync it, write its batches to their segments, and report by a
 * write to a descriptor that the loop polls. So a flush takes the interpreter lock not once, where
 * a flush in Python takes it after each write and sync, often from the loop, which then waits in
 * turn. group_writer.py says how to use it.
 *
 * `state` belongs to the mutex. Whoever claims it owns the journal's files until the end of the
 * flush: `wait` does not return before that.
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum state { RESTS, CLAIMED, POSTED, WRITTEN };

typedef struct {
    int descriptor;
    const char *content;
    size_t size;
    off_t position;
} Write;

typedef struct {
    PyObject_HEAD
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum state state;
    int is_waiting;       /* the flusher's thread is in `wait` */
    int is_woken;         /* it shall return from there */
    int report;           /* the descriptor that the loop polls */
    PyObject *arguments;  /* of `post`: keeps the bytes until the flush is collected */
    Write *writes;        /* the first one is that of the group */
    Py_ssize_t count;
    int is_synced;
    int failed_at;        /* the write that failed; -1: the sync */
    int error;            /* errno; 0: all is written */
    double seconds;
} GroupWriter;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* All of it, or the errno. A nearly full disk takes a part, then says ENOSPC. */
static int write_all(const Write *write)
{
    size_t done = 0;
    while (done < write->size) {
        ssize_t n = pwrite(write->descriptor, write->content + done, write->size - done,
                           write->position + (off_t)done);
        if (n > 0) done += (size_t)n;
        else if (n == 0) return EIO;
        else if (errno != EINTR) return errno;
    }
    return 0;
}

/* Without the interpreter lock and without the mutex. */
static void flush(GroupWriter *self)
{
    double began = seconds_now();
    self->error = write_all(&self->writes[0]);
    self->failed_at = 0;
    if (!self->error && self->is_synced) {
        int result;
        do result = fdatasync(self->writes[0].descriptor);
        while (result < 0 && errno == EINTR);
        if (result < 0) {
            self->error = errno;
            self->failed_at = -1;
        }
    }
    self->seconds = seconds_now() - began;
    for (Py_ssize_t k = 1; k < self->count && !self->error; k++) {
        self->error = write_all(&self->writes[k]);
        self->failed_at = (int)k;
    }
}

static void report(int descriptor)
{
    const uint64_t one = 1;
    ssize_t n;
    do n = write(descriptor, &one, sizeof one);
    while (n < 0 && errno == EINTR); /* EAGAIN: the loop has yet to read an earlier report */
}

static PyObject *wait(GroupWriter *self, PyObject *arguments)
{
    double timeout;
    int was_woken = 0;
    if (!PyArg_ParseTuple(arguments, "d", &timeout)) return NULL;
    const double end = timeout < 0 ? 0 : seconds_now() + timeout;
    const struct timespec until = {(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->mutex);
    self->is_waiting = 1;
    int is_over = 0;
    for (;;) {
        if (self->state == POSTED) {
            pthread_mutex_unlock(&self->mutex);
            flush(self);
            pthread_mutex_lock(&self->mutex);
            self->state = WRITTEN;
            pthread_mutex_unlock(&self->mutex);
            report(self->report); /* the loop asks for the mutex at once */
            pthread_mutex_lock(&self->mutex);
            continue;
        }
        if (self->state != CLAIMED && self->is_woken) {
            was_woken = 1;
            break;
        }
        if (self->state != CLAIMED && is_over) break;
        if (timeout < 0 || is_over) pthread_cond_wait(&self->changed, &self->mutex);
        else if (pthread_cond_timedwait(&self->changed, &self->mutex, &until) == ETIMEDOUT)
            is_over = 1;
    }
    self->is_waiting = 0;
    self->is_woken = 0;
    pthread_mutex_unlock(&self->mutex);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(was_woken);
}

static PyObject *wake(GroupWriter *self, PyObject *Py_UNUSED(none))
{
    pthread_mutex_lock(&self->mutex);
    self->is_woken = 1;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    Py_RETURN_NONE;
}

static PyObject *forget_wake(GroupWriter *self, PyObject *Py_UNUSED(none))
{
    pthread_mutex_lock(&self->mutex);
    self->is_woken = 0;
    pthread_mutex_unlock(&self->mutex);
    Py_RETURN_NONE;
}

static PyObject *claim(GroupWriter *self, PyObject *Py_UNUSED(none))
{
    pthread_mutex_lock(&self->mutex);
    int may = self->is_waiting && !self->is_woken && self->state == RESTS;
    if (may) self->state = CLAIMED;
    pthread_mutex_unlock(&self->mutex);
    return PyBool_FromLong(may);
}

static PyObject *release(GroupWriter *self, PyObject *Py_UNUSED(none))
{
    pthread_mutex_lock(&self->mutex);
    if (self->state == CLAIMED) {
        self->state = RESTS;
        pthread_cond_signal(&self->changed);
    }
    pthread_mutex_unlock(&self->mutex);
    Py_RETURN_NONE;
}

static PyObject *post(GroupWriter *self, PyObject *arguments)
{
    PyObject *writes;
    int is_synced;
    if (!PyArg_ParseTuple(arguments, "O!p", &PyList_Type, &writes, &is_synced)) return NULL;
    if (self->state != CLAIMED) { /* nobody else changes a claim */
        PyErr_SetString(PyExc_RuntimeError, "post without a claim");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(writes);
    Write *all = PyMem_New(Write, count ? count : 1);
    if (all == NULL) return PyErr_NoMemory();
    PyObject *kept = PyTuple_New(count);
    for (Py_ssize_t k = 0; k < count && kept != NULL; k++) {
        PyObject *content;
        long long position;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(writes, k), "iSL", &all[k].descriptor, &content,
                              &position)) {
            Py_CLEAR(kept);
            break;
        }
        all[k].content = PyBytes_AS_STRING(content);
        all[k].size = (size_t)PyBytes_GET_SIZE(content);
        all[k].position = (off_t)position;
        PyTuple_SET_ITEM(kept, k, Py_NewRef(content));
    }
    if (kept == NULL || !count) {
        Py_XDECREF(kept);
        PyMem_Free(all);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "nothing to write");
        return NULL;
    }
    pthread_mutex_lock(&self->mutex);
    self->writes = all;
    self->count = count;
    self->arguments = kept;
    self->is_synced = is_synced;
    self->state = POSTED;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    Py_RETURN_NONE;
}

static PyObject *collect(GroupWriter *self, PyObject *Py_UNUSED(none))
{
    pthread_mutex_lock(&self->mutex);
    int is_written = self->state == WRITTEN;
    if (is_written) self->state = RESTS;
    pthread_mutex_unlock(&self->mutex);
    if (!is_written) Py_RETURN_NONE;
    PyMem_Free(self->writes);
    self->writes = NULL;
    Py_CLEAR(self->arguments);
    return Py_BuildValue("dii", self->seconds, self->error, self->failed_at);
}

static PyObject *new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    int descriptor;
    static char *names[] = {"report", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "i", names, &descriptor)) return NULL;
    GroupWriter *self = (GroupWriter *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    self->report = descriptor;
    return (PyObject *)self;
}

/* A thread in `wait` holds a reference, so nobody waits any more. */
static void dealloc(GroupWriter *self)
{
    PyMem_Free(self->writes);
    Py_XDECREF(self->arguments);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->mutex);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"wait", (PyCFunction)wait, METH_VARARGS,
     "wait(timeout_s): in the flusher's thread; True: woken, False: the time is over. Negative: "
     "for as long as it takes."},
    {"wake", (PyCFunction)wake, METH_NOARGS, "End `wait`, or the next one, after its flush."},
    {"forget_wake", (PyCFunction)forget_wake, METH_NOARGS, "The next `wait` begins anew."},
    {"claim", (PyCFunction)claim, METH_NOARGS,
     "True: the thread waits, with nothing to do, and stays there until `post` or `release`."},
    {"release", (PyCFunction)release, METH_NOARGS, "Give up the claim."},
    {"post", (PyCFunction)post, METH_VARARGS,
     "post(writes, is_synced): (descriptor, content, position) each; the first is synced."},
    {"collect", (PyCFunction)collect, METH_NOARGS,
     "(seconds, errno, index of the write that failed or -1 for the sync) once; or None."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject writer_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rollcall_group_writer.GroupWriter",
    .tp_basicsize = sizeof(GroupWriter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new,
    .tp_dealloc = (destructor)dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "rollcall_group_writer", .m_size = -1,
};

PyMODINIT_FUNC PyInit_rollcall_group_writer(void)
{
    if (PyType_Ready(&writer_type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "GroupWriter", (PyObject *)&writer_type)) {
        Py_CLEAR(module);
    }
    return module;
}
