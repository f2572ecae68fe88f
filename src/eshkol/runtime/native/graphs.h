/* What a device is asked for again and again, as one graph: its driver is told the launches and copies once, and then
 * only which addresses in them have changed.
 *
 * A graph is a chain, as a queue would run it. The functions of the driver are given by their addresses; the layouts of
 * what they take are those of NVIDIA's driver, of kernels' parameters the first version, which every driver reads.
 */
#ifndef ESHKOL_GRAPHS_H
#define ESHKOL_GRAPHS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    void *kernel;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
} eshkol_kernel_node;

typedef struct {
    size_t source_from[4]; /* x in bytes, y, z, level */
    int source_kind;
    const void *source_host;
    uint64_t source;
    void *source_array, *reserved0;
    size_t source_pitch, source_height;
    size_t target_from[4];
    int target_kind;
    void *target_host;
    uint64_t target;
    void *target_array, *reserved1;
    size_t target_pitch, target_height;
    size_t width, height, depth; /* the first in bytes */
} eshkol_copy_node;

/* Every function gives 0, or a number that says what is wrong. */
typedef struct {
    int (*create)(void **graph, unsigned flags);
    int (*add_kernel)(void **node, void *graph, void *const *after, size_t count, const eshkol_kernel_node *what);
    int (*add_copy)(void **node, void *graph, void *const *after, size_t count, const eshkol_copy_node *what,
                    void *context);
    int (*instantiate)(void **ready, void *graph, unsigned long long flags);
    int (*set_kernel)(void *ready, void *node, const eshkol_kernel_node *what);
    int (*set_copy)(void *ready, void *node, const eshkol_copy_node *what, void *context);
    int (*launch)(void *ready, void *queue);
    int (*destroy_ready)(void *ready);
    int (*destroy)(void *graph);
} eshkol_graph_driver;

typedef struct eshkol_graph eshkol_graph;

/* A graph of nothing yet; NULL where there is no memory, or the driver has none. */
eshkol_graph *eshkol_graph_new(const eshkol_graph_driver *driver, void *context);

/* The same kernels and copies are told in the same order each time, and then `eshkol_graph_run`. `words` are those of a
 * kernel's arguments that may be others than the last time. 0; or what the driver says; or -1: no memory, too many, or
 * others than the last time. A graph that gave anything but 0 is to be freed. */
int eshkol_graph_kernel(eshkol_graph *graph, const eshkol_kernel_node *what, const uint64_t *words, size_t count);
int eshkol_graph_copy(eshkol_graph *graph, uint64_t target, uint64_t source, size_t size);
int eshkol_graph_run(eshkol_graph *graph, void *queue);

/* How many of its kernels and copies were others than the time before, when it was run last. */
size_t eshkol_graph_changes(const eshkol_graph *graph);

/* What still runs goes on. */
void eshkol_graph_free(eshkol_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
