/* Procedures on tensors that were compiled with a program: vectors of numbers in, vectors of numbers out.
 *
 * Each has the tables of its plan (../model.h), as exported libraries have them, and a state that is made when it is
 * first called and lives as long as the process. lib/eshkol/ahead.esk has looked at the numbers before they come here;
 * they are looked at again all the same, for whoever calls %run-built otherwise. */
#include "../model.h"
#include "program.h"

#include <stdlib.h>

/* A program without models is linked without them. A linker then drops what is here, too, but where a sanitizer makes
 * it keep everything. */
#pragma weak eshkol_model_check
#pragma weak eshkol_model_error
#pragma weak eshkol_model_new
#pragma weak eshkol_model_run

#define STACK_FOR_KERNELS ((int64_t)1 << 20) /* which keep tiles there, and do not ask for room */

static const int8_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 4, 8};
static eshkol_model **states; /* of all, by number */

/* Bytes of an array, so that the next one begins where any number may. */
static size_t room(const Numbers *one) { return ((size_t)(one->count * sizes[one->kind]) + 63) / 64 * 64 + 64; }

static void put(Context *context, const char *who, const Numbers *of, const Value *items, void *to) {
    for (int64_t i = 0; i < of->count; i++) {
        Value item = items[i];
        bool is_float = of->kind >= NUMBER_FLOAT32;
        if (item.tag != (is_float ? TAG_FLONUM : of->kind == NUMBER_BOOL ? TAG_BOOLEAN : TAG_FIXNUM))
            esk_fail(context, ERROR_TYPE, who, "this is not a number of the kind that it was compiled for:", 1, item);
        switch (of->kind) {
        case NUMBER_BOOL: ((uint8_t *)to)[i] = !esk_is_false(item); break;
        case NUMBER_INT8:
        case NUMBER_UINT8: ((uint8_t *)to)[i] = (uint8_t)esk_integer(item); break;
        case NUMBER_INT16:
        case NUMBER_UINT16: ((uint16_t *)to)[i] = (uint16_t)esk_integer(item); break;
        case NUMBER_INT32:
        case NUMBER_UINT32: ((uint32_t *)to)[i] = (uint32_t)esk_integer(item); break;
        case NUMBER_INT64: ((int64_t *)to)[i] = esk_integer(item); break;
        case NUMBER_FLOAT32: ((float *)to)[i] = (float)esk_double(item); break;
        default: ((double *)to)[i] = esk_double(item);
        }
    }
}

static Value taken(enum NumberKind kind, const void *from, int64_t i) {
    switch (kind) {
    case NUMBER_BOOL: return esk_boolean(((const uint8_t *)from)[i] != 0);
    case NUMBER_INT8: return esk_fixnum(((const int8_t *)from)[i]);
    case NUMBER_INT16: return esk_fixnum(((const int16_t *)from)[i]);
    case NUMBER_INT32: return esk_fixnum(((const int32_t *)from)[i]);
    case NUMBER_INT64: return esk_fixnum(((const int64_t *)from)[i]);
    case NUMBER_UINT8: return esk_fixnum(((const uint8_t *)from)[i]);
    case NUMBER_UINT16: return esk_fixnum(((const uint16_t *)from)[i]);
    case NUMBER_UINT32: return esk_fixnum(((const uint32_t *)from)[i]);
    case NUMBER_FLOAT32: return esk_flonum(((const float *)from)[i]);
    default: return esk_flonum(((const double *)from)[i]);
    }
}

static eshkol_model *state_of(Context *context, const BuiltModel *model, int64_t number) {
    if (!states) states = calloc((size_t)esk_program.model_count, sizeof *states);
    if (states && !states[number]) {
        if (eshkol_model_check(model->plan))
            esk_fail(context, ERROR_SYSTEM, model->name, eshkol_model_error(model->plan, ESHKOL_MODEL_CPU), 0);
        states[number] = eshkol_model_new(model->plan, 0);
    }
    if (!states || !states[number]) esk_fail(context, ERROR_MEMORY, model->name, "there is no memory for it", 0);
    return states[number];
}

Value esk_run_built(Context *context, Value number, Value arrays) {
    int64_t at = esk_is(number, TAG_FIXNUM) ? esk_integer(number) : -1;
    if (at < 0 || at >= esk_program.model_count)
        esk_fail(context, ERROR_RANGE, "%run-built", "there is no procedure of this number", 1, number);
    const BuiltModel *model = esk_program.models[at];
    if (!esk_is(arrays, TAG_VECTOR)) esk_wrong_type(context, model->name, 2, arrays, "a vector");
    const Vector *given = esk_pointer(arrays);
    if (given->length != model->input_count)
        esk_fail(context, ERROR_RANGE, model->name, "it was compiled for another number of arguments:", 1, arrays);
    if (context->stack_end && (char *)__builtin_frame_address(0) - context->stack_end < STACK_FOR_KERNELS)
        esk_fail(context, ERROR_STACK, model->name, "the stack is used up: recursion is too deep", 0);
    eshkol_model *state = state_of(context, model, at);
    int64_t count = model->input_count + model->output_count;
    size_t bytes = 64 + (size_t)count * sizeof(void *);
    for (int64_t k = 0; k < model->input_count; k++) bytes += room(&model->inputs[k]);
    for (int64_t k = 0; k < model->output_count; k++) bytes += room(&model->outputs[k]);
    /* Memory of the collector's: what fails on the way leaves nothing behind. */
    Bytevector *memory = esk_pointer(esk_make_bytevector(context, (int64_t)bytes, 0));
    void **pointers = (void **)(void *)memory->bytes;
    uintptr_t next = ((uintptr_t)(pointers + count) + 63) / 64 * 64;
    for (int64_t k = 0; k < count; k++) {
        bool is_input = k < model->input_count;
        const Numbers *one = is_input ? &model->inputs[k] : &model->outputs[k - model->input_count];
        pointers[k] = (void *)next;
        next += room(one);
        if (!is_input) continue;
        if (!esk_is(given->items[k], TAG_VECTOR) || ((Vector *)esk_pointer(given->items[k]))->length != one->count)
            esk_wrong_type(context, model->name, (int)k + 1, given->items[k], "a vector of as many numbers");
        put(context, model->name, one, ((Vector *)esk_pointer(given->items[k]))->items, pointers[k]);
    }
    int code = eshkol_model_run(state, (const void *const *)pointers, pointers + model->input_count);
    if (code) esk_fail(context, ERROR_RANGE, model->name, eshkol_model_error(model->plan, code), 0);
    Value results = esk_make_vector(context, model->output_count, ESK_FALSE);
    for (int64_t k = 0; k < model->output_count; k++) {
        const Numbers *one = &model->outputs[k];
        Value result = esk_make_vector(context, one->count, ESK_FALSE);
        esk_store(context, &((Vector *)esk_pointer(results))->items[k], result);
        for (int64_t i = 0; i < one->count; i++)
            ((Vector *)esk_pointer(result))->items[i] = taken(one->kind, pointers[model->input_count + k], i);
    }
    return results;
}
