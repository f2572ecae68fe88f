/* What a graph that is to be computed is, but for its data: the nodes in order, its leaves and constants, and a key.
 *
 * Comes in: the nodes whose values are asked for. The walk ends at what has data. Goes out: everything by which
 * compiled code is found again (schedule/run/execute.py); or, where it is found, the values themselves. Two graphs have
 * the same key exactly if they are the same op by op, with inputs, attributes, shapes and dtypes alike; constants are
 * told apart by their dtypes alone. Ops and dtypes count by their addresses: they are rows of tables, and live as long
 * as the process. For gradients the walk goes on through what depends on a scope, up to its marks.
 *
 * Walks write into nodes which round met them, and under which number: one is at work at a time (callers hold the lock
 * of schedule/cache.py), and no code of Python's runs between a walk and the end of its use, but for the helpers below,
 * which walk by themselves. */
#include "front.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>

#define DONE ((uint64_t)1) /* in the stack: the inputs of this node have been looked at */

static uint32_t rounds;

typedef struct {
    Words order, leaves; /* the nodes to be computed, inputs first, and where the walk ended */
    Object *scope;       /* of gradients; else NULL */
    bool unfit;          /* a graph that does not tell its derivative by its structure alone */
} Walk;

static bool has(Node *node, Object *scope)
{
    return node->scopes != helper.no_scopes && python.PySet_Contains(node->scopes, scope) == 1;
}

static bool is_mark(Node *node, Object *scope)
{
    return node->op == helper.mark_op && !has((Node *)python.PyTuple_GetItem(node->inputs, 0), scope);
}

static bool is_leaf(Node *node, Object *scope)
{
    return node->data != helper.none && (!scope || !has(node, scope) || is_mark(node, scope));
}

/* Whether a user's rule, another machine or another transformation has a say in the derivative of a node. */
static bool is_unfit(Node *node, Object *scope)
{
    if (node->op == helper.placeholder_op || node->op == helper.buffer_op) return true;
    const Row *row = row_of(node->op);
    if (!row) return true;
    if (row->shared && !row->special && (node->scopes == helper.no_scopes || python.PySet_Size(node->scopes) == 1))
        return false;
    Object *fit = python.PyObject_CallFunctionObjArgs(helper.told_by_structure, node, scope, NULL);
    bool unfit = !fit || python.PyObject_IsTrue(fit) != 1;
    dropped(fit);
    return unfit;
}

/* False with an error. */
static bool walked(Walk *walk, Object *results, Size count)
{
    Words stack = {0};
    uint32_t round = ++rounds;
    for (Size k = 0; k < count; k++)
        ((Node *)python.PyList_GetItem(results, k))->wanted = true;
    for (Size k = count; k-- > 0;)
        add(&stack, (uint64_t)(uintptr_t)python.PyList_GetItem(results, k));
    Object *refused = NULL;
    while (stack.count && !stack.failed && !refused && !walk->unfit) {
        uint64_t top = stack.words[--stack.count];
        Node *node = (Node *)(uintptr_t)(top & ~DONE);
        if (top & DONE) {
            add(&walk->order, top & ~DONE);
            continue;
        }
        if (node->round == round) continue;
        node->round = round;
        node->uses = 0;
        node->number = -1;
        if (node->op == helper.const_op && (walk->scope || !node->wanted))
            continue; /* it gets its number where it is met as an input */
        if (is_leaf(node, walk->scope)) {
            add(&walk->leaves, (uint64_t)(uintptr_t)node);
            continue;
        }
        if (walk->scope)
            walk->unfit = is_unfit(node, walk->scope);
        else if (node->op == helper.placeholder_op)
            refused = helper.unknown_value;
        else if (node->op == helper.buffer_op)
            refused = helper.given_away;
        add(&stack, (uint64_t)(uintptr_t)node | DONE);
        for (Size k = python.PyTuple_Size(node->inputs); k-- > 0;) {
            Node *input = (Node *)python.PyTuple_GetItem(node->inputs, k);
            if (input->round != round) add(&stack, (uint64_t)(uintptr_t)input);
        }
    }
    bool failed = stack.failed || walk->order.failed || walk->leaves.failed;
    clear(&stack);
    if (rounds != round) walk->unfit = true; /* a helper, or what ended while it ran, has walked as well */
    if (failed) python.PyErr_NoMemory();
    if (refused) dropped(python.PyObject_CallFunctionObjArgs(refused, NULL));
    return !python.PyErr_Occurred();
}

static Object *as_list(const Words *nodes)
{
    Object *list = python.PyList_New(nodes->count);
    for (Size k = 0; list && k < nodes->count; k++)
        python.PyList_SetItem(list, k, held((Object *)(uintptr_t)nodes->words[k]));
    return list;
}

/* The attributes of nodes as far as they change what is computed: those that are not None, in order. */
static Object *attributes(const Words *order)
{
    Object *list = python.PyList_New(0);
    for (Size k = 0; list && k < order->count; k++) {
        Node *node = (Node *)(uintptr_t)order->words[k];
        Object *own = attributes_of(node);
        if (own == helper.none) continue;
        const Row *row = own ? row_of(node->op) : NULL;
        Object *attrs = !row          ? NULL
                        : row->shared ? held(own)
                                      : python.PyObject_CallFunctionObjArgs(helper.attributes, node, NULL);
        if (!attrs || python.PyList_Append(list, attrs)) become(&list, NULL);
        dropped(attrs);
    }
    if (!list) return NULL;
    Object *made = python.PyList_AsTuple(list);
    dropped(list);
    return made;
}

/* The key, and all nodes by their numbers: leaves, then each node after the constants that it is the first to need. */
static void describe(const Words *order, const Words *leaves, Words *key, Words *constants, Words *nodes)
{
    add(key, (uint64_t)leaves->count);
    add(key, (uint64_t)order->count);
    for (Size k = 0; k < leaves->count; k++) {
        Node *leaf = (Node *)(uintptr_t)leaves->words[k];
        leaf->number = (int32_t)nodes->count;
        add(nodes, leaves->words[k]);
        Size axes = python.PyTuple_Size(leaf->shape);
        add(key, (uint64_t)axes);
        for (Size axis = 0; axis < axes; axis++)
            add(key, (uint64_t)python.PyLong_AsLongLong(python.PyTuple_GetItem(leaf->shape, axis)));
        add(key, (uint64_t)(uintptr_t)leaf->dtype);
    }
    for (Size k = 0; k < order->count; k++) {
        Node *node = (Node *)(uintptr_t)order->words[k];
        Size count = python.PyTuple_Size(node->inputs);
        add(key, (uint64_t)(uintptr_t)node->op);
        uint64_t has_attrs = node->attrs != helper.none, has_data = node->data != helper.none;
        add(key, (uint64_t)count << 2 | has_attrs << 1 | has_data);
        for (Size j = 0; j < count; j++) {
            Node *input = (Node *)python.PyTuple_GetItem(node->inputs, j);
            input->uses++;
            if (input->number < 0) { /* a constant that is met for the first time */
                input->number = (int32_t)nodes->count;
                add(nodes, (uint64_t)(uintptr_t)input);
                add(constants, (uint64_t)(uintptr_t)input);
                add(key, (uint64_t)(uintptr_t)input->dtype);
            }
            add(key, (uint64_t)input->number);
        }
        node->number = (int32_t)nodes->count;
        add(nodes, order->words[k]);
    }
}

/* The results, each once, and what something besides these nodes refers to, which keeps its data, too: it would be
 * computed again otherwise. On a machine with memory of its own, what belongs to no machine stays as it is. */
static void choose(Object *results, Size count, const Words *order, bool own_memory, Words *wanted, Words *key)
{
    for (Size k = 0; k < count; k++) {
        Node *node = (Node *)python.PyList_GetItem(results, k);
        if (!node->wanted) continue; /* a second time */
        node->wanted = false;
        node->uses = INT32_MAX; /* it is there */
        if (node->data != helper.none) continue;
        add(wanted, (uint64_t)(uintptr_t)node);
        add(key, (uint64_t)node->number);
    }
    for (Size k = 0; k < order->count; k++) {
        Node *node = (Node *)(uintptr_t)order->words[k];
        if (node->outs != helper.none || node->uses == INT32_MAX || node->data != helper.none) continue;
        if (node->head.references.low <= (uint32_t)node->uses) continue;
        if (own_memory && node->device == helper.none) continue;
        add(wanted, (uint64_t)(uintptr_t)node);
        add(key, (uint64_t)node->number);
    }
}

typedef struct {
    Words key, constants, wanted, nodes;
} Description;

static void forget(Description *found)
{
    Words *all[] = {&found->key, &found->constants, &found->wanted, &found->nodes};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        clear(all[k]);
}

/* False with an error. */
static bool describe_all(
    const Walk *walk, Object *results, Size count, bool own_memory, Object *marks, Description *found)
{
    describe(&walk->order, &walk->leaves, &found->key, &found->constants, &found->nodes);
    add(&found->key, UINT64_MAX);
    choose(results, count, &walk->order, own_memory, &found->wanted, &found->key);
    add(&found->key, UINT64_MAX);
    for (Size k = 0, length = marks ? python.PyList_Size(marks) : 0; k < length; k++)
        add(&found->key, (uint64_t)((Node *)python.PyList_GetItem(marks, k))->number);
    if (!found->key.failed && !found->constants.failed && !found->wanted.failed && !found->nodes.failed) return true;
    python.PyErr_NoMemory();
    return false;
}

/* (words, attributes). It may run code of Python's, so numbers of nodes mean nothing afterwards. */
static Object *key_of(const Walk *walk, const Description *found)
{
    Object *both = python.PyTuple_New(2);
    Object *words = python.PyBytes_FromStringAndSize((const char *)found->key.words, found->key.count * 8);
    Object *of_attrs = attributes(&walk->order);
    bool whole = both && words && of_attrs;
    if (both && words) python.PyTuple_SetItem(both, 0, words);
    if (both && of_attrs) python.PyTuple_SetItem(both, 1, of_attrs);
    if (!whole) become(&both, NULL);
    return both;
}

/* (order, leaves, wanted, constants, nodes or None, key); references tell whose memory may be taken, and a list that
 * nobody needs would hold some. */
static Object *described(const Walk *walk, Object *results, Size count, bool own_memory, Object *marks)
{
    Description found = {0};
    Object *made = NULL;
    if (describe_all(walk, results, count, own_memory, marks, &found)) made = python.PyTuple_New(6);
    if (made) {
        const Words *lists[] = {&walk->order, &walk->leaves, &found.wanted, &found.constants, &found.nodes};
        bool whole = true;
        for (Size k = 0; k < 5; k++) {
            Object *list = k < 4 || walk->scope ? as_list(lists[k]) : held(helper.none);
            whole = whole && list;
            if (list) python.PyTuple_SetItem(made, k, list);
        }
        Object *key = key_of(walk, &found);
        if (key) python.PyTuple_SetItem(made, 5, key);
        if (!whole || !key) become(&made, NULL);
    }
    forget(&found);
    return made;
}

static Size list_of_nodes(Object *list)
{
    Size length = python.PyList_Size(list);
    for (Size k = 0; k < length; k++)
        if (!is_node(python.PyList_GetItem(list, k))) return -1;
    return length;
}

static void unmark(Object *results, Size count, Walk *walk)
{
    for (Size k = 0; k < count; k++) /* also where a walk was refused */
        ((Node *)python.PyList_GetItem(results, k))->wanted = false;
    clear(&walk->order);
    clear(&walk->leaves);
}

static Object *walk_and_describe(Walk *walk, Object *results, bool own_memory, Object *marks)
{
    Size count = list_of_nodes(results);
    if (count < 0 || (marks && list_of_nodes(marks) < 0))
        return python.PyErr_Occurred() ? NULL : complain("a list of nodes is wanted");
    Object *made = NULL;
    if (walked(walk, results, count)) {
        for (Size k = 0, length = marks ? python.PyList_Size(marks) : 0; k < length; k++)
            walk->unfit |= ((Node *)python.PyList_GetItem(marks, k))->round != rounds;
        made = walk->unfit ? held(helper.none) : described(walk, results, count, own_memory, marks);
    }
    unmark(results, count, walk);
    return made;
}

/* ---- values, where what was compiled is found ------------------------------------------------------------------- */

/* A value that a plan takes as it is, and whose memory is not worth being taken. */
static bool is_ready(Object *data, Object *machine)
{
    if (is_resident(data)) {
        const Stored *stored = (Stored *)((Resident *)data)->stored;
        if (stored->machine != machine || !stored->has_address) return false;
    } else {
        if (data->type != helper.array) return false;
        int flags = flags_of(data);
        if (!(flags & CONTIGUOUS) || !(flags & ALIGNED)) return false;
    }
    Object *bytes = python.PyObject_GetAttr(data, name_of.nbytes);
    bool small = bytes && python.PyLong_AsLongLong(bytes) < COUNTED;
    dropped(bytes);
    return small;
}

/* The values of leaves and of constants that vary, or NULL: not in this way. `quick` is (machine, plan, constants,
 * the machine's description). */
static Object *arrays_for(Object *quick, const Walk *walk, const Description *found)
{
    Object *known = python.PyTuple_GetItem(quick, 2);
    if (!known || python.PyTuple_Size(known) != found->constants.count) return NULL;
    Object *arrays = as_list(&walk->leaves);
    for (Size k = 0; arrays && k < walk->leaves.count; k++) {
        Object *data = ((Node *)(uintptr_t)walk->leaves.words[k])->data;
        if (is_ready(data, python.PyTuple_GetItem(quick, 0)))
            python.PyList_SetItem(arrays, k, held(data));
        else
            become(&arrays, NULL);
    }
    for (Size k = 0; arrays && k < found->constants.count; k++) {
        Object *attrs = ((Node *)(uintptr_t)found->constants.words[k])->attrs, *own = python.PyTuple_GetItem(known, k);
        if (own == helper.none) {
            Object *array = python.PyObject_GetAttr(attrs, name_of.array);
            if (!array || python.PyList_Append(arrays, array)) become(&arrays, NULL);
            dropped(array);
        } else if (own != attrs && python.PyObject_RichCompareBool(own, attrs, COMPARE_EQUAL) != 1)
            become(&arrays, NULL);
    }
    return arrays;
}

static void give_value(Node *node, Object *value)
{
    if (node->op == helper.mark_op) { /* which is the same value as its input */
        Node *bare = (Node *)python.PyTuple_GetItem(node->inputs, 0);
        if (bare->data == helper.none) give_value(bare, value);
    }
    become(&node->data, held(value));
    if (node->device != helper.none && value->type == helper.array) become(&node->device, held(helper.host));
    settle_node(node);
}

/* ---- graphs that were computed lately, by the words of their keys: Python is not asked for these ----------------- */

enum { RECENT = 256, OFTEN = 16 };

typedef struct {
    uint64_t hash;
    uint64_t *words;
    Size count;
    Object *attrs; /* those of the nodes that have some, in order, which it keeps: identity tells them apart here */
    Object *key, *kept;
    uint32_t uses;
} Recent;

static Recent recent[RECENT];

static uint64_t hash_of(const Words *key)
{
    uint64_t hash = (uint64_t)key->count;
    for (Size k = 0; k < key->count; k++) {
        hash = (hash ^ key->words[k]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Attributes as they are, in a tuple; NULL without an error where they do not say which node it is. */
static Object *own_attributes(const Words *order)
{
    Object *list = python.PyList_New(0);
    for (Size k = 0; list && k < order->count; k++) {
        Node *node = (Node *)(uintptr_t)order->words[k];
        if (node->attrs == helper.none) continue;
        const Row *row = row_of(node->op);
        if (!row || !row->shared || python.PyList_Append(list, node->attrs)) become(&list, NULL);
    }
    Object *made = list ? python.PyList_AsTuple(list) : NULL;
    dropped(list);
    return made;
}

static bool has_attributes(Object *attrs, const Words *order)
{
    Size at = 0, count = python.PyTuple_Size(attrs);
    for (Size k = 0; k < order->count; k++) {
        Object *own = ((Node *)(uintptr_t)order->words[k])->attrs;
        if (own == helper.none) continue;
        if (at == count || python.PyTuple_GetItem(attrs, at++) != own) return false;
    }
    return at == count;
}

/* What is known of a graph; borrowed, or NULL. */
static Recent *recently(uint64_t hash, const Words *key, const Words *order)
{
    Recent *one = &recent[hash % RECENT];
    if (!one->words || one->hash != hash || one->count != key->count) return NULL;
    if (memcmp(one->words, key->words, (size_t)key->count * sizeof *key->words)) return NULL;
    return has_attributes(one->attrs, order) ? one : NULL;
}

bool is_described_as(Object *machine, Object *target)
{
    if (target == helper.none) return true; /* it cannot become another */
    Object *now = python.PyObject_GetAttr(machine, name_of.description);
    dropped(now); /* it is kept, by the machine or by what makes one for each precision */
    return now == target;
}

/* How a graph is computed on a machine in C: new reference; NULL where it is not, perhaps with an error. */
static Object *quick_of(Object *kept, Object *machine)
{
    Object *quick = python.PyObject_GetAttr(kept, name_of.quick);
    if (quick && (quick == helper.none || python.PyTuple_GetItem(quick, 0) != machine)) become(&quick, NULL);
    if (quick && !is_described_as(machine, python.PyTuple_GetItem(quick, 3))) become(&quick, NULL);
    return quick;
}

/* Note a graph; takes the attributes. */
static void note_recent(uint64_t hash, const Words *words, Object *attrs, Object *key, Object *kept)
{
    uint64_t *own = malloc((size_t)words->count * sizeof *own);
    if (!own) {
        dropped(attrs);
        return;
    }
    memcpy(own, words->words, (size_t)words->count * sizeof *own);
    Recent made = {hash, own, words->count, attrs, held(key), held(kept), 0}, *place = &recent[hash % RECENT];
    Recent before = *place;
    *place = made;
    free(before.words);
    dropped(before.attrs); /* last, as that may run other code */
    dropped(before.key);
    dropped(before.kept);
}

static Object *device_of(Object *node)
{
    Object *device = ((Node *)node)->device;
    return device == helper.none ? helper.host : device;
}

/* The values of a plan in C, or NULL: then the general way computes them, and says what is wrong, if anything is. */
static Object *run_quietly(Object *plan, Object *arrays)
{
    if (!is_device_plan(plan)) return run_plan_on(plan, arrays, true);
    Object *values = run_device_plan(plan, arrays);
    if (!values && python.PyErr_ExceptionMatches(helper.library_error)) python.PyErr_Clear();
    return values;
}

/* Give results, nodes of one machine's, their values by a plan that was kept for such a graph. */
int compute_kept(Object *results, Object *known, Object *machine)
{
    Size count = python.PyList_Size(results);
    Object *device = count ? device_of(python.PyList_GetItem(results, 0)) : helper.host;
    for (Size k = 1; k < count; k++)
        if (device_of(python.PyList_GetItem(results, k)) != device) return 0;
    const bool own_memory = device != helper.host;
    Walk walk = {0};
    Description found = {0};
    Object *key = NULL, *attrs = NULL, *kept = NULL, *quick = NULL, *arrays = NULL, *values = NULL, *nodes = NULL;
    bool walks = walked(&walk, results, count) && describe_all(&walk, results, count, own_memory, NULL, &found);
    uint64_t hash = walks ? hash_of(&found.key) : 0;
    Recent *lately = walks ? recently(hash, &found.key, &walk.order) : NULL;
    if (lately) {
        quick = quick_of(lately->kept, machine);
        arrays = quick ? arrays_for(quick, &walk, &found) : NULL;
        if (arrays && lately->uses++ % OFTEN == 0) key = held(lately->key); /* lest it be forgotten there */
    }
    if (!arrays && walks && !python.PyErr_Occurred()) {
        key = key_of(&walk, &found);
        attrs = key ? own_attributes(&walk.order) : NULL;
        kept = key ? python.PyDict_GetItemWithError(known, key) : NULL;
        if (kept) held(kept);
        become(&quick, kept ? quick_of(kept, machine) : NULL);
        arrays = quick ? arrays_for(quick, &walk, &found) : NULL;
        if (arrays && attrs) {
            note_recent(hash, &found.key, attrs, key, kept);
            attrs = NULL;
        }
    }
    unmark(results, count, &(Walk){0});
    if (arrays) nodes = as_list(&found.wanted); /* they must live: others run while the plan does */
    if (nodes) values = run_quietly(python.PyTuple_GetItem(quick, 1), arrays);
    if (values) {
        for (Size k = 0; k < found.wanted.count; k++)
            give_value((Node *)python.PyList_GetItem(nodes, k), python.PyList_GetItem(values, k));
        Object *moved = key ? python.PyObject_CallMethodObjArgs(known, name_of.move_to_end, key, NULL) : NULL;
        if (key && !moved) python.PyErr_Clear(); /* it was forgotten there */
        dropped(moved);
    }
    int done = values != NULL;
    clear(&walk.order);
    clear(&walk.leaves);
    forget(&found);
    Object *all[] = {key, attrs, kept, quick, arrays, values, nodes};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        dropped(all[k]);
    return python.PyErr_Occurred() ? -1 : done;
}

/* computed(results, kept, machine): whether a plan was kept that gave the results their values; if not, nothing has
 * happened. */
static Object *computed(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 3 || list_of_nodes(given[0]) < 0)
        return python.PyErr_Occurred() ? NULL : complain("computed(results, kept, machine)");
    int done = compute_kept(given[0], given[1], given[2]);
    return done < 0 ? NULL : python.PyBool_FromLong(done);
}

/* structure(results, own_memory): (order, leaves, wanted, constants, None, key). Results are a list of nodes. */
static Object *structure(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 2) return complain("structure(results, own_memory)");
    Walk walk = {0};
    return walk_and_describe(&walk, given[0], python.PyObject_IsTrue(given[1]) == 1, NULL);
}

/* gradient_structure(roots, scope, marks): the same with all nodes by their numbers, through what depends on the
 * scope; None where the structure does not tell the derivative. */
static Object *gradient_structure(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 3) return complain("gradient_structure(roots, scope, marks)");
    Walk walk = {.scope = given[1]};
    return walk_and_describe(&walk, given[0], false, given[2]);
}

/* marks_of(node, scope): the marks of a scope that a node depends on, and that depend on no other; inputs first. */
static Object *marks_of(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 2 || !is_node(given[0])) return complain("marks_of(node, scope)");
    Words stack = {0}, found = {0};
    static uint32_t searches;
    uint32_t search = ++searches;
    add(&stack, (uint64_t)(uintptr_t)given[0]);
    while (stack.count && !stack.failed) {
        Node *node = (Node *)(uintptr_t)stack.words[--stack.count];
        if (node->looked == search || !has(node, given[1])) continue;
        node->looked = search;
        if (is_mark(node, given[1])) {
            add(&found, (uint64_t)(uintptr_t)node);
            continue;
        }
        for (Size k = python.PyTuple_Size(node->inputs); k-- > 0;)
            add(&stack, (uint64_t)(uintptr_t)python.PyTuple_GetItem(node->inputs, k));
    }
    Object *made = stack.failed || found.failed ? python.PyErr_NoMemory() : as_list(&found);
    clear(&stack);
    clear(&found);
    return made;
}

static Method methods[] = {
    {"structure", structure, FAST_CALL, "What a graph is but for its data."},
    {"gradient_structure", gradient_structure, FAST_CALL, "What a graph is whose gradients are asked for."},
    {"computed", computed, FAST_CALL, "Whether nodes were given their values by a plan that was kept."},
    {"marks_of", marks_of, FAST_CALL, "The marks of a scope that a node depends on."},
    {NULL, NULL, 0, NULL},
};

bool open_structure(Object *module) { return add_methods(module, methods) == 0; }
