/* Objects that LLVM wrote, into memory: sections get places, relocations are carried out, code becomes executable.
 *
 * Comes in: an ELF object of this machine (AArch64 or x86-64), and the addresses of the symbols outside that it refers
 * to. Goes out: the addresses of its own. This does what a just-in-time linker of LLVM does, without LLVM: a program
 * whose code is in the cache starts without loading it.
 *
 * Code is kept in regions (code.h). Units lie side by side in a region, so a small one costs no more than its bytes.
 * Regions are freed together, when the engine ends that they belong to; but those of code that is collected belong to
 * the heap. Nothing here allocates on the heap of Scheme or calls Scheme. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "code.h"

#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_REGION ((size_t)2 << 20) /* bytes of code, and as many of data; each further one is twice as large */
#define LAST_REGION ((size_t)64 << 20)
#define LARGEST ((uint64_t)256 << 20) /* bytes of a section */
#define STUB_BYTES 16

typedef struct Code {
    Region *regions;
    size_t first; /* bytes of its first region */
} Code;

typedef struct { const char *name; uint64_t address; } Outside;

typedef struct {
    const uint8_t *object;
    size_t size;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *sections;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    size_t names_size;
    Region *region;
    int is_unit;             /* whether it is a region of units that are collected */
    uint64_t *places;        /* of sections: where the code will look for them; 0 for those that are not loaded */
    uint8_t **writers;       /* where they are written */
    uint64_t *addresses;     /* of symbols */
    uint64_t *got;           /* per symbol: the address of its entry in the table of addresses, 0 for none */
    uint64_t *stubs;         /* per symbol: the address of a jump to it, 0 for none */
    size_t code_at, data_at; /* the end of what is used of the region: stubs and the table grow there */
} Link;

/* `first`: bytes of the first region, a multiple of the size of pages, or 0 for code of many units. */
Code *esk_new_code(uint64_t first) {
    Code *code = calloc(1, sizeof *code);
    if (code) code->first = first ? first : FIRST_REGION;
    return code;
}

void esk_free_code(Code *code) {
    while (code->regions) {
        Region *next = code->regions->next;
        esk_free_region(code->regions);
        code->regions = next;
    }
    free(code);
}

/* A region with this much room. */
static Region *region_for(Code *code, size_t code_bytes, size_t data_bytes) {
    Region *first = code->regions;
    if (first && first->owner == getpid() && first->size - first->code_used >= code_bytes &&
        first->size - first->data_used >= data_bytes)
        return first;
    size_t size = first ? first->size * 2 : code->first;
    if (size > LAST_REGION) size = LAST_REGION;
    while (size < code_bytes || size < data_bytes) size *= 2;
    Region *made = esk_new_region(size);
    if (made) {
        made->next = first;
        code->regions = made;
    }
    return made;
}

static size_t aligned(size_t at, size_t to) { return (at + to - 1) / to * to; }

static int inside(const Link *link, uint64_t offset, uint64_t bytes) {
    return offset <= link->size && bytes <= link->size - offset;
}

static int is_code(const Elf64_Shdr *section) { return (section->sh_flags & SHF_EXECINSTR) != 0; }

static int is_loaded(const Elf64_Shdr *section) { return (section->sh_flags & SHF_ALLOC) && section->sh_size > 0; }

static int read_head(Link *link) {
    const Elf64_Ehdr *head = link->head = (const Elf64_Ehdr *)link->object;
    if (link->size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_type != ET_REL)
        return 0;
    if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff % 8 != 0 ||
        !inside(link, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)))
        return 0;
    link->sections = (const Elf64_Shdr *)(link->object + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *section = &link->sections[i];
        if (section->sh_type != SHT_NOBITS && !inside(link, section->sh_offset, section->sh_size)) return 0;
        if (section->sh_size > LARGEST || section->sh_addralign > 4096) return 0;
        if (section->sh_type == SHT_SYMTAB) {
            if (section->sh_link >= head->e_shnum || section->sh_offset % 8 != 0) return 0;
            const Elf64_Shdr *names = &link->sections[section->sh_link];
            link->symbols = (const Elf64_Sym *)(link->object + section->sh_offset);
            link->symbol_count = section->sh_size / sizeof(Elf64_Sym);
            link->names = (const char *)link->object + names->sh_offset;
            link->names_size = names->sh_size;
            if (names->sh_type != SHT_STRTAB || names->sh_size == 0 || link->names[names->sh_size - 1] != 0) return 0;
        }
    }
    return link->symbols != NULL;
}

/* Places for the sections; behind them, room for a stub and an entry of the table for every symbol. */
static const char *place_sections(Link *link, Code *code, Context *collected) {
    size_t code_bytes = 0, data_bytes = 0;
    for (int i = 0; i < link->head->e_shnum; i++) {
        const Elf64_Shdr *section = &link->sections[i];
        if (!is_loaded(section)) continue;
        size_t *bytes = is_code(section) ? &code_bytes : &data_bytes;
        *bytes += section->sh_size + (section->sh_addralign ? section->sh_addralign : 1);
    }
    code_bytes += (link->symbol_count + 1) * STUB_BYTES + 64;
    data_bytes += (link->symbol_count + 1) * sizeof(uint64_t) + 64;
    Region *region = NULL;
    if (collected) region = esk_room_for_unit(collected, code_bytes > data_bytes ? code_bytes : data_bytes);
    link->is_unit = region != NULL;
    if (!region) region = region_for(code, code_bytes, data_bytes);
    link->region = region;
    if (!region) return "there is no memory for compiled code, or this system does not let it be executed";
    size_t code_at = aligned(region->code_used, 64), data_at = aligned(region->data_used, 16);
    for (int i = 0; i < link->head->e_shnum; i++) {
        const Elf64_Shdr *section = &link->sections[i];
        if (!is_loaded(section)) continue;
        size_t *at = is_code(section) ? &code_at : &data_at;
        *at = aligned(*at, section->sh_addralign ? section->sh_addralign : 1);
        uint8_t *place = region->code + (is_code(section) ? 0 : region->size) + *at;
        link->places[i] = (uint64_t)(uintptr_t)place;
        link->writers[i] = is_code(section) ? region->writer + *at : place;
        if (section->sh_type != SHT_NOBITS)
            memcpy(link->writers[i], link->object + section->sh_offset, section->sh_size);
        else
            memset(link->writers[i], 0, section->sh_size);
        *at += section->sh_size;
    }
    link->code_at = aligned(code_at, STUB_BYTES);
    link->data_at = aligned(data_at, sizeof(uint64_t));
    return NULL;
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static uint64_t hash(const char *text) {
    uint64_t found = 14695981039346656037u;
    for (; *text; text++) found = (found ^ (uint8_t)*text) * 1099511628211u;
    return found ^ found >> 29;
}

/* What LLVM calls of its own accord. */
static uint64_t of_the_library(const char *name) {
    if (strcmp(name, "memcpy") == 0) return (uint64_t)(uintptr_t)memcpy;
    if (strcmp(name, "memmove") == 0) return (uint64_t)(uintptr_t)memmove;
    if (strcmp(name, "memset") == 0) return (uint64_t)(uintptr_t)memset;
    return strcmp(name, "memcmp") == 0 || strcmp(name, "bcmp") == 0 ? (uint64_t)(uintptr_t)memcmp : 0;
}

static const char *find_symbols(Link *link, const char *names, const uint64_t *addresses, int64_t count) {
    size_t slots = 16;
    while (slots < (size_t)count * 2) slots *= 2;
    Outside *table = calloc(slots, sizeof *table);
    if (!table) return "there is no memory for the symbols of compiled code";
    for (int64_t i = 0; i < count; i++) {
        size_t at = hash(names) & (slots - 1);
        while (table[at].name && strcmp(table[at].name, names) != 0) at = (at + 1) & (slots - 1);
        table[at] = (Outside){names, addresses[i]};
        names += strlen(names) + 1;
    }
    const char *error = NULL;
    for (size_t i = 1; i < link->symbol_count && !error; i++) {
        const Elf64_Sym *symbol = &link->symbols[i];
        if (symbol->st_name >= link->names_size) error = "compiled code has a symbol without a name";
        else if (symbol->st_shndx == SHN_UNDEF) {
            const char *name = link->names + symbol->st_name;
            size_t at = hash(name) & (slots - 1);
            while (table[at].name && strcmp(table[at].name, name) != 0) at = (at + 1) & (slots - 1);
            link->addresses[i] = table[at].name ? table[at].address : of_the_library(name); /* 0: an error if used */
        } else if (symbol->st_shndx == SHN_ABS) {
            link->addresses[i] = symbol->st_value;
        } else if (symbol->st_shndx < link->head->e_shnum && link->places[symbol->st_shndx]) {
            link->addresses[i] = link->places[symbol->st_shndx] + symbol->st_value;
        }
    }
    free(table);
    return error;
}

/* The entry of a symbol in the table of addresses. */
static uint64_t got(Link *link, size_t symbol) {
    if (!link->got[symbol]) {
        uint64_t *entry = (uint64_t *)(link->region->code + link->region->size + link->data_at);
        *entry = link->addresses[symbol];
        link->got[symbol] = (uint64_t)(uintptr_t)entry;
        link->data_at += sizeof *entry;
    }
    return link->got[symbol];
}

/* A jump to a symbol that is too far away for a call. */
static uint64_t stub(Link *link, size_t symbol) {
    if (!link->stubs[symbol]) {
        uint8_t *made = link->region->writer + link->code_at;
#if defined(__aarch64__)
        const uint32_t jump[] = {0x58000050, 0xd61f0200}; /* ldr x16, 8 further; br x16 */
#else
        const uint8_t jump[] = {0xff, 0x25, 2, 0, 0, 0, 0, 0}; /* jmp *2(%rip) */
#endif
        memcpy(made, jump, 8);
        memcpy(made + 8, &link->addresses[symbol], 8);
        link->stubs[symbol] = (uint64_t)(uintptr_t)(link->region->code + link->code_at);
        link->code_at += STUB_BYTES;
    }
    return link->stubs[symbol];
}

/* ---- relocations ------------------------------------------------------------------------------------------------- */

static const char TOO_FAR[] = "compiled code refers to something too far away";
static const char UNKNOWN[] = "compiled code has a relocation that is not known here";

static int fits(int64_t value, int bits) {
    int64_t half = (int64_t)1 << (bits - 1);
    return value >= -half && value < half;
}

static void put32(uint8_t *at, uint32_t value) { memcpy(at, &value, 4); }
static void put64(uint8_t *at, uint64_t value) { memcpy(at, &value, 8); }

#if defined(__aarch64__)
#define MACHINE EM_AARCH64

static uint32_t word(const uint8_t *at) {
    uint32_t found;
    memcpy(&found, at, 4);
    return found;
}

static const char *page_offset(uint8_t *at, uint64_t target, uint64_t place) {
    int64_t pages = (int64_t)(target >> 12) - (int64_t)(place >> 12);
    if (!fits(pages, 21)) return TOO_FAR;
    put32(at, (word(at) & 0x9f00001fu) | ((uint32_t)pages & 3) << 29 | ((uint32_t)(pages >> 2) & 0x7ffff) << 5);
    return NULL;
}

/* The low 12 bits of an address, in units of 1 << scale bytes. */
static const char *low(uint8_t *at, uint64_t target, int scale) {
    uint64_t bits = target & 0xfff;
    if (bits & (((uint64_t)1 << scale) - 1)) return UNKNOWN;
    put32(at, (word(at) & ~(0xfffu << 10)) | (uint32_t)(bits >> scale) << 10);
    return NULL;
}

static int is_wide(uint32_t type) { return type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64; }

static const char *relocate(Link *link, uint32_t type, size_t symbol, int64_t addend, uint8_t *at, uint64_t place) {
    uint64_t target = link->addresses[symbol] + (uint64_t)addend;
    int64_t distance = (int64_t)(target - place);
    switch (type) {
    case R_AARCH64_NONE: return NULL;
    case R_AARCH64_ABS64: put64(at, target); return NULL;
    case R_AARCH64_PREL64: put64(at, (uint64_t)distance); return NULL;
    case R_AARCH64_PREL32:
        if (!fits(distance, 32)) return TOO_FAR;
        put32(at, (uint32_t)distance);
        return NULL;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
        if (!fits(distance, 28)) distance = (int64_t)(stub(link, symbol) - place);
        if (!fits(distance, 28)) return TOO_FAR;
        put32(at, (word(at) & 0xfc000000u) | ((uint32_t)(distance >> 2) & 0x03ffffffu));
        return NULL;
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADR_PREL_PG_HI21_NC: return page_offset(at, target, place);
    case R_AARCH64_ADR_GOT_PAGE: return page_offset(at, got(link, symbol), place);
    case R_AARCH64_LD64_GOT_LO12_NC: return low(at, got(link, symbol), 3);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return low(at, target, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return low(at, target, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return low(at, target, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return low(at, target, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return low(at, target, 4);
    default: return UNKNOWN;
    }
}

#elif defined(__x86_64__)
#define MACHINE EM_X86_64

static int is_wide(uint32_t type) { return type == R_X86_64_64 || type == R_X86_64_PC64; }

static const char *relocate(Link *link, uint32_t type, size_t symbol, int64_t addend, uint8_t *at, uint64_t place) {
    uint64_t target = link->addresses[symbol] + (uint64_t)addend;
    int64_t distance = (int64_t)(target - place);
    switch (type) {
    case R_X86_64_NONE: return NULL;
    case R_X86_64_64: put64(at, target); return NULL;
    case R_X86_64_PC64: put64(at, (uint64_t)distance); return NULL;
    case R_X86_64_PLT32:
        if (!fits(distance, 32)) distance = (int64_t)(stub(link, symbol) + (uint64_t)addend - place);
        break;
    case R_X86_64_PC32: break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: distance = (int64_t)(got(link, symbol) + (uint64_t)addend - place); break;
    default: return UNKNOWN;
    }
    if (!fits(distance, 32)) return TOO_FAR;
    put32(at, (uint32_t)distance);
    return NULL;
}

#else
#error "compiled code can be loaded on AArch64 and x86-64"
#endif

static const char *relocate_section(Link *link, const Elf64_Shdr *section) {
    if (section->sh_info >= link->head->e_shnum || !link->places[section->sh_info]) return NULL;
    const Elf64_Shdr *into = &link->sections[section->sh_info];
    const Elf64_Rela *rows = (const Elf64_Rela *)(link->object + section->sh_offset);
    if (section->sh_offset % 8 != 0 || into->sh_type == SHT_NOBITS) return UNKNOWN;
    for (size_t i = 0; i < section->sh_size / sizeof *rows; i++) {
        size_t symbol = ELF64_R_SYM(rows[i].r_info);
        uint32_t type = ELF64_R_TYPE(rows[i].r_info);
        uint64_t bytes = is_wide(type) ? 8 : 4;
        if (symbol >= link->symbol_count || into->sh_size < bytes || rows[i].r_offset > into->sh_size - bytes)
            return UNKNOWN;
        if (!link->addresses[symbol] && type != 0) return "compiled code refers to a symbol that is nowhere";
        uint64_t offset = rows[i].r_offset, place = link->places[section->sh_info] + offset;
        uint8_t *at = link->writers[section->sh_info] + offset;
        const char *error = relocate(link, type, symbol, rows[i].r_addend, at, place);
        if (error) return error;
    }
    return NULL;
}

static const char *relocate_all(Link *link) {
    for (int i = 0; i < link->head->e_shnum; i++) {
        const char *error = link->sections[i].sh_type == SHT_RELA ? relocate_section(link, &link->sections[i]) : NULL;
        if (error) return error;
    }
    return NULL;
}

/* Load an object; where there is a context, as a unit that its heap collects, if there is room for it among them.
 * `names` are `count` names of symbols outside, each ended by a zero, with their addresses; `wanted` are the names of
 * `wanted_count` symbols of the object, whose addresses go to `found` (0 for those it does not have). NULL, or what was
 * wrong. */
const char *esk_link(
    Code *code, Context *collected, const void *object, int64_t size, const char *names, const uint64_t *addresses,
    int64_t count, const char *wanted, uint64_t *found, int64_t wanted_count
) {
    Link link = {.object = object, .size = (size_t)size};
    if (!read_head(&link) || link.head->e_machine != MACHINE) return "this is not compiled code for this machine";
    size_t sections = link.head->e_shnum, symbols = link.symbol_count;
    uint64_t *room = calloc(2 * sections + 3 * symbols, sizeof *room);
    if (!room) return "there is no memory to load compiled code";
    link.places = room;
    link.writers = (uint8_t **)(room + sections);
    link.addresses = room + 2 * sections;
    link.got = link.addresses + symbols;
    link.stubs = link.got + symbols;
    const char *error = place_sections(&link, code, collected);
    if (!error) error = find_symbols(&link, names, addresses, count);
    if (!error) error = relocate_all(&link);
    if (!error) {
        Region *region = link.region;
        uint8_t *start = region->code + region->code_used, *end = region->code + link.code_at;
        __builtin___clear_cache((char *)start, (char *)end);
        region->code_used = link.code_at;
        region->data_used = link.data_at;
        if (link.is_unit && !esk_add_unit(collected, link.size)) error = "there is no memory to load compiled code";
        for (int64_t i = 0; i < wanted_count; i++, wanted += strlen(wanted) + 1) {
            found[i] = 0;
            for (size_t symbol = 1; symbol < symbols; symbol++)
                if (strcmp(link.names + link.symbols[symbol].st_name, wanted) == 0 &&
                    link.symbols[symbol].st_shndx != SHN_UNDEF)
                    found[i] = link.addresses[symbol];
        }
    }
    free(room);
    return error;
}
