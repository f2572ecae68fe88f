/* Continuations, re-entrant: the stack between a point and the entry, copied to the heap and back.
 *
 * In: a point of the program (esk_capture, esk_call_cc), or a continuation and a value (esk_throw). Out: an object; or,
 * at the point of the capture, a second return. Frames are always copied back to the addresses they came from, so that
 * pointers between them stay right; that is why a continuation belongs to its entry, below which nothing else has its
 * frames.
 *
 * An entry that has ended can be gone on with in another one that lies in the same place: at a prompt, a continuation
 * of one line is entered from the next (esk_enter_form). Both must be outermost, so that there are no frames of the
 * host between theirs. What the host has in registers is kept by the frame above them (control.c).
 *
 * Frames are copied once for all continuations that have them. The frame that waits for the capturing procedure, and
 * those above it, stay as they are until they are returned to: they become a segment, which further captures refer to.
 * To know when that ends, the return address to the lowest of them is replaced by that of a stub (esk_underflow), which
 * takes the segment off the list of those on the stack, and goes where the return was meant to go. Capturing and
 * escaping thus cost what lies between, not what lies above: who escapes to frames that are still there as they were
 * copies nothing at all. All of this relies on frame pointers: at the address in the frame pointer stand the caller's,
 * and the return address.
 *
 * A continuation that is only left to (%call/ec, where the compiler sees it) shares nothing: whoever goes on with it is
 * below its frames, so they are there.
 *
 * A capture begins in a few instructions of assembly, which keep the registers that a procedure must leave as they are
 * beside their own frame (Frame). To go on with a continuation is to give the frames, these registers and the stack
 * pointer what they had, and to return.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <alloca.h>

/* The stack is copied word by word where frames lie that others watch over. */
__attribute__((no_sanitize_address)) static inline void copy_words(char *to, const char *from, uint64_t bytes) {
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

/* esk_capture(context) and esk_call_cc(context, receiver), the latter as compiled code calls: {context, closure, 1,
 * continuation} go on to the receiver. The frame pointer of their frame is that of a Frame. esk_resume(registers, stack
 * pointer, where, value) goes on there. */
#if defined(__aarch64__)
#define ENTER                                                                                                          \
    "stp x29, x30, [sp, #-176]!\nmov x29, sp\n"                                                                        \
    "stp x19, x20, [sp, #16]\nstp x21, x22, [sp, #32]\nstp x23, x24, [sp, #48]\nstp x25, x26, [sp, #64]\n"             \
    "stp x27, x28, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"             \
    "stp d14, d15, [sp, #144]\nstp x0, x1, [sp, #160]\nmov x1, x29\nadd x2, sp, #176\n"                          \
    "bl " SYMBOL(esk_make_continuation) "\n"
enum { SAVED = 18 };
__asm__(".text\n.p2align 2\n.globl " SYMBOL(esk_underflow) "\n" SYMBOL(esk_underflow) ":\n"
        "stp x0, x1, [sp, #-16]!\n" /* the value on its way; wiped behind it, or the next slice would hold on to it */
        "bl " SYMBOL(esk_leave_segment) "\n"
        "mov x30, x0\n"
        "ldp x0, x1, [sp]\n"
        "stp xzr, xzr, [sp], #16\n"
        "ret\n"
        ".p2align 2\n.globl " SYMBOL(esk_capture) "\n" SYMBOL(esk_capture) ":\n" ENTER
        "ldp x29, x30, [sp], #176\nret\n"
        ".p2align 2\n.globl " SYMBOL(esk_call_cc) "\n" SYMBOL(esk_call_cc) ":\n" ENTER
        "mov x3, x0\nmov x4, x1\nldp x0, x1, [sp, #160]\nmov x2, #1\n"
        "ldp x29, x30, [sp], #176\nldr x16, [x1, #8]\nbr x16\n"
        ".p2align 2\n" SYMBOL(esk_resume) ":\n"
        "mov sp, x1\nmov x30, x2\n"
        "ldp x19, x20, [x0]\nldp x21, x22, [x0, #16]\nldp x23, x24, [x0, #32]\nldp x25, x26, [x0, #48]\n"
        "ldp x27, x28, [x0, #64]\nldp d8, d9, [x0, #80]\nldp d10, d11, [x0, #96]\nldp d12, d13, [x0, #112]\n"
        "ldp d14, d15, [x0, #128]\nldr x29, [x0, #144]\nmov x0, x3\nmov x1, x4\nret\n");
typedef struct Frame { struct Frame *caller; const char *back; uint64_t registers[SAVED]; } Frame;
static inline const uint64_t *saved_registers(const Frame *frame) { return frame->registers; }

#elif defined(__x86_64__)
/* A procedure of compiled code takes eight bytes more off the stack than its return address (LLVM's tailcc) and has the
 * context in r13 (codegen/passing.py). */
#define ENTER(above)                                                                                                   \
    "pushq %rbp\nmovq %rsp, %rbp\npushq %r15\npushq %r14\npushq %r13\npushq %r12\npushq %rbx\npushq %rdi\n"           \
    "movq %rbp, %rsi\nleaq " #above "(%rbp), %rdx\n"
#define LEAVE "popq %rdi\npopq %rbx\npopq %r12\npopq %r13\npopq %r14\npopq %r15\npopq %rbp\n"
enum { SAVED = 5 };
__asm__(".text\n.globl " SYMBOL(esk_underflow) "\n" SYMBOL(esk_underflow) ":\n"
        "subq $8, %rsp\npushq %rax\npushq %rdx\nsubq $8, %rsp\n" /* the value on its way; the stack stays aligned */
        "call " SYMBOL(esk_leave_segment) "\n"
        "movq %rax, 24(%rsp)\nmovq 8(%rsp), %rdx\nmovq 16(%rsp), %rax\n"
        "movq $0, 8(%rsp)\nmovq $0, 16(%rsp)\naddq $24, %rsp\nret\n"
        ".globl " SYMBOL(esk_capture) "\n" SYMBOL(esk_capture) ":\n" ENTER(16)
        "call " SYMBOL(esk_make_continuation) "\n" LEAVE "ret\n"
        ".globl " SYMBOL(esk_call_cc) "\n" SYMBOL(esk_call_cc) ":\n" ENTER(24)
        "movq %r13, %rdi\ncall " SYMBOL(esk_make_continuation) "\n"
        "movq %rdx, %rcx\nmovq %rax, %rdx\nmovl $1, %esi\n" LEAVE "jmpq *8(%rdi)\n"
        SYMBOL(esk_resume) ":\n"
        "movq %rsi, %rsp\nmovq 0(%rdi), %rbx\nmovq 8(%rdi), %r12\nmovq 16(%rdi), %r13\nmovq 24(%rdi), %r14\n"
        "movq 32(%rdi), %r15\nmovq 40(%rdi), %rbp\nmovq %rdx, %r11\nmovq %rcx, %rax\nmovq %r8, %rdx\njmpq *%r11\n");
typedef struct Frame { struct Frame *caller; const char *back; } Frame;
static inline const uint64_t *saved_registers(const Frame *frame) {
    return (const uint64_t *)(const void *)frame - SAVED;
}

#else
#error "continuations are written for x86-64 and AArch64"
#endif

_Static_assert(offsetof(Closure, entry) == 8, "esk_call_cc reads the entry of a closure");
_Static_assert(SAVED + 1 <= CALLEE_SAVED, "a continuation has room for the registers, and for the frame pointer");
_Noreturn void esk_resume(const uint64_t *registers, char *low, const char *back, Value);

enum { PIECE = 2048 /* bytes: more than this is shared in two parts, so that it need not be copied again and again */ };

/* Most are small, and there is room. */
static inline void *allocate(Context *context, uint64_t bytes) {
    Bump *bump = &context->bump[bytes <= 8 * SMALL_WORDS ? bytes / 8 : 0]; /* there is none of no words */
    if (bump->next == bump->end) return esk_allocate(context, bytes, TAG_CONTINUATION);
    Object *object = (Object *)(void *)bump->next;
    bump->next += bytes;
    *object = (Object){.type = TAG_CONTINUATION};
    return object;
}

/* What lies from `low` on, in the frame that `callee` returns to and all above it, as a segment; or what is shared
 * already, where that frame is among it. */
__attribute__((no_sanitize_address)) static inline Segment *share(Context *context, Frame *callee, char *low) {
    Entry *entry = context->entry;
    Segment *parent = entry->captured;
    char *outer = (char *)callee->caller, *end = parent ? parent->low : entry->base;
    if (callee->back == esk_underflow || callee->caller <= callee || outer >= end || (uintptr_t)outer & 7)
        return parent;
    uint64_t bytes = (uint64_t)(end - low);
    Segment *segment = allocate(context, sizeof *segment + bytes);
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

__attribute__((no_sanitize_address)) static inline Segment *share_all(Context *context, Frame *callee, char *low) {
    char *end = context->entry->captured ? context->entry->captured->low : context->entry->base;
    Frame *far = callee;
    while (far->caller > far && (char *)far->caller < end && (char *)far->caller - (char *)callee < PIECE)
        far = far->caller;
    if (far != callee && far->caller > far && end - (char *)far->caller > PIECE)
        share(context, far, (char *)far->caller);
    return share(context, callee, low);
}

/* ---- capture and throw ------------------------------------------------------------------------------------------ */

/* What is left to do where `frame` returns, with the stack pointer at `low` then. */
__attribute__((used, visibility("hidden"), no_sanitize_address)) Value esk_make_continuation(Context *context,
                                                                                            Frame *frame, char *low) {
    bool once = context->once;
    context->once = 0;
    Segment *segment = once ? NULL : share_all(context, frame, low);
    uint64_t bytes = once ? 0 : (uint64_t)((segment ? segment->low : context->entry->base) - low);
    Continuation *continuation = allocate(context, sizeof *continuation + bytes);
    if (once) continuation->head.flags = FLAG_ONCE;
    continuation->handlers = context->handlers;
    continuation->winders = context->winders;
    continuation->parameters = context->parameters;
    continuation->entry = context->entry->id;
    continuation->base = context->entry->form ? context->entry->base : NULL;
    continuation->segment = segment;
    continuation->back = frame->back;
    continuation->low = low;
    continuation->bytes = bytes;
    const uint64_t *registers = saved_registers(frame);
    for (int i = 0; i < SAVED; i++) continuation->registers[i] = registers[i];
    continuation->registers[SAVED] = (uint64_t)(uintptr_t)frame->caller;
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
__attribute__((noinline)) static _Noreturn void restore(const Continuation *continuation, const Segment *there,
                                                        char *dead, Value value) {
    esk_wipe(dead, continuation->low);
    for (const Segment *segment = continuation->segment; segment != there; segment = segment->parent)
        copy_words(segment->low, segment->frames, segment->bytes);
    copy_words(continuation->low, continuation->slice, continuation->bytes);
    esk_resume(continuation->registers, continuation->low, continuation->back, value);
}

__attribute__((noinline)) static _Noreturn void descend(const Continuation *continuation, const Segment *there,
                                                        bool wipe, Value value) {
    char *here = stack_pointer(), *target = continuation->low - 1024;
    if (here > target) {
        volatile char *room = alloca((size_t)(here - target));
        *room = 0;
        __asm__ volatile("" : : "r"(room) : "memory");
    }
    restore(continuation, there, wipe ? __builtin_frame_address(0) : continuation->low, value);
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

/* Go on with a continuation that has no frames of its own. Those shared below it, or from where it goes on, are
 * left now. */
__attribute__((noinline)) static _Noreturn void leave_to(Context *context, const Continuation *continuation,
                                                         Value value) {
    Segment *shared = context->entry->captured;
    bool beside = continuation->back == esk_underflow;
    while (shared && (shared->low < continuation->low || (shared->low == continuation->low && !beside)))
        shared = shared->parent;
    context->entry->captured = shared;
    if (context->failed) {
        context->failed = false;
        esk_wipe(__builtin_frame_address(0), continuation->low);
    }
    esk_resume(continuation->registers, continuation->low, continuation->back, value);
}

_Noreturn void esk_throw(Context *context, Value target, Value value) {
    if (!esk_is(target, TAG_CONTINUATION)) esk_wrong_type(context, "%throw", 1, target, "a continuation");
    Continuation *continuation = esk_pointer(target);
    if (!context->entry || (continuation->entry != context->entry->id && !fits(context, continuation))) {
        bool runs = false;
        for (Entry *entry = context->entry; entry; entry = entry->outer) runs |= continuation->entry == entry->id;
        const char *why = runs ? "this continuation lies beyond a call from Python, which only a value or an "
                                 "exception leaves"
                               : "this continuation belongs to a call from Python that has ended";
        bool task = context->tasks != NULL; /* whose entry it is, or the thread's */
        if (task) why = "this continuation lies beyond a parallel form, a future or a thread, which only a value or a "
                        "condition leaves";
        esk_fail(context, ERROR_CONTROL, "call/cc", why, 1, target);
    }
    context->handlers = continuation->handlers;
    context->winders = continuation->winders;
    context->parameters = continuation->parameters;
    context->reentered = 1;
    esk_stack_restored(context, continuation->low);
    if (continuation->head.flags & FLAG_ONCE) leave_to(context, continuation, value);
    const Segment *there = common(continuation->segment, context->entry->captured);
    context->entry->captured = continuation->segment;
    bool wipe = context->failed;
    context->failed = false;
    if (there == continuation->segment && !continuation->bytes && !wipe) /* all frames are there as they were */
        esk_resume(continuation->registers, continuation->low, continuation->back, value);
    descend(continuation, there, wipe, value);
}

static Value throw(Context *context, Value continuation, Value value) { esk_throw(context, continuation, value); }

/* What most continuations do: nothing has to be left or entered on the way. */
static Value throw_near(Context *context, Value target, Value value) {
    if (!esk_is(target, TAG_CONTINUATION)) return ESK_FALSE;
    const Continuation *continuation = esk_pointer(target);
    if (esk_eq(continuation->winders, context->winders) && esk_eq(continuation->parameters, context->parameters))
        esk_throw(context, target, value);
    return ESK_FALSE;
}

static Continuation *need_continuation(Context *context, const char *who, Value value) {
    if (!esk_is(value, TAG_CONTINUATION)) esk_wrong_type(context, who, 1, value, "a continuation");
    return esk_pointer(value);
}

static Value winders_of(Context *context, Value value) {
    return need_continuation(context, "%continuation-winders", value)->winders;
}

static Value parameters_of(Context *context, Value value) {
    return need_continuation(context, "%continuation-parameters", value)->parameters;
}

const Primitive esk_continuation_primitives[] = {
    ESK_PRIMITIVE_2("%throw-near", "(%throw-near continuation value)", throw_near,
                    "The same as %throw if winders and parameters are those of the continuation; else it gives #f."),
    ESK_PRIMITIVE_1("%continuation-winders", "(%continuation-winders continuation)", winders_of,
                    "The winders that were active where the continuation was captured."),
    ESK_PRIMITIVE_1("%continuation-parameters", "(%continuation-parameters continuation)", parameters_of,
                    "The bindings of parameters that were in force where the continuation was captured."),
    ESK_PRIMITIVE_2("%throw", "(%throw continuation value)", throw,
                    "Goes on where the continuation was captured, as if that had returned the value."),
    {0},
};
