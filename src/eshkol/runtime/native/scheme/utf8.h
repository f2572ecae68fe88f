/* UTF-8 in and out, for every part of the runtime that meets bytes from outside. Invalid input becomes U+FFFD, one for
 * each maximal piece that could have begun a character (as Python's errors="replace" and the Unicode standard do). */
#ifndef ESHKOL_SCHEME_UTF8_H
#define ESHKOL_SCHEME_UTF8_H

#include <stdint.h>

/* How many bytes the first character takes; 0 where the bytes (at least one) are the beginning of a character whose
 * rest is missing. */
static inline int esk_utf8_decode(const uint8_t *at, const uint8_t *end, uint32_t *code) {
    uint32_t first = at[0];
    if (first < 0x80) {
        *code = first;
        return 1;
    }
    *code = 0xFFFD;
    int rest = first < 0xC2 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : 0;
    if (!rest) return 1;
    uint32_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80; /* no overlong forms, */
    uint32_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF; /* no surrogates, nothing above 10FFFF */
    uint32_t value = first & (0x3Fu >> rest);
    for (int i = 1; i <= rest; i++) {
        if (at + i >= end) return 0;
        if (at[i] < low || at[i] > high) return i;
        value = value << 6 | (at[i] & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    *code = value;
    return rest + 1;
}

/* Writes at most four bytes and says how many. What is no scalar value is written as U+FFFD. */
static inline int esk_utf8_encode(uint32_t code, char *out) {
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    int rest = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out[0] = (char)((0xFF00 >> (rest + 1) & 0xFF) | code >> 6 * rest);
    for (int i = 1; i <= rest; i++) out[i] = (char)(0x80 | (code >> 6 * (rest - i) & 0x3F));
    return rest + 1;
}

#endif
