/* Conditions that no one handled, told as `eshkol run` tells them: the message, the line with a caret, who called whom.
 *
 * In: a condition. Out: text in a file. Which line an address belongs to stands in the program's tables; what
 * is told of each line was written there when the program was built (src/eshkol/executable/places.py). */
#include "program.h"
#include "heap.h"
#include "ports.h"

#include <stdio.h>
#include <stdlib.h>

enum { FAILED = 1, INTERRUPTED = 130, BROKEN_PIPE = 141, FRAMES_SHOWN = 12, MOST_SITES = 256, MESSAGE_SHOWN = 2000 };

const uint64_t *esk_uncaught_addresses(int64_t *count);

/* ---- which lines ------------------------------------------------------------------------------------------------ */

static const Site *site_of(uint64_t address) {
    uint64_t offset = address - 1 - (uint64_t)(uintptr_t)esk_program.code;
    int64_t low = 0, high = esk_program.start_count;
    while (low < high) { /* starts below `low` are not behind the address */
        int64_t middle = low + (high - low) / 2;
        if (esk_program.starts[middle] <= offset) low = middle + 1;
        else high = middle;
    }
    if (!low || low == esk_program.start_count) return NULL; /* the last start is where the code ends */
    uint32_t place = esk_program.places[low - 1];
    return place == (uint32_t)NO_SITE ? NULL : &esk_program.sites[place];
}

/* The sites that are told, innermost first: without `raise` and its kin at the beginning, and without procedures of the
 * library that are no one else's business. */
static int sites_of(const uint64_t *addresses, int64_t count, const Site **sites) {
    int found = 0;
    bool raising = true;
    for (int64_t i = 0; i < count && found < MOST_SITES; i++) {
        const Site *site = site_of(addresses[i]);
        if (!site) continue;
        raising = raising && site->flags & SITE_RAISING;
        if (!raising && !(site->flags & SITE_HIDDEN)) sites[found++] = site;
    }
    return found;
}

/* Of calls within the library one after the other, only the outermost is told. */
static bool is_within(const Site *site, const Site *outer) {
    return outer && site->flags & SITE_STANDARD && outer->flags & SITE_STANDARD;
}

static void tell_trace(FILE *out, const Site **sites, int count) {
    const char *lines[MOST_SITES];
    int times[MOST_SITES], told = 0;
    for (int i = 0; i < count; i++) {
        if (is_within(sites[i], i + 1 < count ? sites[i + 1] : NULL)) continue;
        const char *line = esk_program.strings + sites[i]->trace;
        if (told && !strcmp(lines[told - 1], line)) times[told - 1]++;
        else {
            times[told] = 1;
            lines[told++] = line;
        }
    }
    for (int i = 0; told > 1 && i < told && i < FRAMES_SHOWN; i++) {
        fprintf(out, "  in %s", lines[i]);
        if (times[i] > 1) fprintf(out, " (%d times)", times[i]);
        fputc('\n', out);
    }
    if (told > FRAMES_SHOWN) fprintf(out, "  and %d more\n", told - FRAMES_SHOWN);
}

static void tell_line(FILE *out, const Site *site) {
    if (!site) return;
    const char *strings = esk_program.strings;
    fprintf(out, "  --> %s:%u:%u\n%5u | %s\n", strings + site->file, site->line, site->column, site->line,
            strings + site->text);
    int gutter = snprintf(NULL, 0, "%5u | ", site->line);
    fprintf(out, "%*s^", gutter + (int)site->before, "");
    for (uint32_t i = 1; i < site->marked; i++) fputc('~', out);
    fputc('\n', out);
}

bool esk_place_of(const uint64_t *addresses, int64_t count, char *text, size_t room) {
    for (int64_t i = 0; i < count; i++) {
        const Site *site = site_of(addresses[i]);
        if (!site || site->flags & SITE_STANDARD) continue;
        snprintf(text, room, "%s:%u", esk_program.strings + site->file, site->line);
        return true;
    }
    return false;
}

/* ---- what it says ----------------------------------------------------------------------------------------------- */

static Value field_of(Value error, int index) { return ((Record *)esk_pointer(error))->fields[index]; }

static bool has_kind(Value condition, const char *kind) {
    Value found = field_of(condition, FIELD_KIND);
    return esk_is(found, TAG_SYMBOL) && !strcmp(((Symbol *)esk_pointer(found))->name, kind);
}

/* A message of at most so many characters, and how many there were before; UTF-8. */
typedef struct { char *bytes; size_t used, room; int64_t characters; bool cut; } Text;

static void add(Text *text, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool begins = ((unsigned char)bytes[i] & 0xC0) != 0x80;
        if (begins && text->characters == MESSAGE_SHOWN) text->cut = true;
        if (text->cut) return;
        text->characters += begins;
        if (text->used + 8 > text->room) {
            size_t room = text->room ? 2 * text->room : 256;
            char *more = realloc(text->bytes, room);
            if (!more) return;
            text->bytes = more;
            text->room = room;
        }
        text->bytes[text->used++] = bytes[i];
        text->bytes[text->used] = 0;
    }
}

static void add_value(Context *context, Text *text, Value value, int style) {
    Value utf8 = esk_utf8_of(context, esk_write_text(context, value, style));
    const Bytevector *bytes = esk_pointer(utf8);
    const char *end = memchr(bytes->bytes, 0, (size_t)bytes->length);
    add(text, (const char *)bytes->bytes, end ? (size_t)(end - (const char *)bytes->bytes) : (size_t)bytes->length);
}

static Text said;

/* The message of an error object with its irritants, or the condition itself. */
static Value describe(Context *context, const Value *args, int64_t count) {
    (void)count;
    Value condition = args[0];
    if (!esk_is_error(context, condition)) {
        add(&said, "uncaught exception: ", 20);
        add_value(context, &said, condition, 1);
        return ESK_UNSPECIFIED;
    }
    Value who = field_of(condition, FIELD_WHO);
    if (esk_is(who, TAG_SYMBOL)) {
        add_value(context, &said, who, 0);
        add(&said, ": ", 2);
    }
    add_value(context, &said, field_of(condition, FIELD_MESSAGE), 0);
    for (Value rest = field_of(condition, FIELD_IRRITANTS); esk_is(rest, TAG_PAIR); rest = esk_cdr(rest)) {
        add(&said, " ", 1);
        add_value(context, &said, esk_car(rest), 1);
    }
    return ESK_UNSPECIFIED;
}

static const Primitive describe_row = {
    "%describe", "(%describe condition)", 1, 1, CALL_N, (const void *)describe, "",
};

/* A message begins a line of the terminal. */
static Value end_line(Context *context, const Value *args, int64_t count) {
    (void)args, (void)count;
    Port *port = esk_pointer(esk_standard_port(context, 1));
    if (port->descriptor >= 0 && port->flags & PORT_BY_LINE && esk_port_mid_line(port)) {
        esk_port_put(context, port, '\n');
        esk_port_settle(context, port);
    }
    return ESK_UNSPECIFIED;
}

static const Primitive end_line_row = {"%end-line", "(%end-line)", 0, 0, CALL_N, (const void *)end_line, ""};

static bool ends_with(const Text *text, const char *end) {
    size_t size = strlen(end);
    return text->used >= size && !memcmp(text->bytes + text->used - size, end, size);
}

int esk_report(Context *context, Value condition, FILE *out) {
    bool is_error = esk_is_error(context, condition);
    const Site *sites[MOST_SITES];
    int64_t count;
    const uint64_t *addresses = esk_uncaught_addresses(&count);
    uint64_t copied[MOST_SITES];
    if (is_error) {
        Value trace = field_of(condition, FIELD_TRACE);
        const Bytevector *bytes = esk_is(trace, TAG_BYTEVECTOR) ? esk_pointer(trace) : NULL;
        count = bytes ? bytes->length / 8 : 0;
        if (count > MOST_SITES) count = MOST_SITES;
        if (count) memcpy(copied, bytes->bytes, (size_t)count * 8);
        addresses = copied;
    }
    int found = sites_of(addresses, count, sites);
    const Site *line = NULL;
    for (int i = 0; !line && i < found; i++)
        if (!(sites[i]->flags & SITE_STANDARD)) line = sites[i];
    context->interrupted = 0;
    Value unused;
    esk_enter_primitive(context, &end_line_row, NULL, 0, &unused);
    int error = esk_flush_standard_ports(context);
    if (is_error && has_kind(condition, "interrupt")) {
        fputs("interrupted\n", out);
        tell_line(out, line);
        tell_trace(out, sites, found);
        return INTERRUPTED;
    }
    said.used = 0;
    if (esk_enter_primitive(context, &describe_row, &condition, 1, &unused)) add(&said, " …", 4);
    bool is_pipe = is_error && has_kind(condition, "file-error") && ends_with(&said, "Broken pipe \"standard output\"");
    if (is_pipe || (error && !said.used)) return BROKEN_PIPE;
    fprintf(out, "error: %.*s%s\n", (int)said.used, said.bytes ? said.bytes : "", said.cut ? " …" : "");
    tell_line(out, line);
    tell_trace(out, sites, found);
    Value kind = is_error ? field_of(condition, FIELD_KIND) : ESK_FALSE;
    if (esk_is(kind, TAG_SYMBOL) && said.bytes) esk_tell_hint(out, ((Symbol *)esk_pointer(kind))->name, said.bytes);
    return FAILED;
}
