/* Python objects to Scheme values.
 *
 * In: an object, whose reference stays the caller's. Out: a value; or an exception is set; or a condition was raised
 * (out of memory), which the caller raises again when it has given back what it holds. What an object becomes depends
 * on its type alone: Python is asked once for each (helper `classify`), and the answer is kept. Values on their way lie
 * in a vector on Scheme's heap, Python's references in memory that the caller's frame owns: a condition may end the
 * conversion at any allocation.
 */
#include "python.h"
#include "bignum.h"

#include <stdlib.h>

/* ---- types ------------------------------------------------------------------------------------------------------ */

enum { TYPE_SLOTS = 1024, MOST_TYPES = TYPE_SLOTS / 2 };

static struct { PyObject *type; int kind; } types[TYPE_SLOTS]; /* we own those that are here */
static int type_count;

static unsigned type_slot(const PyObject *type) {
    unsigned i = (unsigned)((uint64_t)(uintptr_t)type * 0x9E3779B97F4A7C15u >> 54);
    while (types[i].type && types[i].type != type) i = (i + 1) % TYPE_SLOTS;
    return i;
}

static void forget_types(void) {
    type_count = 0; /* first: to let go of a type may run code that comes here again */
    for (int i = 0; i < TYPE_SLOTS; i++) {
        PyObject *type = types[i].type;
        types[i].type = NULL;
        if (type) py.Py_DecRef(type);
    }
}

/* One of PythonKind, or -1 with an exception set. */
static int kind_of(PyObject *object) {
    PyObject *type = py.PyObject_Type(object);
    unsigned i = type_slot(type);
    if (types[i].type) {
        py.Py_DecRef(type);
        return types[i].kind;
    }
    py.Py_IncRef(type);
    PyObject *answer = python_call_1(helpers.classify, type);
    long long kind = answer ? py.PyLong_AsLongLong(answer) : -1;
    if (answer) py.Py_DecRef(answer);
    if (kind < 0) {
        py.Py_DecRef(type);
        return -1;
    }
    if (type_count == MOST_TYPES) forget_types();
    i = type_slot(type);
    if (types[i].type) py.Py_DecRef(type); /* found by somebody else meanwhile */
    else {
        types[i].type = type;
        types[i].kind = (int)kind;
        type_count++;
    }
    return (int)kind;
}

/* ---- conversions that are under way ----------------------------------------------------------------------------- */

typedef struct {
    PyObject *object, *values; /* owned: a tuple of the items, or keys and values of a dict; nobody changes them */
    int64_t index, count;
    PyObject *open; /* owned: the container, so that its address stays its own */
    enum { FRAME_LIST, FRAME_VECTOR, FRAME_TUPLE, FRAME_VALUES, FRAME_DICT, FRAME_PAIR } kind;
} Frame;

enum { SLOTS = 2 /* values of a frame: what is made, and the key or car that waits */ };

enum { HELD_BYTES, HELD_PARTS, HELD_ADAPTED, HELD_COUNT };

typedef struct {
    PyObject *object;  /* what is to be converted */
    PyObject *held[HELD_COUNT]; /* owned: what is not to be lost when a condition ends the conversion */
    Frame *frames;
    int64_t depth, room;
    OpenSet open;
    bool failed;       /* an exception is set */
} Conversion;

static void hold(Conversion *conversion, int which, PyObject *object) { /* takes the reference */
    PyObject *before = conversion->held[which];
    conversion->held[which] = object;
    if (before) py.Py_DecRef(before);
}

static Value failed(Conversion *conversion) {
    conversion->failed = true;
    return ESK_FALSE;
}

static Value complain(Conversion *conversion, const char *message) {
    python_complain(message);
    return failed(conversion);
}

/* ---- what has no parts ------------------------------------------------------------------------------------------ */

static Value integer(Context *context, Conversion *conversion, PyObject *object) {
    int overflow;
    long long small = py.PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow) return small == -1 && py.PyErr_Occurred() ? failed(conversion) : esk_fixnum(small);
    py.Py_IncRef(object);
    PyObject *bytes = python_call_1(helpers.magnitude, object);
    if (!bytes) return failed(conversion);
    hold(conversion, HELD_BYTES, bytes);
    char *start;
    Size size;
    if (py.PyBytes_AsStringAndSize(bytes, &start, &size)) return failed(conversion);
    if ((size_t)size % sizeof(Limb)) return complain(conversion, "this int has no magnitude of whole words");
    Bignum *room = integer_room(context, (size_t)size / sizeof(Limb));
    memcpy(room->limbs, start, (size_t)size);
    return integer_finish(room, (size_t)size / sizeof(Limb), overflow < 0);
}

static Value string(Context *context, Conversion *conversion, PyObject *object) {
    Size length = py.PyUnicode_GetLength(object);
    if (length < 0) return failed(conversion);
    Value made = esk_make_string(context, length, 0);
    uint32_t *chars = ((String *)esk_pointer(made))->chars;
    if (length && !py.PyUnicode_AsUCS4(object, chars, length, 0)) return failed(conversion);
    for (Size i = 0; i < length; i++)
        if (chars[i] >= 0xD800 && chars[i] < 0xE000)
            return complain(conversion, "a str with a lone surrogate has no value in Scheme; encode it as bytes");
    return made;
}

static Value named(Context *context, Conversion *conversion, PyObject *object, bool keyword) {
    Size size;
    const char *text = py.PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) return failed(conversion);
    return keyword ? esk_keyword(context, text, size) : esk_symbol(context, text, size);
}

static Value character(Context *context, Conversion *conversion, PyObject *object) {
    Value made = string(context, conversion, object);
    if (conversion->failed) return made;
    const String *text = esk_pointer(made);
    if (text->length != 1) return complain(conversion, "a Char has one character");
    return esk_char(text->chars[0]);
}

static Value bytes(Context *context, Conversion *conversion, PyObject *object) {
    char *start;
    Size size;
    if (py.PyBytes_AsStringAndSize(object, &start, &size)) return failed(conversion);
    Value made = esk_make_bytevector(context, size, 0);
    memcpy(((Bytevector *)esk_pointer(made))->bytes, start, (size_t)size);
    return made;
}

static Value couple(Context *context, int tag, Value first, Value second) {
    Couple *made = esk_allocate(context, sizeof *made, tag);
    made->first = first;
    made->second = second;
    return esk_object(made);
}

static Value complex_number(Context *context, PyObject *object) {
    double re = py.PyComplex_RealAsDouble(object), im = py.PyComplex_ImagAsDouble(object);
    return couple(context, TAG_COMPLEX, esk_flonum(re), esk_flonum(im));
}

/* The two parts of a fraction are in lowest terms, the second is positive. */
static Value fraction(Context *context, Conversion *conversion, PyObject *object) {
    py.Py_IncRef(object);
    PyObject *parts = python_call_1(helpers.parts, object);
    if (!parts) return failed(conversion);
    hold(conversion, HELD_PARTS, parts);
    Value values[2];
    for (int i = 0; i < 2; i++) {
        values[i] = integer(context, conversion, py.PyTuple_GetItem(parts, i));
        if (conversion->failed) return ESK_FALSE;
    }
    if (integer_sign(values[1]) <= 0) return complain(conversion, "the denominator of a Fraction is positive");
    if (fixnum_is(values[1], 1)) return values[0];
    return couple(context, TAG_RATIONAL, values[0], values[1]);
}

/* An attribute that is an address. */
static void *address(PyObject *object, const char *name) {
    PyObject *number = py.PyObject_GetAttrString(object, name);
    if (!number) return NULL;
    void *found = py.PyLong_AsVoidPtr(number);
    py.Py_DecRef(number);
    return found;
}

static Value proxied(Context *context, Conversion *conversion, PyObject *object) {
    const void *owner = address(object, "context");
    const Value *root = owner ? address(object, "address") : NULL;
    if (!root && py.PyErr_Occurred()) return failed(conversion);
    if (!root) return complain(conversion, "this value of Scheme is gone: its session was closed");
    if (owner != context) return complain(conversion, "this value belongs to another session of Scheme");
    return *root;
}

#define MOST_BYTES ((long long)1 << 48) /* that a tensor can say it has */

static Value tensor(Context *context, Conversion *conversion, PyObject *object) {
    PyObject *number = py.PyObject_GetAttrString(object, "nbytes");
    if (!number) return failed(conversion);
    long long size = py.PyLong_AsLongLong(number);
    py.Py_DecRef(number);
    if (size < 0 && py.PyErr_Occurred()) return failed(conversion);
    if (size < 0 || size > MOST_BYTES) return complain(conversion, "nbytes of this tensor is no number of bytes");
    return python_handle(context, object, TAG_TENSOR, size);
}

static Value leaf(Context *context, Conversion *conversion, PyObject *object, int kind) {
    switch (kind) {
    case KIND_NONE: return ESK_UNSPECIFIED;
    case KIND_BOOL: return esk_boolean(object == helpers.true_);
    case KIND_INT: return integer(context, conversion, object);
    case KIND_FLOAT: return esk_flonum(py.PyFloat_AsDouble(object));
    case KIND_COMPLEX: return complex_number(context, object);
    case KIND_FRACTION: return fraction(context, conversion, object);
    case KIND_STR: return string(context, conversion, object);
    case KIND_BYTES: return bytes(context, conversion, object);
    case KIND_SYMBOL: return named(context, conversion, object, false);
    case KIND_KEYWORD: return named(context, conversion, object, true);
    case KIND_CHAR: return character(context, conversion, object);
    case KIND_PROXY: return proxied(context, conversion, object);
    case KIND_TENSOR: return tensor(context, conversion, object);
    case KIND_CALLABLE: case KIND_LAYER:
        return python_procedure(context, python_handle(context, object, TAG_FOREIGN, 0));
    case KIND_KEPT: { /* what it holds stays an object, whatever it is */
        PyObject *kept = py.PyObject_GetAttrString(object, "value");
        if (!kept) return failed(conversion);
        hold(conversion, HELD_PARTS, kept);
        return python_handle(context, kept, TAG_FOREIGN, 0);
    }
    case KIND_FOREIGN: return python_handle(context, object, TAG_FOREIGN, 0);
    default: return failed(conversion);
    }
}

/* ---- what has parts --------------------------------------------------------------------------------------------- */

/* Room for one more frame, in Python's part and in the vector of values. */
static Vector *reserve(Context *context, Conversion *conversion, Vector *stack) {
    if (!stack || SLOTS * (conversion->depth + 1) > stack->length) {
        int64_t used = SLOTS * conversion->depth;
        Vector *more = esk_pointer(esk_make_vector(context, used ? 2 * used : 8 * SLOTS, ESK_FALSE));
        if (used) memcpy(more->items, stack->items, (size_t)used * sizeof(Value));
        stack = more;
    }
    if (conversion->depth == conversion->room) {
        int64_t room = conversion->room ? 2 * conversion->room : 8;
        Frame *more = realloc(conversion->frames, (size_t)room * sizeof *more);
        if (!more) esk_fail(context, ERROR_MEMORY, NULL, "no memory for what is nested so deeply", 0);
        conversion->frames = more;
        conversion->room = room;
    }
    return stack;
}

/* The items of anything but a dict, as a tuple: a list may change while code of Python runs. */
static PyObject *items_of(PyObject *object, int kind) {
    if (kind == FRAME_LIST || kind == FRAME_VECTOR) return py.PyList_AsTuple(object);
    py.Py_IncRef(object);
    return kind == FRAME_PAIR ? python_call_1(helpers.parts, object) : object;
}

/* Begins with a container; where that fails, conversion->failed is set. */
static Vector *begin(Context *context, Conversion *conversion, Vector *stack, PyObject *object, int kind) {
    Frame frame = {.object = NULL};
    switch (kind) {
    case KIND_LIST: frame.kind = FRAME_LIST; break;
    case KIND_VECTOR: frame.kind = FRAME_VECTOR; break;
    case KIND_TUPLE: frame.kind = FRAME_TUPLE; break;
    case KIND_VALUES: frame.kind = conversion->depth ? FRAME_TUPLE : FRAME_VALUES; break; /* no part of others */
    case KIND_PAIR: frame.kind = FRAME_PAIR; break;
    default: frame.kind = FRAME_DICT; break;
    }
    stack = reserve(context, conversion, stack); /* which may raise a condition; from here on the frame is owned */
    if (!open_add(&conversion->open, object)) {
        complain(conversion, "a cyclic structure of Python has no value in Scheme");
        return stack;
    }
    py.Py_IncRef(object);
    frame.open = object;
    if (frame.kind == FRAME_DICT) {
        frame.object = py.PyDict_Keys(object);
        frame.values = frame.object ? py.PyDict_Values(object) : NULL;
        frame.count = frame.values ? 2 * py.PyList_Size(frame.values) : 0;
    } else {
        frame.object = items_of(object, frame.kind);
        frame.count = frame.object ? py.PyTuple_Size(frame.object) : 0;
    }
    if (frame.kind == FRAME_LIST) frame.index = frame.count;
    conversion->frames[conversion->depth++] = frame;
    Value *slots = &stack->items[SLOTS * (conversion->depth - 1)];
    slots[0] = ESK_NULL;
    slots[1] = ESK_FALSE;
    if (!frame.object || (frame.kind == FRAME_DICT && !frame.values)) failed(conversion);
    else if (frame.kind == FRAME_DICT) esk_store(context, &slots[0], esk_new_equal_table(context));
    else if (frame.kind != FRAME_LIST && frame.kind != FRAME_PAIR)
        esk_store(context, &slots[0], esk_make_vector(context, frame.count, ESK_FALSE));
    return stack;
}

/* The next part of a frame, borrowed; null where there is none, or conversion->failed is set. */
static PyObject *next(Conversion *conversion, Frame *frame) {
    PyObject *part = NULL;
    switch (frame->kind) {
    case FRAME_LIST: /* from the last to the first */
        if (!frame->index) return NULL;
        part = py.PyTuple_GetItem(frame->object, frame->index - 1);
        break;
    case FRAME_VECTOR: case FRAME_TUPLE: case FRAME_VALUES: case FRAME_PAIR:
        if (frame->index == frame->count) return NULL;
        part = py.PyTuple_GetItem(frame->object, frame->index);
        break;
    case FRAME_DICT:
        if (frame->index == frame->count) return NULL;
        part = py.PyList_GetItem(frame->index & 1 ? frame->values : frame->object, frame->index / 2);
        break;
    }
    if (!part) failed(conversion);
    return part;
}

/* Gives a part to its frame. */
static void give(Context *context, Frame *frame, Value *slots, Value part) {
    switch (frame->kind) {
    case FRAME_LIST:
        esk_store(context, &slots[0], esk_cons(context, part, slots[0]));
        frame->index--;
        return;
    case FRAME_VECTOR: case FRAME_TUPLE: case FRAME_VALUES:
        esk_store(context, &((Vector *)esk_pointer(slots[0]))->items[frame->index++], part);
        return;
    case FRAME_PAIR:
        if (frame->index++) esk_store(context, &slots[0], esk_cons(context, slots[1], part));
        else esk_store(context, &slots[1], part);
        return;
    case FRAME_DICT:
        if (frame->index++ & 1) esk_table_put(context, slots[0], slots[1], part);
        else esk_store(context, &slots[1], part);
        return;
    }
}

static void close_frame(Conversion *conversion) {
    Frame *frame = &conversion->frames[--conversion->depth];
    PyObject *owned[] = {frame->open, frame->object, frame->values};
    open_remove(&conversion->open, frame->open);
    for (int i = 0; i < 3; i++)
        if (owned[i]) py.Py_DecRef(owned[i]);
}

static Value convert(Context *context, void *data) {
    Conversion *conversion = data;
    PyObject *object = conversion->object;
    Vector *stack = NULL;
    for (;;) {
        int kind = kind_of(object);
        if (kind == KIND_ADAPT) {
            py.Py_IncRef(object);
            object = python_call_1(helpers.adapt, object);
            if (!object) return failed(conversion);
            hold(conversion, HELD_ADAPTED, object);
            kind = kind_of(object);
            if (kind == KIND_ADAPT) return complain(conversion, "this has no value in Scheme");
        }
        if (kind < 0) return failed(conversion);
        bool whole = kind < KIND_LIST || kind > KIND_PAIR;
        Value made = ESK_FALSE;
        if (whole) made = leaf(context, conversion, object, kind);
        else stack = begin(context, conversion, stack, object, kind);
        if (conversion->failed) return ESK_FALSE;
        for (;; whole = true) {
            if (!conversion->depth) return made;
            Frame *frame = &conversion->frames[conversion->depth - 1];
            Value *slots = &stack->items[SLOTS * (conversion->depth - 1)];
            if (whole) give(context, frame, slots, made);
            object = next(conversion, frame);
            if (object) break;
            if (conversion->failed) return ESK_FALSE;
            made = slots[0];
            if (frame->kind == FRAME_VALUES) {
                Vector *parts = esk_pointer(made);
                made = esk_values(context, parts->items, parts->length);
            }
            close_frame(conversion);
        }
    }
}

/* What a call has given, whose reference is taken: the tuple of a layer is several values, as those of procedures are.
 * A tuple that other functions give is data. */
PyObject *python_results(PyObject *function, PyObject *found) {
    int kind = found ? kind_of(found) : KIND_NONE, callable = kind == KIND_TUPLE ? kind_of(function) : KIND_NONE;
    if (kind < 0 || callable < 0) {
        py.Py_DecRef(found);
        return NULL;
    }
    if (callable != KIND_LAYER) return found;
    return python_call_1(helpers.several, found);
}

bool python_to_value(Context *context, PyObject *object, Value *result, bool *condition) {
    *condition = false;
    switch (kind_of(object)) { /* what needs no memory */
    case -1: return false;
    case KIND_NONE: *result = ESK_UNSPECIFIED; return true;
    case KIND_BOOL: *result = esk_boolean(object == helpers.true_); return true;
    case KIND_FLOAT: *result = esk_flonum(py.PyFloat_AsDouble(object)); return true;
    default: break;
    }
    Conversion conversion = {.object = object};
    bool done = esk_protect(context, convert, &conversion, result);
    while (conversion.depth) close_frame(&conversion);
    for (int i = 0; i < HELD_COUNT; i++) hold(&conversion, i, NULL);
    free(conversion.frames);
    open_free(&conversion.open);
    *condition = !done;
    return done && !conversion.failed;
}
