/* What parts of the runtime offer one another for programs with several threads: how a thread waits, what is done on
 * the first thread, objects that one thread uses at a time, and tasks. stops.c says how a collection stops all threads.
 *
 * The order in which locks are taken: heap->waits, heap->world, heap->lock; a deque's own is taken alone. Who holds one
 * never stops for a collection, allocates nothing and raises nothing.
 */
#ifndef ESHKOL_SCHEME_THREADS_H
#define ESHKOL_SCHEME_THREADS_H

#include "heap.h"

#include <poll.h>

/* ---- waiting (stops.c, waits.c) --------------------------------------------------------------------------------- */

/* Calls `work`, which may wait for long and does not touch the heap: others may collect meanwhile. */
void esk_apart(Context *, void (*work)(void *), void *data);

typedef struct Waiter {
    struct Waiter *next;
    const uint64_t *place; /* what another thread wakes it by */
    pthread_cond_t changed;
    bool woken;
} Waiter;

/* As long as *place is `value`, until esk_wake, until the time (nanoseconds of esk_now; negative: none) or until there
 * is something to do, which is done: it may raise. What is woken need not look at the place again. */
enum { WAIT_NOT, WAIT_WOKEN, WAIT_TIME_OUT };
int esk_wait(Context *, const uint64_t *place, uint64_t value, int64_t deadline);
int esk_wait_for(Context *, struct pollfd *, int count, int milliseconds); /* poll; without a context: all runs */
int64_t esk_wake(Heap *, const uint64_t *place, int64_t most); /* those that have waited longest; how many */
void esk_begin_wait(Waiter *);                                 /* for who waits by itself, with heap->waits locked */
bool esk_is_asked(const Context *); /* whether esk_poll has something else to do than to stop for a collection */

/* While something else is waited for: interrupts, and what other threads want. */
static inline void esk_notice(Context *context) {
    if (context->interrupted || (context->heap->several && esk_is_asked(context))) esk_poll(context);
}

/* ---- the first thread (requests.c) ------------------------------------------------------------------------------ */

/* Calls `work` on the thread of the first context, and with that: what needs Python, or the host. It must not raise.
 * The first context has the dynamic environment of the one that asks. */
void esk_on_first(Context *, void (*work)(Context *first, void *data), void *data);
void esk_serve(Context *first); /* what others have asked for */

/* ---- objects that one thread uses at a time (waits.c) ----------------------------------------------------------- */

/* Tables and ports. What is held is let go of where a condition is raised. */
void esk_hold_slowly(Context *, Object *);
void esk_release_slowly(Context *);
static inline void esk_hold(Context *context, void *object) {
    if (__builtin_expect(context->heap->several, 0)) esk_hold_slowly(context, object);
}
static inline void esk_release(Context *context) { /* what was held last */
    if (__builtin_expect(context->held_count, 0)) esk_release_slowly(context);
}
typedef struct { Object *objects[ESK_MOST_HELD]; uint32_t count; } Held;
/* while code of Python's or of programs runs */
void esk_let_go(Context *, Held *);
void esk_hold_again(Context *, const Held *);

void esk_use_this_thread(Context *); /* stack.c */

/* ---- tasks (tasks.c) -------------------------------------------------------------------------------------------- */

enum { ENVIRONMENT_PARTS = 4 }; /* parameters and current ports */
/* A task that runs. It is a root: nobody else may refer to the task any more, and no entry is around the outermost. */
typedef struct TaskFrame {
    struct TaskFrame *outer;
    Record *task;
    Value before[ENVIRONMENT_PARTS]; /* the dynamic environment outside */
    bool cancelled;
} TaskFrame;

void esk_note_blocked(Context *, bool begins); /* a thread that runs tasks waits for something: another goes on */
bool esk_end_threads(Context *first);          /* all others; false where one does not hear */

#endif
