/* Continuations, re-entrant: the stack between a point and the entry, copied to the heap and back.
 *
 * In: a point of the program (esk_capture), or a continuation and a value (esk_throw). Out: an object; or, at the point
 * of the capture, a second return. Frames are always copied back to the addresses they came from, so that pointers
 * between them stay right; that is why a continuation belongs to its entry, below which nothing else has its frames.
 *
 * An entry that has ended can be gone on with in another one that lies in the same place: at a prompt, a continuation
 * of one line is entered from the next (esk_enter_form). Both must be outermost, so that there are no frames of the
 * host between theirs. What the host has in registers is kept by the frame above them (control.c).
 *
 * Frames are copied once for all continuations that have them. The frame that waits for the capturing procedure, and
 * those above it, stay as they are until they are returned to: they become a segment, which further captures refer to.
 * To know when that ends, the return address to the lowest of them is replaced by that of a stub (esk_underflow), which
 * takes the segment off the list of those on the stack, and goes where the return was meant to go. Capturing and
 * escaping thus cost what lies between, not what lies above. All of this relies on frame pointers: at the address in
 * the frame pointer stand the caller's, and the return address.
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

/* ---- shared frames ---------------------------------------------------------------------------------------------- */

__thread Context *esk_current;

/* Called by the stub: where to return to. */
__attribute__((used, visibility("hidden"))) const char *esk_leave_segment(void) {
    Entry *entry = esk_current->entry;
    Segment *segment = entry->captured;
    entry->captured = segment->parent;
    return segment->back;
}

#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)
#define SYMBOL(name) EXPANDED(__USER_LABEL_PREFIX__) #name

#if defined(__aarch64__)
enum { CAN_SHARE = 1 };
__asm__(".text\n.p2align 2\n.globl " SYMBOL(esk_underflow) "\n" SYMBOL(esk_underflow) ":\n"
        "stp x0, x1, [sp, #-16]!\n" /* the value on its way; wiped behind it, or the next slice would hold on to it */
        "bl " SYMBOL(esk_leave_segment) "\n"
        "mov x30, x0\n"
        "ldp x0, x1, [sp]\n"
        "stp xzr, xzr, [sp], #16\n"
        "ret\n");
#elif defined(__x86_64__)
enum { CAN_SHARE = 1 };
__asm__(".text\n.globl " SYMBOL(esk_underflow) "\n" SYMBOL(esk_underflow) ":\n"
        "subq $8, %rsp\npushq %rax\npushq %rdx\nsubq $8, %rsp\n" /* the value on its way; the stack stays aligned */
        "call " SYMBOL(esk_leave_segment) "\n"
        "movq %rax, 24(%rsp)\nmovq 8(%rsp), %rdx\nmovq 16(%rsp), %rax\n"
        "movq $0, 8(%rsp)\nmovq $0, 16(%rsp)\naddq $24, %rsp\nret\n");
#else
enum { CAN_SHARE = 0 };
const char esk_underflow[1];
#endif

enum { PIECE = 2048 /* bytes: more than this is shared in two parts, so that it need not be copied again and again */ };

typedef struct Frame { struct Frame *caller; const char *back; } Frame;

/* The frame that `callee` returns to and all above it, as a segment; or what is shared already, where that frame is
 * among it. */
__attribute__((no_sanitize_address)) static Segment *share(Context *context, Frame *callee) {
    Entry *entry = context->entry;
    Segment *parent = entry->captured;
    char *low = (char *)callee->caller, *end = parent ? parent->low : entry->base;
    if (!CAN_SHARE || callee->back == esk_underflow || callee->caller <= callee || low >= end || (uintptr_t)low & 7)
        return parent;
    uint64_t bytes = (uint64_t)(end - low);
    Segment *segment = esk_allocate(context, sizeof *segment + bytes, TAG_CONTINUATION);
    segment->head.flags = FLAG_SEGMENT;
    segment->parent = parent;
    segment->back = callee->back;
    segment->depth = parent ? parent->depth + 1 : 1;
    segment->low = low;
    segment->bytes = bytes;
    copy_words(segment->frames, low, bytes);
    callee->back = esk_underflow;
    entry->captured = segment;
    return segment;
}

__attribute__((no_sanitize_address)) static Segment *share_all(Context *context, Frame *callee) {
    char *end = context->entry->captured ? context->entry->captured->low : context->entry->base;
    Frame *far = callee;
    while (far->caller > far && (char *)far->caller < end && (char *)far->caller - (char *)callee < PIECE)
        far = far->caller;
    if (far != callee && far->caller > far && end - (char *)far->caller > PIECE) share(context, far);
    return share(context, callee);
}

/* ---- capture and throw ------------------------------------------------------------------------------------------ */

__attribute__((noinline)) Value esk_capture(Context *context) {
    __builtin_unwind_init(); /* registers of the callers go to this frame, where the collector looks */
    Segment *segment = share_all(context, ((Frame *)__builtin_frame_address(0))->caller);
    char *low = stack_pointer();
    uint64_t bytes = (uint64_t)((segment ? segment->low : context->entry->base) - low);
    Continuation *continuation = esk_allocate(context, sizeof *continuation + bytes, TAG_CONTINUATION);
    continuation->handlers = context->handlers;
    continuation->winders = context->winders;
    continuation->parameters = context->parameters;
    continuation->entry = context->entry->id;
    continuation->base = context->entry->form ? context->entry->base : NULL;
    continuation->segment = segment;
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
__attribute__((noinline)) static _Noreturn void restore(Continuation *continuation, const Segment *there, char *dead) {
    esk_wipe(dead, continuation->low);
    for (const Segment *segment = continuation->segment; segment != there; segment = segment->parent)
        copy_words(segment->low, segment->frames, segment->bytes);
    copy_words(continuation->low, continuation->slice, continuation->bytes);
    _longjmp(continuation->registers, 1);
}

__attribute__((noinline)) static _Noreturn void descend(Continuation *continuation, const Segment *there, bool wipe) {
    char *here = stack_pointer(), *target = continuation->low - 1024;
    if (here > target) {
        volatile char *room = alloca((size_t)(here - target));
        *room = 0;
        __asm__ volatile("" : : "r"(room) : "memory");
    }
    restore(continuation, there, wipe ? __builtin_frame_address(0) : continuation->low);
}

/* The innermost segment that both have; null where that is none. */
static const Segment *common(const Segment *one, const Segment *other) {
    while (one != other) {
        if (one && (!other || one->depth >= other->depth)) one = one->parent;
        else other = other->parent;
    }
    return one;
}

/* Whether the frames of a continuation, whose entry has ended, belong where those of the entry at hand are. */
static bool fits(const Context *context, const Continuation *continuation) {
    const Entry *entry = context->entry;
    return entry && entry->form && continuation->base == entry->base;
}

_Noreturn void esk_throw(Context *context, Value target, Value value) {
    if (!esk_is(target, TAG_CONTINUATION)) esk_wrong_type(context, "%throw", 1, target, "a continuation");
    Continuation *continuation = esk_pointer(target);
    if (!context->entry || (continuation->entry != context->entry->id && !fits(context, continuation))) {
        bool runs = false;
        for (Entry *entry = context->entry; entry; entry = entry->outer) runs |= continuation->entry == entry->id;
        esk_fail(context, ERROR_CONTROL, "call/cc",
                 runs ? "this continuation lies beyond a call from Python, which only a value or an exception leaves"
                      : "this continuation belongs to a call from Python that has ended",
                 1, target);
    }
    context->handlers = continuation->handlers;
    context->winders = continuation->winders;
    context->parameters = continuation->parameters;
    context->transfer = value;
    esk_stack_restored(context, continuation->low);
    const Segment *there = common(continuation->segment, context->entry->captured);
    context->entry->captured = continuation->segment;
    bool wipe = context->heap->failed;
    context->heap->failed = false;
    descend(continuation, there, wipe);
}

static Value throw(Context *context, Value continuation, Value value) { esk_throw(context, continuation, value); }

const Primitive esk_continuation_primitives[] = {
    ESK_PRIMITIVE_2("%throw", "(%throw continuation value)", throw,
                    "Goes on where the continuation was captured, as if that had returned the value."),
    {0},
};
