/* Nodes: the type, the table in which the same op of the same inputs is found again, and making one. See front.h. */
#include "front.h"

#include <stdlib.h>
#include <string.h>

Object *complain(const char *text)
{
    python.PyErr_SetString(helper.type_error, text);
    return NULL;
}

/* ---- the table of nodes ----------------------------------------------------------------------------------------- */

/* It holds no references: a node takes itself out when it goes. One whose last reference is gone may still be met
 * (Python puts off the end of long chains), and counts as not there. */
static struct {
    Node **places;
    uint64_t size, used; /* used: places that are not empty, those of nodes that left among them */
    uint64_t version;
} table;
#define LEFT ((Node *)1)

static uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static bool grow(void)
{
    uint64_t living = 0;
    for (uint64_t k = 0; k < table.size; k++)
        living += table.places[k] > LEFT;
    uint64_t size = 1024;
    while (size < living * 4)
        size *= 2;
    Node **places = calloc(size, sizeof *places);
    if (!places) return false;
    for (uint64_t k = 0; k < table.size; k++)
        if (table.places[k] > LEFT) {
            uint64_t at = table.places[k]->hash & (size - 1);
            while (places[at])
                at = (at + 1) & (size - 1);
            places[at] = table.places[k];
        }
    free(table.places);
    table.places = places;
    table.size = size;
    table.used = living;
    table.version++;
    return true;
}

static void leave_table(Node *node)
{
    if (!node->interned) return;
    node->interned = false;
    for (uint64_t at = node->hash & (table.size - 1); table.places[at]; at = (at + 1) & (table.size - 1))
        if (table.places[at] == node) {
            table.places[at] = LEFT;
            table.version++;
            return;
        }
}

/* The node of the table that is this one; 1 found, 0 not there, -1 an error. */
static int look_up(uint64_t hash, Object *op, Object *inputs, Object *attrs, Node **found)
{
    Size count = python.PyTuple_Size(inputs);
again:
    if (!table.size) return 0;
    for (uint64_t at = hash & (table.size - 1); table.places[at]; at = (at + 1) & (table.size - 1)) {
        Node *node = table.places[at];
        if (node == LEFT || node->hash != hash || node->op != op || node->head.references.low == 0) continue;
        if (python.PyTuple_Size(node->inputs) != count) continue;
        bool alike = true;
        for (Size k = 0; k < count && alike; k++)
            alike = python.PyTuple_GetItem(node->inputs, k) == python.PyTuple_GetItem(inputs, k);
        if (!alike) continue;
        if (node->attrs != attrs) {
            uint64_t version = table.version;
            held(&node->head);
            Object *theirs = held(node->attrs);
            int equal = python.PyObject_RichCompareBool(theirs, attrs, COMPARE_EQUAL);
            dropped(theirs);
            if (equal < 0 || version != table.version || !equal) {
                dropped(&node->head);
                if (equal < 0) return -1;
                if (version != table.version) goto again; /* other code ran meanwhile */
                continue;
            }
            *found = node;
            return 1;
        }
        *found = (Node *)held(&node->head);
        return 1;
    }
    return 0;
}

static bool enter_table(Node *node)
{
    if ((table.used + 1) * 2 > table.size && !grow()) return false;
    uint64_t at = node->hash & (table.size - 1);
    while (table.places[at] > LEFT)
        at = (at + 1) & (table.size - 1);
    table.used += table.places[at] == NULL;
    table.places[at] = node;
    table.version++;
    node->interned = true;
    return true;
}

/* ---- the type --------------------------------------------------------------------------------------------------- */

#define MEMBERS(X) X(op) X(inputs) X(data) X(device) X(dtype) X(outs) X(scopes) X(shape) X(site)
#define FIELDS(X) MEMBERS(X) X(attrs)

static int visit_node(Object *self, Visit visit, void *how)
{
    Node *node = (Node *)self;
#define X(field)                                     \
    if (node->field) {                               \
        int status = visit(node->field, how);        \
        if (status) return status;                   \
    }
    FIELDS(X)
#undef X
    return self->type ? visit(self->type, how) : 0;
}

static int clear_node(Object *self)
{
    Node *node = (Node *)self;
    leave_table(node);
#define X(field) become(&node->field, NULL);
    FIELDS(X)
#undef X
    return 0;
}

static void deallocate_node(Object *self)
{
    Node *node = (Node *)self;
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    leave_table(node);
    if (node->weak) python.PyObject_ClearWeakRefs(self);
    clear_node(self);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static Member node_members[] = {
#define X(field) {#field, MEMBER_OBJECT, offsetof(Node, field), 0, NULL},
    MEMBERS(X)
#undef X
    {"depth", MEMBER_SIZE, offsetof(Node, depth), 0, NULL},
    {"__weaklistoffset__", MEMBER_SIZE, offsetof(Node, weak), READ_ONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* Leaves get their attributes when someone asks for them, which happens to few. */
static Object *leaf_attributes(Object *shape, Object *dtype);

Object *attributes_of(Node *node)
{
    if (node->attrs) return node->attrs;
    if (node->op == helper.buffer_op && node->shape && node->dtype)
        node->attrs = leaf_attributes(node->shape, node->dtype);
    else
        python.PyErr_SetString(helper.attribute_error, "attrs");
    return node->attrs;
}

static Object *get_attributes(Object *self, void *which)
{
    (void)which;
    Object *found = attributes_of((Node *)self);
    return found ? held(found) : NULL;
}

static int set_attributes(Object *self, Object *attrs, void *which)
{
    (void)which;
    become(&((Node *)self)->attrs, attrs ? held(attrs) : NULL);
    return 0;
}

static Property node_properties[] = {
    {"attrs", get_attributes, set_attributes, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static Object *row_type;

static void deallocate_row(Object *self)
{
    Object *type = self->type;
    dropped(((Row *)self)->dtype);
    python.PyObject_Free(self);
    dropped(type);
}

/* row(dtype or None, same, shared, special, simple, promotes, keeps, operands) */
static Object *new_row(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 8) return complain("row(dtype, same, shared, special, simple, promotes, keeps, operands)");
    Row *row = (Row *)python.PyType_GenericAlloc(row_type, 0);
    if (!row) return NULL;
    row->dtype = given[0] == helper.none ? NULL : held(given[0]);
    bool *facts[] = {&row->same, &row->shared, &row->special, &row->simple, &row->promotes, &row->keeps};
    for (Size k = 0; k < 6; k++)
        *facts[k] = python.PyObject_IsTrue(given[1 + k]) == 1;
    row->operands = python.PyLong_AsLongLong(given[7]);
    return &row->head;
}

Row *row_of(Object *op)
{
    Object *row = python.PyObject_GetAttr(op, name_of.front);
    if (!row) { /* it is asked for the first time */
        python.PyErr_Clear();
        row = python.PyObject_CallFunctionObjArgs(helper.front_row, op, NULL);
    }
    if (row) dropped(row); /* the op keeps it */
    return (Row *)row;
}

/* ---- making nodes ----------------------------------------------------------------------------------------------- */

static Node *blank(void)
{
    return (Node *)python.PyType_GenericAlloc(helper.node, 0);
}

static bool equal_shapes(Object *one, Object *other)
{
    return one == other || python.PyObject_RichCompareBool(one, other, COMPARE_EQUAL) == 1;
}

/* The shape to which two broadcast: new reference; NULL without an error where they do not, which Python explains. */
static Object *broadcast(Object *one, Object *other)
{
    if (one == other) return held(one);
    Size axes = python.PyTuple_Size(one), others = python.PyTuple_Size(other);
    if (axes < others) {
        Object *longer = other;
        other = one;
        one = longer;
        Size more = others;
        others = axes;
        axes = more;
    }
    if (!others) return held(one);
    if (axes == others && equal_shapes(one, other)) return held(one);
    Object *shape = python.PyTuple_New(axes);
    for (Size k = 0; shape && k < axes; k++) {
        Object *extent = python.PyTuple_GetItem(one, k);
        if (k >= axes - others) {
            Object *beside = python.PyTuple_GetItem(other, k - (axes - others));
            if (extent->type != helper.int_ || beside->type != helper.int_) { /* Python sees it compared */
                dropped(shape);
                return NULL;
            }
            long long a = python.PyLong_AsLongLong(extent), b = python.PyLong_AsLongLong(beside);
            if (a == 1)
                extent = beside;
            else if (b != 1 && a != b) {
                dropped(shape);
                return NULL;
            }
        }
        python.PyTuple_SetItem(shape, k, held(extent));
    }
    return shape;
}

/* Shape and dtype of a result that has the broadcast shape of its inputs; false: ask Python. */
static bool same_shape(const Row *row, Object *inputs, Size count, Node *node)
{
    if (!row->same || !count) return false;
    Node *first = (Node *)python.PyTuple_GetItem(inputs, 0);
    Object *shape = held(first->shape);
    for (Size k = 1; k < count && shape; k++)
        become(&shape, broadcast(shape, ((Node *)python.PyTuple_GetItem(inputs, k))->shape));
    if (!shape) return false;
    become(&node->shape, shape);
    become(&node->dtype, held(row->dtype ? row->dtype : first->dtype));
    return true;
}

static bool by_rule(Object *op, Object *inputs, Object *attrs, Node *node)
{
    Object *aval = python.PyObject_CallFunctionObjArgs(helper.inferred, op, inputs, attrs, NULL);
    if (!aval) return false;
    if (aval->type == helper.plain_tuple) {
        become(&node->outs, aval);
        Object *nothing = python.PyTuple_New(0);
        become(&node->shape, nothing);
        become(&node->dtype, held(helper.none)); /* `specially` says which */
        return nothing != NULL;
    }
    Object *shape, *dtype;
    if (aval->type == helper.aval) {
        shape = held(python.PyTuple_GetItem(aval, 0));
        dtype = held(python.PyTuple_GetItem(aval, 1));
    } else {
        shape = python.PyObject_GetAttr(aval, name_of.shape);
        dtype = python.PyObject_GetAttr(aval, name_of.dtype);
    }
    dropped(aval);
    become(&node->shape, shape);
    become(&node->dtype, dtype);
    return shape && dtype;
}

/* What a node has of its inputs: transformations at work, depth, machine. */
static bool take_after(Node *node, Object *inputs, Size count)
{
    Object *scopes = held(helper.no_scopes), *device = helper.none;
    Size depth = 0;
    for (Size k = 0; k < count; k++) {
        Node *x = (Node *)python.PyTuple_GetItem(inputs, k);
        if (x->depth > depth) depth = x->depth;
        if (x->scopes != scopes && x->scopes != helper.no_scopes) {
            if (scopes == helper.no_scopes)
                become(&scopes, held(x->scopes));
            else {
                Object *both = python.PyNumber_Or(scopes, x->scopes);
                if (!both) {
                    dropped(scopes);
                    return false;
                }
                become(&scopes, both);
            }
        }
        if (x->device != device && x->device != helper.none) {
            if (device != helper.none && python.PyObject_RichCompareBool(device, x->device, COMPARE_EQUAL) != 1) {
                dropped(scopes);
                dropped(python.PyObject_CallFunctionObjArgs(helper.on_different_machines, node->op, inputs, NULL));
                return false;
            }
            device = x->device;
        }
    }
    become(&node->scopes, scopes);
    become(&node->device, held(device));
    node->depth = depth + 1;
    return true;
}

/* The node of an op. What is known of it beforehand is not asked for: `known` has it, or is NULL. */
static Object *made_or_found(Object *op, Object *inputs, Object *attrs, const Known *known)
{
    const Row *row = row_of(op);
    if (!row) return NULL;
    Size count = python.PyTuple_Size(inputs);
    uint64_t hash = 0;
    if (row->shared) {
        hash = mixed((uint64_t)(uintptr_t)op, (uint64_t)count);
        if (attrs != helper.none) {
            Size of_attrs = known ? known->attrs_hash : python.PyObject_Hash(attrs);
            if (of_attrs == -1) return NULL;
            hash = mixed(hash, (uint64_t)of_attrs);
        }
        for (Size k = 0; k < count; k++)
            hash = mixed(hash, (uint64_t)(uintptr_t)python.PyTuple_GetItem(inputs, k));
        Node *found;
        int status = look_up(hash, op, inputs, attrs, &found);
        if (status) return status < 0 ? NULL : &found->head;
    }
    Node *node = blank();
    if (!node) return NULL;
    node->op = held(op);
    node->inputs = held(inputs);
    node->attrs = held(attrs);
    node->data = held(helper.none);
    node->outs = held(known ? known->outs : helper.none);
    node->site = held(at_work.site ? at_work.site : helper.none);
    node->hash = hash;
    if (known) {
        node->shape = held(known->shape);
        node->dtype = held(known->dtype);
    } else if (!(same_shape(row, inputs, count, node) || by_rule(op, inputs, attrs, node)))
        goto failed;
    if (!take_after(node, inputs, count)) goto failed;
    if (row->special || node->outs != helper.none) {
        Object *done = python.PyObject_CallFunctionObjArgs(helper.specially, node, NULL);
        if (!done) goto failed;
        dropped(done);
    }
    if (row->shared && !enter_table(node)) {
        python.PyErr_NoMemory();
        goto failed;
    }
    return &node->head;
failed:
    dropped(&node->head);
    return NULL;
}

Object *make_node(Object *op, Object *inputs, Object *attrs) { return made_or_found(op, inputs, attrs, NULL); }

Object *make_known(const Known *known, Object *inputs)
{
    return made_or_found(known->op, inputs, known->attrs, known);
}

static bool are_nodes(Object *inputs)
{
    for (Size k = 0, count = python.PyTuple_Size(inputs); k < count; k++)
        if (!is_node(python.PyTuple_GetItem(inputs, k))) return false;
    return true;
}

/* make(op, inputs, attrs) */
static Object *make(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 3 || given[1]->type != helper.plain_tuple || !are_nodes(given[1]))
        return complain("make(op, inputs, attrs) takes a tuple of nodes");
    return make_node(given[0], given[1], given[2]);
}

/* forget(node): it is not found again, because it is going to be another. */
static Object *forget(Object *self, Object *node)
{
    (void)self;
    if (is_node(node)) leave_table((Node *)node);
    return held(helper.none);
}

/* known(): how many nodes are in the table, and how many places it has. */
static Object *known(Object *self, Object *const *given, Size count)
{
    (void)self, (void)given, (void)count;
    long long living = 0;
    for (uint64_t k = 0; k < table.size; k++)
        living += table.places[k] > LEFT;
    Object *both = python.PyTuple_New(2);
    if (!both) return NULL;
    python.PyTuple_SetItem(both, 0, python.PyLong_FromLongLong(living));
    python.PyTuple_SetItem(both, 1, python.PyLong_FromLongLong((long long)table.size));
    return both;
}

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

static long long leaves_made;

/* The attributes of a leaf, by which it is told from others: (number, shape, dtype). */
static Object *leaf_attributes(Object *shape, Object *dtype)
{
    /* Where a tuple is its elements and nothing else, what tuple.__new__ does is done here. */
    const bool simple = helper.simple_tuples == helper.true_;
    Object *number = python.PyLong_FromLongLong(leaves_made++), *parts = NULL;
    if (number) parts = simple ? python.PyType_GenericAlloc(helper.leaf, 3) : python.PyTuple_New(3);
    if (!parts) {
        dropped(number);
        return NULL;
    }
    python.PyTuple_SetItem(parts, 0, number);
    python.PyTuple_SetItem(parts, 1, held(shape));
    python.PyTuple_SetItem(parts, 2, held(dtype));
    if (simple) return parts;
    Object *made = python.PyObject_CallFunctionObjArgs(helper.new_tuple, helper.leaf, parts, NULL);
    dropped(parts);
    return made;
}

Object *new_shaped_leaf(Object *data, Object *shape, Object *dtype, Object *site, Object *device)
{
    Object *nothing = python.PyTuple_New(0);
    Node *node = nothing ? blank() : NULL;
    if (!node) {
        dropped(nothing);
        return NULL;
    }
    node->op = held(helper.buffer_op);
    node->inputs = nothing;
    node->data = held(data);
    node->device = held(device);
    node->dtype = held(dtype);
    node->outs = held(helper.none);
    node->scopes = held(helper.no_scopes);
    node->shape = held(shape);
    node->site = held(site);
    return &node->head;
}

Object *new_leaf(Object *data, Object *dtype, Object *site, Object *device)
{
    Object *shape = python.PyObject_GetAttr(data, name_of.shape);
    Object *leaf = shape ? new_shaped_leaf(data, shape, dtype, site, device) : NULL;
    dropped(shape);
    return leaf;
}

static Object *device_of(Object *data)
{
    return data->type == helper.array ? held(helper.host) : python.PyObject_GetAttr(data, name_of.device);
}

/* buffer(data, dtype, loose=False) */
static Object *buffer(Object *self, Object *const *given, Size count, Object *names)
{
    (void)self;
    Size named = names ? python.PyTuple_Size(names) : 0;
    if (count < 2 || count + named > 3 || (named && python.PyTuple_GetItem(names, 0) != name_of.loose))
        return complain("buffer(data, dtype, loose=False)");
    bool loose = count + named == 3 && python.PyObject_IsTrue(given[2]) == 1;
    Object *device = loose ? held(helper.none) : device_of(given[0]);
    if (!device) return NULL;
    Object *made = new_leaf(given[0], given[1], at_work.site ? at_work.site : helper.none, device);
    dropped(device);
    return made;
}

/* buffers(arrays, dtypes): all of them on one machine; both are lists. */
static Object *buffers(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 2) return complain("buffers(arrays, dtypes)");
    Size length = python.PyList_Size(given[0]);
    if (length < 0 || python.PyList_Size(given[1]) != length)
        return python.PyErr_Occurred() ? NULL : complain("buffers(arrays, dtypes) takes as many of each");
    Object *made = python.PyList_New(length);
    Object *device = length ? device_of(python.PyList_GetItem(given[0], 0)) : held(helper.none);
    for (Size k = 0; made && device && k < length; k++) {
        Object *leaf = new_leaf(python.PyList_GetItem(given[0], k), python.PyList_GetItem(given[1], k),
                                at_work.site ? at_work.site : helper.none, device);
        if (!leaf)
            become(&made, NULL);
        else
            python.PyList_SetItem(made, k, leaf);
    }
    if (!device) become(&made, NULL);
    dropped(device);
    return made;
}

/* A node that has data becomes a leaf, unless a transformation at work may ask how it was computed (graph/node.py). */
void settle_node(Node *node)
{
    Object *op = node->op;
    if (node->data == helper.none || op == helper.buffer_op || op == helper.const_op || op == helper.placeholder_op)
        return;
    if (node->scopes != helper.no_scopes) {
        dropped(python.PyObject_CallFunctionObjArgs(helper.settle, node, NULL));
        return;
    }
    Object *nothing = python.PyTuple_New(0);
    if (!nothing) return;
    leave_table(node);
    become(&node->op, held(helper.buffer_op));
    become(&node->attrs, NULL);
    become(&node->inputs, nothing);
    node->depth = 0;
}

/* leaf_number(): one that no leaf has. */
static Object *leaf_number(Object *self, Object *const *given, Size count)
{
    (void)self, (void)given, (void)count;
    return python.PyLong_FromLongLong(leaves_made++);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static Method methods[] = {
    {"row", new_row, FAST_CALL, "Facts of an op."},
    {"make", make, FAST_CALL, "The node of an op; inputs are nodes of the dtypes it wants."},
    {"forget", forget, ONE_ARGUMENT, "Let a node not be found again."},
    {"known", known, FAST_CALL, "How many nodes can be found again, and in how many places."},
    {"buffer", buffer, FAST_CALL | KEYWORDS, "A leaf that holds a value."},
    {"buffers", buffers, FAST_CALL, "Leaves that hold values, all on one machine."},
    {"leaf_number", leaf_number, FAST_CALL, "A number that no leaf has."},
    {NULL, NULL, 0, NULL},
};

bool open_nodes(Object *module)
{
    static TypeSlot row_slots[] = {{SLOT_DEALLOCATE, deallocate_row}, {0, NULL}};
    static TypeSpec row_spec = {"eshkol.runtime.front.Row", sizeof(Row), 0, TYPE_DEFAULT, row_slots};
    static TypeSlot node_slots[32] = {
        {SLOT_DEALLOCATE, deallocate_node}, {SLOT_TRAVERSE, visit_node}, {SLOT_CLEAR, clear_node},
        {SLOT_MEMBERS, node_members}, {SLOT_PROPERTIES, node_properties}};
    node_operators(node_slots + 5);
    static TypeSpec node_spec = {
        "eshkol.runtime.front.NodeBase", sizeof(Node), 0, TYPE_DEFAULT | TYPE_BASE | TYPE_COLLECTED, node_slots};
    row_type = python.PyType_FromSpec(&row_spec);
    if (!row_type || add_to(module, "Row", held(row_type))) return false;
    return add_to(module, "NodeBase", python.PyType_FromSpec(&node_spec)) == 0 && add_methods(module, methods) == 0;
}
