/* Upper, lower and folded case of strings, with Unicode's full mappings (sharp s becomes SS, a sigma at the end of a
 * word has its own lower case), and comparison and hash without regard to case. */
#include "data.h"
#include "unicode.h"

/* Whether the sigma at index i ends a word: a cased letter before it and none after it, where marks do not count. */
static bool final_sigma(const String *s, int64_t i) {
    int64_t before = i - 1, after = i + 1;
    while (before >= 0 && esk_char_record(s->chars[before])->flags & CHAR_IGNORABLE) before--;
    if (before < 0 || !(esk_char_record(s->chars[before])->flags & CHAR_CASED)) return false;
    while (after < s->length && esk_char_record(s->chars[after])->flags & CHAR_IGNORABLE) after++;
    return after == s->length || !(esk_char_record(s->chars[after])->flags & CHAR_CASED);
}

enum { CAPITAL_SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2 };

static inline bool is_ascii_upper(uint32_t code) { return code - 'A' < 26; }
static inline bool is_ascii_lower(uint32_t code) { return code - 'a' < 26; }

static inline int map(const String *s, int64_t i, int which, uint32_t to[3]) {
    uint32_t code = s->chars[i];
    if (code < 0x80) {
        to[0] = which == MAP_UPPER ? code - 32 * is_ascii_lower(code) : code + 32 * is_ascii_upper(code);
        return 1;
    }
    if (code == CAPITAL_SIGMA && which == MAP_LOWER && final_sigma(s, i)) {
        to[0] = FINAL_SIGMA;
        return 1;
    }
    return esk_char_map(code, which, to);
}

static Value mapped(Context *c, const String *s, int which) {
    int64_t length = 0;
    uint32_t to[3];
    for (int64_t i = 0; i < s->length; i++)
        length += s->chars[i] < 0x80 ? 1 : esk_char_map(s->chars[i], which, to);
    String *result = esk_bare_string(c, length);
    uint32_t *at = result->chars;
    for (int64_t i = 0; i < s->length; i++) {
        int count = map(s, i, which, to);
        for (int j = 0; j < count; j++) *at++ = to[j];
    }
    return esk_object(result);
}

static Value string_upcase(Context *c, Value v) { return mapped(c, need_string(c, "string-upcase", 1, v), MAP_UPPER); }
static Value string_downcase(Context *c, Value v) {
    return mapped(c, need_string(c, "string-downcase", 1, v), MAP_LOWER);
}
static Value string_foldcase(Context *c, Value v) {
    return mapped(c, need_string(c, "string-foldcase", 1, v), MAP_FOLD);
}

Value esk_string_foldcase(Context *c, Value string) { return mapped(c, esk_pointer(string), MAP_FOLD); }

/* ---- comparison and hash, without making strings ---------------------------------------------------------------- */

typedef struct {
    const String *string;
    int64_t next;
    uint32_t ready[3];
    int at, count;
} Folded;

enum { FOLDED_END = 0x110000 };

/* The next character of the folded string, or FOLDED_END. */
static inline uint32_t folded_next(Folded *f) {
    if (f->at == f->count) {
        if (f->next == f->string->length) return FOLDED_END;
        f->count = map(f->string, f->next++, MAP_FOLD, f->ready);
        f->at = 0;
    }
    return f->ready[f->at++];
}

int esk_string_compare_ci(const String *a, const String *b) {
    Folded x = {.string = a}, y = {.string = b};
    for (;;) {
        uint32_t p = folded_next(&x), q = folded_next(&y);
        if (p == FOLDED_END || q == FOLDED_END) return p == q ? 0 : p == FOLDED_END ? -1 : 1;
        if (p != q) return p < q ? -1 : 1;
    }
}

uint64_t esk_string_ci_hash(const String *string) {
    Folded f = {.string = string};
    uint64_t hash = TAG_STRING;
    for (uint32_t code; (code = folded_next(&f)) != FOLDED_END;) hash = hash_mix(hash, code);
    return hash;
}

const Primitive esk_string_case_primitives[] = {
    ESK_PRIMITIVE_1("string-upcase", "(string-upcase string)", string_upcase,
                    "The string in upper case, by Unicode's full mapping: it may become longer."),
    ESK_PRIMITIVE_1("string-downcase", "(string-downcase string)", string_downcase,
                    "The string in lower case, by Unicode's full mapping; a sigma that ends a word has its own form."),
    ESK_PRIMITIVE_1("string-foldcase", "(string-foldcase string)", string_foldcase,
                    "The string as comparisons without regard to case see it (full case folding)."),
    {0}};
