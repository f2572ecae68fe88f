/* Several threads on one heap: how all but one are stopped, so that it can collect.
 *
 * Each thread has a context. One that collects says so (heap->stopping), raises the stack limits of all others above
 * everything, so that they come to esk_poll as for an interrupt, and waits until none of them runs. A thread stops in
 * esk_poll, where it asks for more memory, and where it has to wait for something else (esk_apart): then it says where
 * its stack ends, with the registers of its callers above that, and does not touch the heap until it runs again.
 *
 * In: contexts that come and go, and who wants to collect. Out: nobody runs but the one that collects. Nothing of this
 * costs anything as long as there is one thread: heap->several says whether there ever was another.
 */
#define _GNU_SOURCE
#include "heap.h"
#include "threads.h"

#include <unistd.h>

/* ---- beginnings ------------------------------------------------------------------------------------------------- */

static void set_up_locks(Heap *heap) {
    pthread_mutex_init(&heap->lock, NULL);
    pthread_mutex_init(&heap->world, NULL);
    pthread_mutex_init(&heap->waits, NULL);
    pthread_cond_init(&heap->stopped, NULL);
    pthread_cond_init(&heap->resumed, NULL);
}

void esk_set_up_threads(Context *first) {
    Heap *heap = first->heap;
    heap->first = first;
    heap->contexts = heap->contexts_made = 1;
    heap->running = 1;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    heap->processors = processors > 0 ? (uint64_t)processors : 1;
    set_up_locks(heap);
}

/* ---- forked processes ------------------------------------------------------------------------------------------- */

static Heap *shared_heaps; /* those that several threads have used, */
static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A forked process has the thread that forked alone. Contexts of others are forgotten, and what they were about. */
static void after_fork(void) {
    pthread_mutex_init(&sharing, NULL);
    for (Heap *heap = shared_heaps; heap; heap = heap->next_shared) {
        for (Context *other = heap->first->next; other; other = other->next) esk_drop_runs(other);
        heap->first->next = NULL;
        heap->first->stopped = NULL;
        heap->first->waiter = NULL;
        heap->contexts = 1;
        heap->running = 1;
        heap->stopping = false;
        heap->waiters = heap->last_waiter = NULL;
        heap->requests = heap->last_request = NULL;
        heap->pool = NULL;
        set_up_locks(heap);
        pthread_mutex_init(&heap->dropping, NULL);
    }
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }

static void note_sharing(Heap *heap) {
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&sharing);
    heap->next_shared = shared_heaps;
    shared_heaps = heap;
    pthread_mutex_unlock(&sharing);
}

void esk_forget_sharing(Heap *heap) {
    pthread_mutex_lock(&sharing);
    Heap **place = &shared_heaps;
    while (*place && *place != heap) place = &(*place)->next_shared;
    if (*place) *place = heap->next_shared;
    pthread_mutex_unlock(&sharing);
}

/* ---- contexts that come and go ---------------------------------------------------------------------------------- */

/* Its counters begin where those of no other context come to. */
enum { COUNTER_SHIFT = 40 };
static char nowhere; /* the stack of a context without one */

void esk_add_context(Context *from, Context *made) {
    Heap *heap = from->heap;
    if (!heap->several) {
        note_sharing(heap);
        heap->several = true; /* nobody else runs yet */
    }
    pthread_mutex_lock(&heap->world);
    made->number = heap->contexts_made++;
    made->entries = made->identities = made->number << COUNTER_SHIFT;
    made->stopped = &nowhere;
    made->next = heap->first->next;
    heap->first->next = made;
    __atomic_add_fetch(&heap->contexts, 1, __ATOMIC_RELAXED); /* it is looked at without the lock, too */
    pthread_mutex_unlock(&heap->world);
}

static void change_running(Heap *heap, int64_t by) {
    __atomic_add_fetch(&heap->running, by, __ATOMIC_RELAXED);
}

static void say_that_it_stopped(Heap *heap) {
    change_running(heap, -1);
    if (heap->stopping && heap->running <= 1) pthread_cond_broadcast(&heap->stopped);
}

void esk_remove_context(Context *context) {
    Heap *heap = context->heap;
    esk_lock(heap);
    esk_drop_runs(context);
    esk_drop_areas(context);
    esk_unlock(heap);
    pthread_mutex_lock(&heap->world);
    Context **place = &heap->first;
    while (*place != context) place = &(*place)->next;
    *place = context->next;
    __atomic_sub_fetch(&heap->contexts, 1, __ATOMIC_RELAXED);
    heap->fast_runs += context->fast_runs;
    say_that_it_stopped(heap);
    pthread_cond_broadcast(&heap->stopped); /* for who waits until all others have ended */
    pthread_mutex_unlock(&heap->world);
}

/* ---- stopping --------------------------------------------------------------------------------------------------- */

static void leave(Context *context, char *low) {
    Heap *heap = context->heap;
    pthread_mutex_lock(&heap->world);
    context->stopped = low;
    say_that_it_stopped(heap);
    pthread_mutex_unlock(&heap->world);
}

/* Most collections are short: to sleep and to be woken up again takes longer than they do, where each thread has a
 * processor. */
enum { LOOKS = 2000 };
static inline void rest(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static bool may_look(const Heap *heap) {
    return __atomic_load_n(&heap->contexts, __ATOMIC_RELAXED) <= heap->processors;
}

/* The world is not locked. */
static void look_whether_it_ends(const Heap *heap) {
    for (int i = 0; i < LOOKS && __atomic_load_n(&heap->stopping, __ATOMIC_RELAXED); i++) rest();
}

static void look_whether_all_stop(const Heap *heap) {
    for (int i = 0; i < LOOKS && __atomic_load_n(&heap->running, __ATOMIC_RELAXED) > 1; i++) rest();
}

/* The world is locked. */
static void come_back(Context *context) {
    Heap *heap = context->heap;
    while (heap->stopping) pthread_cond_wait(&heap->resumed, &heap->world);
    context->stopped = NULL;
    change_running(heap, 1);
}

/* Without an entry there is nothing on its stack. */
void esk_remain_stopped(Context *context) { leave(context, &nowhere); }

void esk_come_back(Context *context) {
    if (may_look(context->heap)) look_whether_it_ends(context->heap);
    pthread_mutex_lock(&context->heap->world);
    come_back(context);
    pthread_mutex_unlock(&context->heap->world);
}

/* Registers that belong to callers go to the stack, above `low`. */
#define SPILL(low)                                                                                                     \
    jmp_buf registers;                                                                                                 \
    memset(&registers, 0, sizeof registers);                                                                           \
    __builtin_unwind_init();                                                                                           \
    (void)_setjmp(registers);                                                                                          \
    char *low = __builtin_frame_address(0);                                                                            \
    if ((char *)&registers < low) low = (char *)&registers

#define KEEP_SPILT __asm__ volatile("" : : "r"(&registers) : "memory")

__attribute__((noinline)) void esk_stop_here(Context *context) {
    SPILL(low);
    leave(context, low);
    esk_come_back(context);
    KEEP_SPILT;
}

__attribute__((noinline)) void esk_apart(Context *context, void (*work)(void *), void *data) {
    if (!context->heap->several) {
        work(data);
        return;
    }
    SPILL(low);
    leave(context, low);
    work(data);
    esk_come_back(context);
    KEEP_SPILT;
}

bool esk_stop_others(Context *context, char *stack_low) {
    Heap *heap = context->heap;
    pthread_mutex_lock(&heap->world);
    if (heap->stopping) { /* another thread is faster */
        context->stopped = stack_low;
        say_that_it_stopped(heap);
        come_back(context);
        pthread_mutex_unlock(&heap->world);
        return false;
    }
    __atomic_store_n(&heap->stopping, true, __ATOMIC_SEQ_CST);
    for (Context *other = heap->first; other; other = other->next)
        if (other != context && !other->stopped) esk_want(other);
    if (heap->running > 1 && may_look(heap)) {
        pthread_mutex_unlock(&heap->world);
        look_whether_all_stop(heap);
        pthread_mutex_lock(&heap->world);
    }
    while (heap->running > 1) pthread_cond_wait(&heap->stopped, &heap->world);
    pthread_mutex_unlock(&heap->world);
    return true;
}

void esk_let_others_go(Context *context) {
    Heap *heap = context->heap;
    pthread_mutex_lock(&heap->world);
    __atomic_store_n(&heap->stopping, false, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&heap->resumed);
    pthread_mutex_unlock(&heap->world);
}

/* ---- what others want of a thread ------------------------------------------------------------------------------- */

/* Whoever wants something says so first and then raises the limit; here it is looked at last (control.c, set_limit). */
bool esk_is_asked(const Context *context) {
    const Heap *heap = context->heap;
    if (__atomic_load_n(&context->interrupted, __ATOMIC_SEQ_CST)) return true;
    if (!heap->several) return false;
    if (!context->serving && __atomic_load_n(&context->cancelled, __ATOMIC_SEQ_CST)) return true;
    if (!esk_is_first(context)) return __atomic_load_n(&heap->ending, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&heap->exiting, __ATOMIC_SEQ_CST) ||
           (context->inside == INSIDE_SCHEME && __atomic_load_n(&heap->requests, __ATOMIC_SEQ_CST));
}

bool esk_is_wanted(const Context *context) {
    const Heap *heap = context->heap;
    if (!heap->several) return false;
    return __atomic_load_n(&heap->stopping, __ATOMIC_SEQ_CST) || esk_is_asked(context);
}

void esk_want(Context *context) { __atomic_store_n(&context->stack_limit, (char *)UINTPTR_MAX, __ATOMIC_SEQ_CST); }

void esk_attend(Context *context) {
    Heap *heap = context->heap;
    if (__atomic_load_n(&heap->stopping, __ATOMIC_SEQ_CST)) esk_stop_here(context);
    if (!context->serving && __atomic_exchange_n(&context->cancelled, false, __ATOMIC_SEQ_CST)) {
        context->cancelling = true;
        esk_end_task(context, "this was cancelled");
    }
    if (!esk_is_first(context)) {
        if (__atomic_load_n(&heap->ending, __ATOMIC_SEQ_CST)) _longjmp(*context->end, 1);
        return;
    }
    if (__atomic_exchange_n(&heap->exiting, false, __ATOMIC_SEQ_CST)) esk_exit_to_host(context, heap->exit_code);
    if (context->inside == INSIDE_SCHEME && __atomic_load_n(&heap->requests, __ATOMIC_SEQ_CST)) esk_serve(context);
}
