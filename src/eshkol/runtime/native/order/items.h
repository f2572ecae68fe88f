/* Items put in order: a key each, or a key and its place. Whoever includes this file says what an item is:

   NAME(x)       names for this kind of item
   ITEM          its type
   WORD, KEY(x)  the type of its key, and the key
   PLACE(x)      its place, where it has one (HAS_PLACE 1; else 0)
   BEFORE(x, y)  whether x belongs before y; of items of one key the first stays first
   FILL(...)     makes items of elements: (row, from, count, items, seen)
   RUN           how many are sorted at first, before they are merged
   NETWORK(...)  sorts so many in vectors, where equal items cannot be told apart: (items, count)
   COLUMNS(...)  with that: sorts rows that lie in lanes, of which there are ABREAST: (items, pairs, pair_count)
   QUICK(...)    the same for any number (HAS_QUICK 1), unless it returns 0: (items, spare, count, rounds)
   DIVIDED(...)  with that: puts what is less than an item first and tells how many: (items, spare, count, item)

   Everything here keeps items of one key in their order. */

/* --- few items ---------------------------------------------------------------------------------------------------- */

static void NAME(insert)(ITEM *items, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const ITEM item = items[i];
        int64_t at = i;
        for (; at > 0 && BEFORE(item, items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* No more than a run has. */
static void NAME(straight)(ITEM *items, int64_t count)
{
#ifdef NETWORK
    if (count > STRAIGHT) {
        NETWORK(items, count);
        return;
    }
#endif
    NAME(insert)(items, count);
}

/* Two sorted runs that lie one after the other, as one. Of equal lengths, they are merged from both ends at once. */
static void NAME(merge)(const ITEM *one, int64_t ones, int64_t others, ITEM *out)
{
    const ITEM *other = one + ones;
    if (!BEFORE(other[0], one[ones - 1])) {
        memcpy(out, one, (size_t)(ones + others) * sizeof *out);
        return;
    }
    if (ones == others) {
        const ITEM *last = other - 1, *other_last = other + others - 1;
        ITEM *end = out + 2 * ones - 1;
        for (int64_t k = 0; k < ones; k++) {
            const int second = BEFORE(*other, *one), first = BEFORE(*other_last, *last);
            *out++ = *EITHER(ITEM, second, other, one);
            other += second;
            one += !second;
            *end-- = *EITHER(ITEM, first, last, other_last);
            last -= first;
            other_last -= !first;
        }
        return;
    }
    const ITEM *one_end = other, *other_end = other + others;
    while (one < one_end && other < other_end) {
        const int second = BEFORE(*other, *one);
        *out++ = *EITHER(ITEM, second, other, one);
        other += second;
        one += !second;
    }
    memcpy(out, one, (size_t)(one_end - one) * sizeof *out);
    memcpy(out + (one_end - one), other, (size_t)(other_end - other) * sizeof *out);
}

/* Where the items lie when they are sorted: there, or in as much spare memory. */
static ITEM *NAME(merged)(ITEM *items, ITEM *spare, int64_t count)
{
    int64_t run = RUN, at = 0;
    for (; at < count; at += run)
        NAME(straight)(items + at, count - at < run ? count - at : run);
    for (; run < count; run *= 2) {
        for (at = 0; at + run < count; at += 2 * run)
            NAME(merge)(items + at, run, count - at - run < run ? count - at - run : run, spare + at);
        if (at < count)
            memcpy(spare + at, items + at, (size_t)(count - at) * sizeof *items);
        ITEM *sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}

/* The same, with vectors where there are. */
static ITEM *NAME(sorted)(ITEM *items, ITEM *spare, int64_t count)
{
#if HAS_QUICK && defined(QUICK)
    if (count > MOST_KEYS && QUICK(items, spare, count, 4 * bit_length((uint64_t)count)))
        return items;
#endif
    return NAME(merged)(items, spare, count);
}

/* --- many items --------------------------------------------------------------------------------------------------- */

/* A walk over items in pieces, which threads may share. */
typedef struct {
    const Row *row;
    ITEM *items, *spare;
    int64_t count, piece; /* items, of which so many are done at a time */
    uint32_t *tallies;    /* of each piece: how many items have each digit; later, where the next of them goes */
    WORD base;            /* what digits count from */
    int shift, width;     /* which bits are the digit */
    Seen *seen;           /* of each piece */
    const uint8_t *left;  /* digits whose items are not moved; NULL: none */
    const ITEM *bounds;   /* items by which they are divided into parts */
    int64_t parts;
} NAME(Walk);

static inline int64_t NAME(end)(const NAME(Walk) *walk, int64_t piece)
{
    const int64_t end = (piece + 1) * walk->piece;
    return end < walk->count ? end : walk->count;
}

static inline WORD NAME(digit)(const NAME(Walk) *walk, ITEM item)
{
    return (WORD)((WORD)(KEY(item) - walk->base) >> walk->shift) & (WORD)(((WORD)1 << walk->width) - 1);
}

static void NAME(fill)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) *walk = context;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t from = piece * walk->piece;
        walk->seen[piece] = seen_nothing();
        FILL(walk->row, from, NAME(end)(walk, piece) - from, walk->items + from, &walk->seen[piece]);
    }
}

static void NAME(tally)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) walk = *(const NAME(Walk) *)context;
    for (int64_t piece = begin; piece < end; piece++) {
        uint32_t *tallies = walk.tallies + (piece << walk.width);
        memset(tallies, 0, sizeof *tallies << walk.width);
        const int64_t last = NAME(end)(&walk, piece);
        for (int64_t i = piece * walk.piece; i < last; i++)
            tallies[NAME(digit)(&walk, walk.items[i])]++;
    }
}

static void NAME(spread)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) walk = *(const NAME(Walk) *)context;
    for (int64_t piece = begin; piece < end; piece++) {
        uint32_t *tallies = walk.tallies + (piece << walk.width);
        const int64_t last = NAME(end)(&walk, piece);
        if (walk.left == NULL)
            for (int64_t i = piece * walk.piece; i < last; i++)
                walk.spare[tallies[NAME(digit)(&walk, walk.items[i])]++] = walk.items[i];
        else
            for (int64_t i = piece * walk.piece; i < last; i++) {
                const WORD digit = NAME(digit)(&walk, walk.items[i]);
                if (!walk.left[digit])
                    walk.spare[tallies[digit]++] = walk.items[i];
            }
    }
}

#define SAME(I, J) ((WORD)(KEY(items[I]) - walk.base) >> walk.shift == (WORD)(KEY(items[J]) - walk.base) >> walk.shift)

/* Where in each piece the first run begins of items that agree in the bits from `shift` on; where none does, the
   piece's end. Nothing of that can be seen while runs are sorted: what is in their place meanwhile may be anything. */
static void NAME(find_runs)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) walk = *(const NAME(Walk) *)context;
    const ITEM *items = walk.items;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t last = NAME(end)(&walk, piece);
        int64_t i = piece * walk.piece;
        while (i > 0 && i < last && SAME(i - 1, i))
            i++;
        walk.tallies[piece] = (uint32_t)i;
    }
}

/* The runs that begin in a piece, each sorted by all bits. */
static void NAME(settle_runs)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) walk = *(const NAME(Walk) *)context;
    const ITEM *items = walk.items;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t i = walk.tallies[piece], after = piece + 1;
        if (i == NAME(end)(&walk, piece))
            continue;
        while (after * walk.piece < walk.count && walk.tallies[after] == NAME(end)(&walk, after))
            after++;
        const int64_t stop = after * walk.piece < walk.count ? walk.tallies[after] : walk.count;
        for (int64_t next; i < stop; i = next) {
            for (next = i + 1; next < stop && SAME(i, next); next++)
                ;
            if (next - i == 1)
                continue;
            ITEM *sorted = NAME(sorted)(walk.items + i, walk.spare + i, next - i);
            if (sorted != walk.items + i)
                memcpy(walk.items + i, sorted, (size_t)(next - i) * sizeof *sorted);
        }
    }
}
#undef SAME

static void NAME(settle)(NAME(Walk) *walk, Pieces pieces)
{
    each_piece(pieces, NAME(find_runs), walk);
    each_piece(pieces, NAME(settle_runs), walk);
}

/* Where items go, by digits and then by pieces: what was counted becomes the place of the first. */
static void NAME(places)(const NAME(Walk) *walk, int64_t pieces)
{
    uint32_t sum = 0;
    for (int64_t digit = 0; digit < (int64_t)1 << walk->width; digit++)
        for (int64_t piece = 0; piece < pieces && !(walk->left != NULL && walk->left[digit]); piece++) {
            uint32_t *tally = &walk->tallies[(piece << walk->width) + digit];
            const uint32_t here = *tally;
            *tally = sum;
            sum += here;
        }
}

/* Whether keys seem to be spread so evenly that their bits from `shift` on tell nearly all apart: of a few, no first
   bits stand out, and no two agree. */
static int NAME(is_even)(const NAME(Walk) *walk, int bits, int shift)
{
    ITEM few[2 * SAMPLE];
    uint8_t tallies[1 << GLANCED] = {0}, most = 0;
    for (int64_t k = 0; k < SAMPLE; k++) {
        few[k] = walk->items[k * (walk->count / SAMPLE)];
        uint8_t *tally = &tallies[(WORD)(KEY(few[k]) - walk->base) >> (bits - GLANCED)];
        most = ++*tally > most ? *tally : most;
        if (most > 4 * (SAMPLE >> GLANCED))
            return 0;
    }
    const ITEM *sorted = NAME(merged)(few, few + SAMPLE, SAMPLE);
    for (int64_t k = 1; k < SAMPLE; k++)
        if ((WORD)(KEY(sorted[k]) - walk->base) >> shift == (WORD)(KEY(sorted[k - 1]) - walk->base) >> shift)
            return 0;
    return 1;
}

/* Sorted by their digits, the last one first; those of keys with many bits by the first bits, which nearly always tell
   them apart. By the lowest `known` bits they are in order already. */
static ITEM *NAME(by_digits)(NAME(Walk) *walk, Pieces pieces, const Seen *seen, int known)
{
    const int bits = bit_length(seen->greatest - seen->least), most = walk->count < MANY ? SMALL_DIGIT : LARGE_DIGIT;
    walk->base = (WORD)seen->least;
    const int even = walk->count >= MANY && walk->count <= (int64_t)1 << (2 * most - 3) && bits - known > 2 * most &&
                     NAME(is_even)(walk, bits, bits - 2 * most);
    const int enough = even ? 2 * most : 3 * most, taken = bits - known < enough ? bits - known : enough;
    const int passes = (taken + most - 1) / most;
    walk->left = NULL;
    for (int pass = 0, done = 0; pass < passes; pass++, done += walk->width) {
        walk->width = (taken - done + passes - pass - 1) / (passes - pass);
        walk->shift = bits - taken + done;
        each_piece(pieces, NAME(tally), walk);
        NAME(places)(walk, pieces.count);
        each_piece(pieces, NAME(spread), walk);
        ITEM *spread = walk->spare;
        walk->spare = walk->items;
        walk->items = spread;
    }
    walk->shift = bits - taken;
    if (bits - known > taken)
        NAME(settle)(walk, pieces);
    return walk->items;
}

#if HAS_QUICK && defined(QUICK)
/* Items of a piece from `from` on, which belong to parts first … last - 1, come to lie part after part. */
static void NAME(part)(const NAME(Walk) *walk, int64_t from, int64_t count, int64_t first, int64_t last,
                       uint32_t *tallies)
{
    while (last - first > 1) {
        const int64_t middle = (first + last) / 2;
        const int64_t low = DIVIDED(walk->items + from, walk->spare + from, count, walk->bounds[middle - 1]);
        NAME(part)(walk, from, low, first, middle, tallies);
        from += low, count -= low, first = middle;
    }
    tallies[first] = (uint32_t)count;
}

static void NAME(part_pieces)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) *walk = context;
    for (int64_t piece = begin; piece < end; piece++)
        NAME(part)(walk, piece * walk->piece, NAME(end)(walk, piece) - piece * walk->piece, 0, walk->parts,
                   walk->tallies + piece * walk->parts);
}

/* What of each part a piece has goes behind what pieces before it have. */
static void NAME(gather_parts)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) *walk = context;
    const int64_t pieces = (walk->count + walk->piece - 1) / walk->piece;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t from = piece * walk->piece, to = 0;
        for (int64_t part = 0; part < walk->parts; part++) {
            int64_t at = to;
            for (int64_t k = 0; k < pieces; k++) {
                at += k < piece ? walk->tallies[k * walk->parts + part] : 0;
                to += walk->tallies[k * walk->parts + part];
            }
            const int64_t here = walk->tallies[piece * walk->parts + part];
            memcpy(walk->spare + at, walk->items + from, (size_t)here * sizeof *walk->items);
            from += here;
        }
    }
}

static void NAME(sort_parts)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) *walk = context;
    const int64_t pieces = (walk->count + walk->piece - 1) / walk->piece;
    int64_t from = 0;
    for (int64_t part = 0; part < end; part++) {
        int64_t count = 0;
        for (int64_t piece = 0; piece < pieces; piece++)
            count += walk->tallies[piece * walk->parts + part];
        if (part >= begin && count > 1) {
            const ITEM *sorted = NAME(sorted)(walk->items + from, walk->spare + from, count);
            if (sorted != walk->items + from)
                memcpy(walk->items + from, sorted, (size_t)count * sizeof *sorted);
        }
        from += count;
    }
}

/* Divided among threads by some items, so that parts are about as large as each other; each is then sorted by one. */
static ITEM *NAME(shared)(NAME(Walk) *walk, Pieces pieces)
{
    ITEM few[2 * MOST_PARTS * SAMPLED], bounds[MOST_PARTS];
    walk->parts = 2;
    while (walk->parts < pieces.count && walk->parts < MOST_PARTS)
        walk->parts *= 2;
    const int64_t sampled = walk->parts * SAMPLED, apart = walk->count / sampled;
    for (int64_t k = 0; k < sampled; k++) /* not at places that are all alike, where items come in turns */
        few[k] = walk->items[k * apart + (int64_t)((uint64_t)k * 0x9E3779B97F4A7C15 >> 33) % apart];
    const ITEM *sorted = NAME(sorted)(few, few + sampled, sampled);
    for (int64_t part = 1; part < walk->parts; part++)
        bounds[part - 1] = sorted[part * SAMPLED];
    walk->bounds = bounds;
    each_piece(pieces, NAME(part_pieces), walk);
    each_piece(pieces, NAME(gather_parts), walk);
    ITEM *gathered = walk->spare;
    walk->spare = walk->items;
    walk->items = gathered;
    each_piece((Pieces){pieces.order, walk->parts, 0}, NAME(sort_parts), walk);
    walk->bounds = NULL;
    return walk->items;
}
#endif

/* Sorted, as `by_digits` says. */
static ITEM *NAME(in_order)(NAME(Walk) *walk, Pieces pieces, const Seen *seen, int known)
{
#if HAS_QUICK && defined(QUICK)
    const int bits = bit_length(seen->greatest - seen->least);
    walk->base = (WORD)seen->least;
    if (bits - known > LARGE_DIGIT) {
        if (pieces.count > 1)
            return NAME(shared)(walk, pieces);
        if (QUICK(walk->items, walk->spare, walk->count, 4 * bit_length((uint64_t)walk->count)))
            return walk->items;
    }
#endif
    return NAME(by_digits)(walk, pieces, seen, known);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* The bits of a key, in as many as it has: compilers make vectors of loops over it. */
static inline WORD NAME(decoded)(const Coding *c, WORD key)
{
    const WORD top = (WORD)c->top, turned = key ^ (WORD)c->turn;
    return !c->is_float ? key ^ (WORD)c->flip : turned & top ? turned ^ top : (WORD)c->ones - turned;
}

#if HAS_PLACE
#define VALUE(ELEMENT, X) \
    (is_mixed(&c, KEY(X)) ? ((const ELEMENT *)row->elements)[PLACE(X)] : NAME(decoded)(&c, KEY(X)))
#else
#define VALUE(ELEMENT, X) NAME(decoded)(&c, KEY(X))
#endif

/* Items of ranks from `first` on become those results of a row that are wanted of them. */
static void NAME(write)(const Row *row, const ITEM *items, int64_t first, int64_t count)
{
    const EshkolOrder *order = row->order;
    const Coding c = coding_of(order);
    for (int64_t k = 0, at = 0; k < order->range_count; k++) {
        const EshkolRanks range = order->ranges[k];
        const int64_t begin = range.begin > first ? range.begin : first;
        const int64_t end = range.end < first + count ? range.end : first + count;
        const int64_t into = at + begin - range.begin;
        at += range.end - range.begin;
        if (begin >= end)
            continue;
        const ITEM *found = items + (begin - first);
#if HAS_PLACE
        for (int64_t i = 0; row->places != NULL && i < end - begin; i++)
            row->places[into + i] = (int64_t)PLACE(found[i]);
        if (row->values == NULL)
            continue;
#endif
#define VALUES(ELEMENT)                                                   \
    for (int64_t i = 0; i < end - begin; i++)                             \
        ((ELEMENT *)row->values)[into + i] = (ELEMENT)VALUE(ELEMENT, found[i])
        if (order->size == 8)
            VALUES(uint64_t);
        else if (order->size == 4)
            VALUES(uint32_t);
        else if (order->size == 2)
            VALUES(uint16_t);
        else
            VALUES(uint8_t);
#undef VALUES
    }
}

static void NAME(write_pieces)(void *context, int64_t begin, int64_t end)
{
    const NAME(Walk) *walk = context;
    const int64_t first = begin * walk->piece;
    NAME(write)(walk->row, walk->items + first, first, NAME(end)(walk, end - 1) - first);
}

/* --- parts of an order -------------------------------------------------------------------------------------------- */

/* The results of items of which the first has a rank: they are divided by a digit, and only those go on that are among
   the wanted. Each time fewer bits are left by which items differ. */
static void NAME(select)(const NAME(Walk) *all, ITEM *items, ITEM *spare, int64_t count, int64_t rank)
{
    if (count <= FEW) {
        NAME(write)(all->row, NAME(merged)(items, spare, count), rank, count);
        return;
    }
    WORD least = KEY(items[0]), greatest = least;
    for (int64_t i = 1; i < count; i++) {
        const WORD key = KEY(items[i]);
        least = key < least ? key : least;
        greatest = key > greatest ? key : greatest;
    }
    const int bits = bit_length(greatest - least), most = count < MANY ? SMALL_DIGIT : LARGE_DIGIT;
    if (bits == 0) {
        NAME(write)(all->row, items, rank, count);
        return;
    }
    const int width = bits < most ? bits : most;
    const Pieces pieces = pieces_of(all->row->order, count);
    uint8_t left[1 << LARGE_DIGIT];
    uint32_t starts[(1 << LARGE_DIGIT) + 1];
    NAME(Walk) walk = {
        .row = all->row, .items = items, .spare = spare, .count = count, .piece = pieces.size, .tallies = all->tallies,
        .base = least, .shift = bits - width, .width = width, .left = left,
    };
    each_piece(pieces, NAME(tally), &walk);
    starts[0] = 0;
    for (int digit = 0; digit < 1 << width; digit++) {
        uint32_t sum = 0;
        for (int64_t piece = 0; piece < pieces.count; piece++)
            sum += walk.tallies[(piece << width) + digit];
        starts[digit + 1] = starts[digit] + sum;
        left[digit] = !sum || !is_wanted(all->row->order, rank + starts[digit], rank + starts[digit + 1]);
    }
    NAME(places)(&walk, pieces.count);
    each_piece(pieces, NAME(spread), &walk);
    int64_t at = 0;
    for (int digit = 0; digit < 1 << width; digit++) {
        const int64_t here = starts[digit + 1] - starts[digit];
        if (left[digit])
            continue;
        NAME(select)(all, spare + at, items + at, here, rank + starts[digit]);
        at += here;
    }
}

/* The results of a row of which only the first few are wanted: those found so far are sorted now and then, and what
   does not come before the last of them is passed over quickly. What was seen of the row is left in `seen`. */
static void NAME(first)(const Row *row, const Space *space, Seen *seen)
{
    const int64_t kept = row->order->kept, length = row->order->length, room = 2 * kept + GLANCE;
    ITEM *found = space->items, items[AT_A_TIME];
    int64_t count = 0;
    int bounded = 0; /* whether the last that may count is known */
    WORD bound = 0;
    for (int64_t from = 0; from < length; from += AT_A_TIME) {
        const int64_t now = length - from < AT_A_TIME ? length - from : AT_A_TIME;
        FILL(row, from, now, items, seen);
        for (int64_t i = 0, end; i < now; i = end) {
            end = i + GLANCE < now ? i + GLANCE : now;
            if (bounded && end - i == GLANCE) {
                WORD none = 1;
                for (int64_t j = i; j < i + GLANCE; j++)
                    none &= KEY(items[j]) >= bound;
                if (none)
                    continue;
            }
            for (int64_t j = i; j < end; j++) {
                found[count] = items[j];
                count += !bounded | (KEY(items[j]) < bound);
            }
            if (count + GLANCE > room) {
                const ITEM *sorted = NAME(merged)(found, space->spare, count);
                memmove(found, sorted, (size_t)kept * sizeof *found);
                count = kept;
                bound = KEY(found[kept - 1]);
                bounded = 1;
            }
        }
    }
    NAME(write)(row, NAME(merged)(found, space->spare, count), 0, kept);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* The results of one row. Returns 0 where equal keys stand for different bits, so that items need places. */
static int NAME(one_row)(const Row *row, const Space *space, Pieces pieces)
{
    const int64_t length = row->order->length;
    Seen seen = seen_nothing();
    if (length > MERGED && row->order->kept <= length / 8 && row->order->ranges[0].end == row->order->kept) {
        NAME(first)(row, space, &seen);
        return !seen.mixed || HAS_PLACE;
    }
    NAME(Walk) walk = {
        .row = row, .items = space->items, .spare = space->spare, .count = length, .piece = pieces.size,
        .tallies = space->tallies, .seen = space->seen,
    };
    each_piece(pieces, NAME(fill), &walk);
    for (int64_t piece = 0; piece < pieces.count; piece++)
        see(&seen, &space->seen[piece]);
    if (seen.mixed && !HAS_PLACE)
        return 0;
    if (length <= MERGED)
        NAME(write)(row, NAME(merged)(walk.items, walk.spare, length), 0, length);
    else if (row->order->kept <= length / 2)
        NAME(select)(&walk, walk.items, walk.spare, length, 0);
    else {
        NAME(in_order)(&walk, pieces, &seen, 0);
        each_piece(pieces, NAME(write_pieces), &walk);
    }
    return 1;
}

#ifdef COLUMNS
/* The results of short rows, as many at a time as a vector has lanes. Returns how many rows these were, as a negative
   number where equal keys stand for different bits, so that nothing was done. */
static int64_t NAME(abreast)(
    EshkolOrder *order, int64_t number, int64_t end, const Compared *pairs, int64_t pair_count)
{
    const int64_t length = order->length, rows = end - number < ABREAST ? end - number : ABREAST;
    const ITEM top = (ITEM)1 << (8 * sizeof(ITEM) - 1); /* vectors compare signed numbers */
    ITEM row_items[SHORT], keys[SHORT * ABREAST] = {0};
    for (int64_t lane = 0; lane < rows; lane++) {
        const Row row = row_of(order, number + lane);
        Seen seen = seen_nothing();
        FILL(&row, 0, length, row_items, &seen);
        if (seen.mixed && !HAS_PLACE)
            return -rows;
        for (int64_t i = 0; i < length; i++)
            keys[i * ABREAST + lane] = row_items[i] ^ top;
    }
    COLUMNS(keys, pairs, pair_count);
    for (int64_t lane = 0; lane < rows; lane++) {
        const Row row = row_of(order, number + lane);
        for (int64_t i = 0; i < length; i++)
            row_items[i] = keys[i * ABREAST + lane] ^ top;
        NAME(write)(&row, row_items, 0, length);
    }
    return rows;
}
#endif

#undef NAME
#undef ITEM
#undef WORD
#undef KEY
#undef PLACE
#undef HAS_PLACE
#undef NETWORK
#undef COLUMNS
#undef ABREAST
#undef QUICK
#undef DIVIDED
#undef RUN
#undef BEFORE
#undef FILL
#undef VALUE
