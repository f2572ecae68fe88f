/* Data in, text out: write, display and their kin, and esk_write_text.
 *
 * What is to be labelled (#0= ... #0#) is found first, by labels.c; most data are small trees, which it sees at once.
 * Then the datum is printed with a stack of its own (a vector on the heap): a frame is two values, an object that is
 * not printed to its end, and where in it we are. Nothing here recurses, and an interrupt is noticed at every step.
 */
#include <stdio.h>

#include "labels.h"
#include "lexemes.h"
#include "ports.h"
#include "python.h"
#include "tensor_numbers.h"
#include "threads.h"
#include "utf8.h"

enum Style { STYLE_DISPLAY, STYLE_WRITE, STYLE_SHARED, STYLE_SIMPLE };

/* How a frame goes on: the kind stands in the low bits, the next part of the object above (of a list: 1 when what
 * follows its dot is printed). */
enum FrameKind {
    FRAME_LIST, /* the pair whose car is printed */
    FRAME_VECTOR,
    FRAME_RECORD,
    FRAME_ANGLE,    /* the parts of a box, of multiple values or of a differentiated number, then > */
    FRAME_IRRITANTS /* the rest of an error object's irritants, then > */
};
enum { FRAME_KIND_BITS = 3 };

typedef struct Printer {
    Context *context;
    Port *port;
    enum Style style;
    bool escape;   /* write rather than display */
    bool in_table; /* of tables in tables only that there is one is told: they may contain each other */
    Labels labels;
    Vector *stack;
    int64_t used;
} Printer;

static void put(Printer *printer, uint32_t code) { esk_port_put(printer->context, printer->port, code); }

static void put_bytes(Printer *printer, const char *bytes, size_t count) {
    esk_port_write(printer->context, printer->port, bytes, count);
}

static void put_text(Printer *printer, const char *text) { put_bytes(printer, text, strlen(text)); }

static void put_integer(Printer *printer, int64_t number) {
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) *--at = '-';
    put_bytes(printer, at, (size_t)(digits + sizeof digits - at));
}

/* ---- atoms ------------------------------------------------------------------------------------------------------ */

static void put_hex(Printer *printer, const char *before, uint32_t code, const char *after) {
    char text[24];
    snprintf(text, sizeof text, "%s%x%s", before, (unsigned)code, after);
    put_text(printer, text);
}

/* A character of a string or between bars; `quote` ends it. */
static void put_escaped(Printer *printer, uint32_t code, uint32_t quote) {
    static const char from[] = "\a\b\t\n\r", to[] = "abtnr";
    const char *simple = code && code < 0x20 ? strchr(from, (int)code) : NULL;
    if (code == quote || code == '\\') {
        put(printer, '\\');
        put(printer, code);
    } else if (simple) {
        put(printer, '\\');
        put(printer, (uint32_t)to[simple - from]);
    } else if (code == ' ' || (code > 0x20 && code < 0x7F) || (code > 0x7F && esk_is_symbol_char(code))) {
        put(printer, code);
    } else {
        put_hex(printer, "\\x", code, ";");
    }
}

static void put_string(Printer *printer, const String *string, bool escape) {
    if (escape) put(printer, '"');
    for (int64_t i = 0; i < string->length; i++) {
        if (escape) put_escaped(printer, string->chars[i], '"');
        else put(printer, string->chars[i]);
    }
    if (escape) put(printer, '"');
}

static void put_char(Printer *printer, uint32_t code) {
    const char *name = esk_char_name(code);
    if (!printer->escape) {
        put(printer, code);
        return;
    }
    put_text(printer, "#\\");
    if (name) put_text(printer, name);
    else if ((code > 0x20 && code < 0x7F) || (code > 0x7F && esk_is_symbol_char(code))) put(printer, code);
    else put_hex(printer, "x", code, "");
}

/* The name of a symbol, or of a keyword behind its colon. */
static void put_name(Printer *printer, const Symbol *symbol) {
    bool colons = symbol->head.type == TAG_KEYWORD && symbol->name[0] == ':'; /* the two would begin a symbol */
    if (!printer->escape || (!colons && !esk_needs_bars(symbol->name, symbol->head.count))) {
        put_bytes(printer, symbol->name, symbol->head.count);
        return;
    }
    const uint8_t *at = (const uint8_t *)symbol->name, *end = at + symbol->head.count;
    put(printer, '|');
    while (at < end) {
        uint32_t code;
        int bytes = esk_utf8_decode(at, end, &code);
        put_escaped(printer, code, '|');
        at = bytes ? at + bytes : end;
    }
    put(printer, '|');
}

static void put_bytevector(Printer *printer, const Bytevector *bytes) {
    put_text(printer, "#u8(");
    for (int64_t i = 0; i < bytes->length; i++) {
        if (i) put(printer, ' ');
        put_integer(printer, bytes->bytes[i]);
    }
    put(printer, ')');
}

static void put_port(Printer *printer, const Port *port) {
    if (port->flags & (PORT_INPUT | PORT_OUTPUT)) {
        put_text(printer, port->flags & PORT_BINARY ? "#<binary " : "#<textual ");
        put_text(printer, port->flags & PORT_INPUT ? "input port " : "output port ");
    } else {
        put_text(printer, "#<listener ");
    }
    put_string(printer, esk_pointer(port->name), printer->escape);
    put_text(printer, port->flags & PORT_OPEN ? ">" : " (closed)>");
}

static const char *special_text(Value value) {
    switch (value.bits) {
    case SPECIAL_EOF: return "#<eof>";
    case SPECIAL_DEFAULT: return "#<default>";
    case SPECIAL_UNDEFINED: return "#<undefined>";
    default: return "#<unspecified>";
    }
}

/* The name of a record type: of <point> it is point. */
static void put_type_name(Printer *printer, const RecordType *type) {
    const Symbol *symbol = esk_pointer(type->name);
    const char *name = symbol->name;
    size_t length = symbol->head.count;
    if (length > 2 && name[0] == '<' && name[length - 1] == '>') {
        name++;
        length -= 2;
    }
    put_bytes(printer, name, length);
}

/* A procedure of Python's, such as a layer: what its class says of it. */
static void put_python(Printer *printer, Value value) {
    String *text = esk_pointer(esk_python_text(printer->context, value, true));
    bool bare = text->length && text->chars[0] != '#'; /* write shows that it cannot be read */
    if (bare && printer->escape) put_text(printer, "#<");
    put_string(printer, text, false);
    if (bare && printer->escape) put(printer, '>');
}

static void print(Context *context, Port *port, Value value, enum Style style, bool in_table);

static void put_table(Printer *printer, Value table) {
    int64_t index = 0;
    Value key, value;
    put_text(printer, "#<hash table");
    while (!printer->in_table && esk_table_next(table, &index, &key, &value)) {
        put_text(printer, " (");
        print(printer->context, printer->port, key, printer->style, true);
        put_text(printer, " . ");
        print(printer->context, printer->port, value, printer->style, true);
        put(printer, ')');
    }
    put(printer, '>');
}

/* Anything that has no parts to be printed. */
static void put_atom(Printer *printer, Value value) {
    static const char *const words[TAG_COUNT] = {
#define X(name, number, pointer, word) [number] = word,
        ESK_TAGS(X)
#undef X
    };
    switch (value.tag) {
    case TAG_NULL: put_text(printer, "()"); return;
    case TAG_BOOLEAN: put_text(printer, value.bits ? "#t" : "#f"); return;
    case TAG_FIXNUM: put_integer(printer, esk_integer(value)); return;
    case TAG_FLONUM: case TAG_BIGNUM: case TAG_RATIONAL: case TAG_COMPLEX:
        put_string(printer, esk_pointer(esk_number_text(printer->context, value, 10)), false);
        return;
    case TAG_STRING: put_string(printer, esk_pointer(value), printer->escape); return;
    case TAG_CHAR: put_char(printer, (uint32_t)value.bits); return;
    case TAG_SYMBOL: put_name(printer, esk_pointer(value)); return;
    case TAG_KEYWORD:
        put(printer, ':');
        put_name(printer, esk_pointer(value));
        return;
    case TAG_BYTEVECTOR: put_bytevector(printer, esk_pointer(value)); return;
    case TAG_VECTOR: put_text(printer, "#()"); return; /* the others have parts */
    case TAG_SPECIAL: put_text(printer, special_text(value)); return;
    case TAG_PORT: put_port(printer, esk_pointer(value)); return;
    case TAG_TABLE: put_table(printer, value); return;
    case TAG_PROCEDURE: {
        const Procedure *procedure = ((Closure *)esk_pointer(value))->procedure;
        Value of_library = esk_library_name(value);
        if (python_is_procedure(value) && esk_is_false(of_library)) {
            put_python(printer, value);
            return;
        }
        put_text(printer, "#<procedure");
        if (!esk_is_false(of_library)) {
            put(printer, ' ');
            put_name(printer, esk_pointer(of_library));
        } else if (procedure && procedure->name && *procedure->name) {
            put(printer, ' ');
            put_text(printer, procedure->name);
        }
        put(printer, '>');
        return;
    }
    case TAG_RECORD:
        put_text(printer, "#<");
        put_type_name(printer, ((Record *)esk_pointer(value))->type);
        put(printer, '>');
        return;
    case TAG_FOREIGN:
        if (!is_python(value)) break;
        put_text(printer, "#<python ");
        put_string(printer, esk_pointer(esk_python_text(printer->context, value, false)), false);
        put(printer, '>');
        return;
    case TAG_RECORD_TYPE:
        put_text(printer, "#<record type ");
        put_type_name(printer, esk_pointer(value));
        put(printer, '>');
        return;
    default: break;
    }
    put_text(printer, "#<");
    put_text(printer, value.tag < TAG_COUNT && words[value.tag] ? words[value.tag] : "unknown object");
    put(printer, '>');
}

/* ---- compound data ---------------------------------------------------------------------------------------------- */

static void push(Printer *printer, Value object, int kind, int64_t part) {
    if (!printer->stack || printer->used + 2 > printer->stack->length) {
        int64_t room = printer->used ? printer->used * 2 : 32;
        Vector *more = esk_pointer(esk_make_vector(printer->context, room, ESK_FALSE));
        if (printer->used) memcpy(more->items, printer->stack->items, (size_t)printer->used * sizeof(Value));
        printer->stack = more;
    }
    esk_store(printer->context, &printer->stack->items[printer->used++], object);
    printer->stack->items[printer->used++] = esk_fixnum(part << FRAME_KIND_BITS | kind);
}

/* The label of an object; true where it was printed before and the label is all that is to be printed now. */
static bool put_label(Printer *printer, Value value) {
    uint64_t *label = esk_find_label(&printer->labels, value);
    if (!label) return false;
    bool known = *label;
    if (!known) *label = ++printer->labels.used;
    put(printer, '#');
    put_integer(printer, (int64_t)*label - 1);
    put(printer, known ? '#' : '=');
    return known;
}

static void put_field_name(Printer *printer, const Record *record, int64_t index) {
    Value names = record->type->fields;
    const Vector *vector = esk_pointer(names);
    put(printer, ' ');
    if (!esk_is(names, TAG_VECTOR) || index >= vector->length || !esk_is(vector->items[index], TAG_SYMBOL)) return;
    put_name(printer, esk_pointer(vector->items[index]));
    put_text(printer, ": ");
}

/* #<wrong-type car: the message irritant ...>; true: the message is a part that is still to be printed. */
static bool open_error(Printer *printer, Value value, Value *part) {
    const Record *record = esk_pointer(value);
    Value kind = record->fields[0], message = record->fields[1], who = record->fields[3];
    put_text(printer, "#<");
    if (esk_is(kind, TAG_SYMBOL)) put_name(printer, esk_pointer(kind));
    else put_text(printer, "error");
    put(printer, ' ');
    if (esk_is(who, TAG_SYMBOL)) {
        put_name(printer, esk_pointer(who));
        put_text(printer, ": ");
    }
    push(printer, record->fields[2], FRAME_IRRITANTS, 0);
    if (esk_is(message, TAG_STRING)) {
        put_string(printer, esk_pointer(message), false);
        return false;
    }
    *part = message;
    return true;
}

/* A tensor is shown as data that look like it; true: they are the part that is still to be printed. */
static bool open_tensor(Printer *printer, Value value, Value *part) {
    Value shown = tensor_shown(printer->context, value, printer->escape);
    if (esk_is(shown, TAG_STRING)) {
        put_string(printer, esk_pointer(shown), false);
        return false;
    }
    *part = shown;
    if (!printer->escape) return true;
    put_string(printer, esk_pointer(esk_car(shown)), false);
    push(printer, value, FRAME_ANGLE, 0); /* which has no more parts than this one */
    *part = esk_car(esk_cdr(shown));
    return true;
}

/* Begins to print a value. True: then this part comes first. */
static bool open_value(Printer *printer, Value value, Value *part) {
    int64_t count;
    Value *parts = esk_parts(value, &count);
    bool pair = esk_is(value, TAG_PAIR);
    if (esk_is(value, TAG_TENSOR)) return open_tensor(printer, value, part);
    if (!pair && !count) {
        put_atom(printer, value);
        return false;
    }
    if (printer->labels.count && put_label(printer, value)) return false;
    if (pair) {
        put(printer, '(');
        push(printer, value, FRAME_LIST, 0);
        *part = esk_car(value);
        return true;
    }
    *part = parts[0];
    switch (value.tag) {
    case TAG_VECTOR:
        put_text(printer, "#(");
        push(printer, value, FRAME_VECTOR, 1);
        return true;
    case TAG_RECORD:
        if (esk_is_error(printer->context, value)) return open_error(printer, value, part);
        put_text(printer, "#<");
        put_type_name(printer, ((Record *)esk_pointer(value))->type);
        put_field_name(printer, esk_pointer(value), 0);
        push(printer, value, FRAME_RECORD, 1);
        return true;
    default:
        put_text(printer, value.tag == TAG_BOX ? "#<box " : value.tag == TAG_DUAL ? "#<dual "
                          : value.tag == TAG_AD_NODE ? "#<node " : "#<values ");
        push(printer, value, FRAME_ANGLE, 1);
        return true;
    }
}

/* The next part of what is being printed; false where a frame has ended. */
static bool next_part(Printer *printer, Value *part) {
    Value *frame = &printer->stack->items[printer->used - 2], object = frame[0];
    int kind = (int)(frame[1].bits & ((1 << FRAME_KIND_BITS) - 1));
    int64_t index = esk_integer(frame[1]) >> FRAME_KIND_BITS, count;
    if (kind == FRAME_LIST || kind == FRAME_IRRITANTS) {
        Value rest = kind == FRAME_LIST ? esk_cdr(object) : object;
        bool open = index == 0; /* no dot yet */
        if (open && esk_is(rest, TAG_PAIR) && !(printer->labels.count && esk_find_label(&printer->labels, rest))) {
            put(printer, ' ');
            frame[0] = kind == FRAME_LIST ? rest : esk_cdr(rest);
            *part = esk_car(rest);
            return true;
        }
        if (open && !esk_is(rest, TAG_NULL)) {
            put_text(printer, " . ");
            frame[1] = esk_fixnum(1 << FRAME_KIND_BITS | kind);
            *part = rest;
            return true;
        }
        put(printer, kind == FRAME_LIST ? ')' : '>');
    } else {
        Value *parts = esk_parts(object, &count);
        if (index < count) {
            if (kind == FRAME_RECORD) put_field_name(printer, esk_pointer(object), index);
            else put(printer, ' ');
            frame[1] = esk_fixnum((index + 1) << FRAME_KIND_BITS | kind);
            *part = parts[index];
            return true;
        }
        put(printer, kind == FRAME_VECTOR ? ')' : '>');
    }
    printer->used -= 2;
    return false;
}

static void print(Context *context, Port *port, Value value, enum Style style, bool in_table) {
    Printer printer = {.context = context, .port = port, .style = style, .escape = style != STYLE_DISPLAY,
                       .in_table = in_table};
    if (style != STYLE_SIMPLE) esk_find_labels(context, value, style == STYLE_SHARED, &printer.labels);
    for (;;) {
        Value part;
        if (context->interrupted) esk_poll(context);
        bool more = open_value(&printer, value, &part);
        while (!more) {
            if (!printer.used) return;
            more = next_part(&printer, &part);
        }
        value = part;
    }
}

Value esk_write_text(Context *context, Value value, int style) {
    Value port = esk_open_text_output(context);
    print(context, esk_pointer(port), value, (enum Style)style, false);
    return esk_port_text(context, esk_pointer(port));
}

/* ---- procedures ------------------------------------------------------------------------------------------------- */

static Value print_to(Context *context, const char *who, const Value *args, int64_t count, enum Style style) {
    Port *port = esk_port_argument(context, who, args, count, 1, PORT_OUTPUT);
    print(context, port, args[0], style, false);
    esk_port_settle(context, port);
    esk_release(context);
    return ESK_UNSPECIFIED;
}

#define PRINTER(function, name, style)                                                   \
    static Value function(Context *context, const Value *args, int64_t count) {          \
        return print_to(context, name, args, count, style);                              \
    }
PRINTER(display, "display", STYLE_DISPLAY)
PRINTER(write_datum, "write", STYLE_WRITE)
PRINTER(write_shared, "write-shared", STYLE_SHARED)
PRINTER(write_simple, "write-simple", STYLE_SIMPLE)

static Value value_text(Context *context, Value value, Value style) {
    if (!esk_is(style, TAG_FIXNUM) || style.bits > STYLE_SIMPLE)
        esk_wrong_type(context, "%text", 2, style, "0, 1, 2 or 3");
    return esk_write_text(context, value, (int)style.bits);
}

const Primitive esk_printer_primitives[] = {
    ESK_PRIMITIVE_N("display", "(display value [port])", 1, 2, display,
                    "Writes the value for people: strings and characters as they are. Cycles get labels."),
    ESK_PRIMITIVE_N("write", "(write value [port])", 1, 2, write_datum,
                    "Writes the value so that read gives it back, with labels where it contains itself."),
    ESK_PRIMITIVE_N("write-shared", "(write-shared value [port])", 1, 2, write_shared,
                    "Writes the value with labels for all parts that occur more than once."),
    ESK_PRIMITIVE_N("write-simple", "(write-simple value [port])", 1, 2, write_simple,
                    "Writes the value without any labels; does not end where it contains itself."),
    ESK_PRIMITIVE_2("%text", "(%text value style)", value_text,
                    "What display (0), write (1), write-shared (2) or write-simple (3) would print, as a string."),
    {0},
};
