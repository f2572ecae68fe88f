/* Handles: objects of Python on Scheme's heap.
 *
 * In: an object, with Python's lock held. Out: its handle in this context, the same one as long as Scheme has it. The
 * collector, which runs without Python's lock, takes a handle that nobody refers to from the table, and puts the object
 * on a list that the next crossing empties. Both are the process's, and have a lock of their own.
 */
#include "python.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the table: open addressing with linear probing -------------------------------------------------------------- */

enum { FIRST_HANDLES = 256 };

static struct { PythonHandle **slots; uint64_t mask, used; } table;

static uint64_t place(const PyObject *object, const Context *context) {
    return ((uint64_t)(uintptr_t)object ^ (uint64_t)(uintptr_t)context << 7) * 0x9E3779B97F4A7C15u >> 20;
}

static uint64_t find(const PyObject *object, const Context *context) {
    uint64_t i = place(object, context) & table.mask;
    for (; table.slots[i]; i = (i + 1) & table.mask)
        if (table.slots[i]->object == object && table.slots[i]->context == context) break;
    return i;
}

static bool grow(void) {
    uint64_t old = table.slots ? table.mask + 1 : 0, room = old ? 2 * old : FIRST_HANDLES;
    PythonHandle **slots = calloc(room, sizeof *slots), **before = table.slots;
    if (!slots) return false;
    table.slots = slots;
    table.mask = room - 1;
    for (uint64_t i = 0; i < old; i++)
        if (before[i]) slots[find(before[i]->object, before[i]->context)] = before[i];
    free(before);
    return true;
}

static void enter(PythonHandle *handle) {
    if ((!table.slots || 2 * table.used > table.mask) && !grow()) return; /* then the object has a second handle */
    uint64_t i = find(handle->object, handle->context);
    if (table.slots[i]) return;
    table.slots[i] = handle;
    table.used++;
}

static void forget(const PythonHandle *handle) {
    if (!table.slots) return;
    uint64_t gap = find(handle->object, handle->context), mask = table.mask;
    if (table.slots[gap] != handle) return;
    table.used--;
    for (uint64_t i = (gap + 1) & mask; table.slots[i]; i = (i + 1) & mask) { /* what follows moves up */
        uint64_t wanted = place(table.slots[i]->object, table.slots[i]->context);
        if (((i - wanted) & mask) >= ((i - gap) & mask)) {
            table.slots[gap] = table.slots[i];
            gap = i;
        }
    }
    table.slots[gap] = NULL;
}

static PythonHandle *known(const PyObject *object, const Context *context) {
    pthread_mutex_lock(&lock);
    PythonHandle *found = table.slots ? table.slots[find(object, context)] : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- letting go -------------------------------------------------------------------------------------------------- */

static struct { PyObject **objects; int64_t count, room; } released;

static void release(Object *object) {
    PythonHandle *handle = (PythonHandle *)object;
    esk_outside_freed += (uint64_t)handle->bytes;
    pthread_mutex_lock(&lock);
    forget(handle);
    if (released.count == released.room) {
        int64_t room = released.room ? 2 * released.room : 256;
        PyObject **objects = realloc(released.objects, (size_t)room * sizeof *objects);
        if (objects) {
            released.objects = objects;
            released.room = room;
        }
    }
    if (released.count < released.room) /* else Python keeps one object for ever, which does no harm */
        released.objects[released.count++] = handle->object;
    pthread_mutex_unlock(&lock);
}

/* With the lock of Python held. What is let go of may run code of its own. */
static void drain_released(void) {
    for (;;) {
        pthread_mutex_lock(&lock);
        PyObject *object = released.count ? released.objects[--released.count] : NULL;
        pthread_mutex_unlock(&lock);
        if (!object) return;
        py.Py_DecRef(object);
    }
}

void python_drain(void) {
    if (__atomic_load_n(&released.count, __ATOMIC_RELAXED)) drain_released();
}

/* For Python, when a machine was closed. */
void esk_python_drain(void) {
    if (py.Py_DecRef) python_drain();
}

/* What an object of Python's takes besides the bytes that it tells: many small tensors must not pile up unseen. */
enum { LEAST_BYTES = 2048 };

Value python_handle(Context *context, PyObject *object, int tag, int64_t bytes) {
    PythonHandle *handle = known(object, context);
    if (handle) return esk_object(handle);
    if (tag == TAG_TENSOR) bytes += LEAST_BYTES;
    if (bytes && esk_outside(context, bytes)) {
        python_drain();
        handle = known(object, context); /* code that ran meanwhile may have made it */
        if (handle) return esk_object(handle);
    }
    handle = esk_allocate(context, sizeof *handle, tag);
    handle->head.flags = FLAG_PYTHON;
    handle->head.count = 1;
    handle->procedure = ESK_FALSE;
    handle->object = object;
    handle->context = context;
    handle->bytes = bytes;
    esk_finalize(context, &handle->head, release);
    py.Py_IncRef(object);
    pthread_mutex_lock(&lock);
    enter(handle);
    pthread_mutex_unlock(&lock);
    return esk_object(handle);
}
