/* The pieces of the lexical grammar that the lexer and the printer share. See lexemes.c. */
#ifndef ESHKOL_SCHEME_LEXEMES_H
#define ESHKOL_SCHEME_LEXEMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEXER_END = -1 /* where a character is expected: there is no more */ };

static inline bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static inline bool is_letter(int32_t c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
static inline int32_t lower(int32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
static inline int hex_digit(int32_t c) {
    return is_digit(c) ? c - '0' : lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

bool esk_is_lexical_space(int32_t c);
bool esk_is_delimiter(int32_t c);            /* where a symbol, number or name ends */
bool esk_is_symbol_char(uint32_t code);      /* may stand in a symbol without bars */
const char *esk_char_name(uint32_t code);    /* "newline", or null */
int64_t esk_named_char(const char *name, size_t length); /* its code, or -1 */

/* Whether a text has the form of a number (7.1.1 of R7RS); what it means is esk_parse_number's, which may still say
 * that there is no such number (1/0, #e+inf.0). */
bool esk_is_number_text(const char *text, size_t length, int radix);
bool esk_looks_like_number(const char *text, size_t length); /* the same for radix 10 and no prefix, quick to say no */

/* Whether the name of a symbol must be written between bars for the reader to give it back. */
bool esk_needs_bars(const char *utf8, size_t length);

#endif
