/* Stress tests of the scheduler and its deque, run under sanitizers by test_native.py. Each argument names a test;
 * a failed check prints where it stands and ends the process with status 1.
 *
 * scheduler.c is compiled with pthread_create and posix_memalign renamed to the two functions below, so that both can
 * be made to fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deque.h"
#include "scheduler.h"

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);           \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

/* --- failures on demand --- */

static int threads_allowed = -1; /* negative: as many as wanted */
static int memory_allowed = 1;

int test_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    if (threads_allowed == 0)
        return EAGAIN;
    if (threads_allowed > 0)
        threads_allowed--;
    return pthread_create(thread, attributes, run, argument);
}

int test_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    return memory_allowed ? posix_memalign(memory, alignment, bytes) : ENOMEM;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* --- the deque: one owner, several thieves, every item exactly once --- */

#define ITEMS 200000
#define THIEVES 3

static eshkol_deque deque;
static _Atomic int taken[ITEMS];
static int64_t payload[ITEMS]; /* not atomic: must be published by the deque alone */
static _Atomic bool pushed_all;

static void take(const eshkol_item *item)
{
    int64_t *where = item->loop;
    int64_t k = item->begin;
    CHECK(where == &payload[k] && item->end == k + 1 && item->depth == -k); /* not torn */
    CHECK(*where == 3 * k);
    *where = -1;
    CHECK(atomic_fetch_add(&taken[k], 1) == 0);
}

static void *thief(void *argument)
{
    int64_t *stolen = argument;
    eshkol_item item;
    for (;;) {
        bool last = atomic_load(&pushed_all); /* read before looking, or an item pushed in between is left */
        eshkol_steal outcome = eshkol_deque_steal(&deque, &item, NULL, 0);
        if (outcome == ESHKOL_STEAL_GOT) {
            take(&item);
            ++*stolen;
        } else if (outcome == ESHKOL_STEAL_EMPTY && last) {
            return NULL;
        }
    }
}

static void test_deque(void)
{
    pthread_t thieves[THIEVES];
    int64_t stolen[THIEVES] = {0}, popped = 0, total = 0;
    uint32_t random = 1;
    eshkol_item item;
    eshkol_deque_init(&deque);
    for (int k = 0; k < THIEVES; k++)
        CHECK(pthread_create(&thieves[k], NULL, thief, &stolen[k]) == 0);
    for (int64_t k = 0; k < ITEMS;) {
        /* short bursts, so that the fight over the last item is common; now and then until it is full */
        for (uint32_t burst = next_random(&random) % (k % 64 == 0 ? 200 : 4); k < ITEMS; k++) {
            payload[k] = 3 * k;
            eshkol_item fresh = {&payload[k], k, k + 1, -k};
            if (burst-- == 0 || !eshkol_deque_push(&deque, &fresh))
                break;
        }
        for (uint32_t burst = next_random(&random) % 4; burst > 0 && eshkol_deque_pop(&deque, &item); burst--) {
            take(&item);
            popped++;
        }
    }
    while (eshkol_deque_pop(&deque, &item)) {
        take(&item);
        popped++;
    }
    atomic_store(&pushed_all, true);
    for (int k = 0; k < THIEVES; k++) {
        pthread_join(thieves[k], NULL);
        total += stolen[k];
    }
    for (int k = 0; k < ITEMS; k++)
        CHECK(atomic_load(&taken[k]) == 1);
    CHECK(popped + total == ITEMS);
    printf("deque: %lld popped, %lld stolen\n", (long long)popped, (long long)total);
}

static void test_wanted(void)
{
    int mine = 0, other = 0;
    eshkol_item item, outer = {&other, 0, 1, 2}, inner = {&other, 1, 2, 4}, own = {&mine, 2, 3, 3};
    eshkol_deque_init(&deque);
    CHECK(eshkol_deque_steal(&deque, &item, &mine, 3) == ESHKOL_STEAL_EMPTY);
    CHECK(eshkol_deque_push(&deque, &outer) && eshkol_deque_push(&deque, &inner) && eshkol_deque_push(&deque, &own));
    CHECK(eshkol_deque_steal(&deque, &item, &mine, 3) == ESHKOL_STEAL_UNWANTED);
    CHECK(eshkol_deque_steal(&deque, &item, NULL, 0) == ESHKOL_STEAL_GOT && item.begin == 0);
    CHECK(eshkol_deque_steal(&deque, &item, &mine, 3) == ESHKOL_STEAL_GOT && item.begin == 1);
    CHECK(eshkol_deque_steal(&deque, &item, &mine, 3) == ESHKOL_STEAL_GOT && item.begin == 2);
    CHECK(!eshkol_deque_pop(&deque, &item));
    for (int k = 0; k < ESHKOL_DEQUE_CAPACITY; k++)
        CHECK(eshkol_deque_push(&deque, &own));
    CHECK(!eshkol_deque_push(&deque, &own));
    CHECK(eshkol_deque_pop(&deque, &item) && eshkol_deque_push(&deque, &own));
}

/* --- loops --- */

#define LONGEST 5000

typedef struct {
    int64_t count, grain;
    int seen[LONGEST]; /* not atomic: each index belongs to one thread, and the end of the loop publishes it */
} marks;

static void mark(void *context, int64_t begin, int64_t end)
{
    marks *m = context;
    CHECK(m->grain < 1 || (begin % m->grain == 0 && (end - begin == m->grain || end == m->count)));
    for (int64_t k = begin; k < end; k++)
        m->seen[k]++;
}

static void mark_once(eshkol_scheduler *pool, marks *m, int64_t count, int64_t grain)
{
    memset(m->seen, 0, sizeof m->seen);
    m->count = count;
    m->grain = grain;
    CHECK(eshkol_parallel_for(pool, mark, m, count, grain) == 0);
    for (int64_t k = 0; k < LONGEST; k++)
        CHECK(m->seen[k] == (k < count));
}

static void test_loops(void)
{
    static marks m;
    uint32_t random = 7;
    for (int workers = 1; workers <= 8; workers++) {
        eshkol_scheduler *pool = eshkol_scheduler_new(workers);
        CHECK(pool != NULL && eshkol_scheduler_workers(pool) == workers);
        for (int k = 0; k < 60; k++)
            mark_once(pool, &m, next_random(&random) % LONGEST, (int64_t)(next_random(&random) % 40) - 1);
        CHECK(eshkol_parallel_for(pool, mark, &m, -1, 1) == EINVAL);
        CHECK(eshkol_parallel_for(pool, NULL, &m, 1, 1) == EINVAL);
        CHECK(eshkol_parallel_for(NULL, mark, &m, 1, 1) == EINVAL);
        eshkol_scheduler_free(pool);
    }
    eshkol_scheduler_free(NULL);
}

static eshkol_scheduler *shared, *second;
static _Atomic int64_t leaves;

static void nest(void *context, int64_t begin, int64_t end)
{
    int64_t level = (int64_t)(intptr_t)context;
    if (level == 0) {
        atomic_fetch_add_explicit(&leaves, end - begin, memory_order_relaxed);
        return;
    }
    for (int64_t k = begin; k < end; k++) /* every other level on the other pool, where there is one */
        CHECK(eshkol_parallel_for(level % 2 ? shared : second, nest, (void *)(intptr_t)(level - 1), 6, 1) == 0);
}

static void *call_often(void *argument)
{
    marks *m = malloc(sizeof *m);
    uint32_t random = (uint32_t)(intptr_t)argument;
    CHECK(m != NULL);
    for (int k = 0; k < 60; k++) {
        mark_once(shared, m, next_random(&random) % LONGEST, next_random(&random) % 50 + 1);
        CHECK(eshkol_parallel_for(shared, nest, (void *)2, 3, 1) == 0);
        if (k % 20 == 0)
            usleep(1000); /* let the workers fall asleep */
    }
    free(m);
    return NULL;
}

static void test_nested(void)
{
    shared = eshkol_scheduler_new(4);
    eshkol_scheduler *other = eshkol_scheduler_new(3);
    CHECK(shared != NULL && other != NULL);
    for (int pools = 1; pools <= 2; pools++) {
        second = pools == 1 ? shared : other;
        for (int k = 0; k < 20; k++) {
            atomic_store(&leaves, 0);
            CHECK(eshkol_parallel_for(shared, nest, (void *)4, 6, 1) == 0);
            CHECK(atomic_load(&leaves) == 6 * 6 * 6 * 6 * 6);
        }
    }
    eshkol_scheduler_free(other);
    eshkol_scheduler_free(shared);
}

static void test_callers(void)
{
    enum { THREADS = 40 }; /* more than the pool has places for */
    pthread_t threads[THREADS];
    shared = second = eshkol_scheduler_new(3);
    CHECK(shared != NULL);
    for (int k = 0; k < THREADS; k++)
        CHECK(pthread_create(&threads[k], NULL, call_often, (void *)(intptr_t)(k + 1)) == 0);
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    CHECK(!eshkol_scheduler_busy(shared));
    eshkol_scheduler_statistics s;
    eshkol_scheduler_stats(shared, &s);
    CHECK(s.tasks > 0);
    printf("callers: %lld tasks, %lld steals, %lld sleeps\n", (long long)s.tasks, (long long)s.steals,
           (long long)s.sleeps);
    eshkol_scheduler_free(shared);
}

static void test_pools(void)
{
    static marks m;
    for (int k = 0; k < 200; k++) {
        eshkol_scheduler *pool = eshkol_scheduler_new(1 + k % 5);
        CHECK(pool != NULL);
        if (k % 3)
            mark_once(pool, &m, 100, 1 + k % 7);
        eshkol_scheduler_free(pool);
    }
}

static void test_failures(void)
{
    static marks m;
    for (int allowed = 0; allowed < 4; allowed++) {
        threads_allowed = allowed;
        eshkol_scheduler *pool = eshkol_scheduler_new(6);
        threads_allowed = -1;
        CHECK(pool != NULL && eshkol_scheduler_workers(pool) == 1 + allowed);
        mark_once(pool, &m, 1000, 3);
        eshkol_scheduler_free(pool);
    }
    memory_allowed = 0;
    errno = 0;
    CHECK(eshkol_scheduler_new(2) == NULL && errno == ENOMEM);
    memory_allowed = 1;
    CHECK(eshkol_scheduler_new(-1) == NULL && errno == EINVAL);
}

static void test_many(void) /* apart, because thread sanitizers have room for fewer threads */
{
    static marks m;
    eshkol_scheduler *pool = eshkol_scheduler_new(1000000);
    CHECK(pool != NULL && eshkol_scheduler_workers(pool) <= ESHKOL_MAX_WORKERS);
    mark_once(pool, &m, LONGEST, 1);
    eshkol_scheduler_free(pool);
}

/* --- fork --- */

static pthread_t caller;
static _Atomic int forks;

static int wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The parent waits for a child that is forked in the middle of a loop; the child comes back out of the loop, or, where
 * a thread of the pool forked, ends there, after using the pool from within the body. */
static void fork_in_body(void *context, int64_t begin, int64_t end)
{
    (void)end;
    if (begin % 50 != 0)
        return;
    atomic_fetch_add(&forks, 1);
    pid_t child = fork();
    if (child != 0) {
        CHECK(wait_for(child) == (pthread_equal(pthread_self(), caller) ? 0 : 1));
        return;
    }
    marks *m = malloc(sizeof *m);
    CHECK(m != NULL);
    mark_once(context, m, 500, 7);
    free(m);
}

static void test_fork(void)
{
    static marks m;
    eshkol_scheduler *pool = eshkol_scheduler_new(4), *unused = eshkol_scheduler_new(2);
    CHECK(pool != NULL && unused != NULL);
    for (int k = 0; k < 20; k++) {
        mark_once(pool, &m, 300, 5);
        if (k % 2)
            usleep(500);
        pid_t child = fork();
        if (child == 0) {
            for (int again = 0; again < 5; again++)
                mark_once(pool, &m, 1000, 3);
            CHECK(eshkol_scheduler_workers(pool) == 4);
            eshkol_scheduler_free(pool);
            eshkol_scheduler_free(unused);
            _exit(0);
        }
        mark_once(pool, &m, 1000, 3);
        CHECK(wait_for(child) == 0);
    }
    pid_t parent = getpid();
    caller = pthread_self();
    int status = eshkol_parallel_for(pool, fork_in_body, pool, 200, 1);
    if (getpid() != parent) {
        CHECK(status == ECANCELED);
        mark_once(pool, &m, 1000, 3);
        _exit(0);
    }
    CHECK(status == 0 && atomic_load(&forks) == 4);
    eshkol_scheduler_free(unused);
    eshkol_scheduler_free(pool);
}

int main(int count, char **arguments)
{
    const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"deque", test_deque},     {"wanted", test_wanted}, {"loops", test_loops},
                 {"nested", test_nested},   {"callers", test_callers}, {"pools", test_pools},
                 {"failures", test_failures}, {"many", test_many},     {"fork", test_fork}};
    int run = 0;
    for (int k = 1; k < count; k++)
        for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
            if (strcmp(arguments[k], tests[t].name) == 0) {
                tests[t].run();
                printf("%s: passed\n", tests[t].name);
                run++;
            }
    return run == count - 1 ? 0 : 2;
}
