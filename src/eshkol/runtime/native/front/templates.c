/* Calls of ops that come again: the nodes that a call makes are made in C, as they were learnt from an earlier one.
 *
 * What an op makes of tensors depends on their shapes and dtypes, which of them are the same, and on the other
 * arguments; never on values, but for errors. So the second time that a call of a kind is met, Python carries it out
 * once more on placeholders (tensors/learning.py) and gives what came of it as a list of steps. From then on such calls
 * are carried out here, step by step: nodes are made or found as ever, with the user's line and all that they have of
 * their inputs. What looks at values, draws or is out of the ordinary in another way is not learnt, and neither is a
 * call with arguments that are not told apart here; errors are left to the general way. */
#include "front.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 64, MOST_WORDS = 448, MOST_STEPS = 192, DEEPEST = 4, LONGEST_TEXT = 32, TABLE = 4096, MET = 1024 };

typedef struct {
    Known known;
    Size first, count; /* of its inputs, among the places of the template */
    bool refuses;      /* its row has something to say about values that are known */
} Step;

typedef struct { /* everything by number: inputs, then constants, then steps */
    uint64_t hash;
    uint64_t *words;
    Size length;
    Size users;     /* the table, and calls at work */
    Object *op;     /* which the words name by its address */
    Object *facts;  /* what Python gave, which keeps all that the steps refer to; NULL: such calls are not taken */
    Step *steps;
    int32_t *places;
    Size inputs, constants, step_count, result_count;
    int32_t *results;
    Object *kind;   /* None: one result; else the type of what holds them */
    Object *checks; /* (place, function) of values that are looked at, where they are known */
    Object *floats; /* the dtype of floats that are given none, or None where it does not matter */
    bool window;    /* others would give a window into the first argument */
    Object *pair;   /* the op, where its result has two rows that could be taken for values and places; or None */
} Template;

static Template *templates[TABLE];
static Size learnt;
static uint64_t met[MET]; /* hashes of calls that were met, by themselves: nothing is kept for a call that comes once */

static void released(Template *one)
{
    if (--one->users) return;
    free(one->words);
    free(one->steps);
    free(one->places);
    free(one->results);
    dropped(one->op);
    dropped(one->facts);
    free(one);
}

/* ---- what call it is -------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t words[MOST_WORDS];
    Size count;
    Node *inputs[MOST_INPUTS]; /* references */
    Size input_count;
} Call;

static bool say(Call *call, uint64_t word)
{
    if (call->count == MOST_WORDS) return false;
    call->words[call->count++] = word;
    return true;
}

enum { TENSOR = 1, NODE, SEEN, FLOAT, INTEGER, OBJECT, TEXT, TUPLE, LIST, SLICE, NAMED };
#define TAGGED(tag, number) ((uint64_t)(tag) << 56 | (uint64_t)(number))

static bool say_input(Call *call, Node *node, int tag)
{
    for (Size k = 0; k < call->input_count; k++)
        if (call->inputs[k] == node) return say(call, TAGGED(SEEN, (uint64_t)tag << 32 | (uint64_t)k));
    if (call->input_count == MOST_INPUTS || node->outs != helper.none) return false;
    call->inputs[call->input_count++] = (Node *)held(&node->head);
    Size axes = python.PyTuple_Size(node->shape);
    if (!say(call, TAGGED(tag, axes)) || !say(call, (uint64_t)(uintptr_t)node->dtype)) return false;
    for (Size k = 0; k < axes; k++) {
        Object *extent = python.PyTuple_GetItem(node->shape, k);
        if (extent->type != helper.int_ || !say(call, (uint64_t)python.PyLong_AsLongLong(extent))) return false;
    }
    return true;
}

static bool say_text(Call *call, Object *text, int tag)
{
    Size length;
    const char *bytes = python.PyUnicode_AsUTF8AndSize(text, &length);
    if (!bytes) python.PyErr_Clear(); /* half a character */
    if (!bytes || length > LONGEST_TEXT) return false;
    uint64_t words[LONGEST_TEXT / 8] = {0};
    memcpy(words, bytes, (size_t)length);
    if (!say(call, TAGGED(tag, length))) return false;
    for (Size k = 0; k < (length + 7) / 8; k++)
        if (!say(call, words[k])) return false;
    return true;
}

/* False: such a call is not told apart from others here, or there is an error. */
static bool say_argument(Call *call, Object *given, int depth)
{
    Object *type = given->type;
    if (type == helper.tensor) {
        Node *node = (Node *)node_of(given);
        return node && say_input(call, node, TENSOR);
    }
    if (given == helper.none || type == helper.bool_ || type == helper.dtype || given == helper.ellipsis)
        return say(call, TAGGED(OBJECT, 0)) && say(call, (uint64_t)(uintptr_t)given); /* they live for ever */
    if (type == helper.int_) {
        int beyond = 0;
        long long number = python.PyLong_AsLongLongAndOverflow(given, &beyond);
        return !beyond && say(call, TAGGED(INTEGER, 0)) && say(call, (uint64_t)number);
    }
    if (type == helper.float_) {
        double number = python.PyFloat_AsDouble(given);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits); /* tells 0.0 from -0.0 */
        return say(call, TAGGED(FLOAT, 0)) && say(call, bits);
    }
    if (type == helper.text) return say_text(call, given, TEXT);
    if (is_node(given)) return say_input(call, (Node *)given, NODE);
    if (depth == DEEPEST) return false;
    if (type == helper.plain_tuple || type == helper.list) {
        bool is_list = type == helper.list;
        Size length = is_list ? python.PyList_Size(given) : python.PyTuple_Size(given);
        if (!say(call, TAGGED(is_list ? LIST : TUPLE, length))) return false;
        for (Size k = 0; k < length; k++) {
            Object *part = is_list ? python.PyList_GetItem(given, k) : python.PyTuple_GetItem(given, k);
            if (!part) return false;
            held(part); /* of a list that others may change */
            bool said = say_argument(call, part, depth + 1);
            dropped(part);
            if (!said) return false;
        }
        return true;
    }
    if (type == helper.slice) {
        Object *names[] = {name_of.start, name_of.stop, name_of.step};
        if (!say(call, TAGGED(SLICE, 0))) return false;
        for (int k = 0; k < 3; k++) {
            Object *part = python.PyObject_GetAttr(given, names[k]);
            bool said = part && (part == helper.none || part->type == helper.int_) && say_argument(call, part, DEEPEST);
            dropped(part);
            if (!said) return false;
        }
        return true;
    }
    return false;
}

static bool say_call(Call *call, Object *op, Object *args, Object *named)
{
    Size length = python.PyTuple_Size(args);
    if (!say(call, (uint64_t)(uintptr_t)op) || !say(call, TAGGED(TUPLE, length))) return false;
    for (Size k = 0; k < length; k++)
        if (!say_argument(call, python.PyTuple_GetItem(args, k), 0)) return false;
    Size at = 0;
    Object *name, *value;
    while (python.PyDict_Next(named, &at, &name, &value)) {
        if (name->type != helper.text || !say_text(call, name, NAMED)) return false;
        held(value);
        bool said = say_argument(call, value, 0);
        dropped(value);
        if (!said) return false;
    }
    return true;
}

static void forget_call(Call *call)
{
    for (Size k = 0; k < call->input_count; k++)
        dropped(&call->inputs[k]->head);
}

static uint64_t hash_of(const Call *call)
{
    uint64_t hash = 0;
    for (Size k = 0; k < call->count; k++) {
        hash = (hash ^ call->words[k]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

/* ---- what was learnt -------------------------------------------------------------------------------------------- */

static Template **place_of(const Call *call, uint64_t hash)
{
    Size at = (Size)(hash >> 20) % TABLE;
    for (; templates[at]; at = (at + 1) % TABLE) {
        Template *one = templates[at];
        if (one->hash == hash && one->length == call->count
            && !memcmp(one->words, call->words, (size_t)call->count * sizeof *call->words))
            break;
    }
    return &templates[at];
}

static bool numbers(Object *tuple, int32_t *into, Size count)
{
    for (Size k = 0; k < count; k++)
        into[k] = (int32_t)python.PyLong_AsLongLong(python.PyTuple_GetItem(tuple, k));
    return !python.PyErr_Occurred();
}

/* Steps are (op, attrs, shape, dtype, outs, inputs, refuses). */
static bool take_steps(Template *made, Object *steps)
{
    Size total = 0;
    made->step_count = python.PyTuple_Size(steps);
    for (Size k = 0; k < made->step_count; k++)
        total += python.PyTuple_Size(python.PyTuple_GetItem(python.PyTuple_GetItem(steps, k), 5));
    made->steps = calloc((size_t)made->step_count + 1, sizeof *made->steps);
    made->places = calloc((size_t)total + 1, sizeof *made->places);
    if (!made->steps || !made->places) return python.PyErr_NoMemory(), false;
    Size used = 0;
    for (Size k = 0; k < made->step_count; k++) {
        Object *facts = python.PyTuple_GetItem(steps, k), *inputs = python.PyTuple_GetItem(facts, 5);
        Step *step = &made->steps[k];
        step->known.op = python.PyTuple_GetItem(facts, 0);
        step->known.attrs = python.PyTuple_GetItem(facts, 1);
        step->known.shape = python.PyTuple_GetItem(facts, 2);
        step->known.dtype = python.PyTuple_GetItem(facts, 3);
        step->known.outs = python.PyTuple_GetItem(facts, 4);
        step->known.attrs_hash = step->known.attrs == helper.none ? 0 : python.PyObject_Hash(step->known.attrs);
        step->refuses = python.PyTuple_GetItem(facts, 6) == helper.true_;
        step->first = used;
        step->count = python.PyTuple_Size(inputs);
        if (step->known.attrs_hash == -1 || !numbers(inputs, made->places + used, step->count)) return false;
        used += step->count;
    }
    return true;
}

/* What Python gave: None, or (constants, steps, results, kind, checks, floats, window, pair). */
static Template *learn(const Call *call, uint64_t hash, Object *op, Object *facts)
{
    Template *made = calloc(1, sizeof *made);
    if (made) made->words = malloc((size_t)call->count * sizeof *made->words);
    if (!made || !made->words) {
        free(made);
        python.PyErr_NoMemory();
        return NULL;
    }
    memcpy(made->words, call->words, (size_t)call->count * sizeof *made->words);
    made->hash = hash;
    made->length = call->count;
    made->users = 1;
    made->op = held(op);
    made->inputs = call->input_count;
    if (facts == helper.none) return made;
    made->facts = held(facts);
    Object *results = python.PyTuple_GetItem(facts, 2);
    made->constants = python.PyTuple_Size(python.PyTuple_GetItem(facts, 0));
    made->result_count = python.PyTuple_Size(results);
    made->results = calloc((size_t)made->result_count + 1, sizeof *made->results);
    bool whole = made->results && numbers(results, made->results, made->result_count);
    whole = whole && take_steps(made, python.PyTuple_GetItem(facts, 1));
    made->kind = python.PyTuple_GetItem(facts, 3);
    made->checks = python.PyTuple_GetItem(facts, 4);
    made->floats = python.PyTuple_GetItem(facts, 5);
    made->window = python.PyTuple_GetItem(facts, 6) == helper.true_;
    made->pair = python.PyTuple_GetItem(facts, 7);
    if (whole && made->constants + made->step_count <= MOST_STEPS) return made;
    if (!python.PyErr_Occurred()) { /* too long: known as not to be taken */
        made->facts = NULL;
        dropped(facts);
        return made;
    }
    released(made);
    return NULL;
}

/* Let a call be known from now on; NULL without an error: it is not to be. */
static Template *entered(const Call *call, uint64_t hash, Object *op, Object *args, Object *named)
{
    if (met[hash % MET] != hash) {
        met[hash % MET] = hash;
        return NULL;
    }
    Object *facts = python.PyObject_CallFunctionObjArgs(helper.learn, op, args, named, NULL);
    Template *made = facts ? learn(call, hash, op, facts) : NULL;
    dropped(facts);
    if (!made) return NULL;
    if (learnt >= TABLE / 2) { /* those in use come again soon */
        learnt = 0;
        for (Size k = 0; k < TABLE; k++)
            if (templates[k]) {
                Template *old = templates[k];
                templates[k] = NULL;
                released(old); /* which may run other code: then it enters what it likes */
            }
    }
    Template **place = place_of(call, hash);
    if (*place) { /* other code ran meanwhile */
        released(made);
        return *place;
    }
    *place = made;
    learnt++;
    return made;
}

/* ---- carried out ------------------------------------------------------------------------------------------------ */

static bool checked(const Template *template, Object *const *values)
{
    for (Size k = 0, count = python.PyTuple_Size(template->checks); k < count; k++) {
        Object *check = python.PyTuple_GetItem(template->checks, k);
        long long place = python.PyLong_AsLongLong(python.PyTuple_GetItem(check, 0));
        Object *function = python.PyTuple_GetItem(check, 1);
        Object *done = python.PyObject_CallFunctionObjArgs(helper.examined, values[place], function, NULL);
        dropped(done);
        if (!done) return false;
    }
    return true;
}

static bool holds_now(const Template *template)
{
    if (template->floats == helper.none) return true;
    Object *now = python.PyObject_CallFunctionObjArgs(helper.floats, NULL);
    bool same = now && python.PyObject_RichCompareBool(now, template->floats, COMPARE_EQUAL) == 1;
    dropped(now);
    return same;
}

static bool note_window(const Template *template, Object *made, Object *op, Object *args, Object *named)
{
    if (template->window) {
        if (template->kind == helper.none) return look_through(made, python.PyTuple_GetItem(args, 0));
        Object *done = python.PyObject_CallFunctionObjArgs(helper.note, op, made, args, named, NULL);
        dropped(done);
        return done != NULL;
    }
    if (template->pair != helper.none) become(&((Handle *)made)->pair, held(template->pair));
    return true;
}

static Object *wrapped(const Template *template, Object *const *values)
{
    if (template->kind == helper.none) return handle_of(held(values[template->results[0]]));
    Object *all = python.PyList_New(template->result_count);
    for (Size k = 0; all && k < template->result_count; k++) {
        Object *made = handle_of(held(values[template->results[k]]));
        if (made)
            python.PyList_SetItem(all, k, made);
        else
            become(&all, NULL);
    }
    if (all && template->kind == helper.plain_tuple) become(&all, python.PyList_AsTuple(all));
    return all;
}

/* The result; NULL, with an error or without. */
static Object *carried_out(Template *template, Call *call)
{
    if (template->step_count == 1 && call->input_count == 1) {
        const Known *known = &template->steps[0].known;
        Object *leaf = seen_as(call->inputs[0], known);
        if (!leaf && !python.PyErr_Occurred()) leaf = turned_of(call->inputs[0], known);
        if (!leaf && !python.PyErr_Occurred()) leaf = extreme_of(call->inputs[0], known);
        if (leaf || python.PyErr_Occurred()) return leaf ? bare_handle(leaf) : NULL;
    }
    Object *values[MOST_INPUTS + MOST_STEPS];
    Size count = 0;
    for (Size k = 0; k < call->input_count; k++)
        values[count++] = &call->inputs[k]->head;
    for (Size k = 0; k < template->constants; k++)
        values[count++] = python.PyTuple_GetItem(python.PyTuple_GetItem(template->facts, 0), k);
    Size before = count;
    bool whole = true;
    for (Size k = 0; whole && k < template->step_count; k++) {
        const Step *step = &template->steps[k];
        Object *inputs = python.PyTuple_New(step->count), *made = NULL;
        for (Size j = 0; inputs && j < step->count; j++)
            python.PyTuple_SetItem(inputs, j, held(values[template->places[step->first + j]]));
        if (inputs) made = make_known(&step->known, inputs);
        whole = made != NULL;
        if (whole) values[count++] = made;
        if (whole && step->refuses) {
            const Known *known = &step->known;
            Object *done = python.PyObject_CallFunctionObjArgs(helper.refused, known->op, known->attrs, inputs, NULL);
            whole = done != NULL;
            dropped(done);
        }
        dropped(inputs);
    }
    whole = whole && checked(template, values);
    Object *result = whole ? wrapped(template, values) : NULL;
    while (count > before)
        dropped(values[--count]);
    return result;
}

static Object *at_line(Template *template, Call *call, Object *op, Object *args, Object *named, Object *site)
{
    Object *outer = at_work.site;
    at_work.site = held(site);
    at_work.urgent = false;
    Object *made = holds_now(template) ? carried_out(template, call) : NULL;
    if (made && at_work.urgent) {
        Object *done = python.PyObject_CallFunctionObjArgs(helper.compute_now, made, NULL);
        if (!done) become(&made, NULL);
        dropped(done);
    }
    if (made && (template->window || template->pair != helper.none) && !note_window(template, made, op, args, named))
        become(&made, NULL);
    become(&at_work.site, outer);
    return made;
}

Object *known_call(Object *op, Object *args, Object *named, Object *site)
{
    Call call;
    call.count = call.input_count = 0;
    Object *made = NULL;
    if (say_call(&call, op, args, named)) {
        uint64_t hash = hash_of(&call);
        Template *known = *place_of(&call, hash);
        if (!known) known = entered(&call, hash, op, args, named);
        if (known && known->facts) {
            known->users++;
            made = at_line(known, &call, op, args, named, site);
            released(known);
        }
    }
    forget_call(&call);
    if (!made && python.PyErr_Occurred() && python.PyErr_ExceptionMatches(helper.library_error))
        python.PyErr_Clear(); /* the general way says it, with all that belongs to it */
    return made;
}

/* again(op, args, named): the result of a call that is known; NotImplemented of any other, and of errors. */
static Object *again(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 3) return complain("again(op, args, named)");
    if (given[1]->type != helper.plain_tuple || given[2]->type != helper.dict) return held(helper.not_implemented);
    Object *site = site_now(), *made = site ? known_call(given[0], given[1], given[2], site) : NULL;
    dropped(site);
    return made || python.PyErr_Occurred() ? made : held(helper.not_implemented);
}

static Method methods[] = {
    {"again", again, FAST_CALL, "The result of a call that is known, or NotImplemented."},
    {NULL, NULL, 0, NULL},
};

bool open_templates(Object *module) { return add_methods(module, methods) == 0; }
