/* See launches.h. */
#include "launches.h"

#include <string.h>

#define NOTHING_WRONG UINT64_MAX
#define STATUS_WORDS 2
#define RUNS_BEFORE 2 /* of steps that become a graph: what is run once or twice is not worth making one */
#define LEAST_TASKS 4 /* that a graph is quicker for than launches are */
#define MANY_CHANGES 16 /* of a graph from one run to the next, of which a second graph is worth having */

/* Makes a map of a record anew, if its tensor lies elsewhere. Rows are fetched to the cache 256 bytes at a time, and
 * what lies beyond an edge is zero. */
static int made(eshkol_launches *all, eshkol_map *map, uint64_t *record)
{
    enum { PLAIN = 0, ROWS_OF_128 = 3, LINES_OF_256 = 3, ZERO = 0, ALIGNMENT = 64 };
    const eshkol_device *device = all->device;
    const uint64_t address = record[map->buffer] + (uint64_t)map->offset;
    unsigned box[ESHKOL_MAP_AXES], steps[ESHKOL_MAP_AXES];
    int lower[ESHKOL_MAP_SPACE], upper[ESHKOL_MAP_SPACE], code;
    _Alignas(ALIGNMENT) uint64_t words[ESHKOL_MAP_WORDS]; /* the driver wants it so; a record need not be */
    if (address == map->address)
        return 0;
    for (int64_t k = 0; k < map->axes; k++) {
        box[k] = (unsigned)map->box[k];
        steps[k] = 1;
    }
    if (map->windows) {
        for (int k = 0; k < ESHKOL_MAP_SPACE; k++) {
            lower[k] = (int)map->lower[k];
            upper[k] = (int)map->upper[k];
            steps[1 + k] = (unsigned)map->steps[k];
        }
        all->asked = ESHKOL_MAP_WINDOWS;
        code = device->map_windows(words, (int)map->kind, (unsigned)map->axes, address, map->extents, map->strides,
                                   lower, upper, box[0], box[1], steps, PLAIN, ROWS_OF_128, LINES_OF_256, ZERO);
    } else {
        all->asked = ESHKOL_MAP;
        code = device->map(words, (int)map->kind, (unsigned)map->axes, address, map->extents, map->strides, box, steps,
                           PLAIN, map->exchanged ? ROWS_OF_128 : PLAIN, LINES_OF_256, ZERO);
    }
    if (code == 0) {
        memcpy(record + map->word, words, sizeof words);
        map->address = address;
    }
    return code;
}

static int launch(eshkol_launches *all, eshkol_launch *one, eshkol_graph *graph)
{
    const eshkol_device *device = all->device;
    void *arguments[] = {&one->status, one->record}; /* the driver copies what they point to before it returns */
    const unsigned blocks = (unsigned)one->blocks, lanes = (unsigned)one->lanes, shared = (unsigned)one->shared;
    eshkol_bind(one->record, one->bindings, one->binding_count, all->places);
    for (int64_t k = 0; k < one->map_count; k++) {
        int code = made(all, &one->maps[k], one->record);
        if (code != 0)
            return code;
    }
    all->asked = ESHKOL_LAUNCH;
    if (graph == NULL)
        return device->launch(one->kernel, blocks, 1, 1, lanes, 1, 1, shared, device->queue, arguments, NULL);
    for (int64_t k = 0; k < one->binding_count; k++)
        one->bound[k] = one->record[one->bindings[k].word];
    const eshkol_kernel_node what = {one->kernel, {blocks, 1, 1}, {lanes, 1, 1}, shared, arguments, NULL};
    return eshkol_graph_kernel(graph, &what, one->bound, (size_t)one->binding_count);
}

static int copy(eshkol_launches *all, const eshkol_step *step, eshkol_graph *graph)
{
    const eshkol_device *device = all->device;
    const uint64_t target = all->places[step->a] + (uint64_t)step->d, source = all->places[step->b] + (uint64_t)step->e;
    all->asked = ESHKOL_MOVE;
    if (graph != NULL) /* which has no node for a copy that need not be made */
        return target == source ? -1 : eshkol_graph_copy(graph, target, source, (size_t)step->c);
    return target == source ? 0 : device->move(target, source, (size_t)step->c, device->queue);
}

static int fetched(eshkol_launches *all, uint64_t address, size_t size)
{
    all->asked = ESHKOL_FETCH;
    return all->device->fetch(all->seen, address, size, all->device->queue);
}

/* Bytes of the device as the host sees them, once all that was asked for before is done. */
static int looked_at(eshkol_launches *all, uint64_t address, size_t size)
{
    int code = fetched(all, address, size);
    if (code != 0)
        return code;
    all->asked = ESHKOL_WAIT;
    return all->device->wait(all->device->queue);
}

static size_t status_bytes(const eshkol_launches *all)
{
    return (size_t)all->launch_count * STATUS_WORDS * sizeof(uint64_t);
}

/* Asks for the statuses, and for a word when they are there: the host goes on. */
static int statuses_asked(eshkol_launches *all)
{
    int code = fetched(all, all->statuses, status_bytes(all));
    if (code != 0)
        return code;
    all->asked = ESHKOL_RECORD;
    return all->device->record(all->event, all->device->queue);
}

/* Steps from one on to another. */
static int run_steps(eshkol_launches *all, eshkol_graph *graph, int64_t at, int64_t end)
{
    int code = 0;
    all->tasks = 0;
    while (at < end && code == 0) {
        const eshkol_step *step = &all->steps[at];
        all->failed = at++;
        switch (step->kind) {
        case ESHKOL_CALL:
            all->tasks++;
            code = launch(all, &all->launches[step->a], graph);
            break;
        case ESHKOL_COPY:
            all->tasks++;
            code = copy(all, step, graph);
            break;
        case ESHKOL_UNLESS:
            code = looked_at(all, all->places[step->a] + (uint64_t)step->b, 1);
            if (code == 0 && *(const uint8_t *)all->seen == 0)
                at = step->c;
            break;
        default:
            at = eshkol_go_on(step, at, all->places, all->counters);
        }
    }
    return code;
}

/* Whether there are two graphs, or the one there is was changed much when it was run last. */
static int takes_turns(const eshkol_launches *all)
{
    return all->other != NULL || (all->graph != NULL && eshkol_graph_changes(all->graph) >= MANY_CHANGES);
}

/* The steps behind the early ones as a graph; 0 if that went well. If not, nothing was launched, and the places are as
 * they were. */
static int run_graph(eshkol_launches *all)
{
    const size_t size = (size_t)all->place_count * sizeof *all->places;
    if (takes_turns(all) && memcmp(all->last, all->places, size) != 0) {
        eshkol_graph *graph = all->graph;
        all->graph = all->other;
        all->other = graph;
    }
    memcpy(all->last, all->places, size);
    if (all->graph == NULL)
        all->graph = eshkol_graph_new(all->graphs, all->device->context);
    if (all->graph == NULL)
        return -1;
    memcpy(all->kept, all->places, size);
    int code = run_steps(all, all->graph, all->early, all->step_count);
    if (code == 0)
        code = eshkol_graph_run(all->graph, all->device->queue);
    if (code != 0)
        memcpy(all->places, all->kept, size);
    return code;
}

static int ended_well(eshkol_launches *all)
{
    int code;
    if (all->early != 0) {
        all->asked = ESHKOL_AWAIT;
        code = all->device->await(all->event);
    } else
        code = looked_at(all, all->statuses, status_bytes(all));
    all->failed = all->step_count - 1;
    for (int64_t at = 0; at < all->step_count && code == 0; at++) {
        const eshkol_step *step = &all->steps[at];
        if (step->kind == ESHKOL_CALL && all->launches[step->a].can_fail &&
            all->seen[STATUS_WORDS * step->a] != NOTHING_WRONG) {
            all->failed = at;
            return -1;
        }
    }
    return code;
}

int eshkol_launches_run(eshkol_launches *all)
{
    all->failed = 0;
    all->asked = ESHKOL_ENTER;
    int code = all->device->enter(all->device->context);
    if (code != 0)
        return code;
    if (all->early != 0) {
        const int64_t tasks = all->tasks; /* those of the steps that may become a graph: the early ones do not count */
        code = run_steps(all, NULL, 0, all->early);
        all->tasks = tasks;
        if (code == 0)
            code = statuses_asked(all);
        if (code != 0)
            return code;
    }
    int done = 0;
    if (all->graphs != NULL && all->runs >= RUNS_BEFORE && all->tasks >= LEAST_TASKS) {
        done = run_graph(all) == 0;
        if (!done) { /* as launches from now on: they say what is wrong, if anything is */
            eshkol_launches_end(all);
            all->graphs = NULL;
        }
    }
    if (!done) {
        all->runs++;
        code = run_steps(all, NULL, all->early, all->step_count);
    }
    return code == 0 && all->statuses != 0 ? ended_well(all) : code;
}

void eshkol_launches_end(eshkol_launches *all)
{
    eshkol_graph_free(all->graph);
    eshkol_graph_free(all->other);
    all->graph = all->other = NULL;
}
