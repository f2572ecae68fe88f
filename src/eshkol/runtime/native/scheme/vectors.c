/* Vectors: R7RS 6.8. Procedures that call others are in the library. */
#include "data.h"

static Value vector_p(Context *c, Value v) {
    (void)c;
    return esk_boolean(esk_is(v, TAG_VECTOR));
}

static Value make_vector(Context *c, const Value *args, int64_t count) {
    Value made = esk_make_vector(c, need_size(c, "make-vector", 1, args[0]), count > 1 ? args[1] : esk_fixnum(0));
    esk_make_old(c, esk_pointer(made));
    return made;
}

/* A vector whose items are set before anything else is allocated. */
static Vector *bare(Context *c, int64_t length) {
    Vector *vector = esk_allocate(c, sizeof(Vector) + (size_t)length * sizeof(Value), TAG_VECTOR);
    vector->length = length;
    return vector;
}

static Value of_items(Context *c, const Value *items, int64_t length) {
    Vector *vector = bare(c, length);
    if (length) memcpy(vector->items, items, (size_t)length * sizeof(Value));
    return esk_object(vector);
}

static Value vector(Context *c, const Value *args, int64_t count) { return of_items(c, args, count); }

static Value vector_length(Context *c, Value v) { return esk_fixnum(need_vector(c, "vector-length", 1, v)->length); }

static Value vector_ref(Context *c, Value v, Value k) {
    Vector *vector = need_vector(c, "vector-ref", 1, v);
    return vector->items[need_index(c, "vector-ref", 2, k, vector->length)];
}

static Value vector_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    Vector *vector = need_vector(c, "vector-set!", 1, args[0]);
    int64_t k = need_index(c, "vector-set!", 2, args[1], vector->length);
    need_mutable(c, "vector-set!", args[0]);
    esk_store(c, &vector->items[k], args[2]);
    return ESK_UNSPECIFIED;
}

static Value vector_to_list(Context *c, const Value *args, int64_t count) {
    Vector *vector = need_vector(c, "vector->list", 1, args[0]);
    Range range = need_range(c, "vector->list", args, count, 1, vector->length);
    return esk_list(c, vector->items + range.start, range.end - range.start);
}

static Value list_to_vector(Context *c, Value list) {
    int64_t length = esk_need_list(c, "list->vector", 1, list);
    Vector *vector = bare(c, length);
    for (int64_t i = 0; i < length; i++, list = esk_cdr(list)) vector->items[i] = esk_car(list);
    return esk_object(vector);
}

static Value vector_fill(Context *c, const Value *args, int64_t count) {
    Vector *vector = need_vector(c, "vector-fill!", 1, args[0]);
    Range range = need_range(c, "vector-fill!", args, count, 2, vector->length);
    need_mutable(c, "vector-fill!", args[0]);
    for (int64_t i = range.start; i < range.end; i++) vector->items[i] = args[1];
    if (esk_is_pointer(args[1])) esk_all_written(c, vector->items + range.start, range.end - range.start);
    return ESK_UNSPECIFIED;
}

static Value part(Context *c, const char *who, const Value *args, int64_t count) {
    Vector *vector = need_vector(c, who, 1, args[0]);
    Range range = need_range(c, who, args, count, 1, vector->length);
    return of_items(c, vector->items + range.start, range.end - range.start);
}

static Value vector_copy(Context *c, const Value *args, int64_t count) { return part(c, "vector-copy", args, count); }
static Value subvector(Context *c, const Value *args, int64_t count) { return part(c, "subvector", args, count); }

static Value vector_copy_to(Context *c, const Value *args, int64_t count) {
    Vector *to = need_vector(c, "vector-copy!", 1, args[0]), *from = need_vector(c, "vector-copy!", 3, args[2]);
    int64_t at = need_index(c, "vector-copy!", 2, args[1], to->length + 1);
    Range range = need_range(c, "vector-copy!", args, count, 3, from->length);
    need_mutable(c, "vector-copy!", args[0]);
    need_room(c, "vector-copy!", args, to->length - at, range);
    if (range.start >= range.end) return ESK_UNSPECIFIED;
    memmove(to->items + at, from->items + range.start, (size_t)(range.end - range.start) * sizeof(Value));
    esk_all_written(c, to->items + at, range.end - range.start);
    return ESK_UNSPECIFIED;
}

static Value vector_append(Context *c, const Value *args, int64_t count) {
    int64_t length = 0;
    for (int64_t i = 0; i < count; i++) {
        length += need_vector(c, "vector-append", (int)i + 1, args[i])->length;
        need_length(c, "vector-append", length);
    }
    Vector *all = bare(c, length);
    Value *at = all->items;
    for (int64_t i = 0; i < count; i++) {
        Vector *piece = esk_pointer(args[i]);
        if (piece->length) memcpy(at, piece->items, (size_t)piece->length * sizeof(Value));
        at += piece->length;
    }
    return esk_object(all);
}

const Primitive esk_vectors_primitives[] = {
    ESK_PRIMITIVE_1("vector?", "(vector? object)", vector_p, "Whether object is a vector."),
    ESK_PRIMITIVE_N("make-vector", "(make-vector k [fill])", 1, 2, make_vector,
                    "A new vector of k elements, each fill, or 0 where nothing is said."),
    ESK_PRIMITIVE_N("vector", "(vector object ...)", 0, -1, vector, "A new vector of the objects."),
    ESK_PRIMITIVE_1("vector-length", "(vector-length vector)", vector_length, "How many elements vector has."),
    ESK_PRIMITIVE_2("vector-ref", "(vector-ref vector k)", vector_ref, "Element k of vector, counted from 0."),
    ESK_PRIMITIVE_N("vector-set!", "(vector-set! vector k object)", 3, 3, vector_set,
                    "Make object element k of vector."),
    ESK_PRIMITIVE_2("%vector-ref", "(%vector-ref vector k)", vector_ref,
                    "As vector-ref, where the checker of types has proven that k is below the length."),
    ESK_PRIMITIVE_N("%vector-set!", "(%vector-set! vector k object)", 3, 3, vector_set,
                    "As vector-set!, where the checker of types has proven that k is below the length."),
    ESK_PRIMITIVE_N("vector->list", "(vector->list vector [start end])", 1, 3, vector_to_list,
                    "A new list of the elements of vector from start up to end."),
    ESK_PRIMITIVE_1("list->vector", "(list->vector list)", list_to_vector, "A new vector of the elements of list."),
    ESK_PRIMITIVE_N("vector-fill!", "(vector-fill! vector object [start end])", 2, 4, vector_fill,
                    "Make object every element of vector from start up to end."),
    ESK_PRIMITIVE_N("vector-copy", "(vector-copy vector [start end])", 1, 3, vector_copy,
                    "A new vector of the elements of vector from start up to end."),
    ESK_PRIMITIVE_N("subvector", "(subvector vector start end)", 3, 3, subvector,
                    "A new vector of the elements of vector from start up to end."),
    ESK_PRIMITIVE_N("vector-copy!", "(vector-copy! to at from [start end])", 3, 5, vector_copy_to,
                    "Copy the elements of from, from start up to end, into to, where they begin at index at."),
    ESK_PRIMITIVE_N("vector-append", "(vector-append vector ...)", 0, -1, vector_append,
                    "A new vector of the elements of all vectors."),
    {0}};
