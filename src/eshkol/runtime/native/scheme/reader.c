/* Tokens in, data out: `read`, and the constants of compiled code, which travel as text.
 *
 * Data that are not finished wait on a stack of the reader's own (a vector on the heap), so that nesting is bounded by
 * memory alone. A frame on it is two values, what kind of datum it is with the place of the frame below, and where it
 * began; then come the data read so far. A reference to a label whose datum is not finished yet is a box (which no text
 * can denote otherwise); whatever gets such a box as a part is noted, and repaired when the whole datum is there.
 */
#include "reader.h"

#include <stdio.h>

#include "lexer.h"
#include "ports.h"
#include "threads.h"
#include "utf8.h"

enum FrameKind {
    FRAME_LIST,     /* ( */
    FRAME_BRACKETS, /* [ */
    FRAME_VECTOR,
    FRAME_BYTES,
    FRAME_TAIL,          /* a list behind its dot; the frame of the list itself is below */
    FRAME_TAIL_BRACKETS, /* the same in brackets */
    FRAME_COMMENT,       /* of this kind on: one datum follows and ends the frame */
    FRAME_LABEL,         /* a box follows the frame */
    FRAME_PREFIX         /* plus the kind of a token: 'x and its kin */
};
enum { FRAME_VALUES = 2, FRAME_KIND_BITS = 8 };

typedef struct Reader {
    Context *context;
    Lexer lexer;
    Port *port; /* or null, then */
    TextSource source;
    bool literal; /* what is read becomes constants */
    Vector *stack;
    int64_t used, frame; /* the place of the innermost frame, or -1 */
    Vector *labels;      /* a hash table: number, box, number, box ...; #f for a number is a free place */
    int64_t label_count;
    Value patches; /* list of pairs and vectors that hold boxes */
} Reader;

/* ---- errors ----------------------------------------------------------------------------------------------------- */

static _Noreturn void fail_at(Reader *reader, uint64_t line, uint64_t column, const char *text, size_t length) {
    char message[320];
    snprintf(message, sizeof message, "line %llu, column %llu: %.*s", (unsigned long long)line,
             (unsigned long long)column, (int)(length > 240 ? 240 : length), text);
    bool file = reader->port && reader->port->descriptor >= 0;
    esk_fail(reader->context, ERROR_READ, "read", message, file, file ? reader->port->name : ESK_NULL);
}

static _Noreturn void fail_here(Reader *reader, const char *message) {
    fail_at(reader, reader->lexer.token_line, reader->lexer.token_column, message, strlen(message));
}

/* ---- the stack -------------------------------------------------------------------------------------------------- */

static void push(Reader *reader, Value value) {
    if (!reader->stack || reader->used == reader->stack->length) {
        Vector *more = esk_pointer(esk_make_vector(reader->context, reader->used ? reader->used * 2 : 32, ESK_FALSE));
        if (reader->used) memcpy(more->items, reader->stack->items, (size_t)reader->used * sizeof(Value));
        reader->stack = more;
    }
    esk_store(reader->context, &reader->stack->items[reader->used++], value);
}

static void push_frame(Reader *reader, int kind) {
    int64_t frame = reader->used;
    push(reader, esk_fixnum((reader->frame + 1) * (1 << FRAME_KIND_BITS) + kind));
    push(reader, esk_fixnum((int64_t)(reader->lexer.token_line << 32 | (reader->lexer.token_column & UINT32_MAX))));
    reader->frame = frame;
}

static int frame_kind(const Reader *reader) {
    return (int)(esk_integer(reader->stack->items[reader->frame]) & ((1 << FRAME_KIND_BITS) - 1));
}

static void pop_frame(Reader *reader) {
    reader->used = reader->frame;
    reader->frame = (esk_integer(reader->stack->items[reader->frame]) >> FRAME_KIND_BITS) - 1;
}

static _Noreturn void fail_unfinished(Reader *reader) {
    int kind = frame_kind(reader);
    if (kind == FRAME_TAIL || kind == FRAME_TAIL_BRACKETS) {
        pop_frame(reader);
        kind = frame_kind(reader);
    }
    uint64_t place = reader->stack->items[reader->frame + 1].bits;
    const char *message = kind == FRAME_LIST       ? "a list that begins here never ends: ) is missing"
                          : kind == FRAME_BRACKETS ? "a list that begins here never ends: ] is missing"
                          : kind == FRAME_VECTOR   ? "a vector that begins here never ends: ) is missing"
                          : kind == FRAME_BYTES    ? "a bytevector that begins here never ends: ) is missing"
                                                   : "the input ends where a datum should follow";
    fail_at(reader, place >> 32, place & UINT32_MAX, message, strlen(message));
}

/* ---- labels ----------------------------------------------------------------------------------------------------- */

static Value resolve(Value value) {
    while (esk_is(value, TAG_BOX) && !esk_eq(((Box *)esk_pointer(value))->value, ESK_UNDEFINED))
        value = ((Box *)esk_pointer(value))->value;
    return value;
}

/* The place of a label in the table: two values. */
static Value *find_label(Vector *labels, int64_t number) {
    uint64_t mask = (uint64_t)labels->length / 2 - 1, at = (uint64_t)number * 0x9E3779B97F4A7C15u >> 32 & mask;
    for (;; at = (at + 1) & mask) {
        Value *place = &labels->items[2 * at];
        if (!esk_is(place[0], TAG_FIXNUM) || esk_integer(place[0]) == number) return place;
    }
}

static void grow_labels(Reader *reader) {
    Vector *old = reader->labels;
    Vector *labels = esk_pointer(esk_make_vector(reader->context, old ? old->length * 2 : 16, ESK_FALSE));
    for (int64_t i = 0; old && i < old->length; i += 2)
        if (esk_is(old->items[i], TAG_FIXNUM))
            memcpy(find_label(labels, esk_integer(old->items[i])), &old->items[i], 2 * sizeof(Value));
    reader->labels = labels;
}

static int64_t label_number(Reader *reader, Token token) {
    int64_t number = 0;
    for (uint32_t i = 0; i < token.text_length; i++) {
        if (number > INT64_MAX / 10 - 1) fail_here(reader, "the number of the label is too big");
        number = number * 10 + (reader->lexer.text[token.text + i] - '0');
    }
    return number;
}

static void begin_label(Reader *reader, Token token) {
    int64_t number = label_number(reader, token);
    if (!reader->labels || reader->label_count * 4 >= reader->labels->length) grow_labels(reader);
    Value *place = find_label(reader->labels, number);
    if (esk_is(place[0], TAG_FIXNUM)) fail_here(reader, "this label stands for another datum already");
    Value box = esk_box(reader->context, ESK_UNDEFINED);
    place[0] = esk_fixnum(number);
    esk_store(reader->context, &place[1], box);
    reader->label_count++;
    push_frame(reader, FRAME_LABEL);
    push(reader, box);
}

static Value use_label(Reader *reader, Token token) {
    int64_t number = label_number(reader, token);
    Value *place = reader->labels ? find_label(reader->labels, number) : NULL;
    if (!place || !esk_is(place[0], TAG_FIXNUM)) fail_here(reader, "no datum before this has the label");
    return resolve(place[1]);
}

static void note(Reader *reader, Value container) {
    reader->patches = esk_cons(reader->context, container, reader->patches);
}

/* Puts in the place of boxes what they stand for. */
static void repair(Reader *reader) {
    for (; esk_is(reader->patches, TAG_PAIR); reader->patches = esk_cdr(reader->patches)) {
        Value container = esk_car(reader->patches);
        if (esk_is(container, TAG_PAIR)) {
            esk_set_car(reader->context, container, resolve(esk_car(container)));
            esk_set_cdr(reader->context, container, resolve(esk_cdr(container)));
        } else {
            Vector *vector = esk_pointer(container);
            for (int64_t i = 0; i < vector->length; i++) 
                esk_store(reader->context, &vector->items[i], resolve(vector->items[i]));
        }
    }
}

/* ---- compound data ---------------------------------------------------------------------------------------------- */

static Value finish(Reader *reader, Value value) {
    if (reader->literal) ((Object *)esk_pointer(value))->flags |= FLAG_LITERAL;
    return value;
}

static Value make_pair(Reader *reader, Value car, Value cdr) {
    Value pair = esk_cons(reader->context, car, cdr);
    if (esk_is(car, TAG_BOX) || esk_is(cdr, TAG_BOX)) note(reader, pair);
    return finish(reader, pair);
}

static Value make_list(Reader *reader, Value tail) {
    for (int64_t i = reader->used; i > reader->frame + FRAME_VALUES; i--)
        tail = make_pair(reader, reader->stack->items[i - 1], tail);
    return tail;
}

static Value make_vector(Reader *reader) {
    int64_t start = reader->frame + FRAME_VALUES, length = reader->used - start;
    Value value = esk_make_vector(reader->context, length, ESK_FALSE);
    Vector *vector = esk_pointer(value);
    bool boxes = false;
    for (int64_t i = 0; i < length; i++) {
        vector->items[i] = reader->stack->items[start + i];
        boxes |= esk_is(vector->items[i], TAG_BOX);
    }
    if (boxes) note(reader, value);
    return finish(reader, value);
}

static Value make_bytevector(Reader *reader) {
    int64_t start = reader->frame + FRAME_VALUES, length = reader->used - start;
    Value value = esk_make_bytevector(reader->context, length, 0);
    Bytevector *bytes = esk_pointer(value);
    for (int64_t i = 0; i < length; i++) {
        Value item = reader->stack->items[start + i];
        if (!esk_is(item, TAG_FIXNUM) || item.bits > 255)
            fail_here(reader, "this bytevector holds something else than exact integers from 0 to 255");
        bytes->bytes[i] = (uint8_t)item.bits;
    }
    return finish(reader, value);
}

static Value close_frame(Reader *reader, bool bracket) {
    static const char unexpected[] = "a closing parenthesis or bracket without an opening one";
    static const char mismatch[] = "( is closed by ) and [ by ]";
    if (reader->frame < 0) fail_here(reader, unexpected);
    int kind = frame_kind(reader);
    Value value = ESK_NULL;
    if (kind >= FRAME_COMMENT) fail_here(reader, "a datum is missing before this");
    if (bracket != (kind == FRAME_BRACKETS || kind == FRAME_TAIL_BRACKETS)) fail_here(reader, mismatch);
    switch (kind) {
    case FRAME_TAIL: case FRAME_TAIL_BRACKETS:
        if (reader->used == reader->frame + FRAME_VALUES)
            fail_here(reader, "a datum is missing between the dot and this");
        value = reader->stack->items[reader->used - 1];
        pop_frame(reader);
        value = make_list(reader, value);
        break;
    case FRAME_LIST: case FRAME_BRACKETS: value = make_list(reader, value); break;
    case FRAME_VECTOR: value = make_vector(reader); break;
    default: value = make_bytevector(reader); break;
    }
    pop_frame(reader);
    return value;
}

static void take_dot(Reader *reader) {
    int kind = reader->frame < 0 ? FRAME_VECTOR : frame_kind(reader);
    if ((kind != FRAME_LIST && kind != FRAME_BRACKETS) || reader->used == reader->frame + FRAME_VALUES)
        fail_here(reader, "a dot can stand only before the last datum of a list, behind another");
    push_frame(reader, kind == FRAME_LIST ? FRAME_TAIL : FRAME_TAIL_BRACKETS);
}

static Value quoted(Reader *reader, int kind, Value value) {
    static const char *const names[] = {
        [TOKEN_QUOTE] = "quote",   [TOKEN_QUASIQUOTE] = "quasiquote",
        [TOKEN_UNQUOTE] = "unquote", [TOKEN_UNQUOTE_SPLICING] = "unquote-splicing",
        [TOKEN_SYNTAX] = "syntax", [TOKEN_QUASISYNTAX] = "quasisyntax",
        [TOKEN_UNSYNTAX] = "unsyntax", [TOKEN_UNSYNTAX_SPLICING] = "unsyntax-splicing",
    };
    const char *name = names[kind];
    Value symbol = esk_symbol(reader->context, name, (int64_t)strlen(name));
    return make_pair(reader, symbol, make_pair(reader, value, ESK_NULL));
}

/* A datum is finished: it goes to the frame that waits for it. True: it was the outermost. */
static bool deliver(Reader *reader, Value value, Value *result) {
    while (reader->frame >= 0) {
        int kind = frame_kind(reader);
        if (kind == FRAME_COMMENT) {
            pop_frame(reader);
            return false;
        }
        if (kind == FRAME_LABEL) {
            Value label = reader->stack->items[reader->frame + FRAME_VALUES];
            if (esk_eq(value, label)) fail_here(reader, "a label that stands for itself means nothing");
            esk_store(reader->context, &((Box *)esk_pointer(label))->value, value);
        } else if (kind >= FRAME_PREFIX) {
            value = quoted(reader, kind - FRAME_PREFIX, value);
        } else {
            if ((kind == FRAME_TAIL || kind == FRAME_TAIL_BRACKETS) && reader->used > reader->frame + FRAME_VALUES)
                fail_here(reader, "only one datum can follow the dot in a list");
            push(reader, value);
            return false;
        }
        pop_frame(reader);
    }
    *result = value;
    return true;
}

/* ---- atoms ------------------------------------------------------------------------------------------------------ */

static Value read_number(Reader *reader, const char *text, uint32_t length) {
    uint32_t at = length > 1 && text[0] == '-', digits = length - at;
    if (digits <= 18) { /* most numbers are small integers */
        int64_t number = 0;
        uint32_t i = at;
        for (; i < length && is_digit(text[i]); i++) number = number * 10 + (text[i] - '0');
        if (i == length) return esk_fixnum(at ? -number : number);
    }
    Value number = esk_parse_number(reader->context, text, length, 10);
    if (esk_is_false(number))
        fail_here(reader, "there is no such number: it divides by zero, or is infinite and exact");
    return number;
}

static Value read_atom(Reader *reader, Token token) {
    Context *context = reader->context;
    const char *text = reader->lexer.text + token.text;
    uint32_t length = token.text_length, code;
    switch (token.kind) {
    case TOKEN_SYMBOL: return esk_symbol(context, length ? text : "", length);
    case TOKEN_KEYWORD: return esk_keyword(context, length ? text : "", length);
    case TOKEN_STRING: return finish(reader, esk_string_utf8(context, length ? text : "", length));
    case TOKEN_NUMBER: return read_number(reader, text, length);
    case TOKEN_CHAR:
        esk_utf8_decode((const uint8_t *)text, (const uint8_t *)text + length, &code);
        return esk_char(code);
    case TOKEN_TRUE: return ESK_TRUE;
    default: return ESK_FALSE;
    }
}

/* ---- one datum -------------------------------------------------------------------------------------------------- */

/* The text of a token lies in a bytevector on the heap; the lexer's pointer into it keeps it alive. */
static bool grow_on_heap(Lexer *lexer, size_t room) {
    Bytevector *bytes = esk_pointer(esk_make_bytevector(lexer->context, (int64_t)(room * 2 < 128 ? 128 : room * 2), 0));
    if (lexer->used) memcpy(bytes->bytes, lexer->text, lexer->used);
    lexer->text = (char *)bytes->bytes;
    lexer->room = (size_t)bytes->length;
    return true;
}

static int32_t port_peek(Lexer *lexer) { return esk_port_peek(lexer->context, lexer->source); }
static int32_t port_next(Lexer *lexer) { return esk_port_next(lexer->context, lexer->source); }

static Value read_datum(Reader *reader) {
    Value result = ESK_EOF;
    reader->used = 0;
    reader->frame = -1;
    reader->labels = NULL;
    reader->label_count = 0;
    reader->patches = ESK_NULL;
    for (bool finished = false; !finished;) {
        if (reader->context->interrupted) esk_poll(reader->context);
        reader->lexer.used = 0;
        Token token = esk_next_token(&reader->lexer);
        switch (token.kind) {
        case TOKEN_EOF:
            if (reader->frame >= 0) fail_unfinished(reader);
            return ESK_EOF;
        case TOKEN_ERROR:
            fail_at(reader, reader->lexer.token_line, reader->lexer.token_column, reader->lexer.text + token.text,
                    token.text_length);
        case TOKEN_OPEN:
            push_frame(reader, reader->lexer.text[token.text] == '[' ? FRAME_BRACKETS : FRAME_LIST);
            break;
        case TOKEN_OPEN_VECTOR: push_frame(reader, FRAME_VECTOR); break;
        case TOKEN_OPEN_BYTES: push_frame(reader, FRAME_BYTES); break;
        case TOKEN_CLOSE:
            finished = deliver(reader, close_frame(reader, reader->lexer.text[token.text] == ']'), &result);
            break;
        case TOKEN_DOT: take_dot(reader); break;
        case TOKEN_DATUM_COMMENT: push_frame(reader, FRAME_COMMENT); break;
        case TOKEN_LABEL: begin_label(reader, token); break;
        case TOKEN_REFERENCE: finished = deliver(reader, use_label(reader, token), &result); break;
        case TOKEN_QUOTE: case TOKEN_QUASIQUOTE: case TOKEN_UNQUOTE: case TOKEN_UNQUOTE_SPLICING:
        case TOKEN_SYNTAX: case TOKEN_QUASISYNTAX: case TOKEN_UNSYNTAX: case TOKEN_UNSYNTAX_SPLICING:
            push_frame(reader, FRAME_PREFIX + (int)token.kind);
            break;
        default: finished = deliver(reader, read_atom(reader, token), &result); break;
        }
    }
    repair(reader);
    return result;
}

static void start_text(Reader *reader, Context *context, const char *utf8, int64_t bytes) {
    *reader = (Reader){.context = context};
    reader->source = (TextSource){(const uint8_t *)utf8, (const uint8_t *)utf8 + bytes};
    reader->lexer = (Lexer){.peek = esk_text_peek, .next = esk_text_next, .grow = grow_on_heap, .context = context,
                            .source = &reader->source, .line = 1, .column = 1};
}

Value esk_read_text(Context *context, const char *utf8, int64_t bytes) {
    Reader reader;
    start_text(&reader, context, utf8, bytes);
    return read_datum(&reader);
}

int64_t esk_read_all(Context *context, const char *utf8, int64_t bytes, Value *out, int64_t room, int64_t literal) {
    Reader reader;
    start_text(&reader, context, utf8, bytes);
    reader.literal = literal;
    int64_t count = 0;
    for (; count < room; count++) {
        Value value = read_datum(&reader);
        if (esk_eq(value, ESK_EOF)) break;
        esk_store(context, &out[count], value);
    }
    return count;
}

Value esk_read_port(Context *context, Port *port) {
    Reader reader = {.context = context, .port = port};
    reader.lexer = (Lexer){.peek = port_peek, .next = port_next, .grow = grow_on_heap,
                           .context = context, .source = port,
                           .offset = port->offset, .line = port->line, .column = port->column,
                           .fold_case = port->flags & PORT_FOLD_CASE};
    Value value = read_datum(&reader);
    port->flags = reader.lexer.fold_case ? port->flags | PORT_FOLD_CASE : port->flags & ~(uint32_t)PORT_FOLD_CASE;
    if (esk_eq(value, ESK_EOF) && esk_port_peek(context, port) < 0) esk_port_next(context, port);
    return value;
}

static Value read_primitive(Context *context, const Value *args, int64_t count) {
    Value value = esk_read_port(context, esk_port_argument(context, "read", args, count, 0, PORT_INPUT));
    esk_release(context);
    return value;
}

const Primitive esk_reader_primitives[] = {
    ESK_PRIMITIVE_N("read", "(read [port])", 0, 1, read_primitive,
                    "The next datum that is written on the textual input port, or eof-object."),
    {0},
};
