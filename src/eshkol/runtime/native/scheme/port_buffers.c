/* The machinery of ports: buffers, waiting for input, writing out, UTF-8 in both directions, opening and closing.
 * The procedures of Scheme stand in ports.c. See ports.h. */
#define _POSIX_C_SOURCE 200809L
#include "ports.h"
#include "threads.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "utf8.h"

enum {
    WAIT_MILLISECONDS = 50, /* how long an interrupt may go unnoticed while we wait */
    FINAL_TRIES = 20,       /* how often that long a port that nobody refers to any more waits for a reader */
    SURE_PIECE = PIPE_BUF   /* what a pipe takes whole when it takes anything */
};

/* ---- errors ----------------------------------------------------------------------------------------------------- */

_Noreturn void esk_file_error(Context *context, const char *who, Value name, int error) {
    esk_fail(context, ERROR_FILE, who, strerror(error), 1, name);
}

const char *esk_file_name(Context *context, const char *who, int position, Value name) {
    if (!esk_is(name, TAG_STRING)) esk_wrong_type(context, who, position, name, "string that names a file");
    String *string = esk_pointer(name);
    Bytevector *bytes = esk_pointer(esk_make_bytevector(context, string->length * 4 + 1, 0));
    int64_t used = 0;
    for (int64_t i = 0; i < string->length; i++) {
        if (!string->chars[i])
            esk_fail(context, ERROR_FILE, who, "a file name cannot hold the character null", 1, name);
        used += esk_utf8_encode(string->chars[i], (char *)bytes->bytes + used);
    }
    bytes->bytes[used] = 0;
    return (const char *)bytes->bytes;
}

int64_t esk_monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* While something waits for a port. */
static void notice_deadline(Context *context, const char *who, Port *port) {
    if (!port->deadline || esk_monotonic() < port->deadline) return;
    if (port->flags & PORT_OUTPUT) port->at = 0; /* what nobody takes will not be tried for ever */
    esk_file_error(context, who, port->name, ETIMEDOUT);
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

Port *esk_make_port(Context *context, Value name, uint32_t flags, int descriptor) {
    Port *port = esk_allocate(context, sizeof *port, TAG_PORT);
    Object head = port->head;
    memset(port, 0, sizeof *port);
    port->head = head;
    port->head.count = PORT_VALUES;
    port->name = name;
    port->data = ESK_FALSE;
    port->descriptor = descriptor;
    port->flags = flags | PORT_OPEN;
    port->line = port->column = 1;
    return port;
}

static Value named(Context *context, const char *name) {
    return esk_string_utf8(context, name, (int64_t)strlen(name));
}

static void use_bytevector(Context *context, Port *port, Value data) {
    Bytevector *bytes = esk_pointer(data);
    esk_store(context, &port->data, data);
    port->buffer = bytes->bytes;
    port->room = bytes->length;
}

Value esk_open_memory_input(Context *context, int64_t bytes, uint32_t flags) {
    Value data = esk_make_bytevector(context, bytes, 0);
    Value name = named(context, flags & PORT_BINARY ? "bytevector" : "string");
    Port *port = esk_make_port(context, name, flags | PORT_INPUT, -1);
    use_bytevector(context, port, data);
    port->filled = bytes;
    return esk_object(port);
}

Value esk_open_text_output(Context *context) {
    Value data = esk_make_bytevector(context, 128, 0);
    Port *port = esk_make_port(context, named(context, "string"), PORT_OUTPUT, -1);
    use_bytevector(context, port, data);
    return esk_object(port);
}

Value esk_port_text(Context *context, Port *port) {
    return esk_string_utf8(context, (const char *)port->buffer, port->at);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

int (*esk_write_standard)(int32_t descriptor, const uint8_t *bytes, int64_t count);

typedef struct { const Port *port; int error; } Writing;

static void write_by_host(Context *first, void *data) {
    (void)first;
    Writing *writing = data;
    const Port *port = writing->port;
    writing->error = esk_write_standard(port->descriptor, port->buffer, port->at);
}

/* Writes to the port's descriptor what it can: 0, an error number, or EINTR where it has waited for some time and
 * should be called again. `*written` is how much is done. Where writing may wait, no more is written at once than a
 * descriptor that is ready takes without waiting. */
static int write_some(Context *context, const Port *port, int64_t *written) {
    *written = 0;
    if ((port->flags & PORT_STANDARD) && esk_write_standard) {
        Writing writing = {port, 0};
        if (context) esk_on_first(context, write_by_host, &writing);
        else write_by_host(NULL, &writing);
        if (!writing.error) *written = port->at;
        return writing.error;
    }
    while (*written < port->at) {
        int64_t piece = port->at - *written;
        if (port->flags & PORT_WAITS) {
            struct pollfd wait = {.fd = port->descriptor, .events = POLLOUT};
            if (esk_wait_for(context, &wait, 1, WAIT_MILLISECONDS) <= 0) return EINTR;
            if (piece > SURE_PIECE) piece = SURE_PIECE;
        }
        ssize_t n = write(port->descriptor, port->buffer + *written, (size_t)piece);
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? EINTR : errno;
        *written += n;
    }
    return 0;
}

bool esk_port_mid_line(const Port *port) {
    return port->at > 0 ? port->buffer[port->at - 1] != '\n' : (port->flags & PORT_MID_LINE) != 0;
}

/* Writes once, and keeps what could not be written. */
static int flush_once(Context *context, Port *port) {
    int64_t written;
    uint32_t mid_line = esk_port_mid_line(port) ? PORT_MID_LINE : 0;
    int error = write_some(context, port, &written);
    memmove(port->buffer, port->buffer + written, (size_t)(port->at - written));
    port->at -= written;
    port->flags = (port->flags & ~(uint32_t)PORT_MID_LINE) | mid_line;
    return error;
}

void esk_port_flush(Context *context, const char *who, Port *port) {
    while (port->descriptor >= 0 && port->at > 0) {
        int error = flush_once(context, port);
        if (error == EINTR) {
            esk_notice(context);
            notice_deadline(context, who ? who : "write", port);
        } else if (error) {
            port->at = 0; /* what cannot be written will not be tried for ever */
            esk_file_error(context, who, port->name, error);
        }
    }
    port->flags &= ~(uint32_t)PORT_LINE_DONE;
}

/* Room for so many more bytes (at most PORT_BUFFER for files). */
static void make_room(Context *context, Port *port, int64_t count) {
    if (port->descriptor >= 0) {
        esk_port_flush(context, NULL, port);
        if (port->room - port->at >= count) return;
    }
    if (!port->buffer) /* whoever was called in between has closed it */
        esk_fail(context, ERROR_FILE, NULL, "the port is closed", 1, esk_object(port));
    int64_t room = port->room * 2 > port->at + count ? port->room * 2 : port->at + count;
    Value data = esk_make_bytevector(context, room, 0);
    memcpy(((Bytevector *)esk_pointer(data))->bytes, port->buffer, (size_t)port->at);
    use_bytevector(context, port, data);
}

void esk_port_write(Context *context, Port *port, const char *bytes, size_t count) {
    if ((port->flags & PORT_BY_LINE) && memchr(bytes, '\n', count)) port->flags |= PORT_LINE_DONE;
    while (count > 0) {
        size_t piece = count;
        if (port->descriptor >= 0 && piece > PORT_BUFFER) piece = PORT_BUFFER;
        if ((size_t)(port->room - port->at) < piece) make_room(context, port, (int64_t)piece);
        memcpy(port->buffer + port->at, bytes, piece);
        port->at += (int64_t)piece;
        bytes += piece;
        count -= piece;
    }
}

void esk_port_put_slowly(Context *context, Port *port, uint32_t code) {
    if (port->room - port->at < 4) make_room(context, port, 4);
    port->at += esk_utf8_encode(code, (char *)port->buffer + port->at);
    if (code == '\n') port->flags |= PORT_LINE_DONE;
}

void esk_port_settle(Context *context, Port *port) {
    const uint32_t line = PORT_BY_LINE | PORT_LINE_DONE;
    if ((port->flags & PORT_AT_ONCE) || (port->flags & line) == line) esk_port_flush(context, NULL, port);
}

/* ---- input ------------------------------------------------------------------------------------------------------ */

/* Waits until the descriptor can be read without waiting, and looks for interrupts meanwhile. */
static void wait_for_input(Context *context, Port *port) {
    struct pollfd wait = {.fd = port->descriptor, .events = POLLIN};
    notice_deadline(context, "read", port); /* also of who sends byte by byte */
    if (poll(&wait, 1, 0) > 0) return;
    Value output = esk_standard_port(context, 1);
    if (port->flags & PORT_STANDARD) { /* the prompt */
        esk_hold(context, esk_pointer(output));
        esk_port_flush(context, NULL, esk_pointer(output));
        esk_release(context);
    }
    do {
        esk_notice(context);
        notice_deadline(context, "read", port);
        wait.fd = port->descriptor; /* a handler may have closed it */
    } while (port->descriptor >= 0 && esk_wait_for(context, &wait, 1, WAIT_MILLISECONDS) <= 0);
}

bool esk_port_fill(Context *context, Port *port) {
    for (;;) {
        int64_t unread = port->filled - port->at;
        if (port->descriptor < 0) return false;
        if (port->at > 0) {
            memmove(port->buffer, port->buffer + port->at, (size_t)unread);
            port->at = 0;
            port->filled = unread;
        }
        if (unread == port->room) return true;
        if (port->flags & PORT_WAITS) {
            wait_for_input(context, port);
            if (port->filled - port->at > unread) return true; /* somebody else has read meanwhile */
            if (port->at > 0 || port->descriptor < 0) continue;
        }
        ssize_t n = read(port->descriptor, port->buffer + port->filled, (size_t)(port->room - port->filled));
        if (n >= 0) {
            port->filled += n;
            if (!n) port->flags |= PORT_AT_EOF;
            return n > 0;
        }
        if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
            esk_file_error(context, "read", port->name, errno);
        esk_notice(context);
    }
}

/* The next character with its length in bytes; the length is 0 at the end. */
static int32_t decode_next(Context *context, Port *port, int *bytes) {
    for (;;) {
        uint32_t code;
        int64_t unread = port->filled - port->at;
        const uint8_t *at = port->buffer + port->at;
        *bytes = unread > 0 ? esk_utf8_decode(at, at + unread, &code) : 0;
        if (*bytes) return (int32_t)code;
        if ((port->flags & PORT_AT_EOF) || !esk_port_fill(context, port)) {
            *bytes = (int)(port->filled - port->at); /* the beginning of a character at the very end */
            return *bytes ? 0xFFFD : -1;
        }
    }
}

int32_t esk_port_peek(Context *context, Port *port) {
    int bytes;
    if (port->at < port->filled && port->buffer[port->at] < 0x80) return port->buffer[port->at];
    return decode_next(context, port, &bytes);
}

int32_t esk_port_next(Context *context, Port *port) {
    int bytes = 1;
    int32_t code = port->at < port->filled ? port->buffer[port->at] : 0x80;
    if (code >= 0x80) code = decode_next(context, port, &bytes);
    if (code < 0) { /* the end was seen; a terminal may have more next time */
        port->flags &= ~(uint32_t)PORT_AT_EOF;
        return code;
    }
    port->at += bytes;
    port->offset++;
    port->column++;
    if (code == '\n') {
        port->line++;
        port->column = 1;
    }
    return code;
}

bool esk_port_ready(Context *context, Port *port) {
    for (;;) {
        uint32_t code;
        const uint8_t *at = port->buffer + port->at, *end = port->buffer + port->filled;
        if (!(port->flags & PORT_WAITS) || (port->flags & PORT_AT_EOF)) return true;
        if (at < end && ((port->flags & PORT_BINARY) || esk_utf8_decode(at, end, &code))) return true;
        struct pollfd wait = {.fd = port->descriptor, .events = POLLIN};
        if (poll(&wait, 1, 0) <= 0) return false;
        if (!esk_port_fill(context, port)) return true;
    }
}

/* ---- opening and closing files ---------------------------------------------------------------------------------- */

static void finalize_port(Object *object) {
    Port *port = (Port *)object;
    if (port->descriptor >= 0) {
        if (port->flags & PORT_OUTPUT)
            for (int tries = 0, error = EINTR; error == EINTR && port->at > 0 && tries < FINAL_TRIES; tries++)
                error = flush_once(NULL, port);
        if (!(port->flags & PORT_STANDARD)) close(port->descriptor);
        port->descriptor = -1;
    }
    if (!esk_is(port->data, TAG_BYTEVECTOR)) free(port->buffer);
    port->buffer = NULL;
}

static void close_quietly(int descriptor) {
    int error = errno;
    close(descriptor);
    errno = error;
}

static int open_descriptor(Context *context, const char *path, uint32_t flags) {
    int mode = flags & PORT_INPUT ? O_RDONLY | O_NONBLOCK : O_WRONLY | O_CREAT | O_TRUNC; /* we wait by polling */
    for (bool collected = false;;) {
        int descriptor = open(path, mode | O_CLOEXEC | O_NOCTTY, 0666);
        struct stat about;
        if (descriptor >= 0) {
            if (!(flags & PORT_INPUT) || (!fstat(descriptor, &about) && !S_ISDIR(about.st_mode))) return descriptor;
            errno = EISDIR;
            close_quietly(descriptor);
            return -1;
        }
        if (errno == EINTR) {
            esk_notice(context);
        } else if ((errno == EMFILE || errno == ENFILE) && !collected) { /* forgotten ports hold descriptors */
            esk_collect(context);
            collected = true;
        } else {
            return -1;
        }
    }
}

/* Gives a port on a descriptor its buffer and its habits. */
static void start_descriptor(Context *context, Port *port, int descriptor) {
    struct stat about;
    bool regular = !fstat(descriptor, &about) && S_ISREG(about.st_mode);
    uint8_t *buffer = malloc(PORT_BUFFER);
    if (!buffer) {
        if (!(port->flags & PORT_STANDARD)) close(descriptor);
        esk_fail(context, ERROR_MEMORY, NULL, "there is no memory for the buffer of a port", 0);
    }
    port->buffer = buffer;
    port->room = PORT_BUFFER;
    port->descriptor = descriptor;
    if (!regular) port->flags |= PORT_WAITS;
    bool hosted = (port->flags & PORT_STANDARD) && esk_write_standard;
    if ((port->flags & PORT_OUTPUT) && (hosted || isatty(descriptor))) port->flags |= PORT_BY_LINE;
}

Value esk_open_file(Context *context, const char *who, Value name, uint32_t flags) {
    const char *path = esk_file_name(context, who, 1, name);
    String *given = esk_pointer(name);
    Value copy = esk_make_string(context, given->length, ' '); /* the user may change his own */
    memcpy(((String *)esk_pointer(copy))->chars, given->chars, (size_t)given->length * sizeof(uint32_t));
    Port *port = esk_make_port(context, copy, flags, -1);
    esk_finalize(context, &port->head, finalize_port); /* before there is anything to lose */
    int descriptor = open_descriptor(context, path, flags);
    if (descriptor < 0) esk_file_error(context, who, name, errno);
    start_descriptor(context, port, descriptor);
    return esk_object(port);
}

Port *esk_prepare_port(Context *context, Value name, uint32_t flags) {
    Port *port = esk_make_port(context, name, flags, -1);
    esk_finalize(context, &port->head, finalize_port);
    return port;
}

void esk_start_port(Context *context, Port *port, int descriptor) {
    port->descriptor = -1; /* it may have been lent the descriptor already */
    start_descriptor(context, port, descriptor);
}

void esk_close_port(Context *context, const char *who, Port *port) {
    if (!(port->flags & PORT_OPEN)) return;
    int error = 0;
    if (port->flags & PORT_OUTPUT) esk_port_flush(context, who, port);
    port->flags &= ~(uint32_t)PORT_OPEN;
    if (port->descriptor >= 0) {
        if (!(port->flags & PORT_STANDARD) && close(port->descriptor) < 0 && errno != EINTR) error = errno;
        port->descriptor = -1;
        free(port->buffer);
        port->buffer = NULL;
        port->at = port->filled = port->room = 0;
    } else if (port->flags & PORT_INPUT) {
        port->data = ESK_FALSE;
        port->buffer = NULL;
        port->at = port->filled = port->room = 0;
    }
    if (error) esk_file_error(context, who, port->name, error);
}

/* ---- the standard ports ----------------------------------------------------------------------------------------- */

/* All threads have the same. The first one makes them before there are others (tasks.c). */
Value esk_standard_port(Context *context, int which) {
    context = context->heap->first;
    if (!context->standard) {
        Value ports[3];
        static const char *const names[] = {"standard input", "standard output", "standard error"};
        for (int i = 0; i < 3; i++) {
            Value name = named(context, names[i]);
            Port *port = esk_make_port(context, name, PORT_STANDARD | (i ? PORT_OUTPUT : PORT_INPUT), -1);
            esk_finalize(context, &port->head, finalize_port);
            start_descriptor(context, port, i);
            if (i == 2) port->flags |= PORT_AT_ONCE;
            ports[i] = esk_object(port);
        }
        signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, not the end of the process */
        Value *root = esk_root(context);
        *root = esk_make_vector(context, 3, ESK_FALSE);
        memcpy(((Vector *)esk_pointer(*root))->items, ports, sizeof ports);
        context->standard = root;
    }
    return ((Vector *)esk_pointer(*context->standard))->items[which];
}

int esk_flush_standard_ports(Context *context) {
    int first = 0;
    if (!context->standard) return 0;
    for (int i = 1; i < 3; i++) {
        Port *port = esk_pointer(esk_standard_port(context, i));
        int error = 0;
        while (port->descriptor >= 0 && port->at > 0 && !error) {
            error = flush_once(context, port);
            if (error == EINTR && !context->interrupted) error = 0;
        }
        port->at = 0;
        if (error && !first) first = error;
    }
    return first;
}
