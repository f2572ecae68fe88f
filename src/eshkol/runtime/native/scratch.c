/* See scratch.h. A few pieces are kept in a list that one thread looks at at a time; who comes meanwhile does without,
   so nobody ever waits, not even a child of a process that forked while a thread had the list. */
#include "scratch.h"

#include <stdint.h>
#include <stdlib.h>

#define LEAST ((size_t)1 << 17) /* bytes of what is worth being kept: smaller pieces the C library keeps itself */
#define MOST ((size_t)1 << 26)  /* of all that is kept */
#define PIECES 16
#define BEFORE 64 /* bytes before a piece, in which its size stands */

static struct {
    char *pieces[PIECES]; /* the one that came last is the last */
    int count;
    size_t total;
} kept;
static int busy;

static int enter(void)
{
    return !__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE);
}

static void leave(void)
{
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

static size_t size_of(const char *piece)
{
    return *(const size_t *)(const void *)piece;
}

static char *without(int place)
{
    char *const piece = kept.pieces[place];
    kept.total -= size_of(piece);
    kept.count--;
    for (int k = place; k < kept.count; k++)
        kept.pieces[k] = kept.pieces[k + 1];
    return piece;
}

void *eshkol_scratch_take(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + BEFORE + 63) / 64 * 64;
    char *found = NULL;
    if (size >= LEAST && enter()) {
        for (int k = kept.count - 1; k >= 0 && found == NULL; k--)
            if (size_of(kept.pieces[k]) >= size && size_of(kept.pieces[k]) / 2 <= size)
                found = without(k);
        leave();
    }
    if (found == NULL && (found = aligned_alloc(64, size)) != NULL)
        *(size_t *)(void *)found = size;
    return found == NULL ? NULL : found + BEFORE;
}

void eshkol_scratch_give(void *memory)
{
    if (memory == NULL)
        return;
    char *piece = (char *)memory - BEFORE, *old[PIECES];
    int count = 0;
    if (size_of(piece) >= LEAST && size_of(piece) <= MOST && enter()) {
        while (kept.count == PIECES || kept.total + size_of(piece) > MOST)
            old[count++] = without(0); /* which has not been asked for longest */
        kept.pieces[kept.count++] = piece;
        kept.total += size_of(piece);
        piece = NULL;
        leave();
    }
    free(piece);
    while (count > 0)
        free(old[--count]);
}

void eshkol_scratch_clear(void)
{
    while (enter()) {
        char *const piece = kept.count > 0 ? without(0) : NULL;
        leave();
        if (piece == NULL)
            return;
        free(piece);
    }
}
