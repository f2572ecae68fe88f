/* What other threads want done on the first one: all that needs Python or the host, which know of one thread alone.
 *
 * In: calls of esk_on_first from any thread. Out: the work is done on the thread of the first context, where that comes
 * to esk_poll, waits for something, or is idle (esk_attend_idle); who asks waits until it is done. The order is that of
 * asking. While the first thread is in Python code or in the host, the others' requests wait.
 */
#define _GNU_SOURCE
#include "threads.h"

typedef struct Request {
    struct Request *next;
    void (*work)(Context *, void *);
    void *data;
    Context *from;
    Waiter waiter; /* woken when it is done */
    bool taken;
} Request;

static void wait_until_done(void *data) {
    Request *request = data;
    Heap *heap = request->from->heap;
    while (!request->waiter.woken && (request->taken || !__atomic_load_n(&heap->ending, __ATOMIC_SEQ_CST)))
        pthread_cond_wait(&request->waiter.changed, &heap->waits);
    request->from->waiter = NULL;
    pthread_mutex_unlock(&heap->waits);
}

void esk_on_first(Context *context, void (*work)(Context *, void *), void *data) {
    Heap *heap = context->heap;
    if (esk_is_first(context)) {
        work(context, data);
        return;
    }
    Request request = {.work = work, .data = data, .from = context};
    esk_begin_wait(&request.waiter);
    pthread_mutex_lock(&heap->waits);
    if (heap->requests) heap->last_request->next = &request;
    else __atomic_store_n(&heap->requests, &request, __ATOMIC_SEQ_CST);
    heap->last_request = &request;
    context->waiter = &request.waiter;
    esk_want(heap->first);
    if (heap->first->waiter) pthread_cond_signal(&heap->first->waiter->changed);
    esk_apart(context, wait_until_done, &request);
    pthread_cond_destroy(&request.waiter.changed);
    if (!request.waiter.woken) esk_poll(context); /* all threads end */
}

static Request *next_request(Heap *heap) {
    pthread_mutex_lock(&heap->waits);
    Request *request = heap->requests;
    if (request) {
        request->taken = true;
        __atomic_store_n(&heap->requests, request->next, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&heap->waits);
    return request;
}

static void do_request(Context *first, Request *request) {
    const Context *from = request->from;
    Value parameters = first->parameters, input = first->input, output = first->output, error = first->error;
    first->parameters = from->parameters;
    first->input = from->input;
    first->output = from->output;
    first->error = from->error;
    request->work(first, request->data);
    first->parameters = parameters;
    first->input = input;
    first->output = output;
    first->error = error;
    pthread_mutex_lock(&first->heap->waits);
    request->waiter.woken = true;
    pthread_cond_signal(&request->waiter.changed);
    pthread_mutex_unlock(&first->heap->waits);
}

void esk_serve(Context *first) {
    Held held;
    esk_let_go(first, &held);
    first->serving++;
    for (Request *request; (request = next_request(first->heap));) do_request(first, request);
    first->serving--; /* esk_poll looks afterwards whether there is more */
    esk_hold_again(first, &held);
}

/* ---- a first thread that has nothing to do ---------------------------------------------------------------------- */

/* For the host, about the thread of the first context, which is not in Scheme: it waits for work from now on, and does
 * not touch the heap (0: there is only one thread; else 1); it has work again. */
int esk_is_idle(Context *first) {
    if (!first->heap->several || first->entry) return 0;
    esk_remain_stopped(first);
    return 1;
}

void esk_is_busy(Context *first) { esk_come_back(first); }

int esk_has_requests(const Context *first) { return __atomic_load_n(&first->heap->requests, __ATOMIC_SEQ_CST) != NULL; }

static Value serve(Context *first) {
    esk_serve(first);
    return ESK_UNSPECIFIED;
}

/* What others want is done now; 0, 1 or 2, as of an entry. */
uint64_t esk_attend_idle(Context *first, Value *result) {
    static const Primitive row = ESK_PRIMITIVE_0("%serve", "(%serve)", serve, "");
    uint64_t before = first->inside;
    first->inside = INSIDE_SCHEME;
    uint64_t how = esk_enter_primitive(first, &row, NULL, 0, result);
    first->inside = before;
    return how;
}
