/* See graphs.h. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NODES ((size_t)1 << 14)
#define OF_DEVICE 2 /* the driver's number of a kind of memory */

typedef struct {
    void *handle;
    size_t count; /* of words; a copy has three */
    uint64_t *words;
    const void *kernel; /* NULL for a copy */
} Node;

struct eshkol_graph {
    const eshkol_graph_driver *driver;
    void *context, *graph, *ready;
    Node *nodes;
    size_t count, room, at; /* nodes, and which of them is told next */
    size_t changes, before; /* nodes that are others than they were: now, and when it was run last */
};

eshkol_graph *eshkol_graph_new(const eshkol_graph_driver *driver, void *context)
{
    eshkol_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return NULL;
    graph->driver = driver;
    graph->context = context;
    if (driver->create(&graph->graph, 0) != 0) {
        free(graph);
        return NULL;
    }
    return graph;
}

void eshkol_graph_free(eshkol_graph *graph)
{
    if (graph == NULL)
        return;
    if (graph->ready != NULL)
        graph->driver->destroy_ready(graph->ready);
    graph->driver->destroy(graph->graph);
    for (size_t k = 0; k < graph->count; k++)
        free(graph->nodes[k].words);
    free(graph->nodes);
    free(graph);
}

/* The node that is told now: a new one, with its words, before the graph is ready. */
static Node *next_node(eshkol_graph *graph, const void *kernel, const uint64_t *words, size_t count)
{
    if (graph->ready != NULL) {
        Node *node = graph->at < graph->count ? &graph->nodes[graph->at++] : NULL;
        return node != NULL && node->kernel == kernel && node->count == count ? node : NULL;
    }
    if (graph->count == graph->room) {
        size_t room = graph->room == 0 ? 16 : 2 * graph->room;
        Node *nodes = room > MOST_NODES ? NULL : realloc(graph->nodes, room * sizeof *nodes);
        if (nodes == NULL)
            return NULL;
        graph->nodes = nodes;
        graph->room = room;
    }
    uint64_t *own = malloc((count == 0 ? 1 : count) * sizeof *own);
    if (own == NULL)
        return NULL;
    if (count != 0)
        memcpy(own, words, count * sizeof *own);
    Node *node = &graph->nodes[graph->count++];
    *node = (Node){NULL, count, own, kernel};
    return node;
}

/* Whether the words of a node have changed; they are its own from now on. */
static int changed(eshkol_graph *graph, Node *node, const uint64_t *words)
{
    if (node->count == 0 || memcmp(node->words, words, node->count * sizeof *words) == 0)
        return 0;
    memcpy(node->words, words, node->count * sizeof *words);
    graph->changes++;
    return 1;
}

/* What a new node comes after: the one before it, if there is one. */
static void *const *before(const eshkol_graph *graph)
{
    return graph->count > 1 ? &graph->nodes[graph->count - 2].handle : NULL;
}

int eshkol_graph_kernel(eshkol_graph *graph, const eshkol_kernel_node *what, const uint64_t *words, size_t count)
{
    const eshkol_graph_driver *driver = graph->driver;
    Node *node = next_node(graph, what->kernel, words, count);
    if (node == NULL)
        return -1;
    if (graph->ready == NULL)
        return driver->add_kernel(&node->handle, graph->graph, before(graph), before(graph) != NULL, what);
    return changed(graph, node, words) ? driver->set_kernel(graph->ready, node->handle, what) : 0;
}

int eshkol_graph_copy(eshkol_graph *graph, uint64_t target, uint64_t source, size_t size)
{
    const eshkol_graph_driver *driver = graph->driver;
    const uint64_t words[] = {target, source, size};
    eshkol_copy_node what;
    memset(&what, 0, sizeof what);
    what.source_kind = what.target_kind = OF_DEVICE;
    what.source = source;
    what.target = target;
    what.source_pitch = what.target_pitch = what.width = size;
    what.source_height = what.target_height = what.height = what.depth = 1;
    Node *node = next_node(graph, NULL, words, 3);
    if (node == NULL)
        return -1;
    if (graph->ready == NULL)
        return driver->add_copy(&node->handle, graph->graph, before(graph), before(graph) != NULL, &what,
                                graph->context);
    return changed(graph, node, words) ? driver->set_copy(graph->ready, node->handle, &what, graph->context) : 0;
}

int eshkol_graph_run(eshkol_graph *graph, void *queue)
{
    if (graph->ready == NULL) {
        int code = graph->driver->instantiate(&graph->ready, graph->graph, 0);
        if (code != 0)
            return code;
    } else if (graph->at != graph->count)
        return -1;
    graph->at = 0;
    graph->before = graph->changes;
    graph->changes = 0;
    return graph->driver->launch(graph->ready, queue);
}

size_t eshkol_graph_changes(const eshkol_graph *graph)
{
    return graph->before;
}
