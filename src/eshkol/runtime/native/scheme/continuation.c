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

/* The stack is copied word by word where frames lie that others watch over: four at a time, the last perhaps twice. */
__attribute__((no_sanitize_address)) static inline void copy_words(char *to, const char *from, uint64_t bytes) {
    typedef struct { uint64_t words[4]; } Words;
    if (bytes < sizeof(Words)) {
        for (uint64_t i = 0; i < bytes; i += 8)
            *(uint64_t *)(void *)(to + i) = *(const uint64_t *)(const void *)(from + i);
        return;
    }
    const uint64_t last = bytes - sizeof(Words);
    for (uint64_t i = 0; i < last; i += sizeof(Words))
        *(Words *)(void *)(to + i) = *(const Words *)(const void *)(from + i);
    *(Words *)(void *)(to + last) = *(const Words *)(const void *)(from + last);
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
_Static_assert(SAVED + 1 == CALLEE_SAVED, "a segment has the registers, and the frame pointer behind them");
_Noreturn void esk_resume(const uint64_t *registers, char *low, const char *back, Value);

enum { PIECE = 2048 /* bytes: more than this is shared in two parts, so that it need not be copied again and again */ };

/* Most are small, and there is room. */
static inline void *allocate(Context *context, uint64_t bytes, uint64_t head, int type) {
    Bump *bump = &context->bump[bytes <= 8 * SMALL_WORDS ? bytes / 8 : 0]; /* there is none of no words */
    void *object = bump->next;
    if (bump->next == bump->end) object = esk_allocate(context, bytes, type);
    else bump->next += bytes;
    memcpy(object, &head, sizeof head);
    return object;
}

static inline uint64_t head_of(int type, int flags, uint32_t count) {
    Object object = {.type = (uint8_t)type, .flags = (uint8_t)flags, .count = count};
    uint64_t head;
    memcpy(&head, &object, sizeof head);
    return head;
}

/* What lies from `low` on, in the frame that `callee` returns to and all above it that is not shared yet. */
__attribute__((no_sanitize_address)) static inline Segment *make_segment(Context *context, const Frame *callee,
                                                                        char *low, int flags) {
    Entry *entry = context->entry;
    Segment *parent = entry->captured;
    char *end = parent ? parent->low : entry->base;
    uint64_t bytes = flags & FLAG_ONCE ? 0 : (uint64_t)(end - low);
    uint32_t depth = parent ? parent->head.count + 1 : 1;
    const uint64_t head = head_of(TAG_CONTINUATION, flags, depth);
    Segment *segment = allocate(context, sizeof *segment + bytes, head, TAG_CONTINUATION);
    segment->parent = parent;
    segment->back = callee->back;
    segment->low = low;
    segment->place = entry->place;
    segment->bytes = bytes;
    copy_words(segment->frames, low, bytes);
    return segment;
}

/* From now on the segment stands on the stack: who returns to it comes by the stub. */
static inline void push_segment(Context *context, Frame *callee, Segment *segment) {
    callee->back = esk_underflow;
    context->entry->captured = segment;
}

/* Whether the frame that `callee` returns to can be shared: it is there as a whole. */
static inline bool is_whole(const Context *context, const Frame *callee) {
    const Segment *parent = context->entry->captured;
    const char *outer = (const char *)callee->caller, *end = parent ? parent->low : context->entry->base;
    return callee->back != esk_underflow && callee->caller > callee && outer < end && !((uintptr_t)outer & 7);
}

/* Where the frames to be shared are many, those further out become a part of their own. */
__attribute__((no_sanitize_address)) static inline void share_far(Context *context, Frame *callee) {
    char *end = context->entry->captured ? context->entry->captured->low : context->entry->base;
    if (end - (char *)callee <= 2 * PIECE) return;
    Frame *far = callee;
    while (far->caller > far && (char *)far->caller < end && (char *)far->caller - (char *)callee < PIECE)
        far = far->caller;
    if (far == callee || !(far->caller > far) || end - (char *)far->caller <= PIECE || !is_whole(context, far)) return;
    Segment *segment = make_segment(context, far, (char *)far->caller, FLAG_PART);
    memset(segment->registers, 0, sizeof segment->registers);
    push_segment(context, far, segment);
}

/* ---- capture and throw ------------------------------------------------------------------------------------------ */

static const Procedure continuation_row = {
    .name = "continuation", .signature = "(continuation value ...)", .min = 0, .max = -1,
};

static inline bool is_continuation(Value value) {
    return esk_is(value, TAG_PROCEDURE) && ((Closure *)esk_pointer(value))->procedure == &continuation_row;
}

/* Where to go on when `frame` returns, with the stack pointer at `low` then. What is captured in tail position is where
 * the program goes on that was captured before: the registers are those again, too. */
__attribute__((no_sanitize_address)) static inline Segment *place_of(Context *context, Frame *frame, char *low) {
    Segment *captured = context->entry->captured;
    if (frame->back == esk_underflow && captured->low == low && !(captured->head.flags & FLAG_PART)) return captured;
    share_far(context, frame);
    bool shared = is_whole(context, frame);
    Segment *segment = make_segment(context, frame, low, shared ? 0 : FLAG_OWN);
    if (shared) push_segment(context, frame, segment);
    return segment;
}

static inline void note_registers(Segment *segment, const Frame *frame) {
    const uint64_t *registers = saved_registers(frame);
    for (int i = 0; i < SAVED; i++) segment->registers[i] = registers[i];
    segment->registers[SAVED] = (uint64_t)(uintptr_t)frame->caller;
}

/* Handlers, winders and parameters as one object, which most captures find as the last one left it. */
static inline Value dynamic_extent(Context *context) {
    const Values *known = esk_pointer(context->extent);
    if (known && known->items[EXTENT_HANDLERS].bits == context->handlers.bits &&
        known->items[EXTENT_WINDERS].bits == context->winders.bits &&
        known->items[EXTENT_PARAMETERS].bits == context->parameters.bits)
        return context->extent;
    const Value parts[EXTENT_PARTS] = {context->handlers, context->winders, context->parameters};
    return context->extent = esk_values(context, parts, EXTENT_PARTS);
}

static inline const Value *extent_of(const Closure *continuation) {
    return ((const Values *)esk_pointer(continuation->captured[CONTINUED_EXTENT]))->items;
}

/* What is left to do where `frame` returns, with the stack pointer at `low` then. */
__attribute__((used, visibility("hidden"), no_sanitize_address)) Value esk_make_continuation(Context *context,
                                                                                            Frame *frame, char *low) {
    bool once = context->once;
    context->once = 0;
    Segment *before = context->entry->captured;
    Segment *segment = once ? make_segment(context, frame, low, FLAG_OWN | FLAG_ONCE) : place_of(context, frame, low);
    if (segment != before) note_registers(segment, frame);
    Value extent = dynamic_extent(context);
    Closure *continuation = allocate(context, sizeof *continuation + CONTINUATION_PARTS * sizeof(Value),
                                     head_of(TAG_PROCEDURE, 0, CONTINUATION_PARTS), TAG_PROCEDURE);
    continuation->entry = esk_continuation_entry;
    continuation->procedure = &continuation_row;
    continuation->captured[CONTINUED_EXTENT] = extent;
    continuation->captured[CONTINUED_SEGMENT] = esk_make(TAG_CONTINUATION, (uint64_t)(uintptr_t)segment);
    context->reentered = 0;
    return esk_make(TAG_PROCEDURE, (uint64_t)(uintptr_t)continuation);
}

/* Frames that are left when memory has run out: what filled it must not be held by old words in the frames to come. The
 * caller's own frame lies below. */
__attribute__((no_sanitize_address, noinline)) void esk_wipe(char *from, char *to) {
    for (; from < to; from += 8) *(volatile uint64_t *)(void *)from = 0;
}

/* Called with its whole frame below the segment's. The frames from `dead` on are left for ever. */
__attribute__((noinline)) static _Noreturn void restore(const Segment *to, const Segment *there, char *dead,
                                                        Value value) {
    esk_wipe(dead, to->low);
    for (const Segment *segment = to; segment != there; segment = segment->parent)
        copy_words(segment->low, segment->frames, segment->bytes);
    esk_resume(to->registers, to->low, to->back, value);
}

__attribute__((noinline)) static _Noreturn void descend(const Segment *to, const Segment *there, bool wipe,
                                                        Value value) {
    char *here = __builtin_frame_address(0), *target = to->low - 1024;
    if (here > target) {
        volatile char *room = alloca((size_t)(here - target));
        *room = 0;
        __asm__ volatile("" : : "r"(room) : "memory");
    }
    restore(to, there, wipe ? __builtin_frame_address(0) : to->low, value);
}

/* The innermost segment that both have; null where that is none. */
static const Segment *common(const Segment *one, const Segment *other) {
    while (one != other) {
        if (one && (!other || one->head.count >= other->head.count)) one = one->parent;
        else other = other->parent;
    }
    return one;
}

/* Go on where there are no frames of its own. Those shared below it, or from where it goes on, are left now. */
__attribute__((noinline)) static _Noreturn void leave_to(Context *context, const Segment *to, Value value) {
    Segment *shared = context->entry->captured;
    bool beside = to->back == esk_underflow;
    while (shared && (shared->low < to->low || (shared->low == to->low && !beside))) shared = shared->parent;
    context->entry->captured = shared;
    if (context->failed) {
        context->failed = false;
        esk_wipe(__builtin_frame_address(0), to->low);
    }
    esk_resume(to->registers, to->low, to->back, value);
}

__attribute__((noinline, cold)) static _Noreturn void cannot_continue(Context *context, Value target,
                                                                     const Segment *segment) {
    bool runs = false;
    for (Entry *entry = context->entry; entry; entry = entry->outer) runs |= segment->place == entry->place;
    const char *why = runs ? "this continuation lies beyond a call from Python, which only a value or an "
                             "exception leaves"
                           : "this continuation belongs to a call from Python that has ended";
    bool task = context->tasks != NULL; /* whose entry it is, or the thread's */
    if (task) why = "this continuation lies beyond a parallel form, a future or a thread, which only a value or a "
                    "condition leaves";
    esk_fail(context, ERROR_CONTROL, "call/cc", why, 1, target);
}

static inline _Noreturn void go_on(Context *context, const Closure *continuation, Value value) {
    const Segment *to = esk_pointer(continuation->captured[CONTINUED_SEGMENT]);
    Entry *entry = context->entry;
    if (!entry || to->place != entry->place)
        cannot_continue(context, esk_make(TAG_PROCEDURE, (uint64_t)(uintptr_t)continuation), to);
    const Value *extent = extent_of(continuation);
    context->handlers = extent[EXTENT_HANDLERS];
    context->winders = extent[EXTENT_WINDERS];
    context->parameters = extent[EXTENT_PARAMETERS];
    context->reentered = 1;
    if (context->overflowing) esk_stack_restored(context, to->low);
    if (to->head.flags & FLAG_ONCE) leave_to(context, to, value);
    const Segment *there = common(to, entry->captured);
    entry->captured = to->parent;
    bool wipe = context->failed;
    context->failed = false;
    if (there == to && !wipe) /* all frames are there as they were */
        esk_resume(to->registers, to->low, to->back, value);
    descend(to, there, wipe, value);
}

_Noreturn void esk_throw(Context *context, Value target, Value value) {
    if (!is_continuation(target)) esk_wrong_type(context, "%throw", 1, target, "a continuation");
    go_on(context, esk_pointer(target), value);
}

/* What most continuations do: nothing has to be left or entered on the way. Else it comes back. */
void esk_continue(Context *context, const Closure *continuation, Value value) {
    const Value *extent = extent_of(continuation);
    if (extent[EXTENT_WINDERS].bits == context->winders.bits
        && extent[EXTENT_PARAMETERS].bits == context->parameters.bits)
        go_on(context, continuation, value);
}

static Value throw(Context *context, Value continuation, Value value) { esk_throw(context, continuation, value); }

static Value throw_near(Context *context, Value target, Value value) {
    if (is_continuation(target)) esk_continue(context, esk_pointer(target), value);
    return ESK_FALSE;
}

static Value part_of(Context *context, const char *who, Value value, int part) {
    if (!is_continuation(value)) esk_wrong_type(context, who, 1, value, "a continuation");
    return extent_of(esk_pointer(value))[part];
}

static Value winders_of(Context *context, Value value) {
    return part_of(context, "%continuation-winders", value, EXTENT_WINDERS);
}

static Value parameters_of(Context *context, Value value) {
    return part_of(context, "%continuation-parameters", value, EXTENT_PARAMETERS);
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
