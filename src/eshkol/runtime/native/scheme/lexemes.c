/* What the lexer and the printer must agree on: which characters make up symbols, the names of characters, the form of
 * numbers, and which symbols need bars. Pure functions of text; nothing is allocated. */
#include "lexemes.h"

#include <string.h>

#include "utf8.h"

/* ---- characters ------------------------------------------------------------------------------------------------- */

/* Of each ASCII character: s is space, d another delimiter, y may stand in a symbol. */
static const char classes[] = /* 00 */ ".........sssss.."
                              /* 10 */ "................"
                              /* 20 */ "sydyyyydddyydyyy"
                              /* 30 */ "yyyyyyyyyyydyyyy"
                              /* 40 */ "yyyyyyyyyyyyyyyy"
                              /* 50 */ "yyyyyyyyyyyd.dyy"
                              /* 60 */ "dyyyyyyyyyyyyyyy"
                              /* 70 */ "yyyyyyyyyyydddy.";

bool esk_is_lexical_space(int32_t c) {
    if (c < 0x80) return c >= 0 && classes[c] == 's';
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/* What nobody sees or everybody mistakes for something else: controls, marks of direction, curly quotes. */
static bool is_refused(int32_t c) {
    return c < 0xA0 || c == 0xAD || c == 0x200B || c == 0x200E || c == 0x200F || (c >= 0x2018 && c <= 0x201F) ||
           (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || (c >= 0xD800 && c <= 0xDFFF) ||
           c == 0xFEFF || (c >= 0xFFF0 && c <= 0xFFFF) || c >= 0xE0000;
}

bool esk_is_symbol_char(uint32_t code) {
    int32_t c = (int32_t)code;
    if (code < 0x80) return classes[code] == 'y';
    return !esk_is_lexical_space(c) && !is_refused(c);
}

bool esk_is_delimiter(int32_t c) {
    if (c < 0x80) return c == LEXER_END || classes[c] == 's' || classes[c] == 'd';
    return esk_is_lexical_space(c);
}

/* The first name of a character is the one it is written by. */
static const struct {
    uint32_t code;
    const char *name;
} char_names[] = {{7, "alarm"},  {8, "backspace"}, {127, "delete"}, {27, "escape"}, {10, "newline"},  {0, "null"},
                  {13, "return"}, {32, "space"},    {9, "tab"},      {0, "nul"},     {10, "linefeed"}, {12, "page"},
                  {11, "vtab"}};
enum { CHAR_NAMES = sizeof char_names / sizeof *char_names };

const char *esk_char_name(uint32_t code) {
    for (int i = 0; i < CHAR_NAMES; i++)
        if (char_names[i].code == code) return char_names[i].name;
    return NULL;
}

int64_t esk_named_char(const char *name, size_t length) {
    for (int i = 0; i < CHAR_NAMES; i++)
        if (strlen(char_names[i].name) == length && !memcmp(char_names[i].name, name, length))
            return char_names[i].code;
    return -1;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *at, *end;
    int radix;
} NumberText;

static int number_peek(const NumberText *n) { return n->at < n->end ? lower((unsigned char)*n->at) : 0; }

static bool take_digits(NumberText *n, int radix) {
    const char *start = n->at;
    for (int digit; n->at < n->end && (digit = hex_digit((unsigned char)*n->at)) >= 0 && digit < radix;) n->at++;
    return n->at > start;
}

static bool take_word(NumberText *n, const char *word) {
    const char *at = n->at;
    for (; *word; word++, at++)
        if (at >= n->end || lower((unsigned char)*at) != *word) return false;
    n->at = at;
    return true;
}

/* A real number without sign: 12, 1/2, 1.5e3; in other radices than ten there may be a point, but no exponent. */
static bool take_unsigned(NumberText *n) {
    bool whole = take_digits(n, n->radix);
    if (whole && number_peek(n) == '/') {
        n->at++;
        return take_digits(n, n->radix);
    }
    if (number_peek(n) == '.') {
        n->at++;
        whole |= take_digits(n, n->radix);
    }
    if (n->radix == 10 && whole && number_peek(n) == 'e') {
        n->at++;
        if (number_peek(n) == '+' || number_peek(n) == '-') n->at++;
        return take_digits(n, 10);
    }
    return whole;
}

/* After a sign: `i` alone is left to the caller, which sees that nothing was taken. */
static bool take_signed(NumberText *n) {
    return take_word(n, "inf.0") || take_word(n, "nan.0") || take_unsigned(n);
}

static bool take_sign(NumberText *n) {
    bool sign = number_peek(n) == '+' || number_peek(n) == '-';
    n->at += sign;
    return sign;
}

static bool at_unit(const NumberText *n) { return n->end - n->at == 1 && number_peek(n) == 'i'; }

bool esk_is_number_text(const char *text, size_t length, int radix) {
    NumberText n = {text, text + length, radix};
    bool radix_given = false, exactness_given = false;
    while (number_peek(&n) == '#') {
        n.at++;
        int c = number_peek(&n);
        int given = c == 'x' ? 16 : c == 'd' ? 10 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        bool *flag = given ? &radix_given : &exactness_given;
        if ((!given && c != 'e' && c != 'i') || *flag) return false;
        *flag = true;
        if (given) n.radix = given;
        n.at++;
    }
    bool sign = take_sign(&n);
    if (sign && at_unit(&n)) return true;
    if (!(sign ? take_signed(&n) : take_unsigned(&n))) return false;
    if (n.at == n.end) return true;
    if (at_unit(&n)) return sign;
    if (number_peek(&n) == '@') {
        n.at++;
        return (take_sign(&n) ? take_signed(&n) : take_unsigned(&n)) && n.at == n.end;
    }
    if (!take_sign(&n)) return false;
    return at_unit(&n) || (take_signed(&n) && at_unit(&n));
}

/* ---- symbols as they are written -------------------------------------------------------------------------------- */

bool esk_looks_like_number(const char *text, size_t length) {
    unsigned char c = length ? (unsigned char)text[0] : 0;
    return (is_digit(c) || c == '+' || c == '-' || c == '.') && esk_is_number_text(text, length, 10);
}

bool esk_needs_bars(const char *utf8, size_t length) {
    if (!length || utf8[0] == '#' || (length == 1 && utf8[0] == '.')) return true;
    if (length > 1 && utf8[0] == ':' && utf8[1] != ':') return true; /* a keyword; :: begins a symbol */
    const uint8_t *at = (const uint8_t *)utf8, *end = at + length;
    while (at < end) {
        uint32_t code;
        int bytes = esk_utf8_decode(at, end, &code);
        if (!bytes || !esk_is_symbol_char(code)) return true;
        at += bytes;
    }
    return esk_looks_like_number(utf8, length);
}
