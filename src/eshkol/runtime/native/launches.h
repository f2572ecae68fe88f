/* Launches one after another on a device with memory and a queue of its own: what a compiled plan runs as there.
 *
 * The steps are those of sequence.h over addresses of the device's memory. What is asked of the device goes through the
 * functions that its driver has, which are given by their addresses; nothing is linked. The host waits where a step
 * looks at a byte of the device's memory, and if lanes of some launch may have failed: at the end, or until the last
 * such launch is done where only the first few are. Steps that are run again and again and look at nothing become a
 * graph (graphs.h), where the driver has graphs; or two that take turns: where results lie in other memory than what
 * they take the place of, many addresses are every second time the same.
 */
#ifndef ESHKOL_LAUNCHES_H
#define ESHKOL_LAUNCHES_H

#include <stddef.h>

#include "graphs.h"
#include "sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What may be asked of a device. Every function gives 0, or a number that says what is wrong. */
enum { ESHKOL_ENTER, ESHKOL_LAUNCH, ESHKOL_MOVE, ESHKOL_FETCH, ESHKOL_WAIT, ESHKOL_MAP, ESHKOL_MAP_WINDOWS,
       ESHKOL_RECORD, ESHKOL_AWAIT };

typedef struct {
    int (*enter)(void *context); /* make it the thread's own */
    int (*launch)(void *kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                  void *queue, void **arguments, void **extra);
    int (*move)(uint64_t target, uint64_t source, size_t size, void *queue);
    int (*fetch)(void *target, uint64_t source, size_t size, void *queue);
    int (*wait)(void *queue);
    int (*map)(void *map, int kind, unsigned axes, uint64_t address, const uint64_t *extents, const uint64_t *strides,
               const unsigned *box, const unsigned *steps, int interleaving, int swizzle, int promotion, int beyond);
    int (*map_windows)(void *map, int kind, unsigned axes, uint64_t address, const uint64_t *extents,
                       const uint64_t *strides, const int *lower, const int *upper, unsigned elements, unsigned windows,
                       const unsigned *steps, int interleaving, int swizzle, int promotion, int beyond);
    int (*record)(void *event, void *queue);
    int (*await)(void *event);
    void *context, *queue;
    int64_t queues; /* whether there are others: then who runs steps sees to what must be waited for */
} eshkol_device;

enum { ESHKOL_MAP_AXES = 5, ESHKOL_MAP_WORDS = 16, ESHKOL_MAP_SPACE = 2 };

/* How a kernel's own copies find boxes of a tensor: words of the record, from `word` on, which the driver makes of the
 * address in word `buffer`, plus an offset, and of extents, strides in bytes (of all axes but the first, whose elements
 * are neighbours), and a box, whose rows of 128 bytes may lie with their chunks of 16 exchanged in shared memory. Only
 * where the address has changed are they made again. With windows, the box is so many elements of the first axis for so
 * many windows, which begin from one corner to another of the axes that follow, in steps; corners are those of the
 * places where windows begin, against the first and the last place of the tensor. */
typedef struct {
    int64_t word, buffer, offset, kind, exchanged, axes;
    uint64_t extents[ESHKOL_MAP_AXES], strides[ESHKOL_MAP_AXES - 1], box[ESHKOL_MAP_AXES];
    int64_t windows, lower[ESHKOL_MAP_SPACE], upper[ESHKOL_MAP_SPACE], steps[ESHKOL_MAP_SPACE];
    uint64_t address; /* that they were last made for */
} eshkol_map;

/* A kernel's two arguments are the address of its status, and its record; words of the record are addresses of places.
 * The status is two words of the device's memory, the first of which is all ones unless a lane has failed. */
typedef struct {
    void *kernel;
    int64_t blocks, lanes, shared; /* lanes of a block, and bytes that they share */
    uint64_t status;
    uint64_t *record;
    const eshkol_binding *bindings;
    int64_t binding_count;
    int64_t can_fail;
    uint64_t *bound; /* the addresses that the record was last given, one for each binding */
    eshkol_map *maps;
    int64_t map_count;
} eshkol_launch;

typedef struct {
    const eshkol_device *device;
    const eshkol_step *steps; /* a call is launches[a]; there are no regions */
    int64_t step_count;
    eshkol_launch *launches;
    int64_t launch_count;
    uint64_t *places, *kept, *last; /* `kept` has room for as many, and `last` has those of the last run of a graph */
    int64_t place_count;
    int64_t *counters;
    uint64_t statuses; /* where those of the launches lie, one after another; 0 if no lane can fail */
    uint64_t *seen;    /* memory of the host: two words for each launch, and at least one */
    int64_t failed;    /* the step at which it ended early */
    int64_t asked;     /* what the device was asked for when it said that something is wrong */
    const eshkol_graph_driver *graphs; /* NULL where they are no graph */
    eshkol_graph *graph, *other; /* what they are once they were run a few times; of two that take turns, the other */
    int64_t runs, tasks; /* how often they were run without one, and launches and copies of a run, early ones apart */
    int64_t early; /* behind this step no lane can fail, and no step leads back; 0: the host waits at the end */
    void *event;   /* which then tells that the statuses are there */
} eshkol_launches;

/* Runs the steps. 0; or -1 where lanes of a launch have failed, whose status is seen; or what the device says. */
int eshkol_launches_run(eshkol_launches *launches);

/* Gives back what the driver has of them. */
void eshkol_launches_end(eshkol_launches *launches);

#ifdef __cplusplus
}
#endif

#endif
