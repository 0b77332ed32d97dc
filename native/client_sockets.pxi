
# The sockets of clients: one epoll descriptor for all, which the event loop polls as one file, and
# a transport for each. As asyncio's transports, as far as Connection and TlsChannel use them, in a
# fifth of the memory of uvloop's; broker/net/acceptor.py says when they are used.

from libc.errno cimport EAGAIN, ECONNABORTED, EINTR, EMFILE, ENFILE, EPROTO, errno

import os
import socket as _socket

cdef extern from "Python.h":
    char* PyByteArray_AS_STRING(object)
    bytearray PyByteArray_FromStringAndSize(const char*, Py_ssize_t)

cdef extern from *:
    """
    #include <unistd.h>
    #include <fcntl.h>
    #include <sys/socket.h>
    #ifdef __linux__
    #include <sys/epoll.h>
    static int has_epoll(void) { return 1; }
    static int accept_one(int fd) { return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }
    #else  /* Never called: CLIENT_SOCKETS is None. */
    #define EPOLLIN 1
    #define EPOLLOUT 4
    #define EPOLL_CTL_ADD 1
    #define EPOLL_CTL_DEL 2
    #define EPOLL_CTL_MOD 3
    #define EPOLL_CLOEXEC 0
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    struct epoll_event { uint32_t events; union { int fd; } data; };
    static int has_epoll(void) { return 0; }
    static int accept_one(int fd) { return -1; }
    static int epoll_create1(int flags) { return -1; }
    static int epoll_ctl(int epoll, int what, int fd, struct epoll_event *e) { return -1; }
    static int epoll_wait(int epoll, struct epoll_event *e, int most, int ms) { return -1; }
    #endif
    """
    enum: EPOLLIN, EPOLLOUT, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLL_CLOEXEC
    enum: MSG_NOSIGNAL
    ctypedef union epoll_data:
        int fd
    struct epoll_event:
        unsigned int events
        epoll_data data
    bint has_epoll() noexcept
    int accept_one(int) noexcept
    int epoll_create1(int) noexcept
    int epoll_ctl(int, int, int, epoll_event*) noexcept
    int epoll_wait(int, epoll_event*, int, int) noexcept
    Py_ssize_t recv(int, void*, size_t, int) noexcept
    Py_ssize_t send(int, const void*, size_t, int) noexcept
    int close(int) noexcept

# At one time, of one socket.
cdef enum: READ_BYTES = 262144
cdef char received[READ_BYTES]

# Sockets of one epoll_wait; there is another one if all of these were ready.
cdef enum: READY_MAX = 256


cdef object system_error(int number):
    return OSError(number, os.strerror(number))


cdef class ClientSockets:
    """All of them. `loop` is for call_soon and call_exception_handler."""
    cdef int epoll
    cdef object loop
    cdef list by_fd
    cdef Py_ssize_t count
    cdef int reserve  # a descriptor to give up when there are none left

    def __cinit__(self):
        self.epoll = self.reserve = -1

    def __init__(self, loop):
        self.loop = loop
        self.by_fd = []
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        if self.epoll < 0: raise system_error(errno)
        self.reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def __dealloc__(self):
        if self.epoll >= 0: close(self.epoll)
        if self.reserve >= 0: close(self.reserve)

    def fileno(self):
        return self.epoll

    def accept(self, int listening, make_protocol, int most, int closed_most):
        """Take what has connected, `most` at most, or until so many of it were closed at once:
        those keep their descriptors until a later pass. Raises OSError if the system refuses that.
        """
        cdef int fd, k, why
        cdef ClientSocket accepted
        if self.reserve < 0: self.keep_reserve()
        for k in range(most):
            fd = accept_one(listening)
            if fd < 0:
                why = errno
                if why == EAGAIN: return
                if why in (EINTR, ECONNABORTED, EPROTO): continue
                if why in (EMFILE, ENFILE) and self.shed(listening): return
                raise system_error(why)
            accepted = ClientSocket.__new__(ClientSocket)
            accepted.fd = fd
            accepted.sockets = self
            while len(self.by_fd) <= fd: self.by_fd.append(None)
            self.by_fd[fd] = accepted
            self.count += 1
            try:
                accepted.watch(EPOLLIN)
                accepted.protocol = make_protocol()
                accepted.protocol.connection_made(accepted)
            except Exception as error:
                accepted.broken(error)
            if accepted.is_closed:
                closed_most -= 1
                if closed_most <= 0: return

    cdef bint shed(self, int listening):
        """Without a free descriptor: close the next in the queue, which would wait for nothing.

        There may be none: the system looks for a descriptor first.
        """
        cdef int fd
        cdef bint is_done
        if self.reserve < 0: return False
        close(self.reserve)
        fd = accept_one(listening)
        is_done = fd >= 0 or errno == EAGAIN
        if fd >= 0: close(fd)
        self.keep_reserve()
        return is_done

    cdef keep_reserve(self):
        try:
            self.reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.reserve = -1  # until there are descriptors again

    def poll(self):
        """Read and write what can be read and written now."""
        cdef epoll_event ready[READY_MAX]
        cdef int count = READY_MAX, k
        # Each once: a client that sends more meanwhile is at the end of epoll's list.
        cdef Py_ssize_t left = self.count
        cdef ClientSocket one
        while count == READY_MAX and left > 0:
            count = epoll_wait(self.epoll, ready, READY_MAX, 0)
            left -= count
            for k in range(count):
                # One before it in this list may have closed it.
                one = <ClientSocket>self.by_fd[ready[k].data.fd]
                if one is None: continue
                try:
                    one.served(ready[k].events)
                except Exception as error:
                    one.broken(error)


cdef class ClientSocket:
    """One transport. `unsent` is what the kernel did not take; `watched` is the mask in epoll."""
    cdef int fd
    cdef unsigned int watched
    cdef bint is_at_end  # the peer has sent a FIN
    cdef bint is_closed  # by us; what is unsent still goes out
    cdef bint is_ending  # connection_lost is called in a later pass
    cdef ClientSockets sockets
    cdef object protocol
    cdef bytearray unsent

    def __cinit__(self):
        self.fd = -1

    def __dealloc__(self):
        if self.fd >= 0: close(self.fd)

    cdef int watch(self, unsigned int mask) except -1:
        cdef epoll_event wanted
        cdef int what = EPOLL_CTL_MOD
        if mask == self.watched: return 0
        if not self.watched: what = EPOLL_CTL_ADD
        # Nothing is heard of a socket that is not watched: with an empty mask, epoll would report
        # its errors again and again.
        if not mask: what = EPOLL_CTL_DEL
        wanted.events = mask
        wanted.data.fd = self.fd
        if epoll_ctl(self.sockets.epoll, what, self.fd, &wanted) < 0:
            raise system_error(errno)
        self.watched = mask
        return 0

    cdef watch_also(self, unsigned int event):
        """The connection is lost if epoll has no room for it: nothing more would be heard of it."""
        try:
            self.watch(self.watched | event)
        except OSError as error:
            self.lose(error)

    cdef served(self, unsigned int events):
        cdef Py_ssize_t count
        # An error or a hang-up is found by whatever is tried.
        if self.watched & EPOLLOUT and events != EPOLLIN:
            self.send_unsent()
        if self.watched & EPOLLIN and events != EPOLLOUT:
            count = recv(self.fd, received, READ_BYTES, 0)
            if count > 0:
                self.protocol.data_received(PyBytes_FromStringAndSize(received, count))
            elif count == 0:
                self.is_at_end = True
                self.watch(self.watched & ~EPOLLIN)
                if not self.protocol.eof_received(): self.close()
            elif errno not in (EAGAIN, EINTR):
                self.lose(system_error(errno))

    cdef Py_ssize_t sent(self, const void* data, Py_ssize_t size) except -1:
        """How many bytes the kernel takes now. The connection is lost if it will take no more."""
        cdef Py_ssize_t count = send(self.fd, data, size, MSG_NOSIGNAL)
        if count >= 0: return count
        if errno not in (EAGAIN, EINTR): self.lose(system_error(errno))
        return 0

    cdef send_unsent(self):
        cdef Py_ssize_t count = self.sent(PyByteArray_AS_STRING(self.unsent), len(self.unsent))
        if self.is_ending: return
        if count < len(self.unsent):
            del self.unsent[:count]
            return
        self.unsent = None
        self.watch(self.watched & ~EPOLLOUT)
        if self.is_closed:
            self.lose(None)
        else:
            self.protocol.resume_writing()

    cdef lose(self, error):
        """The end: the protocol hears of it in a later pass, and then the socket is closed."""
        if self.is_ending: return
        self.is_closed = self.is_ending = True
        self.unsent = None
        self.sockets.loop.call_soon(self._end, error)
        self.watch(0)

    def _end(self, error):
        protocol, self.protocol = self.protocol, None
        try:
            if protocol is not None: protocol.connection_lost(error)
        finally:
            self.sockets.by_fd[self.fd] = None
            self.sockets.count -= 1
            close(self.fd)
            self.fd = -1

    cdef broken(self, Exception error):
        """A callback of the protocol has raised."""
        self.sockets.loop.call_exception_handler(
            {"message": "a connection has failed", "exception": error, "protocol": self.protocol}
        )
        self.lose(error)

    # As asyncio.Transport.

    def write(self, bytes data not None):
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data), count
        if self.is_closed or not size: return
        if self.unsent is not None:
            self.unsent += data
            return
        count = self.sent(PyBytes_AS_STRING(data), size)
        if count == size or self.is_ending: return
        self.unsent = PyByteArray_FromStringAndSize(PyBytes_AS_STRING(data) + count, size - count)
        self.watch_also(EPOLLOUT)
        if not self.is_ending: self.protocol.pause_writing()

    def close(self):
        """Once all that was written is sent."""
        if self.is_closed: return
        self.is_closed = True
        if self.unsent is None:
            self.lose(None)
        else:
            self.watch(EPOLLOUT)

    def abort(self):
        """At once; what is unsent is dropped."""
        self.lose(None)

    def is_closing(self):
        return self.is_closed

    def pause_reading(self):
        if not self.is_closed: self.watch(self.watched & ~EPOLLIN)

    def resume_reading(self):
        if not self.is_closed and not self.is_at_end: self.watch_also(EPOLLIN)

    def set_write_buffer_limits(self, high=None, low=None):
        """Both are zero: the protocol hears of each byte that the kernel does not take."""
        if high: raise ValueError("high must be 0")

    def get_write_buffer_size(self):
        return 0 if self.unsent is None else len(self.unsent)

    def get_extra_info(self, name, default=None):
        """`peername`, and `socket`: what has a `fileno`."""
        if name == "socket": return self
        if name != "peername" or self.fd < 0: return default
        borrowed = _socket.socket(fileno=self.fd)
        try:
            return borrowed.getpeername()
        except OSError:  # it is gone already
            return default
        finally:
            borrowed.detach()

    def fileno(self):
        return self.fd


CLIENT_SOCKETS = ClientSockets if has_epoll() else None
