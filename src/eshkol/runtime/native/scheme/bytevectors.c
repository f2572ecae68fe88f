/* Bytevectors: R7RS 6.9, without the conversions to and from strings (strings.c). */
#include "data.h"

static Value bytevector_p(Context *c, Value v) {
    (void)c;
    return esk_boolean(esk_is(v, TAG_BYTEVECTOR));
}

static Value make_bytevector(Context *c, const Value *args, int64_t count) {
    int64_t length = need_size(c, "make-bytevector", 1, args[0]);
    return esk_make_bytevector(c, length, count > 1 ? need_byte(c, "make-bytevector", 2, args[1]) : 0);
}

static Bytevector *bare(Context *c, int64_t length) {
    Bytevector *bytes = esk_allocate(c, sizeof(Bytevector) + (size_t)length, TAG_BYTEVECTOR);
    bytes->length = length;
    return bytes;
}

static Value bytevector(Context *c, const Value *args, int64_t count) {
    for (int64_t i = 0; i < count; i++) need_byte(c, "bytevector", (int)i + 1, args[i]);
    Bytevector *bytes = bare(c, count);
    for (int64_t i = 0; i < count; i++) bytes->bytes[i] = (uint8_t)args[i].bits;
    return esk_object(bytes);
}

static Value bytevector_length(Context *c, Value v) {
    return esk_fixnum(need_bytevector(c, "bytevector-length", 1, v)->length);
}

static Value u8_ref(Context *c, Value v, Value k) {
    Bytevector *bytes = need_bytevector(c, "bytevector-u8-ref", 1, v);
    return esk_fixnum(bytes->bytes[need_index(c, "bytevector-u8-ref", 2, k, bytes->length)]);
}

static Value u8_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    Bytevector *bytes = need_bytevector(c, "bytevector-u8-set!", 1, args[0]);
    int64_t k = need_index(c, "bytevector-u8-set!", 2, args[1], bytes->length);
    uint8_t byte = need_byte(c, "bytevector-u8-set!", 3, args[2]);
    need_mutable(c, "bytevector-u8-set!", args[0]);
    bytes->bytes[k] = byte;
    return ESK_UNSPECIFIED;
}

static Value s8_ref(Context *c, Value v, Value k) {
    Bytevector *bytes = need_bytevector(c, "bytevector-s8-ref", 1, v);
    return esk_fixnum((int8_t)bytes->bytes[need_index(c, "bytevector-s8-ref", 2, k, bytes->length)]);
}

static Value s8_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    Bytevector *bytes = need_bytevector(c, "bytevector-s8-set!", 1, args[0]);
    int64_t k = need_index(c, "bytevector-s8-set!", 2, args[1], bytes->length);
    if (!esk_is(args[2], TAG_FIXNUM) || esk_integer(args[2]) < -128 || esk_integer(args[2]) > 127)
        esk_wrong_type(c, "bytevector-s8-set!", 3, args[2], "an exact integer from -128 to 127");
    need_mutable(c, "bytevector-s8-set!", args[0]);
    bytes->bytes[k] = (uint8_t)args[2].bits;
    return ESK_UNSPECIFIED;
}

static Value bytevector_copy(Context *c, const Value *args, int64_t count) {
    Bytevector *from = need_bytevector(c, "bytevector-copy", 1, args[0]);
    Range range = need_range(c, "bytevector-copy", args, count, 1, from->length);
    Bytevector *copy = bare(c, range.end - range.start);
    memcpy(copy->bytes, from->bytes + range.start, (size_t)copy->length);
    return esk_object(copy);
}

static Value bytevector_copy_to(Context *c, const Value *args, int64_t count) {
    Bytevector *to = need_bytevector(c, "bytevector-copy!", 1, args[0]);
    Bytevector *from = need_bytevector(c, "bytevector-copy!", 3, args[2]);
    int64_t at = need_index(c, "bytevector-copy!", 2, args[1], to->length + 1);
    Range range = need_range(c, "bytevector-copy!", args, count, 3, from->length);
    need_mutable(c, "bytevector-copy!", args[0]);
    need_room(c, "bytevector-copy!", args, to->length - at, range);
    memmove(to->bytes + at, from->bytes + range.start, (size_t)(range.end - range.start));
    return ESK_UNSPECIFIED;
}

static Value bytevector_append(Context *c, const Value *args, int64_t count) {
    int64_t length = 0;
    for (int64_t i = 0; i < count; i++) {
        length += need_bytevector(c, "bytevector-append", (int)i + 1, args[i])->length;
        need_length(c, "bytevector-append", length);
    }
    Bytevector *all = bare(c, length);
    uint8_t *at = all->bytes;
    for (int64_t i = 0; i < count; i++) {
        Bytevector *piece = esk_pointer(args[i]);
        memcpy(at, piece->bytes, (size_t)piece->length);
        at += piece->length;
    }
    return esk_object(all);
}

static Value bytevector_fill(Context *c, const Value *args, int64_t count) {
    Bytevector *bytes = need_bytevector(c, "bytevector-fill!", 1, args[0]);
    uint8_t byte = need_byte(c, "bytevector-fill!", 2, args[1]);
    Range range = need_range(c, "bytevector-fill!", args, count, 2, bytes->length);
    need_mutable(c, "bytevector-fill!", args[0]);
    memset(bytes->bytes + range.start, byte, (size_t)(range.end - range.start));
    return ESK_UNSPECIFIED;
}

static Value bytevector_equal(Context *c, const Value *args, int64_t count) {
    bool equal = true;
    Bytevector *first = need_bytevector(c, "bytevector=?", 1, args[0]);
    for (int64_t i = 1; i < count; i++) {
        Bytevector *other = need_bytevector(c, "bytevector=?", (int)i + 1, args[i]);
        equal = equal && first->length == other->length && !memcmp(first->bytes, other->bytes, (size_t)first->length);
    }
    return esk_boolean(equal);
}

/* A place for a double: R6RS has it begin at a multiple of its size. */
static uint8_t *double_at(Context *c, const char *who, Value v, Value k) {
    Bytevector *bytes = need_bytevector(c, who, 1, v);
    int64_t at = need_index(c, who, 2, k, bytes->length);
    if (at % 8 || bytes->length - at < 8)
        esk_fail(c, ERROR_RANGE, who, "expected a multiple of 8 with 8 bytes behind it as argument 2, but got", 1, k);
    return bytes->bytes + at;
}

static Value double_ref(Context *c, Value v, Value k) {
    double x;
    memcpy(&x, double_at(c, "bytevector-ieee-double-native-ref", v, k), 8);
    return esk_flonum(x);
}

static Value double_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    const char *who = "bytevector-ieee-double-native-set!";
    uint8_t *at = double_at(c, who, args[0], args[1]);
    if (!esk_is(args[2], TAG_FLONUM)) esk_wrong_type(c, who, 3, args[2], "an inexact real number");
    need_mutable(c, who, args[0]);
    memcpy(at, &args[2].bits, 8);
    return ESK_UNSPECIFIED;
}

const Primitive esk_bytevectors_primitives[] = {
    ESK_PRIMITIVE_1("bytevector?", "(bytevector? object)", bytevector_p, "Whether object is a bytevector."),
    ESK_PRIMITIVE_N("make-bytevector", "(make-bytevector k [byte])", 1, 2, make_bytevector,
                    "A new bytevector of k bytes, each byte, or 0 where nothing is said."),
    ESK_PRIMITIVE_N("bytevector", "(bytevector byte ...)", 0, -1, bytevector, "A new bytevector of the bytes."),
    ESK_PRIMITIVE_1("bytevector-length", "(bytevector-length bytevector)", bytevector_length,
                    "How many bytes bytevector has."),
    ESK_PRIMITIVE_2("bytevector-u8-ref", "(bytevector-u8-ref bytevector k)", u8_ref,
                    "Byte k of bytevector, counted from 0, as an integer from 0 to 255."),
    ESK_PRIMITIVE_N("bytevector-u8-set!", "(bytevector-u8-set! bytevector k byte)", 3, 3, u8_set,
                    "Make byte, an integer from 0 to 255, byte k of bytevector."),
    ESK_PRIMITIVE_2("bytevector-s8-ref", "(bytevector-s8-ref bytevector k)", s8_ref,
                    "Byte k of bytevector, counted from 0, as an integer from -128 to 127."),
    ESK_PRIMITIVE_N("bytevector-s8-set!", "(bytevector-s8-set! bytevector k n)", 3, 3, s8_set,
                    "Make n, an integer from -128 to 127, byte k of bytevector."),
    ESK_PRIMITIVE_N("bytevector-copy", "(bytevector-copy bytevector [start end])", 1, 3, bytevector_copy,
                    "A new bytevector of the bytes of bytevector from start up to end."),
    ESK_PRIMITIVE_N("bytevector-copy!", "(bytevector-copy! to at from [start end])", 3, 5, bytevector_copy_to,
                    "Copy the bytes of from, from start up to end, into to, where they begin at index at."),
    ESK_PRIMITIVE_N("bytevector-append", "(bytevector-append bytevector ...)", 0, -1, bytevector_append,
                    "A new bytevector of the bytes of all bytevectors."),
    ESK_PRIMITIVE_N("bytevector-fill!", "(bytevector-fill! bytevector byte [start end])", 2, 4, bytevector_fill,
                    "Make byte every byte of bytevector from start up to end."),
    ESK_PRIMITIVE_N("bytevector=?", "(bytevector=? bytevector ...)", 1, -1, bytevector_equal,
                    "Whether all have the same bytes."),
    ESK_PRIMITIVE_2("bytevector-ieee-double-native-ref", "(bytevector-ieee-double-native-ref bytevector k)", double_ref,
                    "The float of 64 bits in the bytes of bytevector from k on, a multiple of 8; as R6RS has it."),
    ESK_PRIMITIVE_N("bytevector-ieee-double-native-set!", "(bytevector-ieee-double-native-set! bytevector k x)", 3, 3,
                    double_set, "Write the float x into the bytes of bytevector from k on, a multiple of 8."),
    {0}};
