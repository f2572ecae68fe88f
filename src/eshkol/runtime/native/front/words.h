/* Lists of words that grow: nodes on their way, and keys. A few need no memory of their own. */
#ifndef ESHKOL_FRONT_WORDS_H
#define ESHKOL_FRONT_WORDS_H

#include "python_abi.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 24 }; /* words that nothing is allocated for: those of an operation or two */

typedef struct {
    uint64_t *words; /* `few`, or memory of their own */
    Size count, room;
    bool failed;
    uint64_t few[FEW];
} Words; /* it stays where it is: it may point into itself */

static inline void clear(Words *words)
{
    if (words->words != words->few) free(words->words);
    words->words = NULL;
    words->count = words->room = 0;
    words->failed = false;
}

static inline void grow(Words *words)
{
    if (!words->room) {
        words->words = words->few;
        words->room = FEW;
        return;
    }
    const size_t bytes = (size_t)words->room * sizeof *words->words;
    uint64_t *own = words->words == words->few ? NULL : words->words, *grown = realloc(own, 4 * bytes);
    words->failed = !grown;
    if (!grown) return;
    if (!own) memcpy(grown, words->few, bytes);
    words->words = grown;
    words->room *= 4;
}

static inline void add(Words *words, uint64_t word)
{
    if (words->count == words->room) grow(words);
    if (!words->failed) words->words[words->count++] = word;
}

#endif
