/* How a thread waits for another: places in memory, of which one says that they have changed; and objects that one
 * thread uses at a time. Everything that programs wait for stands on this (lib/eshkol/parallel).
 *
 * A wait is as that of a futex: it begins only while the place has the value that the waiting thread has seen there,
 * and ends when another wakes it, at a point of time, or when there is something else to do (esk_is_asked). While a
 * thread waits it counts as stopped. Ctrl-C reaches the first thread from a signal handler, which can wake nobody; so
 * that one looks up now and then.
 */
#define _GNU_SOURCE
#include "threads.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

enum { NANOSECONDS = 1000000000, LOOKING_UP = 20000000 /* nanoseconds */ };

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

void esk_begin_wait(Waiter *waiter) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#ifndef __APPLE__
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&waiter->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void take_out(Heap *heap, const Waiter *waiter) {
    Waiter *before = NULL, *each = heap->waiters;
    for (; each && each != waiter; each = each->next) before = each;
    if (!each) return;
    if (before) before->next = each->next;
    else heap->waiters = each->next;
    if (heap->last_waiter == waiter) heap->last_waiter = before;
}

typedef struct {
    Waiter waiter;
    Context *context;
    int64_t deadline;
    bool late;
} Wait;

/* Until a point of time of esk_now. */
static void wait_until(Waiter *waiter, pthread_mutex_t *lock, int64_t until) {
    struct timespec time = {until / NANOSECONDS, until % NANOSECONDS};
#ifdef __APPLE__
    int64_t left = until - (int64_t)esk_now();
    time = (struct timespec){left > 0 ? left / NANOSECONDS : 0, left > 0 ? left % NANOSECONDS : 0};
    pthread_cond_timedwait_relative_np(&waiter->changed, lock, &time);
#else
    pthread_cond_timedwait(&waiter->changed, lock, &time);
#endif
}

/* With heap->waits locked, and unlocked afterwards. */
static void wait_apart(void *data) {
    Wait *wait = data;
    Heap *heap = wait->context->heap;
    bool looks_up = esk_is_first(wait->context);
    while (!wait->waiter.woken && !esk_is_asked(wait->context)) {
        int64_t now = (int64_t)esk_now(), until = wait->deadline;
        if (until >= 0 && now >= until) {
            wait->late = true;
            break;
        }
        if (looks_up && (until < 0 || until > now + LOOKING_UP)) until = now + LOOKING_UP;
        if (until < 0) pthread_cond_wait(&wait->waiter.changed, &heap->waits);
        else wait_until(&wait->waiter, &heap->waits, until);
    }
    if (!wait->waiter.woken) take_out(heap, &wait->waiter);
    wait->context->waiter = NULL;
    pthread_mutex_unlock(&heap->waits);
}

static int wait_once(Context *context, const uint64_t *place, uint64_t value, int64_t deadline) {
    Heap *heap = context->heap;
    Wait wait = {.waiter = {.place = place}, .context = context, .deadline = deadline};
    pthread_mutex_lock(&heap->waits);
    if (__atomic_load_n(place, __ATOMIC_SEQ_CST) != value) {
        pthread_mutex_unlock(&heap->waits);
        return WAIT_NOT;
    }
    esk_begin_wait(&wait.waiter);
    if (heap->last_waiter) heap->last_waiter->next = &wait.waiter;
    else heap->waiters = &wait.waiter;
    heap->last_waiter = context->waiter = &wait.waiter;
    esk_apart(context, wait_apart, &wait);
    pthread_cond_destroy(&wait.waiter.changed);
    return wait.waiter.woken ? WAIT_WOKEN : wait.late ? WAIT_TIME_OUT : -1;
}

int esk_wait(Context *context, const uint64_t *place, uint64_t value, int64_t deadline) {
    if (__atomic_load_n(&context->heap->contexts, __ATOMIC_RELAXED) == 1 && deadline < 0
        && __atomic_load_n(place, __ATOMIC_SEQ_CST) == value)
        esk_fail(context, ERROR_CONTROL, NULL,
                 "this would wait for ever: there is no other thread that could end the wait", 0);
    for (;;) {
        if (context->in_pool) esk_note_blocked(context, true);
        int how = wait_once(context, place, value, deadline);
        if (context->in_pool) esk_note_blocked(context, false);
        if (how >= 0) return how;
        esk_poll(context);
    }
}

typedef struct { struct pollfd *what; int count, milliseconds, ready; } Descriptors;

static void poll_descriptors(void *data) {
    Descriptors *all = data;
    all->ready = poll(all->what, (nfds_t)all->count, all->milliseconds);
}

int esk_wait_for(Context *context, struct pollfd *what, int count, int milliseconds) {
    Descriptors all = {what, count, milliseconds, 0};
    if (context && milliseconds) esk_apart(context, poll_descriptors, &all);
    else poll_descriptors(&all);
    return all.ready;
}

int64_t esk_wake(Heap *heap, const uint64_t *place, int64_t most) {
    int64_t count = 0;
    pthread_mutex_lock(&heap->waits);
    for (Waiter *waiter = heap->waiters, *next; waiter && count < most; waiter = next) {
        next = waiter->next;
        if (waiter->place != place) continue;
        take_out(heap, waiter);
        waiter->woken = true;
        pthread_cond_signal(&waiter->changed);
        count++;
    }
    pthread_mutex_unlock(&heap->waits);
    return count;
}

/* ---- objects that one thread uses at a time --------------------------------------------------------------------- */

static void wait_a_moment(void *data) {
    int64_t turn = *(int64_t *)data;
    if (turn < 16) sched_yield();
    else nanosleep(&(struct timespec){0, turn < 100 ? 20000 : 500000}, NULL);
}

/* Whether it is held stands in the byte `a` of the object. */
void esk_hold_slowly(Context *context, Object *object) {
    for (uint32_t i = 0; i < context->held_count; i++)
        if (context->held[i] == object) { /* once more: released as often */
            if (context->held_count < ESK_MOST_HELD) context->held[context->held_count++] = object;
            return;
        }
    if (context->held_count == ESK_MOST_HELD)
        esk_fail(context, ERROR_CONTROL, NULL, "too many objects are used within one another", 0);
    for (int64_t turn = 0; __atomic_exchange_n(&object->a, 1, __ATOMIC_ACQUIRE); turn++) {
        esk_apart(context, wait_a_moment, &turn);
        if (context->interrupted || esk_is_asked(context)) esk_poll(context);
    }
    context->held[context->held_count++] = object;
}

void esk_release_slowly(Context *context) {
    Object *object = context->held[--context->held_count];
    for (uint32_t i = 0; i < context->held_count; i++)
        if (context->held[i] == object) return;
    __atomic_store_n(&object->a, 0, __ATOMIC_RELEASE);
}

void esk_let_go_of_all(Context *context) {
    while (context->held_count) esk_release_slowly(context);
}

void esk_let_go(Context *context, Held *held) {
    held->count = context->held_count;
    memcpy(held->objects, context->held, sizeof context->held);
    esk_let_go_of_all(context);
}

void esk_hold_again(Context *context, const Held *held) {
    for (uint32_t i = 0; i < held->count; i++) esk_hold_slowly(context, held->objects[i]);
}

/* ---- primitives: fields of records that are small integers, changed at once ------------------------------------- */

static uint64_t *field(Context *context, const char *who, Value record, Value index) {
    if (!esk_is(record, TAG_RECORD)) esk_wrong_type(context, who, 1, record, "a record");
    Record *object = esk_pointer(record);
    if (!esk_is(index, TAG_FIXNUM) || index.bits >= object->head.count)
        esk_bad_index(context, who, 2, index, object->head.count);
    if (!esk_is(object->fields[index.bits], TAG_FIXNUM))
        esk_wrong_type(context, who, 1, object->fields[index.bits], "a record with a small integer in this field");
    return &object->fields[index.bits].bits;
}

static uint64_t number(Context *context, const char *who, int position, Value value) {
    if (!esk_is(value, TAG_FIXNUM)) esk_wrong_type(context, who, position, value, "a small exact integer");
    return value.bits;
}

static Value field_load(Context *context, Value record, Value index) {
    return esk_fixnum((int64_t)__atomic_load_n(field(context, "%field-load", record, index), __ATOMIC_SEQ_CST));
}

static Value field_swap(Context *context, const Value *args, int64_t count) {
    (void)count;
    uint64_t *place = field(context, "%field-swap!", args[0], args[1]);
    uint64_t new = number(context, "%field-swap!", 3, args[2]);
    return esk_fixnum((int64_t)__atomic_exchange_n(place, new, __ATOMIC_SEQ_CST));
}

static Value field_change(Context *context, const Value *args, int64_t count) {
    (void)count;
    uint64_t *place = field(context, "%field-cas!", args[0], args[1]);
    uint64_t old = number(context, "%field-cas!", 3, args[2]), new = number(context, "%field-cas!", 4, args[3]);
    return esk_boolean(__atomic_compare_exchange_n(place, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

static Value field_add(Context *context, const Value *args, int64_t count) {
    (void)count;
    uint64_t *place = field(context, "%field-add!", args[0], args[1]);
    return esk_fixnum((int64_t)__atomic_fetch_add(place, number(context, "%field-add!", 3, args[2]), __ATOMIC_SEQ_CST));
}

/* A point of time from seconds from now; -1 for none. */
static int64_t deadline_of(Context *context, const char *who, int position, Value seconds) {
    if (esk_is_false(seconds)) return -1;
    double wanted = esk_is(seconds, TAG_FIXNUM) ? (double)esk_integer(seconds) : 0.0;
    if (esk_is(seconds, TAG_FLONUM)) wanted = esk_double(seconds);
    else if (!esk_is(seconds, TAG_FIXNUM))
        esk_wrong_type(context, who, position, seconds, "a number of seconds, or #f");
    if (!(wanted < 1e9)) return -1;
    return (int64_t)esk_now() + (wanted > 0 ? (int64_t)(wanted * NANOSECONDS) : 0);
}

static Value field_wait(Context *context, const Value *args, int64_t count) {
    (void)count;
    const uint64_t *place = field(context, "%field-wait", args[0], args[1]);
    int64_t deadline = deadline_of(context, "%field-wait", 4, args[3]);
    return esk_boolean(esk_wait(context, place, number(context, "%field-wait", 3, args[2]), deadline) != WAIT_TIME_OUT);
}

static Value field_wake(Context *context, const Value *args, int64_t count) {
    (void)count;
    const uint64_t *place = field(context, "%field-wake", args[0], args[1]);
    return esk_fixnum(esk_wake(context->heap, place, (int64_t)number(context, "%field-wake", 3, args[2])));
}

static Value sleep_for(Context *context, Value seconds) {
    uint64_t place = 0;
    int64_t deadline = deadline_of(context, "thread-sleep!", 1, seconds);
    esk_wait(context, &place, 0, deadline);
    return ESK_UNSPECIFIED;
}

static Value yield(Context *context) {
    int64_t turn = 0;
    esk_apart(context, wait_a_moment, &turn);
    return ESK_UNSPECIFIED;
}

const Primitive esk_waits_primitives[] = {
    ESK_PRIMITIVE_2("%field-load", "(%field-load record k)", field_load,
                    "The small integer in a field that several threads change."),
    ESK_PRIMITIVE_N("%field-swap!", "(%field-swap! record k new)", 3, 3, field_swap,
                    "Changes it, and gives the old one."),
    ESK_PRIMITIVE_N("%field-cas!", "(%field-cas! record k old new)", 4, 4, field_change,
                    "Changes it if it is the old one; whether it was."),
    ESK_PRIMITIVE_N("%field-add!", "(%field-add! record k n)", 3, 3, field_add, "Adds to it, and gives the old one."),
    ESK_PRIMITIVE_N("%field-wait", "(%field-wait record k value seconds)", 4, 4, field_wait,
                    "Waits while the field is the value, until another thread wakes this one; #f if the time ran out."),
    ESK_PRIMITIVE_N("%field-wake", "(%field-wake record k most)", 3, 3, field_wake,
                    "Wakes the threads that wait for the field; how many."),
    ESK_PRIMITIVE_1("%sleep-for", "(%sleep-for seconds)", sleep_for, "Waits for so many seconds."),
    ESK_PRIMITIVE_0("%yield", "(%yield)", yield, "Lets other threads go on."),
    {0},
};
