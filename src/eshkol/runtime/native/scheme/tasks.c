/* Tasks, the threads that run them, and threads of their own.
 *
 * A task is a record of the library (lib/eshkol/parallel) whose first fields are these: its state, the procedure to be
 * called, the dynamic environment to call it in, and what came of it. Whoever runs one calls the procedure as an entry
 * (control.c), so that no continuation leads out of it and a condition that it does not handle ends it alone.
 *
 * A thread pushes tasks that others may run on a deque of its own, takes the newest one from there, and steals the
 * oldest from the others when it has none. Those of the pool do nothing else; there are as many of them as
 * ESHKOL_THREADS says, less the one that the program began with, and more while some of them wait for something. The
 * pool of kernels (../scheduler.c) does not serve: its threads have small stacks, no context, and nothing that they run
 * may wait or be collected; its deques are of a fixed size, and a program may make a million futures.
 */
#define _GNU_SOURCE
#include "threads.h"
#include "ports.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STATE, WORK, ENVIRONMENT, RESULT, TASK_FIELDS };
enum { READY, RUNNING, DONE, FAILED, EXITED, CANCELLED };
enum { ENTERED_VALUE, ENTERED_CONDITION, ENTERED_EXIT };
enum { MOST_THREADS = 1024 /* of the pool, with those that wait */ };
#define STACK_BYTES ((size_t)256 << 20) /* of address space; only what is used takes memory */
#define LEAST_STACK ((size_t)1 << 20)

typedef struct Pool {
    uint64_t pushes;  /* so many tasks were pushed: what threads without work wait for */
    int64_t pending;  /* tasks in deques */
    int64_t idle, blocked, threads, wanted;
} Pool;

static Pool *pool_made(const Heap *heap) { return __atomic_load_n(&heap->pool, __ATOMIC_ACQUIRE); }

static Record *need_task(Context *context, const char *who, Value value) {
    if (!esk_is(value, TAG_RECORD) || ((Object *)esk_pointer(value))->count < TASK_FIELDS)
        esk_wrong_type(context, who, 1, value, "a task");
    return esk_pointer(value);
}

static uint64_t *state_of(Record *task) { return &task->fields[STATE].bits; }

static bool change_state(Record *task, uint64_t from, uint64_t to) {
    return __atomic_compare_exchange_n(state_of(task), &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* ---- running one ------------------------------------------------------------------------------------------------ */

enum { PARTS = ENVIRONMENT_PARTS };

static Value *part_of(Context *context, int part) {
    Value *const places[] = {&context->parameters, &context->input, &context->output, &context->error};
    return places[part];
}

/* The dynamic environment as a vector; the same one as long as nothing of it changes. Bindings never do. */
static Value environment(Context *context) {
    bool same = esk_is(context->environment, TAG_VECTOR);
    for (int i = 0; same && i < PARTS; i++)
        same = esk_eq(((Vector *)esk_pointer(context->environment))->items[i], *part_of(context, i));
    if (!same) {
        Value made = esk_make_vector(context, PARTS, ESK_FALSE);
        for (int i = 0; i < PARTS; i++) ((Vector *)esk_pointer(made))->items[i] = *part_of(context, i);
        context->environment = made;
    }
    return context->environment;
}

static void begin_frame(Context *context, TaskFrame *frame) {
    pthread_mutex_lock(&context->heap->waits);
    context->tasks = frame;
    pthread_mutex_unlock(&context->heap->waits);
}

/* What was to end it does not end what is outside. */
static void end_frame(Context *context, const TaskFrame *frame) {
    pthread_mutex_lock(&context->heap->waits);
    context->tasks = frame->outer;
    if (frame->cancelled) {
        bool outside = false;
        for (TaskFrame *each = frame->outer; each; each = each->outer) outside |= each->cancelled;
        context->cancelling = false;
        context->cancelled = outside;
        if (outside) esk_want(context);
    }
    pthread_mutex_unlock(&context->heap->waits);
}

static void leave_program(Context *context, Value code) {
    Heap *heap = context->heap;
    pthread_mutex_lock(&heap->waits);
    heap->exit_code = code;
    __atomic_store_n(&heap->exiting, true, __ATOMIC_SEQ_CST);
    esk_want(heap->first);
    if (heap->first->waiter) pthread_cond_signal(&heap->first->waiter->changed);
    pthread_mutex_unlock(&heap->waits);
}

/* Runs the task, unless somebody has begun it; whether it did. */
static bool run_task(Context *context, Record *task) {
    if (__atomic_load_n(state_of(task), __ATOMIC_SEQ_CST) != READY) return false;
    TaskFrame frame = {.outer = context->tasks, .task = task};
    for (int i = 0; i < PARTS; i++) frame.before[i] = *part_of(context, i);
    begin_frame(context, &frame); /* before it runs: who finds it running finds the frame, too, and can cancel it */
    if (!change_state(task, READY, RUNNING)) {
        end_frame(context, &frame);
        return false;
    }
    Value result;
    const Value inside = task->fields[ENVIRONMENT];
    if (esk_is(inside, TAG_VECTOR))
        for (int i = 0; i < PARTS; i++) *part_of(context, i) = ((Vector *)esk_pointer(inside))->items[i];
    uint64_t how = esk_enter_unwinding(context, task->fields[WORK], NULL, 0, &result);
    end_frame(context, &frame);
    for (int i = 0; i < PARTS; i++) *part_of(context, i) = frame.before[i];
    task->fields[WORK] = task->fields[ENVIRONMENT] = ESK_FALSE;
    esk_store(context, &task->fields[RESULT], result);
    uint64_t state = how == ENTERED_VALUE ? DONE : how == ENTERED_CONDITION ? FAILED : EXITED;
    __atomic_store_n(state_of(task), state, __ATOMIC_SEQ_CST);
    esk_wake(context->heap, state_of(task), INT64_MAX);
    if (how == ENTERED_EXIT && !esk_is_first(context)) leave_program(context, result);
    return true;
}

/* ---- deques ----------------------------------------------------------------------------------------------------- */

/* Made when it is first wanted, by its own thread or, that of the first one, by another (hand_on). Others look at it
 * with the world locked, so that it does not go meanwhile. */
static Deque *deque_of(Context *context) {
    Deque *found = __atomic_load_n(&context->deque, __ATOMIC_ACQUIRE), *made;
    if (found) return found;
    if (!(made = calloc(1, sizeof *made))) return NULL;
    pthread_mutex_init(&made->lock, NULL);
    if (__atomic_compare_exchange_n(&context->deque, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    free(made);
    return found;
}

/* With its lock: room for one more; false where there is no memory. */
static bool make_room(Deque *deque) {
    if (deque->end < deque->room) return true;
    if (deque->first > deque->room / 2) {
        memmove(deque->items, deque->items + deque->first, (deque->end - deque->first) * sizeof(Value));
        deque->end -= deque->first;
        deque->first = 0;
        return true;
    }
    uint64_t room = deque->room ? 2 * deque->room : 64;
    Value *more = realloc(deque->items, room * sizeof *more);
    if (!more) return false;
    deque->items = more;
    deque->room = room;
    return true;
}

static bool push(Deque *deque, Value task) {
    pthread_mutex_lock(&deque->lock);
    bool good = make_room(deque);
    if (good) deque->items[deque->end++] = task;
    pthread_mutex_unlock(&deque->lock);
    return good;
}

static Record *take(Pool *pool, Deque *deque, bool newest) {
    Record *found = NULL;
    pthread_mutex_lock(&deque->lock);
    if (deque->first < deque->end) {
        found = esk_pointer(newest ? deque->items[--deque->end] : deque->items[deque->first++]);
        if (deque->first == deque->end) deque->first = deque->end = 0;
    }
    pthread_mutex_unlock(&deque->lock);
    if (found) __atomic_sub_fetch(&pool->pending, 1, __ATOMIC_SEQ_CST);
    return found;
}

/* The newest of one's own, or the oldest of another's. */
static Record *find_task(Context *context) {
    Heap *heap = context->heap;
    Pool *pool = pool_made(heap);
    Deque *own = __atomic_load_n(&context->deque, __ATOMIC_ACQUIRE);
    Record *found = own ? take(pool, own, true) : NULL;
    if (found || __atomic_load_n(&pool->pending, __ATOMIC_SEQ_CST) <= 0) return found;
    pthread_mutex_lock(&heap->world);
    Context *other = context;
    do {
        other = other->next ? other->next : heap->first;
        Deque *its = __atomic_load_n(&other->deque, __ATOMIC_ACQUIRE);
        if (its) found = take(pool, its, false);
    } while (!found && other != context);
    pthread_mutex_unlock(&heap->world);
    return found;
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

typedef struct {
    Context *context;
    void (*run)(Context *);
} Start;

/* What a thread has put aside and not done is for others to do. */
static void hand_on(Context *context) {
    Heap *heap = context->heap;
    Deque *deque = context->deque;
    if (!deque) return;
    pthread_mutex_lock(&heap->world);
    __atomic_store_n(&context->deque, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&heap->world); /* from here on nobody else looks at it */
    Deque *other = deque->first < deque->end ? deque_of(heap->first) : NULL;
    for (uint64_t i = deque->first; i < deque->end; i++) /* what finds no room is left to who touches it */
        if (!other || !push(other, deque->items[i]))
            __atomic_sub_fetch(&pool_made(heap)->pending, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_destroy(&deque->lock);
    free(deque->items);
    free(deque);
}

static void *begin(void *data) {
    Start start = *(Start *)data;
    Context *const context = start.context;
    free(data);
    jmp_buf end;
    context->end = &end;
    esk_use_this_thread(context);
    esk_come_back(context);
    if (!_setjmp(end)) start.run(context);
    context->entry = NULL;
    hand_on(context);
    esk_remove_context(context);
    esk_free_thread_context(context);
    return NULL;
}

/* Signals are for the threads of the host. */
static bool create(Start *start) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    bool made = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_attr_init(&attributes) == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        for (size_t bytes = STACK_BYTES; !made && bytes >= LEAST_STACK; bytes /= 4)
            made = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                   pthread_create(&thread, &attributes, begin, start) == 0;
        pthread_attr_destroy(&attributes);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made;
}

/* A thread with a context like this one; false where the system has none left. */
static bool start_thread(Context *context, Value started, bool in_pool, void (*run)(Context *)) {
    if (__atomic_load_n(&context->heap->ending, __ATOMIC_SEQ_CST)) return false;
    esk_standard_port(context, 1); /* so that all have the same */
    Context *made = esk_new_thread_context(context);
    Start *start = made ? malloc(sizeof *start) : NULL;
    if (!start) return false; /* a context that is never used does no harm */
    made->started = started;
    made->in_pool = in_pool;
    *start = (Start){made, run};
    if (create(start)) return true;
    free(start);
    esk_come_back(made);
    esk_remove_context(made);
    esk_free_thread_context(made);
    return false;
}

static void run_own(Context *context) { run_task(context, esk_pointer(context->started)); }

/* ---- the pool --------------------------------------------------------------------------------------------------- */

static int64_t usable_processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? count : 1;
}

/* With the one that the program began with. The variable is in support/flags.py. */
static int64_t wanted_threads(void) {
    const char *wish = getenv("ESHKOL_THREADS");
    char *end;
    long number = wish && *wish ? strtol(wish, &end, 10) : 0;
    return number >= 1 && number <= MOST_THREADS && !*end ? number : usable_processors();
}

static void run_pool(Context *context) {
    Pool *pool = pool_made(context->heap);
    for (;;) {
        Record *task = find_task(context);
        if (!task) {
            __atomic_add_fetch(&pool->idle, 1, __ATOMIC_SEQ_CST); /* before the last look: whoever pushes sees it */
            uint64_t seen = __atomic_load_n(&pool->pushes, __ATOMIC_SEQ_CST);
            task = find_task(context);
            if (!task) {
                context->in_pool = false; /* it waits for nobody */
                esk_wait(context, &pool->pushes, seen, -1);
                context->in_pool = true;
            }
            __atomic_sub_fetch(&pool->idle, 1, __ATOMIC_SEQ_CST);
        }
        if (task) run_task(context, task);
        else esk_poll(context);
    }
}

static Pool *pool_of(Context *context) {
    Heap *heap = context->heap;
    if (!pool_made(heap)) {
        Pool *made = calloc(1, sizeof *made);
        if (!made) esk_out_of_memory(context, sizeof *made);
        made->wanted = wanted_threads() - 1;
        if (!made->wanted) made->wanted = 1; /* futures may wait for one another */
        Pool *none = NULL;
        if (!__atomic_compare_exchange_n(&heap->pool, &none, made, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            free(made);
    }
    return pool_made(heap);
}

/* One more thread of the pool, where fewer than wanted are at work. */
static bool grow_pool(Context *context, Pool *pool) {
    int64_t threads = __atomic_load_n(&pool->threads, __ATOMIC_SEQ_CST);
    if (threads - __atomic_load_n(&pool->blocked, __ATOMIC_SEQ_CST) >= pool->wanted || threads >= MOST_THREADS)
        return false;
    if (!__atomic_compare_exchange_n(&pool->threads, &threads, threads + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return true; /* another thread does it */
    if (start_thread(context, ESK_FALSE, true, run_pool)) return true;
    __atomic_sub_fetch(&pool->threads, 1, __ATOMIC_SEQ_CST);
    return false;
}

void esk_note_blocked(Context *context, bool begins) {
    Pool *pool = pool_made(context->heap);
    __atomic_add_fetch(&pool->blocked, begins ? 1 : -1, __ATOMIC_SEQ_CST);
    if (begins && __atomic_load_n(&pool->pending, __ATOMIC_SEQ_CST) > 0 &&
        __atomic_load_n(&pool->idle, __ATOMIC_SEQ_CST) == 0)
        grow_pool(context, pool);
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

enum { PATIENCE = 2 /* seconds */ };

/* For the host, before the heap goes: every other thread ends where it stands. */
bool esk_end_threads(Context *first) {
    Heap *heap = first->heap;
    if (!heap->several) return true;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    pthread_mutex_lock(&heap->waits);
    __atomic_store_n(&heap->requests, NULL, __ATOMIC_SEQ_CST);
    __atomic_store_n(&heap->ending, true, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&heap->world);
    for (Context *other = heap->first; other; other = other->next) {
        if (other == first) continue;
        esk_want(other);
        if (other->waiter) pthread_cond_signal(&other->waiter->changed);
    }
    pthread_mutex_unlock(&heap->waits);
    bool was_stopped = first->stopped != NULL; /* somebody may want to collect meanwhile */
    if (!was_stopped) __atomic_sub_fetch(&heap->running, 1, __ATOMIC_RELAXED);
    if (heap->stopping) pthread_cond_broadcast(&heap->stopped);
    int error = 0;
    while (heap->contexts > 1 && !error) error = pthread_cond_timedwait(&heap->stopped, &heap->world, &until);
    if (!was_stopped) __atomic_add_fetch(&heap->running, 1, __ATOMIC_RELAXED);
    bool all = heap->contexts == 1;
    pthread_mutex_unlock(&heap->world);
    if (all) {
        free(heap->pool);
        heap->pool = NULL;
    }
    return all;
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Value run_task_here(Context *context, Value task) {
    return esk_boolean(run_task(context, need_task(context, "%run-task", task)));
}

static Value push_task(Context *context, Value task) {
    need_task(context, "%push-task", task);
    Pool *pool = pool_of(context);
    Deque *deque = deque_of(context);
    if (!deque || !push(deque, task)) esk_out_of_memory(context, sizeof task);
    __atomic_add_fetch(&pool->pending, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&pool->pushes, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->idle, __ATOMIC_SEQ_CST) > 0) esk_wake(context->heap, &pool->pushes, 1);
    else grow_pool(context, pool);
    return ESK_UNSPECIFIED;
}

static Value start_task(Context *context, Value task) {
    need_task(context, "%start-task", task);
    if (!start_thread(context, task, false, run_own))
        esk_fail(context, ERROR_SYSTEM, "thread-start!", "the system has no room for another thread", 0);
    return ESK_UNSPECIFIED;
}

/* A task that nobody has begun never begins; one that runs ends soon, by a condition that no handler sees. */
static Value cancel_task(Context *context, Value value) {
    Record *task = need_task(context, "%cancel-task", value);
    Heap *heap = context->heap;
    if (change_state(task, READY, CANCELLED)) {
        esk_wake(heap, state_of(task), INT64_MAX);
        return ESK_TRUE;
    }
    bool found = false;
    pthread_mutex_lock(&heap->waits);
    pthread_mutex_lock(&heap->world);
    for (Context *other = heap->first; other; other = other->next)
        for (TaskFrame *frame = other->tasks; frame; frame = frame->outer) {
            if (frame->task != task || frame->cancelled) continue;
            frame->cancelled = found = true;
            __atomic_store_n(&other->cancelled, true, __ATOMIC_SEQ_CST);
            esk_want(other);
            if (other->waiter) pthread_cond_signal(&other->waiter->changed);
        }
    pthread_mutex_unlock(&heap->world);
    pthread_mutex_unlock(&heap->waits);
    return esk_boolean(found);
}

static Value thread_count(Context *context) {
    const Pool *pool = pool_made(context->heap);
    return esk_fixnum(pool ? pool->wanted + 1 : wanted_threads());
}

static Value idle_count(Context *context) {
    const Pool *pool = pool_made(context->heap);
    return esk_fixnum(pool ? __atomic_load_n(&pool->idle, __ATOMIC_SEQ_CST) : 0);
}

static Value own_thread(Context *context, const Value *args, int64_t count) {
    if (count) context->started = args[0];
    return context->started;
}

/* What ended a task goes on in the one outside: if that was cancelled, past all handlers. */
static Value raise_again(Context *context, Value condition) {
    if (context->cancelling) context->handlers = ESK_NULL;
    esk_raise(context, condition);
}

const Primitive esk_tasks_primitives[] = {
    ESK_PRIMITIVE_0("%environment-here", "(%environment-here)", environment,
                    "The dynamic environment, for a task: parameters and current ports."),
    ESK_PRIMITIVE_1("%run-task", "(%run-task task)", run_task_here,
                    "Runs the task unless somebody has begun it; whether it did."),
    ESK_PRIMITIVE_1("%push-task", "(%push-task task)", push_task, "Lets another thread run the task."),
    ESK_PRIMITIVE_1("%start-task", "(%start-task task)", start_task, "Runs the task on a thread of its own."),
    ESK_PRIMITIVE_1("%cancel-task", "(%cancel-task task)", cancel_task,
                    "The task does not begin, or ends soon; whether it had not ended."),
    ESK_PRIMITIVE_0("%thread-count", "(%thread-count)", thread_count, "How many threads run tasks, this one included."),
    ESK_PRIMITIVE_0("%idle-count", "(%idle-count)", idle_count, "How many of them have nothing to do."),
    ESK_PRIMITIVE_N("%own-thread", "(%own-thread [object])", 0, 1, own_thread,
                    "What stands for this thread, from now on the object: the task that it was started with, or #f."),
    ESK_PRIMITIVE_1("%raise-again", "(%raise-again condition)", raise_again,
                    "Raises what ended a task within this one."),
    {0},
};
