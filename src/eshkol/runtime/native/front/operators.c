/* Arithmetic of tensors and of nodes: the line that asked for it, numbers as constants, one dtype. See front.h.
 *
 * Fast are operands that are plain tensors (or nodes) of one dtype, with or without a Python number that fits it, where
 * nothing of a transformation is to be left behind; everything else goes the general way, with the same line. */
#include "front.h"

#include <string.h>

_Thread_local AtWork at_work;

/* ---- the line of the user's program ----------------------------------------------------------------------------- */

enum { OF_USER, OF_PACKAGE, OF_THREADS }; /* whose file it is (graph/node.py `kind_of_file`) */
static struct {
    Object *name;
    int kind;
} files[256]; /* by the address of the name, which is one object for all code of a file */

static int kind_of_file(Object *code)
{
    Object *name = python.PyObject_GetAttr(code, name_of.co_filename);
    if (!name) return -1;
    unsigned at = (unsigned)((uintptr_t)name >> 4) % 256;
    if (files[at].name != name) {
        Object *kind = python.PyObject_CallFunctionObjArgs(helper.kind_of_file, name, NULL);
        if (!kind) {
            dropped(name);
            return -1;
        }
        files[at].kind = (int)python.PyLong_AsLongLong(kind);
        dropped(kind);
        become(&files[at].name, held(name));
    }
    dropped(name);
    return files[at].kind;
}

/* The innermost line that is not of this package; what is at work already, where there is none. */
Object *site_now(void)
{
    Object *frame = python.PyEval_GetFrame();
    if (frame) held(frame);
    while (frame && frame != helper.none) {
        Object *code = python.PyFrame_GetCode(frame);
        int kind = kind_of_file(code);
        if (kind == OF_PACKAGE) {
            dropped(code);
            become(&frame, python.PyObject_GetAttr(frame, name_of.f_back));
            continue;
        }
        Object *site = kind == OF_USER ? python.PyTuple_New(2) : NULL;
        Object *place = site ? python.PyObject_GetAttr(frame, name_of.f_lasti) : NULL;
        dropped(frame);
        if (!place) {
            dropped(site);
            dropped(code);
            if (kind < 0 || python.PyErr_Occurred()) return NULL;
            frame = NULL;
            break;
        }
        python.PyTuple_SetItem(site, 0, code);
        python.PyTuple_SetItem(site, 1, place);
        return site;
    }
    dropped(frame);
    if (python.PyErr_Occurred()) return NULL;
    return held(at_work.site ? at_work.site : helper.none);
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

typedef struct {
    Object *dtype;
    bool differentiable, whole; /* integers with a sign */
    long long most;             /* of these, the largest */
} Kind;

static bool is_true(Object *dtype, Object *name)
{
    Object *found = python.PyObject_GetAttr(dtype, name);
    bool yes = found && python.PyObject_IsTrue(found) == 1;
    dropped(found);
    return yes;
}

static const Kind *kind_of(Object *dtype)
{
    static Kind known[64];
    Kind *kind = &known[((uintptr_t)dtype >> 4) % 64];
    if (kind->dtype != dtype) {
        Object *has_sign = python.PyUnicode_InternFromString("signed"); /* a word of C's own */
        Kind found = {held(dtype), is_true(dtype, name_of.differentiable), is_true(dtype, name_of.is_integer), 0};
        found.whole = found.whole && has_sign && is_true(dtype, has_sign);
        dropped(has_sign);
        Object *bits = python.PyObject_GetAttr(dtype, name_of.bits);
        if (bits && found.whole) found.most = (long long)(UINT64_MAX >> (65 - python.PyLong_AsLongLong(bits)));
        dropped(bits);
        if (python.PyErr_Occurred()) return NULL; /* the general way says so, too */
        Object *before = kind->dtype;
        *kind = found;
        dropped(before);
    }
    return kind;
}

bool is_differentiable(Object *dtype)
{
    const Kind *kind = kind_of(dtype);
    return kind && kind->differentiable;
}

/* Whether a Python number takes the dtype of the tensors beside it. */
static bool takes(const Kind *kind, Object *number)
{
    if (kind->differentiable) return true;
    int beyond = 0;
    long long value = number->type == helper.int_ ? python.PyLong_AsLongLongAndOverflow(number, &beyond) : 0;
    return number->type == helper.int_ && !beyond && value <= kind->most && value >= -kind->most - 1;
}

static struct {
    Object *dtype, *node;
    uint64_t bits;
    bool is_float;
} constants[1024]; /* those met lately */

/* A Python float or integer as a node of a dtype that takes it. */
Object *constant_of(Object *number, Object *dtype)
{
    uint64_t bits;
    bool is_float = number->type == helper.float_;
    if (is_float) {
        double value = python.PyFloat_AsDouble(number);
        memcpy(&bits, &value, sizeof bits); /* tells 0.0 from -0.0 */
    } else {
        int beyond = 0;
        bits = (uint64_t)python.PyLong_AsLongLongAndOverflow(number, &beyond);
        if (beyond) return NULL;
    }
    uint64_t hash = ((uint64_t)(uintptr_t)dtype >> 4 ^ bits ^ is_float) * 0x9E3779B97F4A7C15u;
    unsigned at = (unsigned)(hash >> 54);
    if (constants[at].dtype == dtype && constants[at].bits == bits && constants[at].is_float == is_float)
        return held(constants[at].node);
    Object *node = python.PyObject_CallFunctionObjArgs(helper.constant, number, dtype, NULL);
    if (!node) return NULL;
    Object *before[] = {constants[at].dtype, constants[at].node}; /* they go last: their end may run other code */
    constants[at].dtype = held(dtype);
    constants[at].node = held(node);
    constants[at].bits = bits;
    constants[at].is_float = is_float;
    dropped(before[0]);
    dropped(before[1]);
    return node;
}

static inline bool is_number(Object *object) { return object->type == helper.float_ || object->type == helper.int_; }

/* ---- operators -------------------------------------------------------------------------------------------------- */

/* X(name, slot, operands); the ops are given by `operators` below, in this order. */
#define BINARY(X)                                                                                              \
    X(add, SLOT_ADD) X(sub, SLOT_SUBTRACT) X(mul, SLOT_MULTIPLY) X(div, SLOT_TRUE_DIVIDE)                      \
    X(matmul, SLOT_MATRIX_MULTIPLY) X(floor_divide, SLOT_FLOOR_DIVIDE) X(remainder, SLOT_REMAINDER)
#define UNARY(X) X(neg, SLOT_NEGATIVE) X(absolute, SLOT_ABSOLUTE)

enum {
#define X(name, slot) OP_##name,
    BINARY(X) OP_pow, UNARY(X) OPS
#undef X
};
static Object *ops[OPS];

/* The node of an op of nodes and numbers, at least one of them a node; NULL without an error: the general way. */
static Object *operated(Object *op, Object *const *operands, Size count)
{
    const Row *row = row_of(op);
    if (!row || !row->simple || !row->promotes || row->operands != count) return NULL;
    Object *dtype = NULL;
    for (Size k = 0; k < count; k++)
        if (is_node(operands[k])) {
            Object *own = ((Node *)operands[k])->dtype;
            if (dtype && own != dtype) return NULL;
            dtype = own;
        } else if (!is_number(operands[k]))
            return NULL;
    const Kind *kind = dtype ? kind_of(dtype) : NULL;
    if (!kind || !(kind->differentiable || (kind->whole && row->keeps))) return NULL;
    for (Size k = 0; k < count; k++)
        if (!is_node(operands[k]) && !takes(kind, operands[k])) return NULL;
    Object *inputs = python.PyTuple_New(count);
    for (Size k = 0; inputs && k < count; k++) {
        Object *input = is_node(operands[k]) ? held(operands[k]) : constant_of(operands[k], dtype);
        if (input)
            python.PyTuple_SetItem(inputs, k, input);
        else
            become(&inputs, NULL);
    }
    if (!inputs) return NULL;
    Object *made = make_node(op, inputs, helper.none);
    dropped(inputs);
    return made;
}

static bool is_plain_tensor(Object *object) { return object->type == helper.tensor; }

bool is_tensor(Object *object)
{
    return is_plain_tensor(object) || python.PyType_IsSubtype(object->type, helper.tensor) != 0;
}

/* A tensor's node as an operand; NULL without an error where the general way has more to do. */
Object *node_of(Object *tensor)
{
    Node *node = (Node *)((Handle *)tensor)->node;
    if (!node || !is_node(&node->head)) return NULL;
    settle_node(node);
    if (python.PyErr_Occurred()) return NULL;
    return at_work.no_grad && node->scopes != helper.no_scopes ? NULL : &node->head;
}

Object *bare_handle(Object *node)
{
    Handle *handle = (Handle *)python.PyType_GenericAlloc(helper.tensor, 0);
    if (!handle) {
        dropped(node);
        return NULL;
    }
    handle->node = node;
    handle->grad = held(helper.none);
    return &handle->head;
}

/* See tensors/windows.py, which has the rest. */
bool look_through(Object *made, Object *source)
{
    Object *earlier = ((Handle *)source)->window, *done;
    if (earlier && earlier != helper.none) {
        done = python.PyObject_CallFunctionObjArgs(helper.look_through, made, source, NULL);
        dropped(done);
        return done != NULL;
    }
    Object *reference = python.PyWeakref_NewRef(source, NULL);
    done = reference ? python.PyTuple_New(1) : NULL;
    if (!done) {
        dropped(reference);
        return false;
    }
    python.PyTuple_SetItem(done, 0, reference);
    become(&((Handle *)made)->window, done);
    return true;
}

/* The tensor of a node that an operation gave; takes the reference. */
Object *handle_of(Object *made)
{
    Node *node = (Node *)made;
    if (node->depth > LONGEST || node->device == helper.none) {
        Object *tensor = python.PyObject_CallFunctionObjArgs(helper.wrapped, made, NULL);
        dropped(made);
        return tensor;
    }
    return bare_handle(made);
}

static Object *general(Object *way, Object *op, Object *const *operands, Size count, Object *site)
{
    Object *inputs = python.PyTuple_New(count);
    if (!inputs) return NULL;
    for (Size k = 0; k < count; k++)
        python.PyTuple_SetItem(inputs, k, held(operands[k]));
    Object *made = python.PyObject_CallFunctionObjArgs(way, op, inputs, site, NULL);
    dropped(inputs);
    return made;
}

/* The tensor of an op of tensors and numbers, in the fast way; NULL without an error where that does not take it. */
static Object *quickly(Object *op, Object *const *operands, Size count, Object *site)
{
    Object *nodes[2];
    for (Size k = 0; k < count; k++) {
        nodes[k] = is_plain_tensor(operands[k]) ? node_of(operands[k]) : is_number(operands[k]) ? operands[k] : NULL;
        if (!nodes[k]) return NULL;
    }
    Object *outer = at_work.site;
    at_work.site = held(site);
    Object *made = operated(op, nodes, count);
    become(&at_work.site, outer);
    return made ? handle_of(made) : NULL;
}

static Object *of_tensors(Object *op, Object *const *operands, Size count)
{
    Object *site = site_now();
    if (!site) return NULL;
    Object *made = quickly(op, operands, count, site);
    bool ordinary = is_plain_tensor(operands[0]); /* functions take lists, too; operators leave them to the list */
    if (count == 2) ordinary = ordinary && (is_plain_tensor(operands[1]) || is_number(operands[1]));
    if (!made && !python.PyErr_Occurred() && ordinary) {
        Object *args = python.PyTuple_New(count);
        for (Size k = 0; args && k < count; k++)
            python.PyTuple_SetItem(args, k, held(operands[k]));
        if (args) made = known_call(op, args, helper.no_names, site);
        dropped(args);
    }
    if (!made && !python.PyErr_Occurred()) made = general(helper.operate_at, op, operands, count, site);
    dropped(site);
    return made;
}

static Object *of_nodes(Object *op, Object *const *operands, Size count)
{
    Object *made = operated(op, operands, count);
    if (!made && !python.PyErr_Occurred())
        made = general(helper.operate_nodes, op, operands, count, helper.none);
    return made;
}

#define X(name, slot)                                                                                          \
    static Object *tensor_##name(Object *x, Object *y) { return of_tensors(ops[OP_##name], (Object *[]){x, y}, 2); } \
    static Object *node_##name(Object *x, Object *y) { return of_nodes(ops[OP_##name], (Object *[]){x, y}, 2); }
BINARY(X)
#undef X
#define X(name, slot)                                                                                          \
    static Object *tensor_##name(Object *x) { return of_tensors(ops[OP_##name], &x, 1); }                      \
    static Object *node_##name(Object *x) { return of_nodes(ops[OP_##name], &x, 1); }
UNARY(X)
#undef X

static Object *tensor_pow(Object *x, Object *y, Object *modulus)
{
    if (modulus != helper.none) return held(helper.not_implemented);
    return of_tensors(ops[OP_pow], (Object *[]){x, y}, 2);
}

static Object *node_pow(Object *x, Object *y, Object *modulus)
{
    if (modulus != helper.none) return held(helper.not_implemented);
    return of_nodes(ops[OP_pow], (Object *[]){x, y}, 2);
}

#define TENSOR_SLOT(name, slot) *slots++ = (TypeSlot){slot, tensor_##name};
#define NODE_SLOT(name, slot) *slots++ = (TypeSlot){slot, node_##name};

static void tensor_operators(TypeSlot *slots)
{
    BINARY(TENSOR_SLOT) UNARY(TENSOR_SLOT) TENSOR_SLOT(pow, SLOT_POWER)
}

void node_operators(void *first)
{
    TypeSlot *slots = first;
    BINARY(NODE_SLOT) UNARY(NODE_SLOT) NODE_SLOT(pow, SLOT_POWER)
}

static const char *const op_names[] = {
#define X(name, slot) #name,
    BINARY(X) "pow", UNARY(X)
#undef X
};

/* operators(): the names of the ops that operators are, in order; operators(op, ...): the ops themselves. */
static Object *operators(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count == OPS) {
        for (Size k = 0; k < OPS; k++)
            become(&ops[k], held(given[k]));
        return held(helper.none);
    }
    Object *names = python.PyTuple_New(OPS);
    for (Size k = 0; names && k < OPS; k++)
        python.PyTuple_SetItem(names, k, python.PyUnicode_InternFromString(op_names[k]));
    return names;
}

/* elementwise(op, x), elementwise(op, x, y): an op without attributes. */
static Object *elementwise(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count < 2 || count > 3) return complain("elementwise(op, x) or elementwise(op, x, y)");
    return of_tensors(given[0], given + 1, count - 1);
}

/* quick(op, x), quick(op, x, y): the same, or NotImplemented where it is not among the ordinary. */
static Object *quick(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count < 2 || count > 3) return held(helper.not_implemented);
    Object *site = site_now();
    if (!site) return NULL;
    Object *made = quickly(given[0], given + 1, count - 1, site);
    dropped(site);
    return made || python.PyErr_Occurred() ? made : held(helper.not_implemented);
}

/* ---- what users hold -------------------------------------------------------------------------------------------- */

static int visit_handle(Object *self, Visit visit, void *how)
{
    Handle *handle = (Handle *)self;
    Object *all[] = {handle->node, handle->grad, handle->window, handle->pair, self->type};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        int status = all[k] ? visit(all[k], how) : 0;
        if (status) return status;
    }
    return 0;
}

static int clear_handle(Object *self)
{
    Handle *handle = (Handle *)self;
    become(&handle->node, NULL);
    become(&handle->grad, NULL);
    become(&handle->window, NULL);
    become(&handle->pair, NULL);
    return 0;
}

static void deallocate_handle(Object *self)
{
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    clear_handle(self);
    python.PyObject_GC_Del(self);
    dropped(type);
}

/* What NumPy asks every object for on its way to `__array__` is not there, and nobody is to be told what is. */
static Object *attribute(Object *self, Object *name)
{
    if (self->type == helper.tensor && (name == name_of.__array_struct__ || name == name_of.__array_interface__)) {
        python.PyErr_SetObject(helper.attribute_error, name);
        return NULL;
    }
    Object *found = python.PyObject_GenericGetAttr(self, name);
    if (found || !helper.lacking || !python.PyErr_ExceptionMatches(helper.attribute_error)) return found;
    python.PyErr_Clear();
    return python.PyObject_CallFunctionObjArgs(helper.lacking, self, name, NULL);
}

static Member handle_members[] = {
    {"_node", MEMBER_OBJECT, offsetof(Handle, node), 0, NULL},
    {"_grad", MEMBER_OBJECT, offsetof(Handle, grad), 0, NULL},
    {"_window", MEMBER_OR_NONE, offsetof(Handle, window), 0, NULL},
    {"_pair", MEMBER_OR_NONE, offsetof(Handle, pair), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* ---- what is at work in a thread -------------------------------------------------------------------------------- */

static Object *get_site(Object *self, void *which)
{
    (void)self, (void)which;
    return held(at_work.site ? at_work.site : helper.none);
}

static int set_site(Object *self, Object *site, void *which)
{
    (void)self, (void)which;
    become(&at_work.site, site && site != helper.none ? held(site) : NULL);
    return 0;
}

static Object *get_truth(Object *self, void *which)
{
    (void)self;
    return python.PyBool_FromLong(which ? !at_work.no_grad : at_work.urgent);
}

static int set_truth(Object *self, Object *truth, void *which)
{
    (void)self;
    int yes = truth ? python.PyObject_IsTrue(truth) : 0;
    if (yes < 0) return -1;
    *(which ? &at_work.no_grad : &at_work.urgent) = which ? !yes : yes;
    return 0;
}

static Property at_work_properties[] = {
    {"site", get_site, set_site, "The line of the user's program.", NULL},
    {"urgent", get_truth, set_truth, "Whether it made a node that may fail on its values.", NULL},
    {"enabled", get_truth, set_truth, "Whether operations are remembered for backward.", (void *)1},
    {NULL, NULL, NULL, NULL, NULL},
};

static void deallocate_at_work(Object *self)
{
    Object *type = self->type;
    python.PyObject_Free(self);
    dropped(type);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static Method methods[] = {
    {"operators", operators, FAST_CALL, "The ops that operators are."},
    {"elementwise", elementwise, FAST_CALL, "An op without attributes of one or two tensors."},
    {"quick", quick, FAST_CALL, "The same, or NotImplemented where it is not among the ordinary."},
    {NULL, NULL, 0, NULL},
};

bool open_operators(Object *module)
{
    static TypeSlot handle_slots[32] = {
        {SLOT_DEALLOCATE, deallocate_handle}, {SLOT_TRAVERSE, visit_handle}, {SLOT_CLEAR, clear_handle},
        {SLOT_MEMBERS, handle_members}, {SLOT_ATTRIBUTE, attribute}};
    tensor_operators(handle_slots + 5);
    static TypeSpec handle_spec = {
        "eshkol.runtime.front.TensorBase", sizeof(Handle), 0, TYPE_DEFAULT | TYPE_BASE | TYPE_COLLECTED, handle_slots};
    static TypeSlot at_work_slots[] = {
        {SLOT_DEALLOCATE, deallocate_at_work}, {SLOT_PROPERTIES, at_work_properties}, {0, NULL}};
    static TypeSpec at_work_spec = {"eshkol.runtime.front.AtWork", sizeof(Object), 0, TYPE_DEFAULT, at_work_slots};
    Object *type = python.PyType_FromSpec(&at_work_spec);
    if (!type || add_to(module, "at_work", python.PyType_GenericAlloc(type, 0))) return false;
    return add_to(module, "TensorBase", python.PyType_FromSpec(&handle_spec)) == 0 && add_methods(module, methods) == 0;
}
