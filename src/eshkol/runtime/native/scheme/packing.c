/* Numbers in lists and vectors as bytes, and back: what tensors are made of and taken apart into.
 *
 * Lists and vectors may be nested, all of one shape. Numbers are of one kind: fixnums as 64-bit integers, flonums (with
 * fixnums among them, or not) as doubles, and, on the way back, booleans as bytes.
 */
#include "value.h"

enum { DEEPEST = 16 };
enum { KIND_INTEGER, KIND_DOUBLE, KIND_BOOLEAN };

typedef struct { int64_t extents[DEEPEST]; int rank; } Shape;

/* How many elements a proper list or a vector has; -1 for anything else. */
static int64_t extent(Value data) {
    if (data.tag == TAG_VECTOR) return ((Vector *)esk_pointer(data))->length;
    int64_t count = 0;
    Value slow = data;
    for (; data.tag == TAG_PAIR; data = esk_cdr(data)) {
        if (++count % 2) continue;
        if (esk_eq(slow, data)) return -1; /* it is circular */
        slow = esk_cdr(slow);
    }
    return data.tag == TAG_NULL ? count : -1;
}

static Value first_of(Value data) {
    return data.tag == TAG_VECTOR ? ((Vector *)esk_pointer(data))->items[0] : esk_car(data);
}

/* Looks at all that lies below an axis; false where it is of another shape, or no number. */
static bool look(Value data, const Shape *shape, int axis, bool *doubles) {
    if (axis == shape->rank) {
        if (data.tag == TAG_FLONUM) *doubles = true;
        return data.tag == TAG_FLONUM || data.tag == TAG_FIXNUM;
    }
    if (data.tag != TAG_VECTOR && data.tag != TAG_PAIR) return false;
    if (axis > 0 && extent(data) != shape->extents[axis]) return false;
    if (data.tag == TAG_VECTOR) {
        const Vector *vector = esk_pointer(data);
        for (int64_t i = 0; i < vector->length; i++)
            if (!look(vector->items[i], shape, axis + 1, doubles)) return false;
        return true;
    }
    for (; data.tag == TAG_PAIR; data = esk_cdr(data))
        if (!look(esk_car(data), shape, axis + 1, doubles)) return false;
    return true;
}

static char *store(Value data, char *to, bool doubles) {
    if (data.tag == TAG_FIXNUM && doubles) {
        double x = (double)esk_integer(data);
        memcpy(to, &x, 8);
        return to + 8;
    }
    if (data.tag == TAG_FIXNUM || data.tag == TAG_FLONUM) {
        memcpy(to, &data.bits, 8);
        return to + 8;
    }
    if (data.tag == TAG_VECTOR) {
        const Vector *vector = esk_pointer(data);
        for (int64_t i = 0; i < vector->length; i++) to = store(vector->items[i], to, doubles);
        return to;
    }
    for (; data.tag == TAG_PAIR; data = esk_cdr(data)) to = store(esk_car(data), to, doubles);
    return to;
}

static Value pack(Context *context, Value data) {
    Shape shape = {.rank = 0};
    int64_t total = 1;
    bool doubles = false;
    for (Value at = data; at.tag == TAG_PAIR || at.tag == TAG_VECTOR; at = first_of(at)) {
        int64_t count = extent(at);
        if (count <= 0 || shape.rank == DEEPEST || count > INT64_MAX / 8 / total) return ESK_FALSE;
        shape.extents[shape.rank++] = count;
        total *= count;
    }
    if (shape.rank == 0 || !look(data, &shape, 0, &doubles)) return ESK_FALSE;
    Value bytes = esk_make_bytevector(context, 8 * total, 0), extents[DEEPEST];
    store(data, (char *)((Bytevector *)esk_pointer(bytes))->bytes, doubles);
    for (int i = 0; i < shape.rank; i++) extents[i] = esk_fixnum(shape.extents[i]);
    Value parts[] = {esk_fixnum(doubles ? KIND_DOUBLE : KIND_INTEGER), esk_list(context, extents, shape.rank), bytes};
    return esk_list(context, parts, 3);
}

typedef struct {
    Context *context;
    Shape shape;
    Value bytes;
    int64_t kind, at; /* of the next number */
    bool vectors;
} Unpacking;

static Value number_at(const Unpacking *un, int64_t at) {
    const uint8_t *bytes = ((Bytevector *)esk_pointer(un->bytes))->bytes;
    if (un->kind == KIND_BOOLEAN) return esk_boolean(bytes[at]);
    Value number = {un->kind == KIND_DOUBLE ? TAG_FLONUM : TAG_FIXNUM, 0};
    memcpy(&number.bits, bytes + 8 * at, 8);
    return number;
}

/* What lies below an axis; lists are made from their ends. */
static Value unpacked(Unpacking *un, int axis) {
    if (axis == un->shape.rank) return number_at(un, --un->at);
    int64_t count = un->shape.extents[axis];
    if (un->vectors) {
        Value made = esk_make_vector(un->context, count, ESK_FALSE);
        for (int64_t i = count; i-- > 0;) {
            Value item = unpacked(un, axis + 1);
            esk_store(un->context, &((Vector *)esk_pointer(made))->items[i], item);
        }
        return made;
    }
    Value made = ESK_NULL;
    for (int64_t i = 0; i < count; i++) made = esk_cons(un->context, unpacked(un, axis + 1), made);
    return made;
}

static Value unpack(Context *context, const Value *args, int64_t count) {
    Unpacking un = {.context = context, .bytes = args[2], .kind = esk_integer(args[0]), .at = 1,
                    .vectors = !esk_is_false(args[3])};
    (void)count;
    if (!esk_is(args[0], TAG_FIXNUM) || un.kind < KIND_INTEGER || un.kind > KIND_BOOLEAN)
        esk_wrong_type(context, "%unpack-numbers", 1, args[0], "0, 1 or 2");
    for (Value rest = args[1]; rest.tag == TAG_PAIR; rest = esk_cdr(rest)) {
        if (un.shape.rank == DEEPEST) esk_fail(context, ERROR_RANGE, "%unpack-numbers", "too many axes", 0);
        Value extent = esk_car(rest);
        if (!esk_is(extent, TAG_FIXNUM) || esk_integer(extent) < 0 ||
            __builtin_mul_overflow(un.at, esk_integer(extent), &un.at) || un.at > INT64_MAX / 8)
            esk_wrong_type(context, "%unpack-numbers", 2, args[1], "a list of extents");
        un.shape.extents[un.shape.rank++] = esk_integer(extent);
    }
    if (!esk_is(un.bytes, TAG_BYTEVECTOR) ||
        ((Bytevector *)esk_pointer(un.bytes))->length != un.at * (un.kind == KIND_BOOLEAN ? 1 : 8))
        esk_wrong_type(context, "%unpack-numbers", 3, un.bytes, "a bytevector of so many numbers");
    return unpacked(&un, 0);
}

const Primitive esk_packing_primitives[] = {
    ESK_PRIMITIVE_1("%pack-numbers", "(%pack-numbers data)", pack,
                    "The numbers in nested lists and vectors: whether they are flonums (1) or fixnums (0), the shape, "
                    "and a bytevector, in a list; #f where they are of other kinds, or not all of one shape."),
    ESK_PRIMITIVE_N("%unpack-numbers", "(%unpack-numbers kind shape bytes vectors?)", 4, 4, unpack,
                    "Nested lists or vectors of the numbers in a bytevector: fixnums (0), flonums (1), booleans (2)."),
    {0},
};
