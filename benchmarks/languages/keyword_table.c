/* 200,000 words, built as they come, found among 500 keywords or not: an open hash table of our own. The limit is
 * volatile, so that they are looked up when it runs. */
#include <stdint.h>
#include <string.h>

enum { KEYWORDS = 500, PLACES = 1024, LONGEST = 24 };

struct entry {
    char word[LONGEST];
    size_t size;
    long number;
};

static volatile long limit = 200000;
static struct entry table[PLACES];

/* Write "kw_" and the number in decimal; returns how many bytes that is. */
static size_t build(char *word, long number) {
    char digits[LONGEST];
    size_t count = 0, size = 3;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    memcpy(word, "kw_", 3);
    while (count != 0) word[size++] = digits[--count];
    return size;
}

/* The place of the word, or the free one where it would stand; the hash is FNV-1a. */
static struct entry *place(const char *word, size_t size) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)word[i]) * 16777619u;
    struct entry *at = &table[hash % PLACES];
    while (at->size != 0 && (at->size != size || memcmp(at->word, word, size) != 0)) {
        at = at == &table[PLACES - 1] ? table : at + 1;
    }
    return at;
}

int main(void) {
    char word[LONGEST];
    for (long i = 0; i < KEYWORDS; i++) {
        size_t size = build(word, i);
        struct entry *at = place(word, size);
        memcpy(at->word, word, size);
        at->size = size;
        at->number = i;
    }
    long last = limit, sum = 0;
    for (long i = 1; i <= last; i++) {
        const struct entry *at = place(word, build(word, i % 600));
        sum += at->size != 0 ? at->number : -1;
    }
    return sum != 41528550;
}
