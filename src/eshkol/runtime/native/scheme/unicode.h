/* What is known of a character: case, classes, value as a digit. The tables (unicode_data.h) are written by
 * build_support/unicode_tables.py and live in chars.c; string_case.c and the reader ask here. */
#ifndef ESHKOL_SCHEME_UNICODE_H
#define ESHKOL_SCHEME_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CHAR_ALPHABETIC = 1,
    CHAR_UPPER = 2,
    CHAR_LOWER = 4,
    CHAR_CASED = 8,
    CHAR_IGNORABLE = 16, /* the rule for the final sigma looks past it */
    CHAR_LONG_UPPER = 32, /* its upper case is more than one character; so for the next two */
    CHAR_LONG_LOWER = 64,
    CHAR_LONG_FOLD = 128
};

typedef struct {
    int32_t upper, lower, fold; /* how far away the simple mappings are */
    uint8_t flags;
    int8_t digit; /* -1: none */
} CharRecord;

enum { MAP_UPPER, MAP_LOWER, MAP_FOLD };

typedef struct {
    uint32_t code, which, to[3]; /* `to` ends with zeros */
} LongMapping;

const CharRecord *esk_char_record(uint32_t code);
bool esk_char_whitespace(uint32_t code);

/* The full mapping of a character, 1 to 3 characters; the final sigma is the caller's affair. */
int esk_char_map(uint32_t code, int which, uint32_t to[3]);

#endif
