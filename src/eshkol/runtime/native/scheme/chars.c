/* Characters: R7RS 6.6, by the Unicode database. Characters are scalar values: no surrogates, at most 10FFFF. */
#include "data.h"
#include "unicode.h"
#include "unicode_data.h"

const CharRecord *esk_char_record(uint32_t code) {
    if (code >= 0x110000) return &char_records[0];
    uint32_t page = char_index[code >> UNICODE_SHIFT];
    return &char_records[char_pages[page][code & ((1u << UNICODE_SHIFT) - 1)]];
}

/* White_Space, which Unicode has promised not to change. */
bool esk_char_whitespace(uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

int esk_char_map(uint32_t code, int which, uint32_t to[3]) {
    const CharRecord *record = esk_char_record(code);
    if (!(record->flags & CHAR_LONG_UPPER << which)) {
        int32_t distance = which == MAP_UPPER ? record->upper : which == MAP_LOWER ? record->lower : record->fold;
        to[0] = code + (uint32_t)distance;
        return 1;
    }
    size_t low = 0, high = sizeof long_mappings / sizeof *long_mappings;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        const LongMapping *m = &long_mappings[middle];
        if (m->code < code || (m->code == code && m->which <= (uint32_t)which)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const uint32_t *found = long_mappings[low].to;
    memcpy(to, found, sizeof long_mappings[low].to);
    return found[2] ? 3 : 2;
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Value char_p(Context *c, Value v) {
    (void)c;
    return esk_boolean(esk_is(v, TAG_CHAR));
}

static Value char_to_integer(Context *c, Value v) { return esk_fixnum(need_char(c, "char->integer", 1, v)); }

static Value integer_to_char(Context *c, Value v) {
    if (!esk_is(v, TAG_FIXNUM) || v.bits > 0x10FFFF || (v.bits >= 0xD800 && v.bits < 0xE000))
        esk_wrong_type(c, "integer->char", 1, v,
                       "the number of a Unicode character (0 to 1114111, but not 55296 to 57343)");
    return esk_char((uint32_t)v.bits);
}

static uint32_t simple_fold(uint32_t code) { return code + (uint32_t)esk_char_record(code)->fold; }

#define CHAR_ORDER(function, name, key, relation)                                              \
    static Value function(Context *c, const Value *args, int64_t count) {                      \
        bool holds = true;                                                                     \
        uint32_t last = key(need_char(c, name, 1, args[0]));                                   \
        for (int64_t i = 1; i < count; i++) {                                                  \
            uint32_t next = key(need_char(c, name, (int)i + 1, args[i]));                      \
            holds &= last relation next;                                                       \
            last = next;                                                                       \
        }                                                                                      \
        return esk_boolean(holds);                                                             \
    }

CHAR_ORDER(char_equal, "char=?", , ==)
CHAR_ORDER(char_less, "char<?", , <)
CHAR_ORDER(char_greater, "char>?", , >)
CHAR_ORDER(char_up_to, "char<=?", , <=)
CHAR_ORDER(char_from, "char>=?", , >=)
CHAR_ORDER(char_ci_equal, "char-ci=?", simple_fold, ==)
CHAR_ORDER(char_ci_less, "char-ci<?", simple_fold, <)
CHAR_ORDER(char_ci_greater, "char-ci>?", simple_fold, >)
CHAR_ORDER(char_ci_up_to, "char-ci<=?", simple_fold, <=)
CHAR_ORDER(char_ci_from, "char-ci>=?", simple_fold, >=)

#define CHAR_FLAG(function, name, flag)                                                              \
    static Value function(Context *c, Value v) {                                                     \
        return esk_boolean((esk_char_record(need_char(c, name, 1, v))->flags & (flag)) != 0);        \
    }

CHAR_FLAG(char_alphabetic, "char-alphabetic?", CHAR_ALPHABETIC)
CHAR_FLAG(char_upper_case, "char-upper-case?", CHAR_UPPER)
CHAR_FLAG(char_lower_case, "char-lower-case?", CHAR_LOWER)

static Value char_numeric(Context *c, Value v) {
    return esk_boolean(esk_char_record(need_char(c, "char-numeric?", 1, v))->digit >= 0);
}

static Value char_whitespace(Context *c, Value v) {
    return esk_boolean(esk_char_whitespace(need_char(c, "char-whitespace?", 1, v)));
}

static Value digit_value(Context *c, Value v) {
    int digit = esk_char_record(need_char(c, "digit-value", 1, v))->digit;
    return digit < 0 ? ESK_FALSE : esk_fixnum(digit);
}

#define CHAR_CASE(function, name, field)                                            \
    static Value function(Context *c, Value v) {                                    \
        uint32_t code = need_char(c, name, 1, v);                                   \
        return esk_char(code + (uint32_t)esk_char_record(code)->field);             \
    }

CHAR_CASE(char_upcase, "char-upcase", upper)
CHAR_CASE(char_downcase, "char-downcase", lower)
CHAR_CASE(char_foldcase, "char-foldcase", fold)

/* The same of two, for compiled code, which comes here only where one of them is no character. */
#define OF_TWO(function)                                           \
    uint64_t esk_##function(Context *, Value, Value);              \
    uint64_t esk_##function(Context *c, Value a, Value b) {        \
        const Value args[] = {a, b};                               \
        return !esk_is_false(function(c, args, 2));                \
    }
OF_TWO(char_equal)
OF_TWO(char_less)
OF_TWO(char_greater)
OF_TWO(char_up_to)
OF_TWO(char_from)

const Primitive esk_chars_primitives[] = {
    ESK_PRIMITIVE_1("char?", "(char? object)", char_p, "Whether object is a character."),
    ESK_PRIMITIVE_1("char->integer", "(char->integer char)", char_to_integer, "The Unicode code point of char."),
    ESK_PRIMITIVE_1("integer->char", "(integer->char n)", integer_to_char,
                    "The character with the Unicode code point n. Surrogates are no characters."),
    ESK_PRIMITIVE_N("char=?", "(char=? char ...)", 1, -1, char_equal, "Whether all are the same character."),
    ESK_PRIMITIVE_N("char<?", "(char<? char ...)", 1, -1, char_less, "Whether the code points increase."),
    ESK_PRIMITIVE_N("char>?", "(char>? char ...)", 1, -1, char_greater, "Whether the code points decrease."),
    ESK_PRIMITIVE_N("char<=?", "(char<=? char ...)", 1, -1, char_up_to, "Whether the code points never decrease."),
    ESK_PRIMITIVE_N("char>=?", "(char>=? char ...)", 1, -1, char_from, "Whether the code points never increase."),
    ESK_PRIMITIVE_N("char-ci=?", "(char-ci=? char ...)", 1, -1, char_ci_equal, "char=? after char-foldcase."),
    ESK_PRIMITIVE_N("char-ci<?", "(char-ci<? char ...)", 1, -1, char_ci_less, "char<? after char-foldcase."),
    ESK_PRIMITIVE_N("char-ci>?", "(char-ci>? char ...)", 1, -1, char_ci_greater, "char>? after char-foldcase."),
    ESK_PRIMITIVE_N("char-ci<=?", "(char-ci<=? char ...)", 1, -1, char_ci_up_to, "char<=? after char-foldcase."),
    ESK_PRIMITIVE_N("char-ci>=?", "(char-ci>=? char ...)", 1, -1, char_ci_from, "char>=? after char-foldcase."),
    ESK_PRIMITIVE_1("char-alphabetic?", "(char-alphabetic? char)", char_alphabetic,
                    "Whether char has the Unicode property Alphabetic."),
    ESK_PRIMITIVE_1("char-numeric?", "(char-numeric? char)", char_numeric,
                    "Whether char is a decimal digit of some script."),
    ESK_PRIMITIVE_1("char-whitespace?", "(char-whitespace? char)", char_whitespace,
                    "Whether char has the Unicode property White_Space."),
    ESK_PRIMITIVE_1("char-upper-case?", "(char-upper-case? char)", char_upper_case,
                    "Whether char has the Unicode property Uppercase."),
    ESK_PRIMITIVE_1("char-lower-case?", "(char-lower-case? char)", char_lower_case,
                    "Whether char has the Unicode property Lowercase."),
    ESK_PRIMITIVE_1("digit-value", "(digit-value char)", digit_value,
                    "The value of a decimal digit of any script, 0 to 9; #f for other characters."),
    ESK_PRIMITIVE_1("char-upcase", "(char-upcase char)", char_upcase,
                    "The upper-case character of char, or char itself where Unicode has no single one."),
    ESK_PRIMITIVE_1("char-downcase", "(char-downcase char)", char_downcase,
                    "The lower-case character of char, or char itself."),
    ESK_PRIMITIVE_1("char-foldcase", "(char-foldcase char)", char_foldcase,
                    "char as comparisons without regard to case see it (simple case folding)."),
    {0}};
