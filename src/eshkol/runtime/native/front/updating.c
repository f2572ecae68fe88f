/* What an optimizer's step looks at, for all of its tensors at once: tensors/updating.py has the rest, and says why. */
#include "front.h"

static bool is_plain(Object *array)
{
    enum { ALL = CONTIGUOUS | ALIGNED | WRITEABLE };
    return array->type == helper.array && (flags_of(array) & ALL) == ALL;
}

/* Whether nothing but a node refers to its value, nor to the memory it lies in: schedule/run/memory.py. */
static bool is_exclusive(Node *node)
{
    Object *data = node->data;
    if (node->op == helper.const_op || data == helper.none || data->references.low != 1) return false;
    if (is_plain(data) && !*(Object **)((char *)data + ARRAY_BASE)) return flags_of(data) & OWNS;
    Object *found = python.PyObject_CallFunctionObjArgs(helper.exclusive, node, NULL);
    bool yes = found == helper.true_;
    dropped(found);
    return yes;
}

static bool has_scope(Node *node, Object *scope)
{
    return node->scopes != helper.no_scopes && python.PySet_Contains(node->scopes, scope) == 1;
}

static bool is_marked(Node *node, Object *scope)
{
    if (node->op != helper.mark_op || has_scope((Node *)python.PyTuple_GetItem(node->inputs, 0), scope)) return false;
    Object *own = python.PyObject_GetAttr(node->attrs, name_of.scope);
    dropped(own);
    return own == scope;
}

/* The node that holds the value of a tensor, borrowed; whether it is marked, and whether nothing else refers to it. */
static Node *held_node(Object *tensor, Object *scope, bool *marked, bool *alone)
{
    Node *node = (Node *)((Handle *)tensor)->node;
    if (!node || !is_node(&node->head)) return NULL;
    *marked = node->scopes != helper.no_scopes && is_marked(node, scope);
    *alone = node->head.references.low == 1;
    if (*marked) {
        if (*alone) become(&node->data, held(helper.none)); /* it is its input's, which is about to change */
        node = (Node *)python.PyTuple_GetItem(node->inputs, 0);
        *alone = *alone && node->head.references.low == 1;
    }
    *alone = *alone && python.PyTuple_Size(node->inputs) == 0 && is_exclusive(node);
    return node;
}

typedef struct {
    Object *signature, *values;
    Size said;
    bool plain; /* arrays of the host, as plans take them */
} Described;

static void describe(Described *all, Node *node)
{
    python.PyList_SetItem(all->signature, all->said++, held(node->shape));
    python.PyList_SetItem(all->signature, all->said++, held(node->dtype));
    all->plain = all->plain && node->device == helper.host && helper.heads == helper.true_ && is_plain(node->data);
    if (all->plain && python.PyList_Append(all->values, node->data)) all->plain = false;
}

/* held(tensors, given, scope): (nodes, marks, own, read, signature, values) of two lists of tensors: the nodes that
 * hold the values of the first, which of these are marked, and the places of those that nothing else refers to; the
 * nodes of the second; shapes and dtypes of all; and their arrays, or None where they are not all at hand. */
static Object *held_by(Object *self, Object *const *given, Size count)
{
    (void)self;
    Size tensors = count == 3 ? python.PyList_Size(given[0]) : -1;
    Size others = count == 3 ? python.PyList_Size(given[1]) : -1;
    if (tensors < 0 || others < 0) return python.PyErr_Occurred() ? NULL : complain("held(tensors, given, scope)");
    Object *nodes = python.PyList_New(0), *marks = python.PyList_New(0), *own = python.PyList_New(0);
    Object *read = python.PyList_New(0), *made = python.PyTuple_New(6);
    Described all = {python.PyList_New(2 * (tensors + others)), python.PyList_New(0), 0, true};
    bool whole = nodes && marks && own && read && made && all.signature && all.values;
    for (Size k = 0; whole && k < tensors; k++) {
        bool marked = false, alone = false;
        Object *tensor = python.PyList_GetItem(given[0], k);
        Node *node = is_tensor(tensor) ? held_node(tensor, given[2], &marked, &alone) : NULL;
        whole = node && !python.PyErr_Occurred();
        if (!whole) break;
        describe(&all, node);
        Object *place = alone ? python.PyLong_FromLongLong(k) : NULL, *truth = marked ? helper.true_ : helper.false_;
        if (place && python.PyList_Append(own, place)) whole = false;
        dropped(place);
        whole = whole && !python.PyList_Append(nodes, &node->head) && !python.PyList_Append(marks, truth);
    }
    for (Size k = 0; whole && k < others; k++) {
        Object *tensor = python.PyList_GetItem(given[1], k);
        Node *node = is_tensor(tensor) ? (Node *)((Handle *)tensor)->node : NULL;
        whole = node && is_node(&node->head);
        if (!whole) break;
        describe(&all, node);
        whole = !python.PyList_Append(read, &node->head);
    }
    if (!all.plain) become(&all.values, held(helper.none));
    Object *parts[] = {nodes, marks, own, read, all.signature, all.values};
    for (Size k = 0; k < 6; k++)
        if (whole)
            python.PyTuple_SetItem(made, k, parts[k]);
        else
            dropped(parts[k]);
    if (whole) return made;
    dropped(made);
    return python.PyErr_Occurred() ? NULL : complain("held(tensors, given, scope) takes lists of tensors");
}

/* spend(tensors, gradients, kind): let each gradient be of a kind that says it was used. */
static Object *spend(Object *self, Object *const *given, Size count)
{
    (void)self;
    Size length = count == 3 ? python.PyList_Size(given[0]) : -1;
    if (length < 0 || python.PyList_Size(given[1]) != length)
        return python.PyErr_Occurred() ? NULL : complain("spend(tensors, gradients, kind)");
    for (Size k = 0; k < length; k++) {
        Object *tensor = python.PyList_GetItem(given[0], k), *gradient = python.PyList_GetItem(given[1], k);
        if (!is_tensor(tensor) || !is_tensor(gradient)) return complain("spend(tensors, gradients, kind)");
        Handle *spent = (Handle *)python.PyType_GenericAlloc(given[2], 0);
        if (!spent) return NULL;
        spent->node = held(((Handle *)gradient)->node);
        spent->grad = held(helper.none);
        become(&((Handle *)tensor)->grad, &spent->head);
    }
    return held(helper.none);
}

/* trained(tensors, scope): for each, whether it has a gradient and requires one. */
static Object *trained(Object *self, Object *const *given, Size count)
{
    (void)self;
    Size length = count == 2 ? python.PyList_Size(given[0]) : -1;
    if (length < 0) return python.PyErr_Occurred() ? NULL : complain("trained(tensors, scope)");
    Object *found = python.PyList_New(length);
    for (Size k = 0; found && k < length; k++) {
        Object *tensor = python.PyList_GetItem(given[0], k);
        Handle *handle = is_tensor(tensor) ? (Handle *)tensor : NULL;
        bool yes = handle && handle->grad && handle->grad != helper.none && handle->node && is_node(handle->node);
        yes = yes && has_scope((Node *)handle->node, given[1]) && is_differentiable(((Node *)handle->node)->dtype);
        python.PyList_SetItem(found, k, held(yes ? helper.true_ : helper.false_));
    }
    return found;
}

static Method methods[] = {
    {"held", held_by, FAST_CALL, "What holds the values of tensors, and whether nothing else does."},
    {"spend", spend, FAST_CALL, "Let gradients be known as used."},
    {"trained", trained, FAST_CALL, "Which tensors have a gradient and require one."},
    {NULL, NULL, 0, NULL},
};

bool open_updating(Object *module) { return add_methods(module, methods) == 0; }
