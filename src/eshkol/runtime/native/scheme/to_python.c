/* Scheme values to Python objects.
 *
 * In: any value. Out: a new reference, or null with a Python exception set. Containers are copied; what has no like in
 * Python becomes a proxy, which keeps the value in a root. Nothing is allocated on Scheme's heap, so nothing is raised
 * there; what is nested waits on a stack of its own, so data may be as deep as they like, but not cyclic.
 */
#include "python.h"
#include "bignum.h"

#include <stdlib.h>

typedef struct {
    Value object;     /* a pair of the list that is next, a vector, a table, values */
    PyObject *made;   /* a list, a tuple or a dict */
    PyObject *key;    /* of a table, where its value is converted now */
    int64_t index, count;
    const void *open; /* by which the open set knows it */
    enum { FRAME_LIST, FRAME_DOTTED, FRAME_VECTOR, FRAME_KEY, FRAME_TUPLE, FRAME_TABLE, FRAME_VALUES } kind;
} Frame;

typedef struct {
    Context *context;
    Frame *frames;
    int64_t depth, room;
    OpenSet open;
} Conversion;

/* ---- what has no parts ------------------------------------------------------------------------------------------ */

static PyObject *integer(Value value) {
    Limb room;
    View limbs = view(value, &room);
    PyObject *bytes = py.PyBytes_FromStringAndSize((const char *)limbs.limbs, (Size)(limbs.count * sizeof(Limb)));
    PyObject *made = python_call_1(helpers.integer, bytes);
    if (!made || !limbs.negative) return made;
    PyObject *negative = py.PyNumber_Negative(made);
    py.Py_DecRef(made);
    return negative;
}

static PyObject *exact(Value value) {
    return value.tag == TAG_FIXNUM ? py.PyLong_FromLongLong(esk_integer(value)) : integer(value);
}

static PyObject *call_2(PyObject *function, PyObject *first, PyObject *second) {
    PyObject *args = first && second ? py.PyTuple_New(2) : NULL, *made = NULL;
    if (args) {
        py.PyTuple_SetItem(args, 0, first);
        py.PyTuple_SetItem(args, 1, second);
        made = py.PyObject_CallObject(function, args);
        py.Py_DecRef(args);
        return made;
    }
    if (first) py.Py_DecRef(first);
    if (second) py.Py_DecRef(second);
    return NULL;
}

static PyObject *fraction(Value value) {
    const Couple *parts = esk_pointer(value);
    PyObject *numerator = exact(parts->first);
    return call_2(helpers.fraction, numerator, numerator ? exact(parts->second) : NULL);
}

/* The parts of a complex number may be exact. */
static bool real(Value value, double *number) {
    switch (value.tag) {
    case TAG_FIXNUM: *number = (double)esk_integer(value); return true;
    case TAG_FLONUM: *number = esk_double(value); return true;
    case TAG_BIGNUM: *number = integer_double(value); return true;
    default: break;
    }
    PyObject *exactly = fraction(value);
    if (!exactly) return false;
    *number = py.PyFloat_AsDouble(exactly);
    py.Py_DecRef(exactly);
    return !py.PyErr_Occurred();
}

static PyObject *complex_number(Value value) {
    const Couple *parts = esk_pointer(value);
    double re, im;
    return real(parts->first, &re) && real(parts->second, &im) ? py.PyComplex_FromDoubles(re, im) : NULL;
}

static PyObject *string(const uint32_t *chars, int64_t length) {
    int order = 1; /* as this machine has it */
    if (*(const char *)&order) order = -1;
    return py.PyUnicode_DecodeUTF32((const char *)chars, length * 4, "surrogatepass", &order);
}

static PyObject *name(PyObject *type, Value value) {
    const Symbol *symbol = esk_pointer(value);
    return python_call_1(type, py.PyUnicode_DecodeUTF8(symbol->name, symbol->head.count, "surrogatepass"));
}

static PyObject *text_or_none(const char *text) {
    if (text) return py.PyUnicode_DecodeUTF8(text, (Size)strlen(text), "replace");
    py.Py_IncRef(helpers.none);
    return helpers.none;
}

_Thread_local bool python_met_differentiated;

static PyObject *proxy(Context *context, Value value) {
    if (value.tag == TAG_DUAL || value.tag == TAG_AD_NODE) {
        python_met_differentiated = true;
        python_complain("a number that is being differentiated does not go to Python here: its derivative were lost; "
                        "(stop-gradient x) is its value alone");
        return NULL;
    }
    const Procedure *procedure = value.tag == TAG_PROCEDURE ? ((Closure *)esk_pointer(value))->procedure : NULL;
    Value *root = esk_try_root(context);
    if (!root) {
        python_complain("there is no memory for a value of Scheme that Python holds on to");
        return NULL;
    }
    *root = value;
    PyObject *args = py.PyTuple_New(5);
    if (args) {
        PyObject *parts[] = {
            py.PyLong_FromVoidPtr(context), py.PyLong_FromLongLong((long long)value.tag), py.PyLong_FromVoidPtr(root),
            text_or_none(procedure ? procedure->name : NULL), text_or_none(procedure ? procedure->doc : NULL),
        };
        for (int i = 0; i < 5; i++) py.PyTuple_SetItem(args, i, parts[i]);
    }
    PyObject *made = args && !py.PyErr_Occurred() ? py.PyObject_CallObject(helpers.proxy, args) : NULL;
    if (args) py.Py_DecRef(args);
    if (!made) esk_unroot(context, root);
    return made;
}

static PyObject *held(PyObject *object) {
    py.Py_IncRef(object);
    return object;
}

static PyObject *leaf(Context *context, Value value) {
    switch (value.tag) {
    case TAG_NULL: return py.PyList_New(0);
    case TAG_FIXNUM: return py.PyLong_FromLongLong(esk_integer(value));
    case TAG_FLONUM: return py.PyFloat_FromDouble(esk_double(value));
    case TAG_BOOLEAN: return held(value.bits ? helpers.true_ : helpers.false_);
    case TAG_STRING: return string(((String *)esk_pointer(value))->chars, ((String *)esk_pointer(value))->length);
    case TAG_CHAR: {
        uint32_t code = (uint32_t)value.bits;
        return python_call_1(helpers.char_, string(&code, 1));
    }
    case TAG_SYMBOL:
        if (((Object *)esk_pointer(value))->flags & FLAG_UNINTERNED) return proxy(context, value);
        return name(helpers.symbol, value);
    case TAG_KEYWORD: return name(helpers.keyword, value);
    case TAG_BIGNUM: return integer(value);
    case TAG_RATIONAL: return fraction(value);
    case TAG_COMPLEX: return complex_number(value);
    case TAG_BYTEVECTOR: {
        const Bytevector *bytes = esk_pointer(value);
        return py.PyBytes_FromStringAndSize((const char *)bytes->bytes, bytes->length);
    }
    case TAG_SPECIAL:
        if (value.bits == SPECIAL_UNSPECIFIED) return held(helpers.none);
        return proxy(context, value);
    case TAG_PROCEDURE:
        if (python_is_procedure(value)) return python_of_procedure(value);
        return proxy(context, value);
    case TAG_TENSOR: case TAG_FOREIGN:
        if (is_python(value)) return held(python_object(value));
        return proxy(context, value);
    default: return proxy(context, value);
    }
}

/* ---- what has parts --------------------------------------------------------------------------------------------- */

/* The pairs of a list, and whether it ends in (); -1 where it never ends. */
static int64_t list_length(Value list, bool *proper) {
    int64_t count = 0, power = 64;
    uint64_t mark = list.bits; /* a pair that is looked out for, further on each time */
    while (list.tag == TAG_PAIR) {
        list = esk_cdr(list);
        count++;
        if (list.tag == TAG_PAIR && list.bits == mark) return -1;
        if (count == power) {
            power *= 2;
            mark = list.bits;
        }
    }
    *proper = list.tag == TAG_NULL;
    return count;
}

/* False: an exception is set, and what the frame has is let go. */
static bool push(Conversion *conversion, Frame frame) {
    if (!frame.made) return false;
    if (conversion->depth == conversion->room) {
        int64_t room = conversion->room ? 2 * conversion->room : 16;
        Frame *more = realloc(conversion->frames, (size_t)room * sizeof *more);
        if (!more) {
            py.Py_DecRef(frame.made);
            python_complain("there is no memory for what is nested so deeply");
            return false;
        }
        conversion->frames = more;
        conversion->room = room;
    }
    if (frame.open && !open_add(&conversion->open, frame.open)) {
        py.Py_DecRef(frame.made);
        python_complain("a cyclic structure of Scheme has no value in Python");
        return false;
    }
    conversion->frames[conversion->depth++] = frame;
    return true;
}

/* Whether a value is converted as a key of a dictionary, where lists and vectors are tuples. */
static bool in_key(const Conversion *conversion) {
    for (int64_t i = conversion->depth; i-- > 0;) {
        int kind = conversion->frames[i].kind;
        if (kind == FRAME_KEY) return true;
        if (kind == FRAME_TABLE) return !conversion->frames[i].key;
        return false;
    }
    return false;
}

/* Begins with something that has parts; false: an exception is set. */
static bool begin(Conversion *conversion, Value value) {
    const void *open = esk_pointer(value);
    switch (value.tag) {
    case TAG_PAIR: {
        bool proper, key = in_key(conversion);
        int64_t count = list_length(value, &proper);
        if (count < 0) {
            python_complain("a circular list of Scheme has no value in Python");
            return false;
        }
        return push(conversion, (Frame){
            .object = value, .count = proper ? count : count + 1, .open = open,
            .kind = !proper ? FRAME_DOTTED : key ? FRAME_KEY : FRAME_LIST,
            .made = py.PyList_New(proper ? count : count + 1),
        });
    }
    case TAG_VECTOR: {
        int64_t count = ((Vector *)open)->length;
        return push(conversion, (Frame){.object = value, .count = count, .open = open, .made = py.PyList_New(count),
                                        .kind = in_key(conversion) ? FRAME_KEY : FRAME_VECTOR});
    }
    case TAG_VALUES: {
        int64_t count = ((Values *)open)->head.count;
        return push(conversion, (Frame){.object = value, .count = count, .made = py.PyList_New(count),
                                        .kind = FRAME_VALUES});
    }
    default:
        return push(conversion, (Frame){.object = value, .count = INT64_MAX, .open = open, .made = py.PyDict_New(),
                                        .kind = FRAME_TABLE});
    }
}

static bool has_parts(Value value) {
    return value.tag == TAG_PAIR || value.tag == TAG_VECTOR || value.tag == TAG_TABLE || value.tag == TAG_VALUES;
}

/* The next part of a frame, or false. */
static bool next(Frame *frame, Value *part) {
    switch (frame->kind) {
    case FRAME_LIST: case FRAME_DOTTED:
        if (frame->index == frame->count) return false;
        if (frame->object.tag != TAG_PAIR) { /* behind the dot; or the list was cut while Python code ran */
            *part = frame->object;
            return true;
        }
        *part = esk_car(frame->object);
        frame->object = esk_cdr(frame->object);
        return true;
    case FRAME_TABLE: return true; /* the caller asks the table */
    case FRAME_VALUES:
        if (frame->index == frame->count) return false;
        *part = ((Values *)esk_pointer(frame->object))->items[frame->index];
        return true;
    default:
        if (frame->index == frame->count) return false;
        if (frame->object.tag == TAG_VECTOR) *part = ((Vector *)esk_pointer(frame->object))->items[frame->index];
        else if (frame->object.tag == TAG_PAIR) {
            *part = esk_car(frame->object);
            frame->object = esk_cdr(frame->object);
        } else *part = frame->object;
        return true;
    }
}

static PyObject *folded(PyObject *items, int64_t count) {
    PyObject *tail = held(py.PyList_GetItem(items, count - 1));
    for (int64_t i = count - 1; tail && i-- > 0;) tail = call_2(helpers.pair, held(py.PyList_GetItem(items, i)), tail);
    return tail;
}

/* What a frame has become, a new reference; the frame's own goes. */
static PyObject *finish(Frame *frame) {
    PyObject *made = frame->made, *result = made;
    switch (frame->kind) {
    case FRAME_LIST: case FRAME_TABLE: break;
    case FRAME_DOTTED: result = folded(made, frame->count); break;
    case FRAME_VECTOR: held(made); result = python_call_1(helpers.vector, made); break;
    case FRAME_VALUES: result = python_call_1(helpers.several, py.PyList_AsTuple(made)); break;
    default: result = py.PyList_AsTuple(made); break;
    }
    if (result != made) py.Py_DecRef(made);
    frame->made = NULL;
    return result;
}

/* Gives a part that is converted to its frame; takes the reference. */
static bool give(Frame *frame, PyObject *part) {
    if (frame->kind != FRAME_TABLE) return py.PyList_SetItem(frame->made, frame->index++, part) == 0;
    if (!frame->key) {
        frame->key = part;
        return true;
    }
    int failed = py.PyDict_SetItem(frame->made, frame->key, part);
    py.Py_DecRef(part);
    py.Py_DecRef(frame->key);
    frame->key = NULL;
    return !failed;
}

/* The common case, without detours: numbers that follow one another in a list or a vector. */
static bool give_numbers(Frame *frame) {
    bool list = frame->kind == FRAME_LIST;
    while (frame->index < frame->count) {
        Value part;
        if (!list) part = ((Vector *)esk_pointer(frame->object))->items[frame->index];
        else if (frame->object.tag == TAG_PAIR) part = esk_car(frame->object);
        else return true;
        PyObject *made;
        if (part.tag == TAG_FLONUM) made = py.PyFloat_FromDouble(esk_double(part));
        else if (part.tag == TAG_FIXNUM) made = py.PyLong_FromLongLong(esk_integer(part));
        else return true;
        if (!made) return false;
        py.PyList_SetItem(frame->made, frame->index++, made);
        if (list) frame->object = esk_cdr(frame->object);
    }
    return true;
}

static PyObject *convert(Conversion *conversion, Value value) {
    for (;;) {
        PyObject *made = NULL;
        if (has_parts(value)) {
            if (!begin(conversion, value)) return NULL;
        } else {
            made = leaf(conversion->context, value);
            if (!made) return NULL;
            if (!conversion->depth) return made;
        }
        for (;;) {
            Frame *frame = &conversion->frames[conversion->depth - 1];
            if (made && !give(frame, made)) return NULL;
            if (frame->kind == FRAME_TABLE) {
                Value key;
                if (frame->key) { /* its value comes behind the key */
                    int64_t at = frame->index - 1;
                    if (esk_table_next(frame->object, &at, &key, &value)) break;
                    python_complain("the table was changed while it was converted");
                    return NULL;
                }
                Value unused;
                if (esk_table_next(frame->object, &frame->index, &value, &unused)) break;
            } else if ((frame->kind == FRAME_LIST || frame->kind == FRAME_VECTOR) && !give_numbers(frame)) {
                return NULL;
            } else if (next(frame, &value)) {
                if (has_parts(value)) break;
                made = leaf(conversion->context, value); /* the common case, without detours */
                if (!made) return NULL;
                continue;
            }
            if (frame->open) open_remove(&conversion->open, frame->open);
            conversion->depth--;
            made = finish(frame);
            if (!made) return NULL;
            if (!conversion->depth) return made;
        }
    }
}

PyObject *python_from_value(Context *context, Value value) {
    if (!has_parts(value)) return leaf(context, value);
    Conversion conversion = {.context = context};
    esk_pause_collection(context, 1); /* frames lie where the collector does not look, and Python code may run */
    PyObject *made = convert(&conversion, value);
    esk_pause_collection(context, -1);
    for (int64_t i = 0; i < conversion.depth; i++) {
        Frame *frame = &conversion.frames[i];
        if (frame->made) py.Py_DecRef(frame->made);
        if (frame->key) py.Py_DecRef(frame->key);
    }
    free(conversion.frames);
    open_free(&conversion.open);
    return made;
}

/* ---- containers that are open ----------------------------------------------------------------------------------- */

enum { FIRST_OPEN = 8, OPEN_SLOTS = 64 };

static uint64_t slot_of(const OpenSet *set, const void *key) {
    uint64_t i = ((uint64_t)(uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20 & set->mask;
    while (set->slots[i] && set->slots[i] != key) i = (i + 1) & set->mask;
    return i;
}

static bool open_grow(OpenSet *set) {
    OpenSet more = {.mask = set->slots ? 2 * set->mask + 1 : OPEN_SLOTS - 1};
    more.slots = calloc(more.mask + 1, sizeof *more.slots);
    if (!more.slots) return false;
    for (uint64_t i = 0; set->slots && i <= set->mask; i++)
        if (set->slots[i]) more.slots[slot_of(&more, set->slots[i])] = set->slots[i];
    free(set->slots);
    set->slots = more.slots;
    set->mask = more.mask;
    return true;
}

bool open_add(OpenSet *set, const void *key) {
    int64_t first = set->depth < FIRST_OPEN ? set->depth : FIRST_OPEN;
    for (int64_t i = 0; i < first; i++)
        if (set->first[i] == key) return false;
    if (set->depth < FIRST_OPEN) {
        set->first[set->depth++] = key;
        return true;
    }
    if ((!set->slots || 2 * set->used > set->mask) && !open_grow(set)) return false;
    uint64_t i = slot_of(set, key);
    if (set->slots[i]) return false;
    set->slots[i] = key;
    set->used++;
    set->depth++;
    return true;
}

void open_remove(OpenSet *set, const void *key) {
    if (set->depth-- <= FIRST_OPEN) return;
    uint64_t gap = slot_of(set, key), mask = set->mask;
    set->slots[gap] = NULL;
    set->used--;
    for (uint64_t i = (gap + 1) & mask; set->slots[i]; i = (i + 1) & mask) { /* what follows may have been pushed on */
        const void *moved = set->slots[i];
        set->slots[i] = NULL;
        set->slots[slot_of(set, moved)] = moved;
    }
}

void open_free(OpenSet *set) { free(set->slots); }
