/* Continuations, re-entrant: the stack between a point and the entry, copied to the heap and back.
 *
 * In: a point of the program (esk_capture), or a continuation and a value (esk_throw). Out: an object; or, at the point
 * of the capture, a second return. Frames are always copied back to the addresses they came from, so that pointers
 * between them stay right; that is why a continuation belongs to its entry, below which nothing else has its frames.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <alloca.h>

/* The stack is copied word by word where frames lie that others watch over. */
__attribute__((no_sanitize_address, noinline)) static void copy_words(char *to, const char *from, uint64_t bytes) {
    uint64_t *target = (uint64_t *)(void *)to;
    const uint64_t *source = (const uint64_t *)(const void *)from;
    for (uint64_t i = 0; i < bytes / 8; i++) target[i] = source[i];
}

/* An address below the frame of the caller. */
__attribute__((noinline)) static char *stack_pointer(void) {
    return (char *)((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)7);
}

__attribute__((noinline)) Value esk_capture(Context *context) {
    __builtin_unwind_init(); /* registers of the callers go to this frame, where the collector looks */
    char *low = stack_pointer();
    uint64_t bytes = (uint64_t)(context->entry->base - low);
    Continuation *continuation = esk_allocate(context, sizeof *continuation + bytes, TAG_CONTINUATION);
    continuation->handlers = context->handlers;
    continuation->winders = context->winders;
    continuation->parameters = context->parameters;
    continuation->entry = context->entry->id;
    continuation->low = low;
    continuation->bytes = bytes;
    memset(&continuation->registers, 0, sizeof continuation->registers); /* setjmp leaves holes */
    if (_setjmp(continuation->registers)) {
        Value value = context->transfer;
        context->transfer = ESK_UNSPECIFIED;
        context->reentered = 1;
        return value;
    }
    copy_words(continuation->slice, low, bytes);
    context->reentered = 0;
    return esk_object(continuation);
}

/* Frames that are left when memory has run out: what filled it must not be held by old words in the frames to come. The
 * caller's own frame lies below. */
__attribute__((no_sanitize_address, noinline)) void esk_wipe(char *from, char *to) {
    for (; from < to; from += 8) *(volatile uint64_t *)(void *)from = 0;
}

/* Called with its whole frame below the slice. The frames from `dead` on are left for ever. */
__attribute__((noinline)) static _Noreturn void restore(Continuation *continuation, char *dead) {
    esk_wipe(dead, continuation->low);
    copy_words(continuation->low, continuation->slice, continuation->bytes);
    _longjmp(continuation->registers, 1);
}

__attribute__((noinline)) static _Noreturn void descend(Continuation *continuation, bool wipe) {
    char *here = stack_pointer(), *target = continuation->low - 1024;
    if (here > target) {
        volatile char *room = alloca((size_t)(here - target));
        *room = 0;
        __asm__ volatile("" : : "r"(room) : "memory");
    }
    restore(continuation, wipe ? __builtin_frame_address(0) : continuation->low);
}

_Noreturn void esk_throw(Context *context, Value target, Value value) {
    if (!esk_is(target, TAG_CONTINUATION)) esk_wrong_type(context, "%throw", 1, target, "a continuation");
    Continuation *continuation = esk_pointer(target);
    if (!context->entry || continuation->entry != context->entry->id) {
        bool runs = false;
        for (Entry *entry = context->entry; entry; entry = entry->outer) runs |= continuation->entry == entry->id;
        esk_fail(context, ERROR_CONTROL, NULL,
                 runs ? "this continuation lies beyond a call from the host, which cannot be left by it"
                      : "this continuation belongs to a call from the host that has ended",
                 1, target);
    }
    context->handlers = continuation->handlers;
    context->winders = continuation->winders;
    context->parameters = continuation->parameters;
    context->transfer = value;
    esk_stack_restored(context, continuation->low);
    bool wipe = context->heap->failed;
    context->heap->failed = false;
    descend(continuation, wipe);
}

static Value throw(Context *context, Value continuation, Value value) { esk_throw(context, continuation, value); }

const Primitive esk_continuation_primitives[] = {
    ESK_PRIMITIVE_2("%throw", "(%throw continuation value)", throw,
                    "Goes on where the continuation was captured, as if that had returned the value."),
    {0},
};
