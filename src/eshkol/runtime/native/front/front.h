/* The front door: what every operation on tensors passes through, in C.
 *
 * Nodes of the graph and the handles that users hold are objects of the types below; Python's classes `Node` and
 * `Tensor` stand on them and add the rest. Here are the ways that nearly all operations go: arithmetic of tensors and
 * numbers of one dtype, making and finding nodes (`nodes.c`, `operators.c`), the structure of a graph that is to be
 * computed (`structure.c`), and running what was compiled for it (`plans.c`). Whatever is out of the ordinary is left
 * to Python, which has the general way of each: the helpers below. A fast way gives the same answer as the general
 * one, or does not take the case.
 */
#ifndef ESHKOL_FRONT_H
#define ESHKOL_FRONT_H

#include "python_abi.h"

#pragma GCC visibility push(hidden)

typedef struct { /* a value of the graph: see graph/node.py */
    Object head;
    Object *op, *inputs, *attrs, *data, *device, *dtype, *outs, *scopes, *shape, *site;
    Object *weak;
    Size depth;
    uint64_t hash;
    bool interned, wanted;
    uint32_t round;  /* of the last walk that met it, and what number it got there */
    uint32_t looked; /* the same of the last search for marks, which may come between the steps of a walk */
    int32_t number;
    int32_t uses;
} Node;

typedef struct { /* what a user holds: see tensors/value.py */
    Object head;
    Object *node, *grad;
    Object *window, *pair; /* NULL, which is None to Python, unless tensors/windows.py gives them */
} Handle;

typedef struct { /* facts of a row of the op table, for the ways below: see graph/node.py `front_row` */
    Object head;
    Object *dtype;   /* of the result, where that is not the inputs' */
    bool same;       /* the result has the broadcast shape of the inputs */
    bool shared;     /* two nodes of it can be the same */
    bool special;    /* scopes or machine of the node are not simply the inputs' */
    bool simple;     /* nothing is to be asked of it before or after it is made */
    bool promotes;   /* its inputs are brought to one dtype */
    bool keeps;      /* which integers have already, if all do */
    Size operands;   /* how many it takes, where it has no attributes */
} Row;

typedef struct { /* memory of a value: see schedule/run/resident.py */
    Object head;
    Object *machine, *ty, *array, *buffer;
    Size size;        /* of elements */
    uint64_t address; /* where the machine's memory begins, if that is known */
    bool has_address, own, lent;
} Stored;

typedef struct { /* a value in such memory, under a shape */
    Object head;
    Object *stored, *shape, *dtype;
} Resident;

/* What Python gives by name: types, constants, and the general ways. */
#define FRONT_HELPERS(X)                                                                                       \
    X(none) X(float_) X(int_) X(plain_tuple) X(new_tuple) X(array) X(reshape) X(not_implemented) X(type_error) \
    X(node) X(tensor) X(aval) X(leaf) X(no_scopes) X(host)                                                     \
    X(buffer_op) X(placeholder_op) X(mark_op) X(const_op)                                                      \
    X(front_row) X(inferred) X(specially) X(on_different_machines) X(settle) X(constant) X(kind_of_file)       \
    X(wrapped) X(operate_at) X(operate_nodes) X(attributes) X(unknown_value) X(given_away) X(told_by_structure) \
    X(bool_) X(true_) X(ellipsis) X(text) X(list) X(slice) X(dict) X(dtype) X(library_error)                      \
    X(learn) X(examined) X(refused) X(floats) X(compute_now) X(note) X(look_through) X(lacking) X(attribute_error)    \
    X(false_) X(heads) X(bfloat16) X(as_array) X(scopes_at_work) X(checks) X(looks_for_nan) X(lock) X(unlock)     \
    X(machines) X(kept) X(compute) X(exclusive) X(reshape_op) X(permute_op) X(no_names) X(device_now) \
    X(bool_dtype) X(long_dtype) X(stored) X(resident) X(is_finalizing) X(let_go) X(float_dtype) X(double_dtype)  \
    X(empty) X(simple_tuples) X(max_op) X(min_op) X(argmax_op) X(argmin_op)

typedef struct {
#define X(name) Object *name;
    FRONT_HELPERS(X)
#undef X
} Helpers;

/* Names of attributes. */
#define FRONT_NAMES(X)                                                                                         \
    X(front) X(shape) X(dtype) X(differentiable) X(is_integer) X(bits) X(co_filename) X(f_lasti) X(f_back)     \
    X(device) X(loose) X(address) X(quick) X(nbytes) X(move_to_end) X(array) X(start) X(stop) X(step) X(view)  \
    X(item) X(copy) X(stack) X(crosses) X(scope) X(__array_struct__) X(__array_interface__)               \
    X(give) X(description) X(numpy) X(_called) X(cell_contents)

typedef struct {
#define X(name) Object *name;
    FRONT_NAMES(X)
#undef X
} Names;

extern Helpers helper;
extern Names name_of;

typedef struct { /* what is at work in a thread */
    Object *site;  /* the line of the user's program; NULL: none */
    bool urgent;   /* whether it made a node that may fail on its values */
    bool no_grad;  /* whether operations are not remembered for `backward` */
} AtWork;
extern _Thread_local AtWork at_work;

enum {
    LONGEST = 1024,    /* operations one after another that wait to be computed; Python has it from here */
    COUNTED = 1 << 16, /* bytes from which on memory is counted, and worth being taken; likewise */
    MOST_COPIED = 1 << 14, /* bytes that are sooner copied than anything else */
};

static inline bool is_node(Object *object) { return object->type == helper.node; }

/* How NumPy's arrays begin, where `helper.heads` says that they do so (schedule/run/memory.py). */
enum { ARRAY_DATA = 16, ARRAY_AXES = 24, ARRAY_EXTENTS = 32, ARRAY_BASE = 48, ARRAY_FLAGS = 64 };
enum { CONTIGUOUS = 0x1, OWNS = 0x4, ALIGNED = 0x100, WRITEABLE = 0x400 }; /* flags */

static inline int flags_of(Object *array) { return *(int *)((char *)array + ARRAY_FLAGS); }

static inline Size elements_of(Object *array)
{
    Size count = 1;
    for (int axis = 0; axis < *(int *)((char *)array + ARRAY_AXES); axis++)
        count *= (*(Size **)((char *)array + ARRAY_EXTENTS))[axis];
    return count;
}

typedef struct { /* what is known of a node before it is made; all borrowed */
    Object *op, *attrs, *shape, *dtype, *outs;
    Size attrs_hash;
} Known;

Row *row_of(Object *op);                                    /* borrowed; NULL with an error */
Object *attributes_of(Node *node);                          /* borrowed; NULL with an error */
Object *make_node(Object *op, Object *inputs, Object *attrs); /* new reference; the tuple is borrowed */
Object *make_known(const Known *known, Object *inputs);      /* the same, without asking for its shape */
void node_operators(void *slots);                           /* TypeSlots: arithmetic of nodes */
Object *node_of(Object *tensor);                            /* borrowed, as an operand; NULL: the general way */
Object *handle_of(Object *made);                            /* the tensor of a node; takes the reference */
Object *bare_handle(Object *node);                          /* the same where nothing is to be asked of the node */
bool is_tensor(Object *object);                             /* also of a class that a user made of it */
bool is_differentiable(Object *dtype);
bool look_through(Object *made, Object *source);            /* note what others would give a window into */
Object *new_leaf(Object *data, Object *dtype, Object *site, Object *device); /* new reference; the rest is borrowed */
Object *new_shaped_leaf(Object *data, Object *shape, Object *dtype, Object *site, Object *device); /* likewise */
int compute_kept(Object *results, Object *kept, Object *machine); /* 1 done, 0 nothing has happened, -1 an error */
Object *empty_array(Object *shape, Object *dtype);          /* new reference; the dtype is one of ours */
Object *seen_as(Node *node, const Known *known);            /* a leaf, where it is small and at hand; NULL: it is not */
Object *turned_of(Node *node, const Known *known);          /* the same, with its axes in another order */
Object *extreme_of(Node *node, const Known *known);         /* the same of a greatest or least element */
bool is_transforming(void);                                 /* a transformation is at work */
/* The result of a call that was learnt, new reference; NULL: the general way, unless there is an error. */
Object *known_call(Object *op, Object *args, Object *named, Object *site);
Object *site_now(void);                                     /* new reference; None where there is no line */
Object *constant_of(Object *number, Object *dtype);         /* new reference; NULL without an error: not here */

void settle_node(Node *node);                               /* a leaf of what has data, if nothing needs its history */
/* The results of a plan, new references, for arrays; they may take the same places. Where it fails and is to do so
 * quietly, there is no error. */
bool run_plan(Object *plan, Object *const *given, Size count, bool quietly, Object **results);
Object *run_plan_on(Object *plan, Object *arrays, bool quietly); /* the same of lists */
Size plan_results(Object *plan);
Object *plan_shape(Object *plan, Size number);              /* of a result, borrowed; NULL where it is not known */
bool is_device_plan(Object *object);
Object *run_device_plan(Object *plan, Object *values);      /* lists of values on the device */
bool is_resident(Object *value);
Object *new_stored(Object *machine, Object *ty, Size size, uint64_t address); /* new references; the rest is borrowed */
Object *new_resident(Object *stored, Object *shape, Object *dtype);
bool is_looked_at(void);                                    /* more is done with plans than to run them */
bool is_described_as(Object *machine, Object *target);      /* false, perhaps with an error */

bool open_nodes(Object *module);
bool open_operators(Object *module);
bool open_structure(Object *module);
bool open_plans(Object *module);
bool open_templates(Object *module);
bool open_reading(Object *module);
bool open_small(Object *module);
bool open_updating(Object *module);
bool open_blocks(Object *module);
bool open_residents(Object *module);
bool open_device_plans(Object *module);
bool open_calls(Object *module);
int add_to(Object *module, const char *name, Object *made); /* a dict; takes the reference */
Object *complain(const char *text);                           /* NULL, with a TypeError */
int add_methods(Object *module, Method *methods);

#pragma GCC visibility pop

#endif
