/* What the files about data (lists, vectors, strings, bytevectors, chars, tables) share: checks of arguments that name
 * procedure, position and value when they fail, optional start and end, and the mixing of hashes. */
#ifndef ESHKOL_SCHEME_DATA_H
#define ESHKOL_SCHEME_DATA_H

#include "value.h"

/* Longer than any heap holds, and short enough that sizes in bytes do not overflow. */
#define LENGTH_LIMIT ((int64_t)1 << 40)

static inline String *need_string(Context *c, const char *who, int position, Value v) {
    if (!esk_is(v, TAG_STRING)) esk_wrong_type(c, who, position, v, "a string");
    return esk_pointer(v);
}

static inline Vector *need_vector(Context *c, const char *who, int position, Value v) {
    if (!esk_is(v, TAG_VECTOR)) esk_wrong_type(c, who, position, v, "a vector");
    return esk_pointer(v);
}

static inline Bytevector *need_bytevector(Context *c, const char *who, int position, Value v) {
    if (!esk_is(v, TAG_BYTEVECTOR)) esk_wrong_type(c, who, position, v, "a bytevector");
    return esk_pointer(v);
}

static inline uint32_t need_char(Context *c, const char *who, int position, Value v) {
    if (!esk_is(v, TAG_CHAR)) esk_wrong_type(c, who, position, v, "a character");
    return (uint32_t)v.bits;
}

static inline uint8_t need_byte(Context *c, const char *who, int position, Value v) {
    if (!esk_is(v, TAG_FIXNUM) || v.bits > 255)
        esk_wrong_type(c, who, position, v, "a byte (an exact integer from 0 to 255)");
    return (uint8_t)v.bits;
}

/* An index below `limit`. */
static inline int64_t need_index(Context *c, const char *who, int position, Value v, int64_t limit) {
    if (!esk_is(v, TAG_FIXNUM)) {
        if (esk_is(v, TAG_BIGNUM)) esk_bad_index(c, who, position, v, limit);
        esk_wrong_type(c, who, position, v, "an index (a nonnegative exact integer)");
    }
    if (v.bits >= (uint64_t)limit) esk_bad_index(c, who, position, v, limit);
    return esk_integer(v);
}

/* How long something new shall be. */
static inline int64_t need_size(Context *c, const char *who, int position, Value v) {
    if (esk_is(v, TAG_FIXNUM) && esk_integer(v) >= 0) {
        if (esk_integer(v) < LENGTH_LIMIT) return esk_integer(v);
        esk_fail(c, ERROR_MEMORY, who, "this length is more than memory can hold", 1, v);
    }
    if (esk_is(v, TAG_BIGNUM) && !(((Object *)esk_pointer(v))->flags & FLAG_NEGATIVE))
        esk_fail(c, ERROR_MEMORY, who, "this length is more than memory can hold", 1, v);
    esk_wrong_type(c, who, position, v, "a length (a nonnegative exact integer)");
}

static inline void need_length(Context *c, const char *who, int64_t length) {
    if (length >= LENGTH_LIMIT) esk_fail(c, ERROR_MEMORY, who, "the result is more than memory can hold", 0);
}

/* Constants of a program are not to be changed. */
static inline void need_mutable(Context *c, const char *who, Value v) {
    if (((Object *)esk_pointer(v))->flags & FLAG_LITERAL)
        esk_fail(c, ERROR_TYPE, who, "a constant of the program cannot be changed; change a copy of it", 1, v);
}

typedef struct {
    int64_t start, end;
} Range;

/* The optional arguments start and end, the first of them args[at], for something of this length. */
static inline Range need_range(Context *c, const char *who, const Value *args, int64_t count, int at, int64_t length) {
    Range range = {0, length};
    if (count > at + 1) range.end = need_index(c, who, at + 2, args[at + 1], length + 1);
    if (count > at) range.start = need_index(c, who, at + 1, args[at], length + 1);
    if (range.start > range.end)
        esk_fail(c, ERROR_RANGE, who, "the start is greater than the end", 2, args[at], args[at + 1]);
    return range;
}

/* Of a copying procedure (to at from ...): whether what is copied fits. */
static inline void need_room(Context *c, const char *who, const Value *args, int64_t room, Range range) {
    if (range.end - range.start > room)
        esk_fail(c, ERROR_RANGE, who, "what is copied does not fit: there is less room from this index on", 1, args[1]);
}

/* Whether `list` is a proper list, and how long: -1 where it ends in something else, -2 where it never ends. */
int64_t esk_list_length(Value list);
int64_t esk_need_list(Context *, const char *who, int position, Value list); /* its length, or an error */

String *esk_bare_string(Context *, int64_t length); /* strings.c; to be filled before the next allocation */
Value esk_string_part(Context *, const String *, Range);

/* ---- hashes ----------------------------------------------------------------------------------------------------- */

static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD1342543DE82EF95u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_bits(Value v) { return hash_mix(v.bits, v.tag); }

uint64_t esk_string_hash(const String *);    /* equality.c; of strings that string=? holds equal */
uint64_t esk_string_ci_hash(const String *); /* string_case.c */
bool esk_strings_equal(const String *, const String *);
int esk_string_compare_ci(const String *, const String *); /* string_case.c: below, at or above zero */
uint64_t esk_eqv_hash(Value);                /* equality.c */

#endif
