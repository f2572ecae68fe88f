/* Ports: the object, and how the reader, the printer and the port primitives move bytes and characters through it.
 * Text is UTF-8 in every buffer. The buffer of a file is memory of its own (the finalizer flushes and frees it); the
 * buffer of a string or bytevector port is a bytevector on the heap. */
#ifndef ESHKOL_SCHEME_PORTS_H
#define ESHKOL_SCHEME_PORTS_H

#include "value.h"

enum PortFlags {
    PORT_INPUT = 1,
    PORT_OUTPUT = 2,
    PORT_BINARY = 4,
    PORT_OPEN = 8,
    PORT_FOLD_CASE = 16, /* #!fold-case was read */
    PORT_AT_EOF = 32,    /* the last attempt to read more gave nothing */
    PORT_WAITS = 64,     /* reading or writing may wait: a terminal, a pipe */
    PORT_BY_LINE = 128,  /* flushed when a line is done: a terminal */
    PORT_AT_ONCE = 256,  /* flushed after every operation: standard error */
    PORT_STANDARD = 512, /* the descriptor is the process's and stays open */
    PORT_LINE_DONE = 1024, /* a line has ended since the port was flushed */
    PORT_MID_LINE = 2048   /* what was flushed last did not end a line */
};

enum { PORT_VALUES = 2, PORT_BUFFER = 1 << 15 };

typedef struct Port {
    Object head;     /* count: PORT_VALUES, the values that follow */
    Value name;      /* a string: of the file, or what kind of port it is */
    Value data;      /* the bytevector that `buffer` lies in, or #f */
    uint8_t *buffer; /* input: at to filled is unread; output: 0 to at is not yet written */
    int64_t at, filled, room;
    int32_t descriptor; /* -1: none, the port is in memory or closed */
    uint32_t flags;
    uint64_t offset, line, column; /* of the next character of an input port; lines and columns from 1 */
    int64_t deadline; /* when waiting for it becomes an error, in nanoseconds of the monotonic clock; 0: never */
} Port;

/* Who takes what is written to standard output and standard error, in the place of their descriptors: 0, or an error
 * number. To be set by the host before the first context is made; then these ports are flushed line by line. */
extern int (*esk_write_standard)(int32_t descriptor, const uint8_t *bytes, int64_t count);

/* The port that the process began with: 0, 1, 2. */
Value esk_standard_port(Context *, int which);
void esk_set_current_port(Context *, int which, Value port);
/* Writes out what standard output and standard error hold. 0, or an error number; raises nothing. */
int esk_flush_standard_ports(Context *);

/* An open port of the kind that `flags` asks for, or a condition. `at` is the argument's position, from 0; where it is
 * not there, the current port of the context serves. */
Port *esk_port_argument(Context *, const char *who, const Value *args, int64_t count, int at, uint32_t flags);

/* Both return a port with everything but its buffer filled in. */
Port *esk_make_port(Context *, Value name, uint32_t flags, int descriptor);
Value esk_open_text_output(Context *);                               /* a string port */
Value esk_open_memory_input(Context *, int64_t bytes, uint32_t flags); /* its buffer is not yet filled */
Value esk_port_text(Context *, Port *);                              /* what a string port has taken so far: a string */
Value esk_open_file(Context *, const char *who, Value name, uint32_t flags);
void esk_close_port(Context *, const char *who, Port *);
/* For pipes and sockets, in two steps so that no descriptor is lost where memory runs out: a port without one, which
 * closes at its end what it was given meanwhile; then the descriptor. */
Port *esk_prepare_port(Context *, Value name, uint32_t flags);
void esk_start_port(Context *, Port *, int descriptor);
int64_t esk_monotonic(void); /* nanoseconds */

/* More input, behind what is unread. False: there is none (the end, for now). */
bool esk_port_fill(Context *, Port *);
/* Whether reading a character (or a byte) would not have to wait. */
bool esk_port_ready(Context *, Port *);
int32_t esk_port_peek(Context *, Port *); /* the next character, or -1; takes nothing */
int32_t esk_port_next(Context *, Port *); /* takes it */

void esk_port_write(Context *, Port *, const char *bytes, size_t count);
void esk_port_put_slowly(Context *, Port *, uint32_t code);
static inline void esk_port_put(Context *context, Port *port, uint32_t code) {
    if (code < 0x80 && code != '\n' && port->at < port->room) port->buffer[port->at++] = (uint8_t)code;
    else esk_port_put_slowly(context, port, code);
}
void esk_port_flush(Context *, const char *who, Port *);
bool esk_port_mid_line(const Port *); /* whether the last character written is there and does not end a line */
void esk_port_settle(Context *, Port *); /* at the end of an operation: flushes where the port wants it */

/* A file name as bytes with a zero behind them, in a bytevector. */
const char *esk_file_name(Context *, const char *who, int position, Value name);
_Noreturn void esk_file_error(Context *, const char *who, Value name, int error); /* error: an errno */

#endif
