/* Strings: R7RS 6.7 and the conversions of 6.9. A string is an array of Unicode scalar values, so every index takes
 * constant time. Case is in string_case.c, searching and cutting in string_search.c. */
#include "data.h"
#include "utf8.h"

/* A string whose characters are set before anything else is allocated. */
String *esk_bare_string(Context *c, int64_t length) {
    String *string = esk_allocate(c, sizeof(String) + (size_t)length * sizeof(uint32_t), TAG_STRING);
    string->length = length;
    return string;
}

Value esk_string_part(Context *c, const String *from, Range range) {
    String *part = esk_bare_string(c, range.end - range.start);
    memcpy(part->chars, from->chars + range.start, (size_t)part->length * sizeof(uint32_t));
    return esk_object(part);
}

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------ */

static Value encoded(Context *c, const String *string, Range range) {
    int64_t length = 0;
    for (int64_t i = range.start; i < range.end; i++) {
        uint32_t code = string->chars[i];
        length += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    }
    Bytevector *bytes = esk_allocate(c, sizeof(Bytevector) + (size_t)length + 1, TAG_BYTEVECTOR);
    bytes->length = length;
    bytes->bytes[length] = 0;
    char *at = (char *)bytes->bytes;
    for (int64_t i = range.start; i < range.end; i++) at += esk_utf8_encode(string->chars[i], at);
    return esk_object(bytes);
}

Value esk_utf8_of(Context *c, Value string) {
    String *s = esk_pointer(string);
    return encoded(c, s, (Range){0, s->length});
}

static Value string_to_utf8(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string->utf8", 1, args[0]);
    return encoded(c, string, need_range(c, "string->utf8", args, count, 1, string->length));
}

/* Whether the bytes at `at` begin with a whole, valid character: its length, else 0. */
static int valid(const uint8_t *at, const uint8_t *end, uint32_t *code) {
    int taken = esk_utf8_decode(at, end, code);
    bool replaced = *code == 0xFFFD && !(taken == 3 && at[0] == 0xEF && at[1] == 0xBF && at[2] == 0xBD);
    return replaced ? 0 : taken;
}

static Value utf8_to_string(Context *c, const Value *args, int64_t count) {
    Bytevector *bytes = need_bytevector(c, "utf8->string", 1, args[0]);
    Range range = need_range(c, "utf8->string", args, count, 1, bytes->length);
    const uint8_t *start = bytes->bytes + range.start, *end = bytes->bytes + range.end;
    int64_t length = 0;
    uint32_t code;
    for (const uint8_t *at = start; at < end; length++) {
        int taken = valid(at, end, &code);
        if (!taken)
            esk_fail(c, ERROR_RANGE, "utf8->string", "the bytes are not valid UTF-8 from this index on", 2,
                     esk_fixnum(at - bytes->bytes), args[0]);
        at += taken;
    }
    String *string = esk_bare_string(c, length);
    uint32_t *to = string->chars;
    for (const uint8_t *at = start; at < end; to++) at += valid(at, end, to);
    return esk_object(string);
}

/* ---- making, reading, changing ---------------------------------------------------------------------------------- */

static Value string_p(Context *c, Value v) {
    (void)c;
    return esk_boolean(esk_is(v, TAG_STRING));
}

static Value make_string(Context *c, const Value *args, int64_t count) {
    int64_t length = need_size(c, "make-string", 1, args[0]);
    return esk_make_string(c, length, count > 1 ? need_char(c, "make-string", 2, args[1]) : ' ');
}

static Value string(Context *c, const Value *args, int64_t count) {
    for (int64_t i = 0; i < count; i++) need_char(c, "string", (int)i + 1, args[i]);
    String *string = esk_bare_string(c, count);
    for (int64_t i = 0; i < count; i++) string->chars[i] = (uint32_t)args[i].bits;
    return esk_object(string);
}

static Value string_length(Context *c, Value v) { return esk_fixnum(need_string(c, "string-length", 1, v)->length); }

static Value string_ref(Context *c, Value v, Value k) {
    String *string = need_string(c, "string-ref", 1, v);
    return esk_char(string->chars[need_index(c, "string-ref", 2, k, string->length)]);
}

static Value string_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    String *string = need_string(c, "string-set!", 1, args[0]);
    int64_t k = need_index(c, "string-set!", 2, args[1], string->length);
    uint32_t code = need_char(c, "string-set!", 3, args[2]);
    need_mutable(c, "string-set!", args[0]);
    string->chars[k] = code;
    return ESK_UNSPECIFIED;
}

static Value part(Context *c, const char *who, const Value *args, int64_t count) {
    String *string = need_string(c, who, 1, args[0]);
    return esk_string_part(c, string, need_range(c, who, args, count, 1, string->length));
}

static Value substring(Context *c, const Value *args, int64_t count) { return part(c, "substring", args, count); }
static Value string_copy(Context *c, const Value *args, int64_t count) { return part(c, "string-copy", args, count); }

static Value string_append(Context *c, const Value *args, int64_t count) {
    int64_t length = 0;
    for (int64_t i = 0; i < count; i++) {
        length += need_string(c, "string-append", (int)i + 1, args[i])->length;
        need_length(c, "string-append", length);
    }
    String *all = esk_bare_string(c, length);
    uint32_t *at = all->chars;
    for (int64_t i = 0; i < count; i++) {
        String *piece = esk_pointer(args[i]);
        memcpy(at, piece->chars, (size_t)piece->length * sizeof(uint32_t));
        at += piece->length;
    }
    return esk_object(all);
}

static Value string_copy_to(Context *c, const Value *args, int64_t count) {
    String *to = need_string(c, "string-copy!", 1, args[0]), *from = need_string(c, "string-copy!", 3, args[2]);
    int64_t at = need_index(c, "string-copy!", 2, args[1], to->length + 1);
    Range range = need_range(c, "string-copy!", args, count, 3, from->length);
    need_mutable(c, "string-copy!", args[0]);
    need_room(c, "string-copy!", args, to->length - at, range);
    memmove(to->chars + at, from->chars + range.start, (size_t)(range.end - range.start) * sizeof(uint32_t));
    return ESK_UNSPECIFIED;
}

static Value string_fill(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string-fill!", 1, args[0]);
    uint32_t code = need_char(c, "string-fill!", 2, args[1]);
    Range range = need_range(c, "string-fill!", args, count, 2, string->length);
    need_mutable(c, "string-fill!", args[0]);
    for (int64_t i = range.start; i < range.end; i++) string->chars[i] = code;
    return ESK_UNSPECIFIED;
}

/* ---- lists and vectors of characters ---------------------------------------------------------------------------- */

static Value string_to_list(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string->list", 1, args[0]);
    Range range = need_range(c, "string->list", args, count, 1, string->length);
    Value list = ESK_NULL;
    for (int64_t i = range.end; i > range.start; i--) list = esk_cons(c, esk_char(string->chars[i - 1]), list);
    return list;
}

static Value list_to_string(Context *c, Value list) {
    int64_t length = esk_need_list(c, "list->string", 1, list);
    for (Value at = list; esk_is(at, TAG_PAIR); at = esk_cdr(at))
        if (!esk_is(esk_car(at), TAG_CHAR)) esk_wrong_type(c, "list->string", 1, list, "a list of characters");
    String *string = esk_bare_string(c, length);
    for (int64_t i = 0; i < length; i++, list = esk_cdr(list)) string->chars[i] = (uint32_t)esk_car(list).bits;
    return esk_object(string);
}

static Value string_to_vector(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string->vector", 1, args[0]);
    Range range = need_range(c, "string->vector", args, count, 1, string->length);
    Value result = esk_make_vector(c, range.end - range.start, ESK_NULL);
    Vector *vector = esk_pointer(result);
    for (int64_t i = 0; i < vector->length; i++) vector->items[i] = esk_char(string->chars[range.start + i]);
    return result;
}

static Value vector_to_string(Context *c, const Value *args, int64_t count) {
    Vector *vector = need_vector(c, "vector->string", 1, args[0]);
    Range range = need_range(c, "vector->string", args, count, 1, vector->length);
    for (int64_t i = range.start; i < range.end; i++)
        if (!esk_is(vector->items[i], TAG_CHAR))
            esk_wrong_type(c, "vector->string", 1, args[0], "a vector of characters");
    String *string = esk_bare_string(c, range.end - range.start);
    for (int64_t i = 0; i < string->length; i++) string->chars[i] = (uint32_t)vector->items[range.start + i].bits;
    return esk_object(string);
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

static int compare(const String *a, const String *b) {
    int64_t shorter = a->length < b->length ? a->length : b->length;
    for (int64_t i = 0; i < shorter; i++)
        if (a->chars[i] != b->chars[i]) return a->chars[i] < b->chars[i] ? -1 : 1;
    return a->length < b->length ? -1 : a->length > b->length;
}

/* All arguments are checked, also behind the first that does not fit. */
#define STRING_ORDER(function, name, holds_between)                              \
    static Value function(Context *c, const Value *args, int64_t count) {        \
        bool holds = true;                                                       \
        const String *a = need_string(c, name, 1, args[0]), *b;                  \
        for (int64_t i = 1; i < count; i++, a = b) {                             \
            b = need_string(c, name, (int)i + 1, args[i]);                       \
            holds = holds && (holds_between);                                    \
        }                                                                        \
        return esk_boolean(holds);                                               \
    }

STRING_ORDER(string_equal, "string=?", esk_strings_equal(a, b))
STRING_ORDER(string_less, "string<?", compare(a, b) < 0)
STRING_ORDER(string_greater, "string>?", compare(a, b) > 0)
STRING_ORDER(string_up_to, "string<=?", compare(a, b) <= 0)
STRING_ORDER(string_from, "string>=?", compare(a, b) >= 0)
STRING_ORDER(string_ci_equal, "string-ci=?", esk_string_compare_ci(a, b) == 0)
STRING_ORDER(string_ci_less, "string-ci<?", esk_string_compare_ci(a, b) < 0)
STRING_ORDER(string_ci_greater, "string-ci>?", esk_string_compare_ci(a, b) > 0)
STRING_ORDER(string_ci_up_to, "string-ci<=?", esk_string_compare_ci(a, b) <= 0)
STRING_ORDER(string_ci_from, "string-ci>=?", esk_string_compare_ci(a, b) >= 0)

const Primitive esk_strings_primitives[] = {
    ESK_PRIMITIVE_1("string?", "(string? object)", string_p, "Whether object is a string."),
    ESK_PRIMITIVE_N("make-string", "(make-string k [char])", 1, 2, make_string,
                    "A new string of k characters, each char, or a space where nothing is said."),
    ESK_PRIMITIVE_N("string", "(string char ...)", 0, -1, string, "A new string of the characters."),
    ESK_PRIMITIVE_1("string-length", "(string-length string)", string_length, "How many characters string has."),
    ESK_PRIMITIVE_2("string-ref", "(string-ref string k)", string_ref, "Character k of string, counted from 0."),
    ESK_PRIMITIVE_N("string-set!", "(string-set! string k char)", 3, 3, string_set,
                    "Make char character k of string, which must not be a literal."),
    ESK_PRIMITIVE_N("substring", "(substring string start [end])", 2, 3, substring,
                    "A new string of the characters of string from start up to end."),
    ESK_PRIMITIVE_N("string-copy", "(string-copy string [start end])", 1, 3, string_copy,
                    "A new string of the characters of string from start up to end."),
    ESK_PRIMITIVE_N("string-append", "(string-append string ...)", 0, -1, string_append,
                    "A new string of the characters of all strings."),
    ESK_PRIMITIVE_N("string-copy!", "(string-copy! to at from [start end])", 3, 5, string_copy_to,
                    "Copy the characters of from, from start up to end, into to, where they begin at index at."),
    ESK_PRIMITIVE_N("string-fill!", "(string-fill! string char [start end])", 2, 4, string_fill,
                    "Make char every character of string from start up to end."),
    ESK_PRIMITIVE_N("string->list", "(string->list string [start end])", 1, 3, string_to_list,
                    "A new list of the characters of string from start up to end."),
    ESK_PRIMITIVE_1("list->string", "(list->string list)", list_to_string, "A new string of the characters in list."),
    ESK_PRIMITIVE_N("string->vector", "(string->vector string [start end])", 1, 3, string_to_vector,
                    "A new vector of the characters of string from start up to end."),
    ESK_PRIMITIVE_N("vector->string", "(vector->string vector [start end])", 1, 3, vector_to_string,
                    "A new string of the characters in vector from start up to end."),
    ESK_PRIMITIVE_N("string->utf8", "(string->utf8 string [start end])", 1, 3, string_to_utf8,
                    "The characters of string from start up to end as a bytevector in UTF-8."),
    ESK_PRIMITIVE_N("utf8->string", "(utf8->string bytevector [start end])", 1, 3, utf8_to_string,
                    "The bytes from start up to end, which must be valid UTF-8, as a string."),
    ESK_PRIMITIVE_N("string=?", "(string=? string ...)", 1, -1, string_equal, "Whether all have the same characters."),
    ESK_PRIMITIVE_N("string<?", "(string<? string ...)", 1, -1, string_less,
                    "Whether each string comes before the next, by code points."),
    ESK_PRIMITIVE_N("string>?", "(string>? string ...)", 1, -1, string_greater,
                    "Whether each string comes after the next, by code points."),
    ESK_PRIMITIVE_N("string<=?", "(string<=? string ...)", 1, -1, string_up_to,
                    "Whether no string comes after the next, by code points."),
    ESK_PRIMITIVE_N("string>=?", "(string>=? string ...)", 1, -1, string_from,
                    "Whether no string comes before the next, by code points."),
    ESK_PRIMITIVE_N("string-ci=?", "(string-ci=? string ...)", 1, -1, string_ci_equal,
                    "string=? after string-foldcase."),
    ESK_PRIMITIVE_N("string-ci<?", "(string-ci<? string ...)", 1, -1, string_ci_less,
                    "string<? after string-foldcase."),
    ESK_PRIMITIVE_N("string-ci>?", "(string-ci>? string ...)", 1, -1, string_ci_greater,
                    "string>? after string-foldcase."),
    ESK_PRIMITIVE_N("string-ci<=?", "(string-ci<=? string ...)", 1, -1, string_ci_up_to,
                    "string<=? after string-foldcase."),
    ESK_PRIMITIVE_N("string-ci>=?", "(string-ci>=? string ...)", 1, -1, string_ci_from,
                    "string>=? after string-foldcase."),
    {0}};
