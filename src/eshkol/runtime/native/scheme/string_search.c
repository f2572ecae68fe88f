/* Searching in strings, cutting them up and joining them. What takes a predicate is in the library; here are the
 * procedures that take characters and strings. */
#include "data.h"
#include "unicode.h"

/* ---- searching -------------------------------------------------------------------------------------------------- */

static int64_t find_char(const uint32_t *text, int64_t start, int64_t end, uint32_t code) {
    for (int64_t i = start; i < end; i++)
        if (text[i] == code) return i;
    return -1;
}

static bool begins(const uint32_t *text, const uint32_t *pattern, int64_t length) {
    return !memcmp(text, pattern, (size_t)length * sizeof(uint32_t));
}

/* Knuth, Morris and Pratt: for the rare text in which the plain search would compare everything with everything. */
static int64_t find_patiently(Context *c, const uint32_t *text, Range range, const uint32_t *pattern, int64_t length,
                              bool last) {
    Bytevector *memory = esk_pointer(esk_make_bytevector(c, length * (int64_t)sizeof(int64_t), 0));
    int64_t *border = (int64_t *)memory->bytes; /* of the first i + 1 characters of the pattern */
    for (int64_t i = 1, k = 0; i < length; i++) {
        while (k && pattern[i] != pattern[k]) k = border[k - 1];
        border[i] = k += pattern[i] == pattern[k];
    }
    int64_t found = -1;
    for (int64_t i = range.start, k = 0; i < range.end; i++) {
        while (k && text[i] != pattern[k]) k = border[k - 1];
        k += text[i] == pattern[k];
        if (k < length) continue;
        found = i + 1 - length;
        if (!last) break;
        k = border[k - 1];
    }
    return found;
}

/* The first index in the range at which the pattern begins, or -1. */
static int64_t find(Context *c, const uint32_t *text, Range range, const uint32_t *pattern, int64_t length) {
    if (!length) return range.start;
    int64_t last = range.end - length, work = 0;
    for (int64_t i = range.start; i <= last; i++) {
        i = find_char(text, i, last + 1, pattern[0]);
        if (i < 0) return -1;
        if (text[i + length - 1] == pattern[length - 1] && begins(text + i, pattern, length)) return i;
        work += length;
        if (work > 16 * (i - range.start) + 4096)
            return find_patiently(c, text, (Range){i + 1, range.end}, pattern, length, false);
    }
    return -1;
}

static int64_t find_last(Context *c, const uint32_t *text, Range range, const uint32_t *pattern, int64_t length) {
    if (!length) return range.end;
    int64_t work = 0;
    for (int64_t i = range.end - length; i >= range.start; i--) {
        if (text[i] != pattern[0]) continue;
        if (begins(text + i, pattern, length)) return i;
        work += length;
        if (work > 16 * (range.end - i) + 4096)
            return find_patiently(c, text, (Range){range.start, i + length - 1}, pattern, length, true);
    }
    return -1;
}

static Value index_or_false(int64_t index) { return index < 0 ? ESK_FALSE : esk_fixnum(index); }

static Value string_index(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string-index", 1, args[0]);
    uint32_t code = need_char(c, "string-index", 2, args[1]);
    Range range = need_range(c, "string-index", args, count, 2, string->length);
    return index_or_false(find_char(string->chars, range.start, range.end, code));
}

static Value string_index_right(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string-index-right", 1, args[0]);
    uint32_t code = need_char(c, "string-index-right", 2, args[1]);
    Range range = need_range(c, "string-index-right", args, count, 2, string->length);
    return index_or_false(find_last(c, string->chars, range, &code, 1));
}

static Value string_contains(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string-contains", 1, args[0]);
    String *pattern = need_string(c, "string-contains", 2, args[1]);
    Range range = need_range(c, "string-contains", args, count, 2, string->length);
    return index_or_false(find(c, string->chars, range, pattern->chars, pattern->length));
}

static Value string_contains_right(Context *c, const Value *args, int64_t count) {
    String *string = need_string(c, "string-contains-right", 1, args[0]);
    String *pattern = need_string(c, "string-contains-right", 2, args[1]);
    Range range = need_range(c, "string-contains-right", args, count, 2, string->length);
    return index_or_false(find_last(c, string->chars, range, pattern->chars, pattern->length));
}

static Value string_search_forward(Context *c, const Value *args, int64_t count) {
    String *pattern = need_string(c, "string-search-forward", 1, args[0]);
    String *string = need_string(c, "string-search-forward", 2, args[1]);
    Range range = need_range(c, "string-search-forward", args, count, 2, string->length);
    return index_or_false(find(c, string->chars, range, pattern->chars, pattern->length));
}

static Value string_search_backward(Context *c, const Value *args, int64_t count) {
    (void)count;
    String *pattern = need_string(c, "string-search-backward", 1, args[0]);
    String *string = need_string(c, "string-search-backward", 2, args[1]);
    int64_t end = need_index(c, "string-search-backward", 3, args[2], string->length + 1);
    int64_t found = find_last(c, string->chars, (Range){0, end}, pattern->chars, pattern->length);
    return found < 0 ? ESK_FALSE : esk_fixnum(found + pattern->length);
}

static Value string_prefix(Context *c, Value prefix, Value string) {
    String *p = need_string(c, "string-prefix?", 1, prefix), *s = need_string(c, "string-prefix?", 2, string);
    return esk_boolean(p->length <= s->length && begins(s->chars, p->chars, p->length));
}

static Value string_suffix(Context *c, Value suffix, Value string) {
    String *p = need_string(c, "string-suffix?", 1, suffix), *s = need_string(c, "string-suffix?", 2, string);
    return esk_boolean(p->length <= s->length && begins(s->chars + s->length - p->length, p->chars, p->length));
}

static Value string_null(Context *c, Value v) { return esk_boolean(!need_string(c, "string-null?", 1, v)->length); }

/* ---- joining ---------------------------------------------------------------------------------------------------- */

static Value join(Context *c, const char *who, Value list, const uint32_t *between, int64_t between_length) {
    int64_t pieces = esk_need_list(c, who, 1, list), length = 0;
    for (Value at = list; esk_is(at, TAG_PAIR); at = esk_cdr(at)) {
        Value piece = esk_car(at);
        if (!esk_is(piece, TAG_STRING)) esk_wrong_type(c, who, 1, list, "a list of strings");
        length += ((String *)esk_pointer(piece))->length + (at.bits == list.bits ? 0 : between_length);
        need_length(c, who, length);
    }
    String *all = esk_bare_string(c, length);
    uint32_t *to = all->chars;
    for (int64_t i = 0; i < pieces; i++, list = esk_cdr(list)) {
        if (i) {
            memcpy(to, between, (size_t)between_length * sizeof(uint32_t));
            to += between_length;
        }
        String *piece = esk_pointer(esk_car(list));
        memcpy(to, piece->chars, (size_t)piece->length * sizeof(uint32_t));
        to += piece->length;
    }
    return esk_object(all);
}

static Value string_concatenate(Context *c, Value list) {
    uint32_t nothing = 0;
    return join(c, "string-concatenate", list, &nothing, 0);
}

/* The characters of an argument that may be a character or a string. */
static const uint32_t *need_delimiter(Context *c, const char *who, int position, const Value *v, uint32_t *one,
                                      int64_t *length) {
    if (esk_is(*v, TAG_CHAR)) {
        *one = (uint32_t)v->bits;
        *length = 1;
        return one;
    }
    if (!esk_is(*v, TAG_STRING)) esk_wrong_type(c, who, position, *v, "a character or a string");
    String *string = esk_pointer(*v);
    *length = string->length;
    return string->chars;
}

static Value string_join(Context *c, const Value *args, int64_t count) {
    uint32_t one = ' ';
    int64_t length = 1;
    const uint32_t *between = count > 1 ? need_delimiter(c, "string-join", 2, &args[1], &one, &length) : &one;
    return join(c, "string-join", args[0], between, length);
}

/* ---- cutting ---------------------------------------------------------------------------------------------------- */

/* Pieces between runs of white space, without empty ones. From the back, so that the list grows in order. */
static Value split_at_space(Context *c, const String *s) {
    Value list = ESK_NULL;
    for (int64_t end = s->length; end > 0;) {
        int64_t start = end;
        while (start > 0 && !esk_char_whitespace(s->chars[start - 1])) start--;
        if (start < end) list = esk_cons(c, esk_string_part(c, s, (Range){start, end}), list);
        end = start > 0 ? start - 1 : 0;
    }
    return list;
}

static Value string_split(Context *c, const Value *args, int64_t count) {
    const String *s = need_string(c, "string-split", 1, args[0]);
    if (count < 2) return split_at_space(c, s);
    uint32_t one;
    int64_t length, start = 0;
    const uint32_t *delimiter = need_delimiter(c, "string-split", 2, &args[1], &one, &length);
    if (!length) esk_wrong_type(c, "string-split", 2, args[1], "a delimiter that is not empty");
    Value first = ESK_NULL, last = ESK_NULL;
    for (;;) {
        int64_t end = find(c, s->chars, (Range){start, s->length}, delimiter, length);
        Value piece = esk_string_part(c, s, (Range){start, end < 0 ? s->length : end});
        Value pair = esk_cons(c, piece, ESK_NULL);
        if (esk_is(first, TAG_NULL)) {
            first = pair;
        } else {
            esk_set_cdr(c, last, pair);
        }
        last = pair;
        if (end < 0) return first;
        start = end + length;
    }
}

static bool trims(const String *set, uint32_t code) {
    return set ? find_char(set->chars, 0, set->length, code) >= 0 : esk_char_whitespace(code);
}

static Value trim(Context *c, const char *who, const Value *args, int64_t count, bool left, bool right) {
    String *s = need_string(c, who, 1, args[0]), *set = NULL;
    if (count > 1) {
        Value which = args[1];
        if (esk_is(which, TAG_CHAR)) which = esk_make_string(c, 1, (uint32_t)which.bits);
        if (!esk_is(which, TAG_STRING)) esk_wrong_type(c, who, 2, which, "a character or a string of characters");
        set = esk_pointer(which);
    }
    Range range = {0, s->length};
    while (left && range.start < range.end && trims(set, s->chars[range.start])) range.start++;
    while (right && range.start < range.end && trims(set, s->chars[range.end - 1])) range.end--;
    return esk_string_part(c, s, range);
}

static Value string_trim(Context *c, const Value *args, int64_t count) {
    return trim(c, "string-trim", args, count, true, true);
}
static Value string_trim_left(Context *c, const Value *args, int64_t count) {
    return trim(c, "string-trim-left", args, count, true, false);
}
static Value string_trim_right(Context *c, const Value *args, int64_t count) {
    return trim(c, "string-trim-right", args, count, false, true);
}

static Value pad(Context *c, const char *who, const Value *args, int64_t count, bool left) {
    String *s = need_string(c, who, 1, args[0]);
    int64_t length = need_size(c, who, 2, args[1]), kept = length < s->length ? length : s->length;
    uint32_t code = count > 2 ? need_char(c, who, 3, args[2]) : ' ';
    String *result = esk_pointer(esk_make_string(c, length, code));
    memcpy(result->chars + (left ? length - kept : 0), s->chars + (left ? s->length - kept : 0),
           (size_t)kept * sizeof(uint32_t));
    return esk_object(result);
}

static Value string_pad_left(Context *c, const Value *args, int64_t count) {
    return pad(c, "string-pad-left", args, count, true);
}
static Value string_pad_right(Context *c, const Value *args, int64_t count) {
    return pad(c, "string-pad-right", args, count, false);
}

static Value string_reverse(Context *c, const Value *args, int64_t count) {
    String *s = need_string(c, "string-reverse", 1, args[0]);
    Range range = need_range(c, "string-reverse", args, count, 1, s->length);
    String *result = esk_bare_string(c, range.end - range.start);
    for (int64_t i = 0; i < result->length; i++) result->chars[i] = s->chars[range.end - 1 - i];
    return esk_object(result);
}

const Primitive esk_string_search_primitives[] = {
    ESK_PRIMITIVE_N("string-index", "(string-index string char [start end])", 2, 4, string_index,
                    "The index of the first char in string from start up to end, or #f."),
    ESK_PRIMITIVE_N("string-index-right", "(string-index-right string char [start end])", 2, 4, string_index_right,
                    "The index of the last char in string from start up to end, or #f."),
    ESK_PRIMITIVE_N("string-contains", "(string-contains string pattern [start end])", 2, 4, string_contains,
                    "The first index at which pattern begins in string, from start up to end, or #f."),
    ESK_PRIMITIVE_N("string-contains-right", "(string-contains-right string pattern [start end])", 2, 4,
                    string_contains_right,
                    "The last index at which pattern begins in string, from start up to end, or #f."),
    ESK_PRIMITIVE_N("string-search-forward", "(string-search-forward pattern string [start])", 2, 3,
                    string_search_forward, "The first index from start on at which pattern begins in string, or #f."),
    ESK_PRIMITIVE_N("string-search-backward", "(string-search-backward pattern string end)", 3, 3,
                    string_search_backward, "The index at which the last pattern before end ends in string, or #f."),
    ESK_PRIMITIVE_2("string-prefix?", "(string-prefix? prefix string)", string_prefix,
                    "Whether string begins with prefix."),
    ESK_PRIMITIVE_2("string-suffix?", "(string-suffix? suffix string)", string_suffix,
                    "Whether string ends with suffix."),
    ESK_PRIMITIVE_1("string-null?", "(string-null? string)", string_null, "Whether string has no characters."),
    ESK_PRIMITIVE_1("string-concatenate", "(string-concatenate list)", string_concatenate,
                    "A new string of the characters of all strings in list."),
    ESK_PRIMITIVE_N("string-join", "(string-join list [delimiter])", 1, 2, string_join,
                    "The strings in list one after another, with delimiter (a string or a character; a space where "
                    "nothing is said) between them."),
    ESK_PRIMITIVE_N("string-split", "(string-split string [delimiter])", 1, 2, string_split,
                    "The list of the pieces of string between delimiters (a character or a string). Without delimiter: "
                    "the pieces between runs of white space, none of them empty."),
    ESK_PRIMITIVE_N("string-trim", "(string-trim string [chars])", 1, 2, string_trim,
                    "The string without white space, or the given characters, at both ends."),
    ESK_PRIMITIVE_N("string-trim-left", "(string-trim-left string [chars])", 1, 2, string_trim_left,
                    "The string without white space, or the given characters, at its beginning."),
    ESK_PRIMITIVE_N("string-trim-right", "(string-trim-right string [chars])", 1, 2, string_trim_right,
                    "The string without white space, or the given characters, at its end."),
    ESK_PRIMITIVE_N("string-pad-left", "(string-pad-left string k [char])", 2, 3, string_pad_left,
                    "A string of k characters: string with char (or spaces) before it, or its last k characters."),
    ESK_PRIMITIVE_N("string-pad-right", "(string-pad-right string k [char])", 2, 3, string_pad_right,
                    "A string of k characters: string with char (or spaces) after it, or its first k characters."),
    ESK_PRIMITIVE_N("string-reverse", "(string-reverse string [start end])", 1, 3, string_reverse,
                    "The characters of string from start up to end, the last first."),
    {0}};
