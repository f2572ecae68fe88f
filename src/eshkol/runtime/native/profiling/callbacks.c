/* What calls of Python take that Scheme makes: how often each function is called, and how long, in all. */
#include "profiling.h"
#include "../scheme/python.h"

#include <errno.h>

enum { MOST_CALLBACKS = 1 << 12, NESTED = 64 };

static ProfileCallback *rows; /* by a hash of the function; the last is of all for which there is no other */
static void (*keep)(void *); /* Python's Py_IncRef: a function is not freed while it is known by its address */
static _Thread_local struct { uint64_t begun[NESTED]; int depth; } under_way;

static void called(void *function, bool ended)
{
    if (!ended) {
        if (under_way.depth < NESTED) under_way.begun[under_way.depth] = profile_now(CLOCK_MONOTONIC);
        under_way.depth++;
        return;
    }
    if (under_way.depth == 0 || --under_way.depth >= NESTED) return; /* it began before anybody watched */
    uint64_t took = profile_now(CLOCK_MONOTONIC) - under_way.begun[under_way.depth];
    uint64_t key = (uint64_t)(uintptr_t)function;
    ProfileCallback *row = &rows[MOST_CALLBACKS];
    for (uint64_t at = (key >> 4) * 0x9e3779b97f4a7c15u >> 52, i = 0; i < MOST_CALLBACKS; at++, i++) {
        ProfileCallback *found = &rows[at % MOST_CALLBACKS];
        if (!found->function && eshkol_profile.callback_count < MOST_CALLBACKS / 2) {
            found->function = key;
            keep(function);
            eshkol_profile.callback_count++;
        }
        if (found->function == key) row = found;
        if (row == found || !found->function) break;
    }
    row->count++;
    row->total += took;
}

/* Begins to watch, or, unless `anew`, goes on: 0, or an errno value. */
int eshkol_callbacks_start(void (*python_keeps)(void *), int anew)
{
    if (!rows && !(rows = eshkol_profile_map((MOST_CALLBACKS + 1) * sizeof *rows))) return ENOMEM;
    if (anew) eshkol_profile_forget(rows, (MOST_CALLBACKS + 1) * sizeof *rows);
    keep = python_keeps;
    under_way.depth = 0;
    eshkol_profile.callbacks = rows;
    __atomic_store_n(&esk_python_watcher, called, __ATOMIC_RELEASE);
    return 0;
}

/* Ends it, and gives the number of rows. */
int64_t eshkol_callbacks_stop(void)
{
    __atomic_store_n(&esk_python_watcher, NULL, __ATOMIC_RELEASE);
    return MOST_CALLBACKS + 1;
}

/* What was found is not needed any more, and the functions need not be kept; with Python's lock held. */
void eshkol_callbacks_end(void (*let_go)(void *))
{
    for (int i = 0; rows && i < MOST_CALLBACKS; i++) {
        void *function = (void *)(uintptr_t)rows[i].function;
        rows[i].function = 0;
        if (function) let_go(function);
    }
}
