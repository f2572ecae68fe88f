/* Random steps, run by launches.c on a device that only notes what it was asked for, and compared with a plain reading
   of the same steps: as launches, as graphs, and with functions of the driver that fail now and then. For sanitizers,
   which see reads and writes beyond the arrays, all of them allocated to size. */
#include "launches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "held.h"

enum { MAPPED = 4 }; /* words of the records behind which a map lies */
enum { PLACES = 6, LAUNCHES = 4, COUNTERS = 3, MOST_STEPS = 64, MOST_NOTES = 4096, FAILS = 719 };

static uint64_t state = 88172645463325252u;

static uint64_t drawn(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void *room(size_t count, size_t size)
{
    void *found = calloc(count, size);
    if (found == NULL)
        exit(2);
    return found;
}

/* --- a device that notes --- */

typedef struct {
    uint64_t words[8]; /* a kernel, its status and its record; or a copy's size, target and source */
} Note;

static Note told[MOST_NOTES], wanted[MOST_NOTES];
static size_t told_count, wanted_count;
static int failing; /* how many calls from now one fails; never, where it is negative */

static int fails(void)
{
    return failing >= 0 && failing-- == 0;
}

static Note of_kernel(const void *kernel, void *const *arguments)
{
    const uint64_t *record = arguments[1];
    Note note = {{(uint64_t)(uintptr_t)kernel, *(const uint64_t *)arguments[0]}};
    memcpy(note.words + 2, record, (size_t)record[0] * sizeof *record); /* a record begins with its length */
    if (record[0] == MAPPED)
        note.words[7] = record[MAPPED + ESHKOL_MAP_WORDS - 1];
    return note;
}

/* Of a map the last word tells all that it is made of. */
static int make_map(void *map, int kind, unsigned axes, uint64_t address, const uint64_t *extents,
                    const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleaving, int swizzle,
                    int promotion, int beyond)
{
    uint64_t *words = map;
    if ((uintptr_t)map % 64 != 0 || kind != 9 || axes != 2 || steps[0] != 1 || steps[1] != 1 || interleaving != 0 ||
        swizzle != 3 || promotion != 3 || beyond != 0)
        exit(2);
    if (fails())
        return FAILS;
    memset(words, 0, ESHKOL_MAP_WORDS * sizeof *words);
    words[ESHKOL_MAP_WORDS - 1] = address ^ extents[0] << 32 ^ extents[1] << 40 ^ strides[0] << 48 ^ box[1] << 20;
    return 0;
}

/* The same of one with windows. */
static int make_windows(void *map, int kind, unsigned axes, uint64_t address, const uint64_t *extents,
                        const uint64_t *strides, const int *lower, const int *upper, unsigned elements,
                        unsigned windows, const unsigned *steps, int interleaving, int swizzle, int promotion,
                        int beyond)
{
    uint64_t *words = map;
    if ((uintptr_t)map % 64 != 0 || kind != 9 || axes != 2 || strides[0] != 6 || elements != 1 || steps[0] != 1 ||
        interleaving != 0 || swizzle != 3 || promotion != 3 || beyond != 0)
        exit(2);
    if (fails())
        return FAILS;
    memset(words, 0, ESHKOL_MAP_WORDS * sizeof *words);
    words[ESHKOL_MAP_WORDS - 1] = address ^ extents[0] << 32 ^ (uint64_t)lower[1] << 24 ^ (uint64_t)upper[0] << 40 ^
                                  (uint64_t)windows << 20 ^ (uint64_t)steps[2] << 48;
    return 0;
}

static int enter(void *context)
{
    return context == NULL;
}

static int noted(Note note)
{
    if (told_count == MOST_NOTES)
        exit(2);
    told[told_count++] = note;
    return 0;
}

static int launch_kernel(void *kernel, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
                         unsigned shared, void *queue, void **arguments, void **extra)
{
    (void)queue, (void)extra;
    if (b * c * e * f != 1 || a != 7 || d != 32 || shared != 5)
        exit(2);
    return fails() ? FAILS : noted(of_kernel(kernel, arguments));
}

static int move(uint64_t target, uint64_t source, size_t size, void *queue)
{
    (void)queue;
    return fails() ? FAILS : noted((Note){{size, target, source}});
}

static int fetch(void *target, uint64_t source, size_t size, void *queue)
{
    (void)queue;
    if (fails())
        return FAILS;
    memset(target, size == 1 ? (int)(source >> 3 & 1) : 0xFF, size); /* a truth value, or statuses of nothing wrong */
    return 0;
}

static int wait_for(void *queue)
{
    (void)queue;
    return fails() ? FAILS : 0;
}

/* --- graphs that note when they are launched --- */

typedef struct {
    Note *notes;
    size_t count;
} Chain;

static int create(void **graph, unsigned flags)
{
    (void)flags;
    if (fails())
        return FAILS;
    *graph = room(1, sizeof(Chain));
    return 0;
}

static int add(void **node, Chain *chain, void *const *after, size_t count, Note note)
{
    if (fails())
        return FAILS;
    if (count != (chain->count != 0) || (count != 0 && after[0] != (void *)(uintptr_t)chain->count))
        exit(2);
    chain->notes = realloc(chain->notes, (chain->count + 1) * sizeof note);
    chain->notes[chain->count++] = note;
    *node = (void *)(uintptr_t)chain->count;
    return 0;
}

static Note of_copy(const eshkol_copy_node *what)
{
    return (Note){{what->width, what->target, what->source}};
}

static int add_kernel(void **node, void *graph, void *const *after, size_t count, const eshkol_kernel_node *what)
{
    return add(node, graph, after, count, of_kernel(what->kernel, what->arguments));
}

static int add_copy(void **node, void *graph, void *const *after, size_t count, const eshkol_copy_node *what,
                    void *context)
{
    (void)context;
    return add(node, graph, after, count, of_copy(what));
}

static int instantiate(void **ready, void *graph, unsigned long long flags)
{
    (void)flags;
    if (fails())
        return FAILS;
    const Chain *chain = graph;
    Chain *made = room(1, sizeof *made);
    made->count = chain->count;
    made->notes = room(chain->count, sizeof(Note));
    memcpy(made->notes, chain->notes, chain->count * sizeof(Note));
    *ready = made;
    return 0;
}

static int set(Chain *chain, void *node, Note note)
{
    if (fails())
        return FAILS;
    chain->notes[(uintptr_t)node - 1] = note;
    return 0;
}

static int set_kernel(void *ready, void *node, const eshkol_kernel_node *what)
{
    return set(ready, node, of_kernel(what->kernel, what->arguments));
}

static int set_copy(void *ready, void *node, const eshkol_copy_node *what, void *context)
{
    (void)context;
    return set(ready, node, of_copy(what));
}

static int launch_graph(void *ready, void *queue)
{
    (void)queue;
    if (fails())
        return FAILS;
    const Chain *chain = ready;
    for (size_t k = 0; k < chain->count; k++)
        noted(chain->notes[k]);
    return 0;
}

static int destroy(void *graph)
{
    Chain *chain = graph;
    free(chain->notes);
    free(chain);
    return 0;
}

static const eshkol_graph_driver DRIVER = {
    create, add_kernel, add_copy, instantiate, set_kernel, set_copy, launch_graph, destroy, destroy,
};

/* --- steps --- */

static eshkol_step steps[MOST_STEPS];
static int64_t step_count;

static void add_step(int64_t kind, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e)
{
    steps[step_count++] = (eshkol_step){kind, a, b, c, d, e};
}

static void add_steps(int64_t count, int64_t depth, int looks)
{
    while (count-- > 0 && step_count < MOST_STEPS - 8) {
        const int64_t a = (int64_t)drawn(PLACES), b = (a + 1 + (int64_t)drawn(PLACES - 1)) % PLACES;
        const int64_t offset = 8 * (int64_t)drawn(9);
        switch (drawn(9)) {
        case 0:
            add_step(ESHKOL_COPY, a, b, 16, offset, 8);
            break;
        case 1:
            add_step(ESHKOL_SWAP, a, b, 0, 0, 0);
            break;
        case 2:
            add_step(ESHKOL_POINT, a, b, offset, 0, 0);
            break;
        case 3:
            if (depth > 0)
                add_step(ESHKOL_VIEW, a, b, offset, depth - 1, 24);
            break;
        case 4:
            if (depth < COUNTERS) {
                add_step(ESHKOL_SET, depth, 0, 0, 0, 0);
                const int64_t start = step_count;
                add_steps(3, depth + 1, looks);
                add_step(ESHKOL_NEXT, depth, 1, 1 + (int64_t)drawn(3), start, 0);
            }
            break;
        case 5:
            if (looks) {
                add_step(ESHKOL_UNLESS, a, offset, step_count + 2, 0, 0);
                add_step(ESHKOL_CALL, 0, 0, 0, 0, 0);
            } else
                add_step(ESHKOL_JUMP, step_count + 1, 0, 0, 0, 0);
            break;
        default:
            add_step(ESHKOL_CALL, (int64_t)drawn(LAUNCHES), 0, 0, 0, 0);
        }
    }
}

static eshkol_launch launches[LAUNCHES];

/* What the steps ask for, by the definition. */
static void expect(uint64_t *places)
{
    int64_t counters[COUNTERS] = {0};
    wanted_count = 0;
    for (int64_t at = 0; at < step_count; at++) {
        const eshkol_step s = steps[at];
        if (s.kind == ESHKOL_CALL) {
            const eshkol_launch *one = &launches[s.a];
            Note note = {{(uint64_t)(uintptr_t)one->kernel, one->status}};
            memcpy(note.words + 2, one->record, (size_t)one->record[0] * sizeof(uint64_t));
            for (int64_t k = 0; k < one->binding_count; k++)
                note.words[2 + one->bindings[k].word] =
                    places[one->bindings[k].place] + (uint64_t)one->bindings[k].offset;
            if (one->map_count != 0) {
                const uint64_t address = note.words[2 + 2] + 16;
                if (one->maps->windows)
                    note.words[7] = address ^ (uint64_t)3 << 32 ^ (uint64_t)9 << 24 ^ (uint64_t)2 << 40 ^
                                    (uint64_t)7 << 20 ^ (uint64_t)4 << 48;
                else
                    note.words[7] = address ^ (uint64_t)3 << 32 ^ (uint64_t)5 << 40 ^ (uint64_t)6 << 48 ^
                                    (uint64_t)7 << 20;
            }
            wanted[wanted_count++] = note;
        } else if (s.kind == ESHKOL_COPY) {
            const uint64_t target = places[s.a] + (uint64_t)s.d, source = places[s.b] + (uint64_t)s.e;
            if (target != source)
                wanted[wanted_count++] = (Note){{(uint64_t)s.c, target, source}};
        } else if (s.kind == ESHKOL_SWAP) {
            const uint64_t one = places[s.a];
            places[s.a] = places[s.b], places[s.b] = one;
        } else if (s.kind == ESHKOL_POINT)
            places[s.a] = places[s.b] + (uint64_t)s.c;
        else if (s.kind == ESHKOL_VIEW)
            places[s.a] = places[s.b] + (uint64_t)(s.c + counters[s.d] * s.e);
        else if (s.kind == ESHKOL_SET)
            counters[s.a] = s.b;
        else if (s.kind == ESHKOL_NEXT) {
            counters[s.a] += s.b;
            at = counters[s.a] != s.c ? s.d - 1 : at;
        } else if (s.kind == ESHKOL_UNLESS)
            at = ((places[s.a] + (uint64_t)s.b) >> 3 & 1) == 0 ? s.c - 1 : at;
        else
            at = s.a - 1;
    }
}

static void wrong(const char *what)
{
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

static void try_steps(int looks, int as_graph, int failures, int64_t *graphs, int64_t *turns)
{
    const eshkol_device device = {enter, launch_kernel, move, fetch, wait_for, make_map, make_windows,
                                  NULL, NULL, &state, NULL, 0}; /* no events: it waits at the end */
    uint64_t *places = room(PLACES, sizeof *places), *kept = room(PLACES, sizeof *kept), after[PLACES];
    uint64_t *last = room(PLACES, sizeof *last);
    uint64_t *seen = room(looks ? 2 * LAUNCHES : 1, sizeof *seen);
    int64_t *counters = room(COUNTERS, sizeof *counters);
    step_count = 0;
    add_steps(12, 0, looks);
    eshkol_launches all = {&device, steps, step_count, launches, LAUNCHES, places, kept, last, PLACES, counters,
                           looks ? 4096 : 0, seen, 0, 0, as_graph && !looks ? &DRIVER : NULL, NULL, NULL, 0, 0,
                           0, NULL};
    for (int run = 0; run < 8; run++) {
        for (int k = 0; k < PLACES; k++)
            if (run == 0 || drawn(2)) /* some of them lie where they lay */
                places[k] = 8 * drawn(1000);
        memcpy(after, places, sizeof after);
        expect(after);
        told_count = 0;
        failing = failures && drawn(2) ? (int)drawn(30) : -1;
        const int code = eshkol_launches_run(&all), failed = failures && failing < 0 && code != 0;
        failing = -1;
        *graphs += all.graph != NULL;
        *turns += all.other != NULL;
        if (failed) { /* what was asked for before it is right, and it is known what was refused */
            if (code != FAILS || told_count > wanted_count || all.asked == ESHKOL_ENTER)
                wrong("a failure");
        } else if (code != 0 || told_count != wanted_count || memcmp(after, places, sizeof after) != 0)
            wrong("what was asked for, or where places are in the end");
        if (memcmp(told, wanted, told_count * sizeof *told) != 0)
            wrong("what the device was told");
    }
    eshkol_launches_end(&all);
    free(places), free(kept), free(last), free(seen), free(counters);
}

int main(void)
{
    const size_t before_all = __sanitizer_get_current_allocated_bytes();
    int64_t graphs = 0, turns = 0;
    for (int k = 0; k < LAUNCHES; k++) {
        const int64_t words = 2 + k % 3;
        eshkol_binding *bindings = room(2, sizeof *bindings);
        eshkol_map *map = words == MAPPED ? room(1, sizeof *map) : NULL;
        if (map != NULL)
            *map = (eshkol_map){MAPPED, 2, 16, 9, 1, 2, {3, 5}, {6}, {1, 7}, 0, {0, 9}, {2, 0}, {1, 4}, 0};
        const size_t size = (size_t)words + (map != NULL ? ESHKOL_MAP_WORDS : 0);
        launches[k] = (eshkol_launch){(void *)(uintptr_t)(100 + k), 7, 32, 5, 4096 + 16 * (uint64_t)k,
                                      room(size, sizeof(uint64_t)), bindings, k % 3, k == 1,
                                      room((size_t)(k % 3 ? k % 3 : 1), sizeof(uint64_t)), map, map != NULL};
        launches[k].record[0] = (uint64_t)words;
        for (int b = 0; b < k % 3; b++)
            bindings[b] = (eshkol_binding){1 + b, (int64_t)drawn(PLACES), 8 * (int64_t)drawn(5)};
    }
    for (int round = 0; round < 3000; round++) {
        for (int k = 0; k < LAUNCHES; k++)
            if (launches[k].map_count != 0) /* one of the other kind, which was never made */
                launches[k].maps->windows = round % 2, launches[k].maps->address = 0;
        try_steps(round % 4 == 0, round % 4 != 1, round % 3 == 0, &graphs, &turns);
    }
    for (int k = 0; k < LAUNCHES; k++)
        free(launches[k].record), free((void *)(uintptr_t)launches[k].bindings), free(launches[k].bound),
            free(launches[k].maps);
    if (graphs < 1000)
        wrong("hardly anything became a graph");
    if (turns < 100)
        wrong("hardly any graphs took turns");
    return finished("launches", before_all);
}
