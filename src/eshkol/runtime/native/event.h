/* What a thread without work sleeps on.
 *
 * The number `epoch` changes with every call. A thread reads it, looks once more for a reason not to sleep, and then
 * sleeps only while the number is still the one it read, so that a call in between is not lost.
 *
 * On Linux this is a futex: one system call, no lock, and not exposed to the wake-ups that glibc's condition variables
 * could lose before release 2.41 (its bug 25847). Elsewhere it is a condition variable.
 */
#ifndef ESHKOL_EVENT_H
#define ESHKOL_EVENT_H

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#if defined(__linux__) && !defined(ESHKOL_NO_FUTEX)
#define ESHKOL_FUTEX 1
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define ESHKOL_FUTEX 0
#include <pthread.h>
#endif

typedef struct {
    _Atomic uint32_t epoch;
    _Atomic int waiters; /* threads that sleep or are about to; kept by those who sleep */
#if !ESHKOL_FUTEX
    pthread_mutex_t mutex;
    pthread_cond_t changed;
#endif
} eshkol_event;

static inline void eshkol_event_init(eshkol_event *event)
{
    atomic_init(&event->epoch, 0);
    atomic_init(&event->waiters, 0);
#if !ESHKOL_FUTEX
    pthread_mutex_init(&event->mutex, NULL);
    pthread_cond_init(&event->changed, NULL);
#endif
}

static inline void eshkol_event_destroy(eshkol_event *event)
{
#if ESHKOL_FUTEX
    (void)event;
#else
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
#endif
}

static inline void eshkol_event_wait(eshkol_event *event, uint32_t epoch)
{
#if ESHKOL_FUTEX
    /* may come back early, by a signal or for no reason: then look again */
    while (atomic_load_explicit(&event->epoch, memory_order_seq_cst) == epoch)
        syscall(SYS_futex, &event->epoch, FUTEX_WAIT_PRIVATE, epoch, NULL, NULL, 0);
#else
    pthread_mutex_lock(&event->mutex);
    while (atomic_load_explicit(&event->epoch, memory_order_seq_cst) == epoch)
        pthread_cond_wait(&event->changed, &event->mutex);
    pthread_mutex_unlock(&event->mutex);
#endif
}

/* Wakes at least so many of those that sleep, or all where there are fewer. */
static inline void eshkol_event_call(eshkol_event *event, int threads)
{
#if ESHKOL_FUTEX
    atomic_fetch_add_explicit(&event->epoch, 1, memory_order_seq_cst);
    syscall(SYS_futex, &event->epoch, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
#else
    pthread_mutex_lock(&event->mutex);
    atomic_fetch_add_explicit(&event->epoch, 1, memory_order_seq_cst);
    if (threads > 1)
        pthread_cond_broadcast(&event->changed);
    else
        pthread_cond_signal(&event->changed);
    pthread_mutex_unlock(&event->mutex);
#endif
}

#endif
