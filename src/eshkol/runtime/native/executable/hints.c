/* What to do about a condition that no one handled: a row of the program's table that fits what was said. */
#include "program.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_GROUPS = 10, LONGEST = 60 /* characters of a value in a hint */ };

static bool matches(const char *pattern, const char *message, regmatch_t *groups) {
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED)) return false;
    bool found = regexec(&compiled, message, MOST_GROUPS, groups, 0) == 0;
    regfree(&compiled);
    return found;
}

static int characters(const char *text, regoff_t from, regoff_t to) {
    int count = 0;
    for (; from < to; from++) count += ((unsigned char)text[from] & 0xC0) != 0x80;
    return count;
}

static void tell(FILE *out, const char *hint, const char *message, const regmatch_t *groups) {
    fputs("hint: ", out);
    for (; *hint; hint++) {
        if (*hint >= MOST_GROUPS) {
            fputc(*hint, out);
            continue;
        }
        regmatch_t group = groups[(int)*hint];
        if (characters(message, group.rm_so, group.rm_eo) > LONGEST) fputs("…", out);
        else fprintf(out, "%.*s", (int)(group.rm_eo - group.rm_so), message + group.rm_so);
    }
    fputc('\n', out);
}

static const char *next(const char *text) { return text + strlen(text) + 1; }

static void tell_of_arguments(FILE *out, const char *message, const char *several) {
    regmatch_t groups[MOST_GROUPS];
    if (!matches("takes (at least |at most )?([0-9]+)( (to|or) ([0-9]+))? arguments?, but was given ([0-9]+)", message,
                 groups)) {
        if (matches("expected 1 value, but got [1-9]", message, groups)) fprintf(out, "hint: %s\n", several);
        return;
    }
    int least = atoi(message + groups[2].rm_so), given = atoi(message + groups[6].rm_so);
    int most = groups[5].rm_so < 0 ? least : atoi(message + groups[5].rm_so);
    if (given < least) fprintf(out, "hint: %d more must be given\n", least - given);
    else
        fprintf(out, "hint: %d must be left out, or a parenthesis stands in the wrong place\n", given - most);
}

void esk_tell_hint(FILE *out, const char *kind, const char *message) {
    regmatch_t groups[MOST_GROUPS];
    const char *row = esk_program.hints;
    for (; *row; row = next(next(next(row))))
        if (!strcmp(row, kind) && matches(next(row), message, groups)) {
            tell(out, next(next(row)), message, groups);
            return;
        }
    if (!strcmp(kind, "wrong-arity")) tell_of_arguments(out, message, next(row));
}
