/* Every number of value.h that compiled code or Python needs, by name, so that each stands in one place. */
#include "hostcalls.h"
#include "lexer.h"
#include "value.h"

#define NUMBER(name) {#name, name},
#define SIZE(type) {#type, sizeof(type)},
#define OFFSET(type, field) {#type "." #field, offsetof(type, field)},

const struct { const char *name; int64_t value; } esk_layout[] = {
#define X(name, number, pointer, word) {"TAG_" #name, number},
    ESK_TAGS(X)
#undef X
    NUMBER(TAG_COUNT) {"POINTER_TAGS", (uint32_t)POINTER_TAGS},
    NUMBER(SPECIAL_UNSPECIFIED) NUMBER(SPECIAL_EOF) NUMBER(SPECIAL_DEFAULT) NUMBER(SPECIAL_UNDEFINED)
    NUMBER(REGION_MARK) NUMBER(FLAG_LITERAL) NUMBER(FLAG_NEGATIVE) NUMBER(FLAG_UNINTERNED)
    NUMBER(INSIDE_HOST) NUMBER(INSIDE_SCHEME) NUMBER(INSIDE_PYTHON)
    NUMBER(CARD_SHIFT) NUMBER(SMALL_WORDS) NUMBER(SPILL_WORDS) NUMBER(DIRECT_ARGUMENTS) NUMBER(EXTRA_ARGUMENTS)
    NUMBER(CALL_0) NUMBER(CALL_1) NUMBER(CALL_2) NUMBER(CALL_N) NUMBER(CALL_ENTRY)
#define X(name, word) NUMBER(HEAP_##name)
    ESK_HEAP_STATISTICS(X)
#undef X
#define X(name, symbol) NUMBER(ERROR_##name)
    ESK_ERRORS(X)
#undef X
    {"HOST_RAISES", (int64_t)HOST_RAISES}, {"HOST_EXITS", (int64_t)HOST_EXITS},
#define X(name, number) NUMBER(TOKEN_##name)
    ESK_TOKENS(X)
#undef X

    SIZE(Value) SIZE(Object) SIZE(Pair) SIZE(String) SIZE(Vector) SIZE(Bytevector) SIZE(Symbol) SIZE(Bignum)
    SIZE(Couple) SIZE(Box) SIZE(Values) SIZE(RecordType) SIZE(Record) SIZE(Generic) SIZE(Handle) SIZE(Closure)
    SIZE(Procedure) SIZE(Primitive) SIZE(Context) SIZE(Bump)

    OFFSET(Value, tag) OFFSET(Value, bits)
    OFFSET(Object, type) OFFSET(Object, a) OFFSET(Object, b) OFFSET(Object, flags) OFFSET(Object, count)
    OFFSET(Pair, car) OFFSET(Pair, cdr)
    OFFSET(String, length) OFFSET(String, chars)
    OFFSET(Vector, length) OFFSET(Vector, items)
    OFFSET(Bytevector, length) OFFSET(Bytevector, bytes)
    OFFSET(RegionMemory, next) OFFSET(RegionMemory, end) OFFSET(RegionMemory, bytes) OFFSET(RegionMemory, count)
    OFFSET(Symbol, hash) OFFSET(Symbol, name)
    OFFSET(Bignum, limbs)
    OFFSET(Couple, first) OFFSET(Couple, second)
    OFFSET(Box, value)
    OFFSET(Values, items)
    OFFSET(RecordType, name) OFFSET(RecordType, fields)
    OFFSET(Record, type) OFFSET(Record, fields)
    OFFSET(Generic, fields)
    OFFSET(Handle, number)
    OFFSET(Closure, entry) OFFSET(Closure, procedure) OFFSET(Closure, captured)
    OFFSET(Procedure, name) OFFSET(Procedure, signature) OFFSET(Procedure, min) OFFSET(Procedure, max)
    OFFSET(Procedure, function) OFFSET(Procedure, source) OFFSET(Procedure, doc) OFFSET(Procedure, place)
    OFFSET(Procedure, unit) OFFSET(Procedure, number)
    OFFSET(Bump, next) OFFSET(Bump, end)
    OFFSET(Context, stack_limit) OFFSET(Context, extra) OFFSET(Context, handlers) OFFSET(Context, winders)
    OFFSET(Context, parameters) OFFSET(Context, once) OFFSET(Context, cards) OFFSET(Context, bump)
    OFFSET(Context, spill)
    OFFSET(Context, raise) OFFSET(Context, leave) OFFSET(Context, input) OFFSET(Context, output) OFFSET(Context, error)
    OFFSET(Context, interrupted) OFFSET(Context, inside)
    OFFSET(Context, extra_count) OFFSET(Context, identities)
    OFFSET(Context, host_data) OFFSET(Context, host)
    {NULL, 0},
};

/* What a person calls each type, by tag; the symbols of the kinds of errors. */
const char *const esk_tag_words[TAG_COUNT + 1] = {
#define X(name, number, pointer, word) [number] = word,
    ESK_TAGS(X)
#undef X
};

const char *const esk_error_symbols[] = {
#define X(name, symbol) symbol,
    ESK_ERRORS(X)
#undef X
    NULL,
};
