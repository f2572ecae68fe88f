/* Values in the memory of a machine: what C has of `Stored` and `Resident` (schedule/run/resident.py).
 *
 * Memory that only its address is known of is given back here, when its last value goes; what has a buffer, Python
 * lets go (`let_go`). */
#include "front.h"

static Object *address_of_stored(Object *self, void *closure)
{
    (void)closure;
    const Stored *stored = (Stored *)self;
    return stored->has_address ? python.PyLong_FromLongLong((long long)stored->address) : held(helper.none);
}

static int set_address(Object *self, Object *value, void *closure)
{
    (void)closure;
    Stored *stored = (Stored *)self;
    bool known = value && value != helper.none;
    uint64_t address = known ? (uint64_t)python.PyLong_AsLongLong(value) : 0;
    if (python.PyErr_Occurred()) return -1;
    stored->address = address;
    stored->has_address = known;
    return 0;
}

static void give_back(Stored *stored)
{
    Object *ending = python.PyObject_CallObject(helper.is_finalizing, NULL), *done = NULL;
    bool ends = ending != helper.false_; /* machines may be gone before the last value is */
    dropped(ending);
    if (!ends && stored->buffer && stored->buffer != helper.none)
        done = python.PyObject_CallFunctionObjArgs(
            helper.let_go, stored->machine, stored->ty, stored->array, stored->buffer,
            stored->own ? helper.true_ : helper.false_, NULL);
    else if (!ends) {
        Object *address = python.PyLong_FromLongLong((long long)stored->address);
        done = address ? python.PyObject_CallMethodObjArgs(stored->machine, name_of.give, address, NULL) : NULL;
        dropped(address);
    }
    dropped(done);
    if (!ends && !done) python.PyErr_WriteUnraisable(stored->machine);
}

#define STORED(X) X(machine) X(ty) X(array) X(buffer)
#define RESIDENT(X) X(stored) X(shape) X(dtype)
#define VISITED(field)                       \
    if (own->field) {                        \
        int status = visit(own->field, how); \
        if (status) return status;           \
    }
#define CLEARED(field) become(&own->field, NULL);

static int visit_stored(Object *self, Visit visit, void *how)
{
    const Stored *own = (Stored *)self;
    STORED(VISITED)
    return visit(self->type, how);
}

/* The machine's memory is given back before anything of it goes: a machine may be garbage together with its values. */
static void finalize_stored(Object *self)
{
    Stored *own = (Stored *)self;
    if (!own->machine || !(own->has_address || (own->buffer && own->buffer != helper.none))) return;
    Object *kind, *error, *trace;
    python.PyErr_Fetch(&kind, &error, &trace); /* of whatever goes on meanwhile */
    give_back(own);
    python.PyErr_Restore(kind, error, trace);
    own->has_address = false;
    become(&own->buffer, held(helper.none));
}

static int clear_stored(Object *self)
{
    Stored *own = (Stored *)self;
    STORED(CLEARED)
    return 0;
}

static void deallocate_stored(Object *self)
{
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    finalize_stored(self); /* of Python's class, done before */
    clear_stored(self);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static int visit_resident(Object *self, Visit visit, void *how)
{
    const Resident *own = (Resident *)self;
    RESIDENT(VISITED)
    return visit(self->type, how);
}

static int clear_resident(Object *self)
{
    Resident *own = (Resident *)self;
    RESIDENT(CLEARED)
    return 0;
}

static void deallocate_resident(Object *self)
{
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    clear_resident(self);
    python.PyObject_GC_Del(self);
    dropped(type);
}

Object *new_resident(Object *stored, Object *shape, Object *dtype)
{
    Resident *made = (Resident *)python.PyType_GenericAlloc(helper.resident, 0);
    if (!made) return NULL;
    made->stored = held(stored);
    made->shape = held(shape);
    made->dtype = held(dtype);
    return &made->head;
}

Object *new_stored(Object *machine, Object *ty, Size size, uint64_t address)
{
    Stored *made = (Stored *)python.PyType_GenericAlloc(helper.stored, 0);
    if (!made) return NULL;
    made->machine = held(machine);
    made->ty = held(ty);
    made->size = size;
    made->array = held(helper.none);
    made->buffer = held(helper.none);
    made->address = address;
    made->has_address = true;
    return &made->head;
}

#define OBJECT(type, field) {#field, MEMBER_OR_NONE, offsetof(type, field), 0, NULL}

bool open_residents(Object *module)
{
    static Member stored_members[] = {
        OBJECT(Stored, machine), OBJECT(Stored, ty), OBJECT(Stored, array), OBJECT(Stored, buffer),
        {"size", MEMBER_SIZE, offsetof(Stored, size), 0, NULL}, {"own", MEMBER_TRUTH, offsetof(Stored, own), 0, NULL},
        {"lent", MEMBER_TRUTH, offsetof(Stored, lent), 0, NULL}, {NULL, 0, 0, 0, NULL}};
    static Property properties[] = {
        {"address", address_of_stored, set_address, "Where the machine's memory begins, or None.", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    static TypeSlot stored_slots[] = {
        {SLOT_DEALLOCATE, deallocate_stored}, {SLOT_TRAVERSE, visit_stored}, {SLOT_CLEAR, clear_stored},
        {SLOT_FINALIZE, finalize_stored}, {SLOT_MEMBERS, stored_members}, {SLOT_PROPERTIES, properties}, {0, NULL}};
    static TypeSpec stored_spec = {
        "eshkol.runtime.front.StoredBase", sizeof(Stored), 0, TYPE_DEFAULT | TYPE_BASE | TYPE_COLLECTED, stored_slots};
    static Member members[] = {
        OBJECT(Resident, stored), OBJECT(Resident, shape), OBJECT(Resident, dtype), {NULL, 0, 0, 0, NULL}};
    static TypeSlot slots[] = {
        {SLOT_DEALLOCATE, deallocate_resident}, {SLOT_TRAVERSE, visit_resident}, {SLOT_CLEAR, clear_resident},
        {SLOT_MEMBERS, members}, {0, NULL}};
    static TypeSpec spec = {
        "eshkol.runtime.front.ResidentBase", sizeof(Resident), 0, TYPE_DEFAULT | TYPE_BASE | TYPE_COLLECTED, slots};
    return add_to(module, "StoredBase", python.PyType_FromSpec(&stored_spec)) == 0
           && add_to(module, "ResidentBase", python.PyType_FromSpec(&spec)) == 0;
}
