/* Constructors: objects of the common types, wholly initialized. Lengths may come from the user; those that no heap
 * could hold raise out-of-memory before anything is computed with them. */
#include "heap.h"
#include "utf8.h"

static void check_length(Context *context, int64_t length, int64_t size) {
    if (length < 0 || length > (INT64_MAX >> 8) / size) esk_out_of_memory(context, UINT64_MAX);
}

Value esk_cons(Context *context, Value car, Value cdr) {
    Bump *bump = &context->bump[sizeof(Pair) / 8];
    Pair *pair = (Pair *)bump->next;
    if (bump->next == bump->end) pair = esk_refill(context, sizeof(Pair) / 8);
    else bump->next += sizeof(Pair);
    pair->head = (Object){TAG_PAIR, (uint8_t)car.tag, (uint8_t)cdr.tag, 0, 0};
    pair->car = car.bits;
    pair->cdr = cdr.bits;
    return esk_make(TAG_PAIR, (uint64_t)(uintptr_t)pair);
}

Value esk_make_vector(Context *context, int64_t length, Value fill) {
    check_length(context, length, sizeof(Value));
    Vector *vector = esk_allocate(context, sizeof *vector + (size_t)length * sizeof(Value), TAG_VECTOR);
    vector->length = length;
    for (int64_t i = 0; i < length; i++) vector->items[i] = fill;
    return esk_object(vector);
}

Value esk_make_string(Context *context, int64_t length, uint32_t fill) {
    check_length(context, length, sizeof(uint32_t));
    String *string = esk_allocate(context, sizeof *string + (size_t)length * sizeof(uint32_t), TAG_STRING);
    string->length = length;
    for (int64_t i = 0; i < length; i++) string->chars[i] = fill;
    return esk_object(string);
}

Value esk_make_bytevector(Context *context, int64_t length, uint8_t fill) {
    check_length(context, length, 1);
    Bytevector *bytes = esk_allocate(context, sizeof *bytes + (size_t)length, TAG_BYTEVECTOR);
    bytes->length = length;
    memset(bytes->bytes, fill, (size_t)length);
    return esk_object(bytes);
}

/* The number of characters; stored where `out` is not null. */
static int64_t decode(const uint8_t *at, int64_t bytes, uint32_t *out) {
    int64_t count = 0;
    for (const uint8_t *end = at + bytes; at < end; count++) {
        uint32_t code;
        int taken = esk_utf8_decode(at, end, &code);
        if (out) out[count] = code;
        at = taken ? at + taken : end; /* cut off at the end: one replacement for all of it */
    }
    return count;
}

Value esk_string_utf8(Context *context, const char *bytes, int64_t count) {
    Value string = esk_make_string(context, decode((const uint8_t *)bytes, count, NULL), 0);
    decode((const uint8_t *)bytes, count, ((String *)esk_pointer(string))->chars);
    return string;
}

Value esk_box(Context *context, Value value) {
    Box *box = esk_allocate(context, sizeof *box, TAG_BOX);
    box->value = value;
    return esk_object(box);
}

Value esk_values(Context *context, const Value *values, int64_t count) {
    if (count == 1) return values[0];
    check_length(context, count, sizeof(Value));
    if (count > UINT32_MAX) esk_out_of_memory(context, UINT64_MAX);
    Values *object = esk_allocate(context, sizeof *object + (size_t)count * sizeof(Value), TAG_VALUES);
    object->head.count = (uint32_t)count;
    for (int64_t i = 0; i < count; i++) object->items[i] = values[i];
    return esk_object(object);
}

Value esk_list(Context *context, const Value *values, int64_t count) {
    Value list = ESK_NULL;
    while (count-- > 0) list = esk_cons(context, values[count], list);
    return list;
}
