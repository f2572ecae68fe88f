/* The procedures on ports (6.13 of R7RS), but for read (reader.c), write and its kin (printer.c). What they do with
 * buffers and descriptors stands in port_buffers.c. */
#define _POSIX_C_SOURCE 200809L
#include "ports.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "threads.h"
#include "utf8.h"

/* ---- arguments -------------------------------------------------------------------------------------------------- */

static const char *kind_wanted(uint32_t flags) {
    static const char *const kinds[] = {"a textual input port", "a textual output port", "a binary input port",
                                        "a binary output port"};
    return kinds[(flags & PORT_OUTPUT ? 1 : 0) + (flags & PORT_BINARY ? 2 : 0)];
}

/* The place in the context of the current input (0), output (1) or error (2) port. */
static Value *current_port(Context *context, int which) {
    Value *place = which == 0 ? &context->input : which == 1 ? &context->output : &context->error;
    if (!esk_is(*place, TAG_PORT)) *place = esk_standard_port(context, which);
    return place;
}

void esk_set_current_port(Context *context, int which, Value port) { *current_port(context, which) = port; }

Port *esk_port_argument(Context *context, const char *who, const Value *args, int64_t count, int at, uint32_t flags) {
    const uint32_t mask = PORT_INPUT | PORT_OUTPUT | PORT_BINARY;
    Value value = count > at ? args[at] : *current_port(context, flags & PORT_INPUT ? 0 : 1);
    Port *port = esk_pointer(value);
    if (!esk_is(value, TAG_PORT) || (port->flags & mask) != flags)
        esk_wrong_type(context, who, at + 1, value, kind_wanted(flags));
    esk_hold(context, port);
    if (!(port->flags & PORT_OPEN)) esk_fail(context, ERROR_FILE, who, "the port is closed", 1, value);
    return port;
}

static Port *any_port(Context *context, const char *who, Value value) {
    if (!esk_is(value, TAG_PORT)) esk_wrong_type(context, who, 1, value, "a port");
    return esk_pointer(value);
}

static bool port_has(Value value, uint32_t flags) {
    return esk_is(value, TAG_PORT) && (((Port *)esk_pointer(value))->flags & flags) == flags;
}

/* ---- what a port is --------------------------------------------------------------------------------------------- */

static Value is_port(Context *context, Value v) { return (void)context, esk_boolean(esk_is(v, TAG_PORT)); }
static Value is_input_port(Context *context, Value v) { return (void)context, esk_boolean(port_has(v, PORT_INPUT)); }
static Value is_output_port(Context *context, Value v) { return (void)context, esk_boolean(port_has(v, PORT_OUTPUT)); }
static Value is_binary_port(Context *context, Value v) { return (void)context, esk_boolean(port_has(v, PORT_BINARY)); }
static Value is_textual_port(Context *context, Value v) {
    return (void)context, esk_boolean(esk_is(v, TAG_PORT) && !port_has(v, PORT_BINARY));
}

static Value is_input_open(Context *context, Value v) {
    if (!port_has(v, PORT_INPUT)) esk_wrong_type(context, "input-port-open?", 1, v, "an input port");
    return esk_boolean(port_has(v, PORT_OPEN));
}

static Value is_output_open(Context *context, Value v) {
    if (!port_has(v, PORT_OUTPUT)) esk_wrong_type(context, "output-port-open?", 1, v, "an output port");
    return esk_boolean(port_has(v, PORT_OPEN));
}

static Value port_name(Context *context, Value v) { return any_port(context, "port-name", v)->name; }
static Value port_line(Context *context, Value v) {
    return esk_fixnum((int64_t)any_port(context, "port-line", v)->line);
}
static Value port_column(Context *context, Value v) {
    return esk_fixnum((int64_t)any_port(context, "port-column", v)->column);
}

static Value eof_object(Context *context) { return (void)context, ESK_EOF; }
static Value is_eof_object(Context *context, Value v) { return (void)context, esk_boolean(esk_eq(v, ESK_EOF)); }

static int which_standard(Context *context, const char *who, Value v) {
    if (!esk_is(v, TAG_FIXNUM) || v.bits > 2) esk_wrong_type(context, who, 1, v, "0, 1 or 2");
    return (int)v.bits;
}

static Value standard_port(Context *context, Value n) {
    return esk_standard_port(context, which_standard(context, "%standard-port", n));
}

static Value get_current_port(Context *context, Value n) {
    return *current_port(context, which_standard(context, "%current-port", n));
}

static Value set_current_port(Context *context, Value n, Value port) {
    int which = which_standard(context, "%set-current-port!", n);
    if (!port_has(port, which ? PORT_OUTPUT : PORT_INPUT))
        esk_wrong_type(context, "%set-current-port!", 2, port, which ? "an output port" : "an input port");
    esk_set_current_port(context, which, port);
    return ESK_UNSPECIFIED;
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static Value open_input_file(Context *c, Value name) { return esk_open_file(c, "open-input-file", name, PORT_INPUT); }
static Value open_output_file(Context *c, Value name) {
    return esk_open_file(c, "open-output-file", name, PORT_OUTPUT);
}
static Value open_binary_input_file(Context *c, Value name) {
    return esk_open_file(c, "open-binary-input-file", name, PORT_INPUT | PORT_BINARY);
}
static Value open_binary_output_file(Context *c, Value name) {
    return esk_open_file(c, "open-binary-output-file", name, PORT_OUTPUT | PORT_BINARY);
}

static Value open_input_string(Context *context, Value v) {
    String *string = need_string(context, "open-input-string", 1, v);
    int64_t bytes = 0;
    char code[4];
    for (int64_t i = 0; i < string->length; i++) bytes += esk_utf8_encode(string->chars[i], code);
    Value result = esk_open_memory_input(context, bytes, 0);
    char *to = (char *)((Port *)esk_pointer(result))->buffer;
    for (int64_t i = 0; i < string->length; i++) {
        int length = esk_utf8_encode(string->chars[i], code);
        memcpy(to, code, (size_t)length);
        to += length;
    }
    return result;
}

static Value open_output_string(Context *context) { return esk_open_text_output(context); }

static Value open_input_bytevector(Context *context, Value v) {
    Bytevector *bytes = need_bytevector(context, "open-input-bytevector", 1, v);
    Value result = esk_open_memory_input(context, bytes->length, PORT_BINARY);
    memcpy(((Port *)esk_pointer(result))->buffer, bytes->bytes, (size_t)bytes->length);
    return result;
}

static Value open_output_bytevector(Context *context) {
    Value result = esk_open_text_output(context);
    Value name = esk_string_utf8(context, "bytevector", 10);
    Port *port = esk_pointer(result);
    port->flags |= PORT_BINARY;
    port->name = name;
    return result;
}

static Port *memory_output(Context *context, const char *who, Value v, uint32_t binary, const char *expected) {
    Port *port = esk_is(v, TAG_PORT) ? esk_pointer(v) : NULL;
    if (!port || !esk_is(port->data, TAG_BYTEVECTOR) || !(port->flags & PORT_OUTPUT) ||
        (port->flags & PORT_BINARY) != binary)
        esk_wrong_type(context, who, 1, v, expected);
    return port;
}

static Value get_output_string(Context *context, Value v) {
    return esk_port_text(context, memory_output(context, "get-output-string", v, 0, "a port of open-output-string"));
}

static Value get_output_bytevector(Context *context, Value v) {
    Port *port = memory_output(context, "get-output-bytevector", v, PORT_BINARY, "a port of open-output-bytevector");
    Value result = esk_make_bytevector(context, port->at, 0);
    memcpy(((Bytevector *)esk_pointer(result))->bytes, port->buffer, (size_t)port->at);
    return result;
}

static Value close_port(Context *context, Value v) {
    esk_close_port(context, "close-port", any_port(context, "close-port", v));
    return ESK_UNSPECIFIED;
}

static Value close_input_port(Context *context, Value v) {
    if (!port_has(v, PORT_INPUT)) esk_wrong_type(context, "close-input-port", 1, v, "an input port");
    esk_close_port(context, "close-input-port", esk_pointer(v));
    return ESK_UNSPECIFIED;
}

static Value close_output_port(Context *context, Value v) {
    if (!port_has(v, PORT_OUTPUT)) esk_wrong_type(context, "close-output-port", 1, v, "an output port");
    esk_close_port(context, "close-output-port", esk_pointer(v));
    return ESK_UNSPECIFIED;
}

static Value flush_output_port(Context *context, const Value *args, int64_t count) {
    static const char who[] = "flush-output-port";
    Value v = count ? args[0] : *current_port(context, 1);
    if (!port_has(v, PORT_OUTPUT)) esk_wrong_type(context, who, 1, v, "an output port");
    if (!port_has(v, PORT_OPEN)) esk_fail(context, ERROR_FILE, who, "the port is closed", 1, v);
    esk_hold(context, esk_pointer(v));
    esk_port_flush(context, who, esk_pointer(v));
    return ESK_UNSPECIFIED;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static Value file_exists(Context *context, Value name) {
    return esk_boolean(access(esk_file_name(context, "file-exists?", 1, name), F_OK) == 0);
}

static Value delete_file(Context *context, Value name) {
    if (unlink(esk_file_name(context, "delete-file", 1, name)) < 0) esk_file_error(context, "delete-file", name, errno);
    return ESK_UNSPECIFIED;
}

static Value rename_file(Context *context, Value from, Value to) {
    const char *old = esk_file_name(context, "rename-file", 1, from);
    const char *new = esk_file_name(context, "rename-file", 2, to);
    if (rename(old, new) < 0) esk_file_error(context, "rename-file", from, errno);
    return ESK_UNSPECIFIED;
}

/* ---- textual input ---------------------------------------------------------------------------------------------- */

static Value read_char(Context *context, const Value *args, int64_t count) {
    int32_t code = esk_port_next(context, esk_port_argument(context, "read-char", args, count, 0, PORT_INPUT));
    return code < 0 ? ESK_EOF : esk_char((uint32_t)code);
}

static Value peek_char(Context *context, const Value *args, int64_t count) {
    int32_t code = esk_port_peek(context, esk_port_argument(context, "peek-char", args, count, 0, PORT_INPUT));
    return code < 0 ? ESK_EOF : esk_char((uint32_t)code);
}

static Value char_ready(Context *context, const Value *args, int64_t count) {
    return esk_boolean(esk_port_ready(context, esk_port_argument(context, "char-ready?", args, count, 0, PORT_INPUT)));
}

/* Bytes gathered from a port, in a bytevector that grows. */
typedef struct {
    Bytevector *bytes;
    int64_t used;
} Gathered;

static void gather(Context *context, Gathered *all, const uint8_t *bytes, int64_t count) {
    if (!all->bytes || all->bytes->length - all->used < count) {
        Bytevector *more = esk_pointer(esk_make_bytevector(context, (all->used + count) * 2, 0));
        if (all->bytes) memcpy(more->bytes, all->bytes->bytes, (size_t)all->used);
        all->bytes = more;
    }
    memcpy(all->bytes->bytes + all->used, bytes, (size_t)count);
    all->used += count;
}

static Value gathered_string(Context *context, const Gathered *all) {
    return esk_string_utf8(context, all->bytes ? (const char *)all->bytes->bytes : "", all->used);
}

/* Takes so many bytes, in so many characters. */
static void skip(Port *port, int64_t bytes, int64_t characters) {
    port->at += bytes;
    port->offset += (uint64_t)characters;
    port->column += (uint64_t)characters;
}

/* Where a line ends among the unread bytes, or the end of them. */
static int64_t find_line_end(const Port *port) {
    const uint8_t *at = port->buffer + port->at;
    size_t unread = (size_t)(port->filled - port->at);
    const uint8_t *feed = unread ? memchr(at, '\n', unread) : NULL;
    if (feed) unread = (size_t)(feed - at);
    const uint8_t *returned = unread ? memchr(at, '\r', unread) : NULL;
    return port->at + (returned ? returned - at : (int64_t)unread);
}

static Value read_line(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "read-line", args, count, 0, PORT_INPUT);
    Gathered all = {0};
    if (esk_port_peek(context, port) < 0) {
        esk_port_next(context, port);
        return ESK_EOF;
    }
    for (;;) {
        int64_t end = find_line_end(port), start = port->at;
        const uint8_t *at = port->buffer + start;
        if (end < port->filled) {
            Value line;
            if (all.used) {
                gather(context, &all, at, end - start);
                line = gathered_string(context, &all);
            } else {
                line = esk_string_utf8(context, (const char *)at, end - start);
            }
            skip(port, end - start, ((String *)esk_pointer(line))->length);
            bool returned = esk_port_next(context, port) == '\r';
            if (returned && esk_port_peek(context, port) == '\n') esk_port_next(context, port);
            else if (returned) port->line++, port->column = 1;
            return line;
        }
        gather(context, &all, at, end - start);
        skip(port, end - start, 0);
        if (!esk_port_fill(context, port)) break;
    }
    port->flags &= ~(uint32_t)PORT_AT_EOF;
    Value line = gathered_string(context, &all);
    skip(port, 0, ((String *)esk_pointer(line))->length);
    return line;
}

static Value read_string(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "read-string", args, count, 1, PORT_INPUT);
    int64_t wanted = need_size(context, "read-string", 1, args[0]);
    Gathered all = {0};
    if (wanted && esk_port_peek(context, port) < 0) {
        esk_port_next(context, port);
        return ESK_EOF;
    }
    while (wanted > 0 && esk_port_peek(context, port) >= 0) { /* now the first character is there, whole */
        const uint8_t *start = port->buffer + port->at, *at = start, *end = port->buffer + port->filled;
        uint64_t line = port->line, column = port->column, taken = 0;
        for (uint32_t code; wanted > 0 && at < end; wanted--, taken++) {
            int bytes = esk_utf8_decode(at, end, &code);
            if (!bytes && at > start) break; /* the rest of it may still come */
            at = bytes ? at + bytes : end;
            column = code == '\n' ? 1 : column + 1;
            line += code == '\n';
        }
        gather(context, &all, start, at - start);
        port->at += at - start;
        port->offset += taken;
        port->line = line;
        port->column = column;
    }
    return gathered_string(context, &all);
}

/* ---- binary input ----------------------------------------------------------------------------------------------- */

static bool has_byte(Context *context, Port *port) {
    return port->at < port->filled || (!(port->flags & PORT_AT_EOF) && esk_port_fill(context, port));
}

static Value end_of_bytes(Port *port) {
    port->flags &= ~(uint32_t)PORT_AT_EOF;
    return ESK_EOF;
}

static Value read_u8(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "read-u8", args, count, 0, PORT_INPUT | PORT_BINARY);
    return has_byte(context, port) ? esk_fixnum(port->buffer[port->at++]) : end_of_bytes(port);
}

static Value peek_u8(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "peek-u8", args, count, 0, PORT_INPUT | PORT_BINARY);
    return has_byte(context, port) ? esk_fixnum(port->buffer[port->at]) : ESK_EOF;
}

static Value u8_ready(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "u8-ready?", args, count, 0, PORT_INPUT | PORT_BINARY);
    return esk_boolean(esk_port_ready(context, port));
}

static int64_t take_bytes(Port *port, int64_t wanted) {
    int64_t unread = port->filled - port->at;
    return wanted < unread ? wanted : unread;
}

static Value read_bytevector(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "read-bytevector", args, count, 1, PORT_INPUT | PORT_BINARY);
    int64_t wanted = need_size(context, "read-bytevector", 1, args[0]);
    Gathered all = {0};
    if (wanted && !has_byte(context, port)) return end_of_bytes(port);
    while (all.used < wanted && has_byte(context, port)) {
        int64_t piece = take_bytes(port, wanted - all.used);
        gather(context, &all, port->buffer + port->at, piece);
        port->at += piece;
    }
    Value result = esk_make_bytevector(context, all.used, 0);
    if (all.used) memcpy(((Bytevector *)esk_pointer(result))->bytes, all.bytes->bytes, (size_t)all.used);
    return result;
}

static Value read_bytevector_into(Context *context, const Value *args, int64_t count) {
    static const char who[] = "read-bytevector!";
    Bytevector *bytes = need_bytevector(context, who, 1, args[0]);
    Port *port = esk_port_argument(context, who, args, count, 1, PORT_INPUT | PORT_BINARY);
    need_mutable(context, who, args[0]);
    Range range = need_range(context, who, args, count, 2, bytes->length);
    int64_t at = range.start;
    if (at < range.end && !has_byte(context, port)) return end_of_bytes(port);
    while (at < range.end && has_byte(context, port)) {
        int64_t piece = take_bytes(port, range.end - at);
        memcpy(bytes->bytes + at, port->buffer + port->at, (size_t)piece);
        port->at += piece;
        at += piece;
    }
    return esk_fixnum(at - range.start);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static Value newline(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "newline", args, count, 0, PORT_OUTPUT);
    esk_port_put(context, port, '\n');
    esk_port_settle(context, port);
    return ESK_UNSPECIFIED;
}

static Value fresh_line(Context *context, const Value *args, int64_t count) {
    Port *port = esk_port_argument(context, "fresh-line", args, count, 0, PORT_OUTPUT);
    if (esk_port_mid_line(port)) esk_port_put(context, port, '\n');
    esk_port_settle(context, port);
    return ESK_UNSPECIFIED;
}

static Value write_char(Context *context, const Value *args, int64_t count) {
    uint32_t code = need_char(context, "write-char", 1, args[0]);
    Port *port = esk_port_argument(context, "write-char", args, count, 1, PORT_OUTPUT);
    esk_port_put(context, port, code);
    esk_port_settle(context, port);
    return ESK_UNSPECIFIED;
}

static Value write_string(Context *context, const Value *args, int64_t count) {
    String *string = need_string(context, "write-string", 1, args[0]);
    Port *port = esk_port_argument(context, "write-string", args, count, 1, PORT_OUTPUT);
    Range range = need_range(context, "write-string", args, count, 2, string->length);
    for (int64_t i = range.start; i < range.end; i++) esk_port_put(context, port, string->chars[i]);
    esk_port_settle(context, port);
    return ESK_UNSPECIFIED;
}

static Value write_u8(Context *context, const Value *args, int64_t count) {
    char byte = (char)need_byte(context, "write-u8", 1, args[0]);
    Port *port = esk_port_argument(context, "write-u8", args, count, 1, PORT_OUTPUT | PORT_BINARY);
    esk_port_write(context, port, &byte, 1);
    esk_port_settle(context, port);
    return ESK_UNSPECIFIED;
}

static Value write_bytevector(Context *context, const Value *args, int64_t count) {
    Bytevector *bytes = need_bytevector(context, "write-bytevector", 1, args[0]);
    Port *port = esk_port_argument(context, "write-bytevector", args, count, 1, PORT_OUTPUT | PORT_BINARY);
    Range range = need_range(context, "write-bytevector", args, count, 2, bytes->length);
    esk_port_write(context, port, (const char *)bytes->bytes + range.start, (size_t)(range.end - range.start));
    esk_port_settle(context, port);
    return ESK_UNSPECIFIED;
}

/* ---- several threads -------------------------------------------------------------------------------------------- */

/* A port that esk_port_argument has given is this thread's own until the procedure ends. */
static Value released(Context *context, Value result) {
    esk_release(context);
    return result;
}

#define HELD_N(name)                                                              \
    static Value held_##name(Context *context, const Value *args, int64_t count) { \
        return released(context, name(context, args, count));                      \
    }
#define HELD_1(name)                                         \
    static Value held_##name(Context *context, Value port) { \
        if (!esk_is(port, TAG_PORT)) return name(context, port); /* an error */ \
        esk_hold(context, esk_pointer(port));                \
        return released(context, name(context, port));       \
    }
HELD_N(read_char) HELD_N(peek_char) HELD_N(char_ready) HELD_N(read_line) HELD_N(read_string)
HELD_N(read_u8) HELD_N(peek_u8) HELD_N(u8_ready) HELD_N(read_bytevector) HELD_N(read_bytevector_into)
HELD_N(newline) HELD_N(fresh_line) HELD_N(write_char) HELD_N(write_string) HELD_N(write_u8)
HELD_N(write_bytevector) HELD_N(flush_output_port)
HELD_1(get_output_string) HELD_1(get_output_bytevector) HELD_1(close_port) HELD_1(close_input_port)
HELD_1(close_output_port)

/* ---- the table -------------------------------------------------------------------------------------------------- */

const Primitive esk_ports_primitives[] = {
    ESK_PRIMITIVE_1("port?", "(port? value)", is_port, "Whether the value is a port."),
    ESK_PRIMITIVE_1("input-port?", "(input-port? value)", is_input_port, "Whether the value is an input port."),
    ESK_PRIMITIVE_1("output-port?", "(output-port? value)", is_output_port, "Whether the value is an output port."),
    ESK_PRIMITIVE_1("textual-port?", "(textual-port? value)", is_textual_port,
                    "Whether the value is a port for characters."),
    ESK_PRIMITIVE_1("binary-port?", "(binary-port? value)", is_binary_port, "Whether the value is a port for bytes."),
    ESK_PRIMITIVE_1("input-port-open?", "(input-port-open? port)", is_input_open,
                    "Whether the input port can still be read from."),
    ESK_PRIMITIVE_1("output-port-open?", "(output-port-open? port)", is_output_open,
                    "Whether the output port can still be written to."),
    ESK_PRIMITIVE_1("port-name", "(port-name port)", port_name,
                    "The name of the port's file, or what kind of port it is, as a string."),
    ESK_PRIMITIVE_1("port-line", "(port-line port)", port_line,
                    "The line of the next character of a textual input port, from 1."),
    ESK_PRIMITIVE_1("port-column", "(port-column port)", port_column,
                    "The column of the next character of a textual input port, from 1."),
    ESK_PRIMITIVE_0("eof-object", "(eof-object)", eof_object, "The object that stands for the end of input."),
    ESK_PRIMITIVE_1("eof-object?", "(eof-object? value)", is_eof_object,
                    "Whether the value is the object that stands for the end of input."),
    ESK_PRIMITIVE_1("%standard-port", "(%standard-port n)", standard_port,
                    "Standard input (0), output (1) or error (2) of the process."),
    ESK_PRIMITIVE_1("%current-port", "(%current-port n)", get_current_port,
                    "The port that procedures use that are given none: for input (0), output (1), errors (2)."),
    ESK_PRIMITIVE_2("%set-current-port!", "(%set-current-port! n port)", set_current_port,
                    "What procedures use that are given no port: for input (0), output (1), errors (2)."),
    ESK_PRIMITIVE_1("open-input-file", "(open-input-file filename)", open_input_file,
                    "A textual port that reads the file, as UTF-8."),
    ESK_PRIMITIVE_1("open-output-file", "(open-output-file filename)", open_output_file,
                    "A textual port that writes the file anew, as UTF-8."),
    ESK_PRIMITIVE_1("open-binary-input-file", "(open-binary-input-file filename)", open_binary_input_file,
                    "A binary port that reads the file."),
    ESK_PRIMITIVE_1("open-binary-output-file", "(open-binary-output-file filename)", open_binary_output_file,
                    "A binary port that writes the file anew."),
    ESK_PRIMITIVE_1("open-input-string", "(open-input-string string)", open_input_string,
                    "A textual port that reads the characters of the string."),
    ESK_PRIMITIVE_0("open-output-string", "(open-output-string)", open_output_string,
                    "A textual port that gathers what is written; see get-output-string."),
    ESK_PRIMITIVE_1("get-output-string", "(get-output-string port)", held_get_output_string,
                    "All that was written to a port of open-output-string, as a new string."),
    ESK_PRIMITIVE_1("open-input-bytevector", "(open-input-bytevector bytevector)", open_input_bytevector,
                    "A binary port that reads the bytes of the bytevector."),
    ESK_PRIMITIVE_0("open-output-bytevector", "(open-output-bytevector)", open_output_bytevector,
                    "A binary port that gathers what is written; see get-output-bytevector."),
    ESK_PRIMITIVE_1("get-output-bytevector", "(get-output-bytevector port)", held_get_output_bytevector,
                    "All that was written to a port of open-output-bytevector, as a new bytevector."),
    ESK_PRIMITIVE_1("close-port", "(close-port port)", held_close_port,
                    "Closes the port, after what is still to be written was; closing twice does no harm."),
    ESK_PRIMITIVE_1("close-input-port", "(close-input-port port)", held_close_input_port, "Closes the input port."),
    ESK_PRIMITIVE_1("close-output-port", "(close-output-port port)", held_close_output_port, "Closes the output port."),
    ESK_PRIMITIVE_N("flush-output-port", "(flush-output-port [port])", 0, 1, held_flush_output_port,
                    "Writes out what the port still holds back."),
    ESK_PRIMITIVE_1("file-exists?", "(file-exists? filename)", file_exists, "Whether there is a file of that name."),
    ESK_PRIMITIVE_1("delete-file", "(delete-file filename)", delete_file, "Deletes the file."),
    ESK_PRIMITIVE_2("rename-file", "(rename-file from to)", rename_file,
                    "Gives the file another name; a file that had that name is replaced."),
    ESK_PRIMITIVE_N("read-char", "(read-char [port])", 0, 1, held_read_char,
                    "Takes the next character, or gives eof-object."),
    ESK_PRIMITIVE_N("peek-char", "(peek-char [port])", 0, 1, held_peek_char,
                    "The next character, or eof-object; the port keeps it."),
    ESK_PRIMITIVE_N("char-ready?", "(char-ready? [port])", 0, 1, held_char_ready,
                    "Whether read-char would answer without waiting."),
    ESK_PRIMITIVE_N("read-line", "(read-line [port])", 0, 1, held_read_line,
                    "The characters up to the end of the line, which is taken too, as a string; or eof-object."),
    ESK_PRIMITIVE_N("read-string", "(read-string k [port])", 1, 2, held_read_string,
                    "The next k characters, or as many as there are, as a string; or eof-object."),
    ESK_PRIMITIVE_N("read-u8", "(read-u8 [port])", 0, 1, held_read_u8, "Takes the next byte, or gives eof-object."),
    ESK_PRIMITIVE_N("peek-u8", "(peek-u8 [port])", 0, 1, held_peek_u8,
                    "The next byte, or eof-object; the port keeps it."),
    ESK_PRIMITIVE_N("u8-ready?", "(u8-ready? [port])", 0, 1, held_u8_ready,
                    "Whether read-u8 would answer without waiting."),
    ESK_PRIMITIVE_N("read-bytevector", "(read-bytevector k [port])", 1, 2, held_read_bytevector,
                    "The next k bytes, or as many as there are, as a bytevector; or eof-object."),
    ESK_PRIMITIVE_N("read-bytevector!", "(read-bytevector! bytevector [port [start [end]]])", 1, 4,
                    held_read_bytevector_into,
                    "Reads bytes into a part of the bytevector; gives their number, or eof-object."),
    ESK_PRIMITIVE_N("newline", "(newline [port])", 0, 1, held_newline, "Ends a line of output."),
    ESK_PRIMITIVE_N("fresh-line", "(fresh-line [port])", 0, 1, held_fresh_line,
                    "Ends a line of output, unless nothing was written since the last one ended."),
    ESK_PRIMITIVE_N("write-char", "(write-char char [port])", 1, 2, held_write_char, "Writes the character itself."),
    ESK_PRIMITIVE_N("write-string", "(write-string string [port [start [end]]])", 1, 4, held_write_string,
                    "Writes the characters of a part of the string."),
    ESK_PRIMITIVE_N("write-u8", "(write-u8 byte [port])", 1, 2, held_write_u8, "Writes the byte to a binary port."),
    ESK_PRIMITIVE_N("write-bytevector", "(write-bytevector bytevector [port [start [end]]])",
                    1, 4, held_write_bytevector,
                    "Writes a part of the bytevector to a binary port."),
    {0},
};
